"""Evaluation of conditions: named conditions are evaluated once for each definition, in any order;
cycles are refused.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from engine.errors import Findings, one_of, public
from engine.hot.expressions.path_lookup import look_up_path
from engine.hot.functions.cfn import find_in_map
from engine.hot.functions.cost_budget import CostBudget
from engine.hot.functions.data import CONTAINS
from engine.hot.functions.function import (
    NO_EFFECT,
    QUOTE_NAMES,
    Function,
    FunctionError,
    InvalidForm,
    UndecidedError,
    quote_as_heat,
    without_secrets,
)
from engine.hot.language.versions import UnavailableReason, Version, successor_remedy
from engine.hot.syntax.references import REFERENCE
from engine.hot.yaql.evaluation import evaluate_yaql
from engine.words import Json


class ConditionFailed(UndecidedError):
    """A named condition is invalid; a finding has the reason."""


class EvaluationError(FunctionError):
    """A condition has a valid form, but no value."""


class MissingParameter(EvaluationError):
    """A condition reads a parameter that is not declared."""


@dataclass(slots=True)
class Conditions:
    """Evaluates conditions: a name, a boolean, or a map that calls a condition function.

    parameters: converted values. unknown: parameters without a value yet; conditions that read them
    raise UndecidedError. mappings: of a CFN template. failed: named conditions that are invalid.
    hidden: names of hidden parameters. secret: the condition under evaluation has read one.
    unreadable: faults of named conditions without a value; as in Heat, these are errors only where
    the condition is used. checking: all conditions are evaluated, used or not.
    refuses_references: `${name}` in a text is a fault; otherwise, it is literal text.
    reported: the findings are complete; faults are raised. undecided: named conditions that depend
    on an unknown value. blocked: those that depend on one of `unreadable`. used_at: the resource
    whose condition is evaluated. read_as_boolean: named conditions such as `on`, with the first
    place that has the boolean which YAML makes of this name. used: names that conditions were
    used by.
    """

    named: Mapping[str, Json]
    version: Version
    parameters: Mapping[str, Json]
    findings: Findings
    unknown: frozenset[str] = frozenset()
    mappings: Mapping[str, Json] = field(default_factory=dict)
    budget: CostBudget = field(default_factory=CostBudget)
    failed: set[str] = field(default_factory=set)
    decided: dict[str, bool] = field(default_factory=dict)
    undecided: set[str] = field(default_factory=set)
    blocked: set[str] = field(default_factory=set)
    deciding: list[str] = field(default_factory=list)
    hidden: frozenset[str] = frozenset()
    secret: bool = False
    unreadable: dict[str, FunctionError] = field(default_factory=dict)
    checking: bool = False
    reported: bool = False
    used_at: str = ""
    refuses_references: bool = False
    read_as_boolean: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def decide_all(self) -> None:
        """Evaluate all named conditions, and report faults."""
        self.checking = True
        for name in self.named:
            with suppress(UndecidedError):
                self._decide_named(name)
        self.checking = False

    def warn_unused(self) -> None:
        """Warn of conditions that have no value and have not been used."""
        for name, wrong in self.unreadable.items():
            place = f"{self.version.dialect.conditions}.{name}"
            reason = f"The unused condition cannot be evaluated: {wrong}"
            self.findings.warn(place, reason, wrong.remedy or "Remove it.", "UnusedCondition")
        for name, used_at in self.read_as_boolean.items():
            if name not in self.used:
                value = "true" if BOOLEAN_NAMES[name.lower()] else "false"
                reason = f'This is the boolean {value}, and not the condition "{name}".'
                self.findings.warn(used_at, reason, QUOTE_NAMES, NO_EFFECT)

    def holds(self, condition: Json, place: str) -> bool | None:
        """Return whether a condition is true; None if it is not decided yet. Faults are added to
        the findings and count as true, so that the conditional part is checked too.
        """
        self.used_at = place
        try:
            return self.decide(condition, place)
        except ConditionFailed:
            return True
        except UndecidedError:
            return None
        except FunctionError as wrong:
            inside = (
                wrong.inside if isinstance(wrong, InvalidForm) and self.refuses_references else ""
            )
            self.findings.add(f"{place}{inside}", wrong.reason, wrong.remedy)
            return True
        finally:
            self.used_at = ""

    def decide(self, condition: Json, place: str) -> bool:
        """Return whether a condition is true. Raises FunctionError, without secret values, and
        UndecidedError.
        """
        if isinstance(condition, bool):
            self._note_boolean(condition, place)
        return self._without_secrets(lambda: self._decide(condition))

    def _note_boolean(self, value: bool, place: str) -> None:
        """Record the named conditions that may be meant by a boolean."""
        for name in self.named:
            if BOOLEAN_NAMES.get(name.lower()) is value:
                used_at = place or self.used_at or f"{self.version.dialect.conditions}.{name}"
                self.read_as_boolean.setdefault(name, used_at)

    def _without_secrets(self, evaluate: Callable[[], bool]) -> bool:
        """Return the result; an error quotes no secret that was read."""
        outer, self.secret = self.secret, False
        try:
            return evaluate()
        except UndecidedError:
            raise
        except FunctionError as wrong:
            shown = without_secrets(wrong) if self.secret else wrong
            if isinstance(wrong, InvalidForm) and shown is not wrong:
                shown = _make_form_error(wrong.inside, shown)
            raise shown from None
        finally:
            self.secret = self.secret or outer

    def _decide(self, condition: Json) -> bool:
        if isinstance(condition, bool):
            return condition
        if isinstance(condition, str):
            self.used.add(condition)
            if condition not in self.named:
                self._check_text(condition)
            return self._decide_named(condition)
        value = self._value(condition) if isinstance(condition, dict) else None
        if not isinstance(value, bool):
            reason = f'Invalid condition "{_text(condition)}"'
            raise EvaluationError(reason, _suggest_plain_name(condition) or CONDITION_REMEDY)
        return value

    def _decide_definition(self, name: str) -> bool:
        """Evaluate the definition of a named condition, which is a boolean or a call."""
        definition = self.named[name]
        if isinstance(definition, str):
            self._check_text(definition)
        value = self._value(definition) if isinstance(definition, dict) else definition
        if not isinstance(value, bool):
            reason = f'The definition of condition "{name}" is invalid: {_text(value)}'
            raise FunctionError(reason, _suggest_plain_name(definition) or DEFINITION_REMEDY)
        return value

    def _decide_named(self, name: str) -> bool:
        if (known := self.decided.get(name)) is not None:
            return known
        self._check_evaluable(name)
        self.deciding.append(name)
        try:
            result = self._without_secrets(lambda: self._decide_definition(name))
        except ConditionFailed:
            (self.blocked if self.checking else self.failed).add(name)
            raise
        except UndecidedError:
            self.undecided.add(name)
            raise
        except RecursionError:
            raise self._failure(
                name,
                FunctionError(
                    "The chain of conditions is too long",
                    "Write a condition that reads fewer others.",
                ),
            ) from None
        except FunctionError as wrong:
            raise self._failure(name, wrong) from None
        finally:
            self.deciding.pop()
        self.decided[name] = result
        return result

    def _check_evaluable(self, name: str) -> None:
        """Raises FunctionError for a name that cannot be evaluated, or has been without a value."""
        if name not in self.named:
            raise EvaluationError(
                f'Invalid condition "{name}"',
                one_of(name, [*self.named], "Conditions") if name else CONDITION_REMEDY,
            )
        if name in self.deciding:
            raise EvaluationError(
                f'Circular definition for condition "{name}"', "Remove one of the references."
            )
        if name in self.failed:
            raise self._failure(name, self.unreadable.get(name))
        if name in self.undecided:
            raise UndecidedError()
        if self.checking and name in self.blocked:
            raise ConditionFailed()

    def _failure(self, name: str, wrong: FunctionError | None) -> FunctionError:
        """Return the error to raise for an invalid condition, and report it once. wrong: None: it
        is reported already.
        """
        if self.reported and wrong is not None:
            return wrong
        self.failed.add(name)
        if wrong is None:
            return ConditionFailed()
        if self.checking and isinstance(wrong, EvaluationError):
            self.unreadable[name] = wrong
            return ConditionFailed()
        self.unreadable.pop(name, None)
        place = f"{self.version.dialect.conditions}.{name}"
        if isinstance(wrong, InvalidForm):
            self.findings.add(f"{place}{wrong.inside}", wrong.reason, wrong.remedy)
        elif isinstance(wrong, MissingParameter):
            self.findings.add(place, wrong.reason, wrong.remedy, "UserParameterMissing")
        else:
            # Heat names the resource that uses the condition.
            used = self.used_at if wrong.reason.startswith("Invalid condition ") else ""
            self.findings.add(
                place,
                f"Condition validation error: {wrong}",
                wrong.remedy,
                sentence=f"{used}: : {wrong}" if used else "",
            )
        return ConditionFailed()

    def _value(self, snippet: Json) -> Json:
        """Evaluate a snippet in which only condition functions may be called."""
        if isinstance(snippet, list):
            return [_evaluate_at(f"[{at}]", self._value, item) for at, item in enumerate(snippet)]
        if not isinstance(snippet, dict):
            return self._check_text(snippet) if isinstance(snippet, str) else snippet
        if len(snippet) == 1:
            ((name, args),) = snippet.items()
            return _evaluate_at(f".{name}", lambda args: self._call(name, args), args)
        return {key: _evaluate_at(f".{key}", self._value, item) for key, item in snippet.items()}

    def _check_text(self, text: str) -> str:
        """Return a text as it is compared. Raises InvalidForm for a text with references."""
        if not self.refuses_references or "${" not in text:
            return text
        for found in REFERENCE.finditer(text):
            if found[1] is not None:
                reason = "References are not replaced in conditions."
                raise InvalidForm(public(reason), public(self._explain_reference(found[1].strip())))
        return text.replace("$${", "${")

    def _explain_reference(self, text: str) -> str:
        """Return what to write in place of a reference."""
        name, *path = text.split(".")
        if name == "each" and "each" not in self.parameters:
            same = "A condition is the same for all resources of a for_each."
            return f"{same} Leave the key out of the for_each instead."
        if text in self.parameters or text in self.unknown or not path:
            return f'Write {{get_param: {text}}}; for the text "${{" itself, write "$${{".'
        return f"Write {{get_param: [{', '.join([name, *path])}]}}."

    def _call(self, name: str, args: Json) -> Json:
        """Evaluate a map with one key, which may be a call."""
        if name in self.version.conditions and name in CALLS:
            return CALLS[name](self, args)
        known = self.version.functions.get(name)
        if self.version.extended and isinstance(known, Function):
            return self._apply(known, args)
        if name in self.version.conditions and isinstance(known, UnavailableReason):
            raise FunctionError(f"The function {name} is {known.value}.", successor_remedy(name))
        if known is not None:
            raise InvalidForm(
                f'The function "{name}" is invalid in this context',
                "Conditions can call " + ", ".join(sorted(self.version.conditions)) + ".",
            )
        return {name: self._value(args)}

    def _apply(self, function: Function, args: Json) -> Json:
        known = self._value(args)
        function.shape(known)
        return self.budget.call(function, known)

    def _get_param(self, args: Json) -> Json:
        parts = self._value(args)
        name, *path = parts if isinstance(parts, list) and parts else [parts]
        if isinstance(name, str) and name in self.unknown:
            raise UndecidedError(name)
        if not isinstance(name, str) or name not in self.parameters:
            near = one_of(str(name), [*self.parameters, *sorted(self.unknown)], "Parameters")
            remedy = QUOTE_NAMES if isinstance(name, bool) else near
            raise MissingParameter(f"The Parameter ({name}) was not provided.", remedy)
        self.secret = self.secret or name in self.hidden
        value = self.budget.count_value(self.parameters[name])
        return look_up_path(value, path, "") if path else value

    def _ref(self, args: Json) -> Json:
        if not isinstance(args, str):
            raise FunctionError(
                'The argument of "Ref" must be the name of a parameter in conditions.',
                "Write the name of a parameter.",
            )
        return self._get_param(args)

    def _find_in_map(self, args: Json) -> Json:
        known = self._value(args)
        if not isinstance(known, list) or len(known) != 3:
            form = "[mapping, key, value]"
            raise InvalidForm(
                f'Arguments to "Fn::FindInMap" must be of the form {form}',
                "Write Fn::FindInMap: [MAP, KEY, VALUE_KEY].",
            )
        return find_in_map(self.mappings, known, hidden=known != args)

    def _equals(self, name: str, args: Json) -> Json:
        if not isinstance(args, list) or len(args) != 2:
            raise InvalidForm(
                f'Arguments to "{name}" must be of the form: [value_1, value_2]',
                f"Write {name}: [VALUE, VALUE].",
            )
        first, second = self._value(args)
        return bool(first == second)

    def _not(self, args: Json) -> Json:
        if isinstance(args, list):
            if len(args) != 1:
                raise FunctionError('"not" takes one condition.', "Write not: CONDITION.")
            args = args[0]
        return not self.decide(args, "")

    def _cfn_not(self, args: Json) -> Json:
        if not isinstance(args, list) or len(args) != 1:
            raise InvalidForm(
                'Arguments to "Fn::Not" must be of the form: [condition]',
                "Write a list of one condition.",
            )
        return not self.decide(args[0], "")

    def _decide_items(self, name: str, args: Json) -> list[bool]:
        if not isinstance(args, list):
            raise InvalidForm(
                f'Arguments to "{name}" must be a list of conditions',
                f"Write {name}: [CONDITION, CONDITION].",
            )
        if len(args) < 2:
            raise InvalidForm(
                f'The minimum number of condition arguments to "{name}" is 2.',
                "Add a condition, or use the only one in its place.",
            )
        return [
            _evaluate_at(f"[{at}]", lambda item: self.decide(item, ""), item)
            for at, item in enumerate(args)
        ]

    def _contains(self, args: Json) -> Json:
        known = self._value(args)
        try:
            CONTAINS.shape(known)
            return CONTAINS.apply(known)
        except FunctionError as wrong:
            raise InvalidForm(wrong.reason, wrong.remedy) from None

    def _yaql(self, args: Json) -> Json:
        if not isinstance(args, dict) or not {"expression"} <= args.keys() <= YAQL_KEYS:
            raise FunctionError(
                '"yaql" is a map with an expression, and data for it.',
                'Write yaql: {expression: "$.data.a", data: {a: VALUE}}.',
            )
        known = {key: self._value(item) for key, item in args.items()}
        return evaluate_yaql(
            known["expression"], known.get("data", {}), self.budget.limits, self.budget
        )


def _evaluate_at(part: str, evaluate: Callable[[Json], Json], snippet: Json) -> Json:
    """Evaluate a part of a condition. part: its place, which errors of form begin with."""
    try:
        return evaluate(snippet)
    except InvalidForm as wrong:
        wrong.inside = part + wrong.inside
        raise


def _make_form_error(inside: str, wrong: FunctionError) -> InvalidForm:
    error = InvalidForm(wrong.reason, wrong.remedy, wrong.code)
    error.inside = inside
    return error


CONDITION_REMEDY = "Write the name of a condition, true, false, or a function such as equals."
#: What YAML 1.1 reads as a boolean: as a value, but not as a key of the template.
BOOLEAN_NAMES: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("on", "yes", "true"), True),
    **dict.fromkeys(("off", "no", "false"), False),
}
DEFINITION_REMEDY = "Write true, false, or a function of conditions such as equals."
YAQL_KEYS = frozenset({"expression", "data"})

CALLS: Mapping[str, Callable[[Conditions, Json], Json]] = {
    "get_param": Conditions._get_param,
    "equals": lambda self, args: self._equals("equals", args),
    "not": Conditions._not,
    "and": lambda self, args: all(self._decide_items("and", args)),
    "or": lambda self, args: any(self._decide_items("or", args)),
    "contains": Conditions._contains,
    "Ref": Conditions._ref,
    "Fn::FindInMap": Conditions._find_in_map,
    "Fn::Equals": lambda self, args: self._equals("Fn::Equals", args),
    "Fn::Not": Conditions._cfn_not,
    "Fn::And": lambda self, args: all(self._decide_items("Fn::And", args)),
    "Fn::Or": lambda self, args: any(self._decide_items("Fn::Or", args)),
    "yaql": Conditions._yaql,
}


def _text(condition: Json) -> str:
    """Return a condition for messages: a name as it is, another value as Heat quotes it."""
    return condition if isinstance(condition, str) else quote_as_heat(condition)


def _suggest_plain_name(condition: Json) -> str:
    """Return a remedy for AWS's form {Condition: name}; here the name alone is used."""
    named = isinstance(condition, dict) and [*condition] == ["Condition"]
    return f'Write the name alone: "{condition["Condition"]}".' if named else ""
