"""Preconditions and postconditions: conditions of the author on a resource or an output.

A condition that is known when the stack is defined is decided here. The others become expressions
that engine/hot/evaluation/assertions.py evaluates.
"""

from dataclasses import dataclass
from typing import Final

from engine.errors import Findings, one_of
from engine.hot.evaluation.assertions import Assertion
from engine.hot.evaluation.evaluator import Evaluator
from engine.hot.expressions.expression import REFUSED, Call, Expression, is_static
from engine.hot.functions.function import FunctionError, UndecidedError
from engine.hot.functions.logic import LOGIC
from engine.words import Json

KEYS: Final = ("assert", "message")
#: Maximum number of assertions of one list, and of characters of a message.
MAX_ASSERTIONS: Final = 50
MAX_MESSAGE: Final = 1000
FORM: Final = "Write [{assert: condition, message: text}]."


@dataclass(slots=True)
class AssertionReader:
    """Reads the assertions of one resource or output. kind: `precondition` or `postcondition`.
    owner: the resource that they may read itself, or "". secret: one of them reads a secret."""

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
        if not isinstance(item, dict) or "assert" not in item:
            self._findings.add(place, f"A {self.kind} must be a map with assert and message.", FORM)
            return None
        for key in item:
            if key not in KEYS:
                reason = f'"{key}" is not a valid keyword inside a {self.kind}'
                self._findings.add(f"{place}.{key}", reason, one_of(str(key), KEYS, "Keys"))
        message = self._message(item.get("message"), f"{place}.message")
        holds = self._condition(item["assert"], f"{place}.assert")
        if holds is False:
            self._findings.add(place, f"{self.kind} failed: {message}", "", "ConditionFailed")
        return None if isinstance(holds, bool) else Assertion(holds, message)

    def _message(self, given: Json, place: str) -> str:
        """The text, with secrets masked."""
        text = self.masked.evaluate(given, place)
        if isinstance(text, str) and text and len(text) <= MAX_MESSAGE:
            return text
        self._findings.add(
            place,
            f"The message must be text of 1 to {MAX_MESSAGE} characters, known when the stack is "
            "defined.",
            "Write what to do if the condition does not hold.",
        )
        return "the condition does not hold"

    def _condition(self, snippet: Json, place: str) -> bool | Call:
        """Return whether a condition holds, or its call if that is not known yet. Faults count as
        true."""
        if isinstance(snippet, bool):
            return snippet
        if isinstance(snippet, str):
            return self._named(snippet, place)
        if isinstance(snippet, dict) and len(snippet) == 1:
            ((name, args),) = snippet.items()
            if name in LOGIC:
                return self._logic(name, args, f"{place}.{name}")
        value = self.evaluator.evaluate(snippet, place)
        if isinstance(value, bool | Call):
            return value
        reason = "The condition is neither true nor false."
        remedy = f"Write a condition: {', '.join(LOGIC)}, contains, or a function that gives one."
        self._findings.add(place, reason, remedy)
        return True

    def _named(self, name: str, place: str) -> bool | Call:
        try:
            return self.evaluator.scope.decide(name, place)
        except UndecidedError:
            return self.evaluator.defer(REFUSED, None)
        except FunctionError as wrong:
            self._findings.add(place, str(wrong.args[0]), *map(str, wrong.args[1:2]))
            return True

    def _logic(self, name: str, args: Json, place: str) -> bool | Call:
        if name == "equals":
            return self._equals(args, place)
        if name == "not":
            inner = args[0] if isinstance(args, list) and len(args) == 1 else args
            holds = self._condition(inner, place)
            return not holds if isinstance(holds, bool) else self.evaluator.defer("not", holds)
        if not isinstance(args, list) or len(args) < 2:
            self._findings.add(place, f'"{name}" takes a list of two or more conditions.')
            return True
        items = [self._condition(item, f"{place}[{index}]") for index, item in enumerate(args)]
        decisive = name == "or"
        if decisive in items:
            return decisive
        unknown = [one for one in items if not isinstance(one, bool)]
        return self.evaluator.defer(name, unknown) if unknown else not decisive

    def _equals(self, args: Json, place: str) -> bool | Call:
        if not isinstance(args, list) or len(args) != 2:
            self._findings.add(place, '"equals" takes a list of two values.')
            return True
        values: Expression = self.evaluator.evaluate(args, place)
        if is_static(values):
            return bool(values[0] == values[1])
        return self.evaluator.defer("equals", values)
