"""Preconditions and postconditions: conditions of the author on a resource or an output.

A condition that is known when the stack is defined is decided here. The others become expressions
that engine/hot/evaluation/assertions.py evaluates.
"""

from dataclasses import dataclass
from typing import Final

from engine.errors import Findings, nearest, one_of
from engine.hot.definition.model import ResourceAssertions
from engine.hot.evaluation.assertions import Assertion
from engine.hot.evaluation.evaluator import EvaluationScope, Evaluator
from engine.hot.evaluation.extended_evaluator import make_evaluator
from engine.hot.expressions.expression import (
    REFUSED,
    Expression,
    FunctionCall,
    is_static,
    iterate_calls,
)
from engine.hot.functions.function import FunctionError, UndecidedError
from engine.hot.functions.logic import LOGIC
from engine.hot.template.template import ResourceBody
from engine.words import Json

KEYS: Final = ("assert", "message")
RULE_KEYS: Final = ("when", *KEYS)
#: Maximum number of assertions of one list, and of characters of a message.
MAX_ASSERTIONS: Final = 50
MAX_MESSAGE: Final = 1000
UNKNOWN_MESSAGE: Final = "the condition does not hold"
FORM: Final = "Write [{assert: condition, message: text}]."


def check_rules(rules: Json, scope: EvaluationScope) -> None:
    """Report the rules of a template that do not hold. Those that depend on parameters without a
    value are not decided: they are checked when the stack is created."""
    evaluator = make_evaluator(scope)
    reader = AssertionReader(evaluator, make_evaluator(scope, masked=True), "rule")
    reader.read(rules, "rules")


def read_resource_assertions(
    body: ResourceBody, place: str, evaluator: Evaluator
) -> ResourceAssertions | None:
    """Return the assertions of a resource that are not decided yet; None if there are none."""
    if body.preconditions is None and body.postconditions is None:
        return None
    masked = make_evaluator(evaluator.scope, masked=True)
    masked.owner, masked.each = body.name, evaluator.each
    before = AssertionReader(evaluator, masked, "precondition")
    after = AssertionReader(evaluator, masked, "postcondition", owner=body.name)
    found = ResourceAssertions(
        before.read(body.preconditions, f"{place}.preconditions"),
        after.read(body.postconditions, f"{place}.postconditions"),
        before.secret or after.secret,
    )
    return found if found.preconditions or found.postconditions else None


@dataclass(slots=True)
class AssertionReader:
    """Reads the assertions of one resource or output, or the rules of a template. kind:
    `precondition`, `postcondition` or `rule`. owner: the resource that they may read itself, or "".
    secret: one of them reads a secret."""

    evaluator: Evaluator
    masked: Evaluator
    kind: str
    owner: str = ""
    secret: bool = False

    @property
    def _findings(self) -> Findings:
        return self.evaluator.scope.findings

    def read(self, given: Json, place: str) -> tuple[Assertion, ...]:
        """Return the assertions that are not decided yet. False ones are findings."""
        if given is None:
            return ()
        if not isinstance(given, list) or len(given) > MAX_ASSERTIONS:
            reason = f"This must be a list of at most {MAX_ASSERTIONS} {self.kind}s."
            self._findings.add(place, reason, FORM)
            return ()
        outer, self.evaluator.secret = self.evaluator.secret, False
        read_before = self.owner in self.evaluator.reads
        found = [self._assertion(item, f"{place}[{index}]") for index, item in enumerate(given)]
        self.secret = self.evaluator.secret
        self.evaluator.secret = outer
        self._check_own_name(place, read_before)
        return tuple(one for one in found if one is not None)

    def _check_own_name(self, place: str, read_before: bool) -> None:
        reads, owner = self.evaluator.reads, self.evaluator.owner
        if owner not in reads or read_before:
            return
        reads.discard(owner)  # its own values are known after the operation
        if self.owner != owner and self.kind == "precondition" and not self.evaluator.of_output:
            reason = f'A precondition of "{owner}" cannot read "{owner}": it may not exist yet.'
            self._findings.add(place, reason, "Write a postcondition.")

    def _assertion(self, item: Json, place: str) -> Assertion | None:
        keys = RULE_KEYS if self.kind == "rule" else KEYS
        unknown = [str(key) for key in item if key not in keys] if isinstance(item, dict) else []
        for key in unknown:
            reason = f'"{key}" is not a valid keyword inside a {self.kind}'
            self._findings.add(f"{place}.{key}", reason, one_of(key, keys, "Keys"))
        if not isinstance(item, dict) or "assert" not in item:
            if not any(nearest(key, ("assert",)) for key in unknown):
                reason = f"A {self.kind} must be a map with assert and message."
                self._findings.add(place, reason, FORM)
            return None
        message = self._message(item.get("message"), f"{place}.message")
        holds: bool | FunctionCall = True
        applies = "when" not in item or self._condition(item["when"], f"{place}.when")
        if applies:
            holds = self._condition(item["assert"], f"{place}.assert")
        if self.kind == "rule" and self.evaluator.reads:
            self._refuse_resources(place)
        elif holds is False and applies is True:
            self._findings.add(place, f"{self.kind} failed: {message}", "", "ConditionFailed")
        return None if isinstance(holds, bool) else Assertion(holds, message)

    def _refuse_resources(self, place: str) -> None:
        name = min(self.evaluator.reads)
        self.evaluator.reads.clear()
        reason = f'A rule cannot read the resource "{name}": rules are about parameters.'
        self._findings.add(place, reason, "Write a precondition of a resource.")

    def _message(self, given: Json, place: str) -> str:
        """The text, with secrets masked. Faults are findings, also while the condition holds."""
        outer, reads = self.evaluator.secret, set(self.evaluator.reads)
        before = len(self._findings.all)
        plain = self.evaluator.evaluate(given, place)
        self.evaluator.secret = outer
        self.evaluator.reads.clear()
        self.evaluator.reads |= reads
        if len(self._findings.all) > before or any(
            call.name == REFUSED for call in iterate_calls(plain)
        ):
            return UNKNOWN_MESSAGE  # reported, or of a nested stack's parameter without a value yet
        text = self.masked.evaluate(given, place)
        if isinstance(text, str) and text and len(text) <= MAX_MESSAGE:
            return text
        self._findings.add(
            place,
            f"The message must be text of 1 to {MAX_MESSAGE} characters, known when the stack is "
            "defined.",
            "Write what to do if the condition does not hold.",
        )
        return UNKNOWN_MESSAGE

    def _condition(self, snippet: Json, place: str) -> bool | FunctionCall:
        """Return whether a condition holds, or its call if that is not known yet. Faults count as
        true."""
        if isinstance(snippet, bool) or (isinstance(snippet, str) and "${" not in snippet):
            return self._decide_condition(snippet, place)
        if isinstance(snippet, dict) and len(snippet) == 1:
            ((name, args),) = snippet.items()
            if name in LOGIC:
                return self._logic(name, args, f"{place}.{name}")
        value = self.evaluator.evaluate(snippet, place)
        if isinstance(value, bool | FunctionCall):
            return value
        reason = "The condition is neither true nor false."
        remedy = f"Write a condition: {', '.join(LOGIC)}, contains, or a function that gives one."
        self._findings.add(place, reason, remedy)
        return True

    def _decide_condition(self, name: str | bool, place: str) -> bool | FunctionCall:
        try:
            return self.evaluator.scope.decide(name, place)
        except UndecidedError:
            return self.evaluator.defer(REFUSED, None)
        except FunctionError as wrong:
            self._findings.add(place, wrong.reason, wrong.remedy)
            return True

    def _logic(self, name: str, args: Json, place: str) -> bool | FunctionCall:
        if name == "equals":
            return self._equals(args, place)
        if name == "not":
            inner = args[0] if isinstance(args, list) and len(args) == 1 else args
            holds = self._condition(inner, place)
            return not holds if isinstance(holds, bool) else self.evaluator.defer("not", holds)
        if not isinstance(args, list) or len(args) < 2:
            self._findings.add(
                place,
                f'"{name}" takes a list of two or more conditions.',
                f"Write {name}: [CONDITION, CONDITION].",
            )
            return True
        items = [self._condition(item, f"{place}[{index}]") for index, item in enumerate(args)]
        decisive = name == "or"
        if decisive in items:
            return decisive
        unknown = [one for one in items if not isinstance(one, bool)]
        return self.evaluator.defer(name, unknown) if unknown else not decisive

    def _equals(self, args: Json, place: str) -> bool | FunctionCall:
        if not isinstance(args, list) or len(args) != 2:
            self._findings.add(
                place, '"equals" takes a list of two values.', "Write equals: [VALUE, VALUE]."
            )
            return True
        values: Expression = self.evaluator.evaluate(args, place)
        if is_static(values):
            return bool(values[0] == values[1])
        return self.evaluator.defer("equals", values)
