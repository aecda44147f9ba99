"""Conditions: named ones are decided once for each definition, in any order, circles refused."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from engine.errors import Findings, one_of
from engine.hot.cfn_functions import find_in_map
from engine.hot.data_functions import CONTAINS
from engine.hot.effort import Effort
from engine.hot.following import select
from engine.hot.function import Undecided, Wrong
from engine.hot.versions import Unavailable, Version
from engine.hot.yaql_evaluation import evaluate
from engine.words import Json


class Failed(Undecided):
    """A named condition is wrong, and a finding says why."""


@dataclass(slots=True)
class Conditions:
    """Decides conditions: a name, a boolean, or a map that calls a condition function.

    parameters: converted values. unknown: parameters without a value so far; what reads them is
    `Undecided`. mappings: of a CFN template. failed: named conditions that are wrong.
    """

    named: Mapping[str, Json]
    version: Version
    parameters: Mapping[str, Json]
    findings: Findings
    unknown: frozenset[str] = frozenset()
    mappings: Mapping[str, Json] = field(default_factory=dict)
    effort: Effort = field(default_factory=Effort)
    failed: set[str] = field(default_factory=set)
    decided: dict[str, bool] = field(default_factory=dict)
    deciding: list[str] = field(default_factory=list)

    def decide_all(self) -> None:
        for name in self.named:
            with suppress(Undecided):
                self._named(name)

    def holds(self, condition: Json, place: str) -> bool | None:
        """Whether what stands there is on; None while nobody can tell. What is wrong is a finding,
        and counts as on, so that all else that is wrong there is told as well."""
        try:
            return self.decide(condition, place)
        except Failed:
            return True
        except Undecided:
            return None
        except Wrong as wrong:
            self.findings.add(place, str(wrong.args[0]), *map(str, wrong.args[1:2]))
            return True

    def decide(self, condition: Json, place: str) -> bool:
        """Return whether a condition holds. Raises Wrong, Undecided."""
        if isinstance(condition, bool):
            return condition
        if isinstance(condition, str):
            return self._named(condition)
        value = self._value(condition) if isinstance(condition, dict) else None
        if not isinstance(value, bool):
            raise Wrong(f'Invalid condition "{condition}"', _alone(condition))
        return value

    def _named(self, name: str) -> bool:
        if (known := self.decided.get(name)) is not None:
            return known
        if name not in self.named:
            raise Wrong(
                f'Invalid condition "{name}"', name and one_of(name, [*self.named], "Conditions")
            )
        if name in self.deciding:
            raise Wrong(f'Circular definition for condition "{name}"')
        if name in self.failed:
            raise Failed
        self.deciding.append(name)
        try:
            if isinstance(self.named[name], str):
                raise Wrong(f'The definition of condition "{name}" is invalid: {self.named[name]}')
            result = self.decide(self.named[name], name)
        except Undecided:
            raise
        except RecursionError:
            raise self._failed(name, Wrong("It leads over too many conditions")) from None
        except Wrong as wrong:
            raise self._failed(name, wrong) from None
        finally:
            self.deciding.pop()
        self.decided[name] = result
        return result

    def _failed(self, name: str, wrong: Wrong) -> Failed:
        self.failed.add(name)
        remedy = str(wrong.args[1]) if len(wrong.args) > 1 else ""
        place = f"{self.version.spelling.conditions}.{name}"
        self.findings.add(place, f"Condition validation error: {wrong}", remedy)
        return Failed()

    def _value(self, snippet: Json) -> Json:
        """Evaluate a snippet where only condition functions may be called."""
        if isinstance(snippet, list):
            return [self._value(item) for item in snippet]
        if not isinstance(snippet, dict):
            return snippet
        if len(snippet) == 1:
            ((name, args),) = snippet.items()
            if name in self.version.conditions and name in CALLS:
                return CALLS[name](self, args)
            known = self.version.functions.get(name)
            if name in self.version.conditions and isinstance(known, Unavailable):
                raise Wrong(f"The function {name} is {known.value}.")
            if known is not None:
                raise Wrong(f'The function "{name}" is invalid in this context')
        return {key: self._value(item) for key, item in snippet.items()}

    def _get_param(self, args: Json) -> Json:
        parts = self._value(args)
        name, *path = parts if isinstance(parts, list) and parts else [parts]
        if isinstance(name, str) and name in self.unknown:
            raise Undecided(name)
        if not isinstance(name, str) or name not in self.parameters:
            near = one_of(str(name), list(self.parameters), "Parameters")
            raise Wrong(f"The Parameter ({name}) was not provided.", near)
        value = self.effort.made(self.parameters[name])
        return select(value, path, "") if path else value

    def _ref(self, args: Json) -> Json:
        if not isinstance(args, str):
            raise Wrong('The argument of "Ref" must be the name of a parameter in conditions.')
        return self._get_param(args)

    def _find_in_map(self, args: Json) -> Json:
        known = self._value(args)
        if not isinstance(known, list) or len(known) != 3:
            form = "[mapping, key, value]"
            raise Wrong(f'Arguments to "Fn::FindInMap" must be of the form {form}')
        return find_in_map(self.mappings, known, hidden=known != args)

    def _equals(self, name: str, args: Json) -> Json:
        if not isinstance(args, list) or len(args) != 2:
            raise Wrong(f'Arguments to "{name}" must be of the form: [value_1, value_2]')
        first, second = self._value(args)
        return bool(first == second)

    def _not(self, args: Json) -> Json:
        if isinstance(args, list):
            if len(args) != 1:
                raise Wrong('"not" takes one condition.')
            args = args[0]
        return not self.decide(args, "")

    def _cfn_not(self, args: Json) -> Json:
        if not isinstance(args, list) or len(args) != 1:
            raise Wrong('Arguments to "Fn::Not" must be of the form: [condition]')
        return not self.decide(args[0], "")

    def _all(self, name: str, args: Json) -> list[bool]:
        if not isinstance(args, list) or len(args) < 2:
            raise Wrong(f'The minimum number of condition arguments to "{name}" is 2.')
        return [self.decide(item, "") for item in args]

    def _contains(self, args: Json) -> Json:
        known = self._value(args)
        CONTAINS.shape(known)
        return CONTAINS.apply(known)

    def _yaql(self, args: Json) -> Json:
        if not isinstance(args, dict) or not {"expression"} <= args.keys() <= YAQL_KEYS:
            raise Wrong('"yaql" is a map with an expression, and data for it.')
        known = {key: self._value(item) for key, item in args.items()}
        return evaluate(known["expression"], known.get("data", {}), self.effort.limits, self.effort)


YAQL_KEYS = frozenset({"expression", "data"})

CALLS: Mapping[str, Callable[[Conditions, Json], Json]] = {
    "get_param": Conditions._get_param,
    "equals": lambda self, args: self._equals("equals", args),
    "not": Conditions._not,
    "and": lambda self, args: all(self._all("and", args)),
    "or": lambda self, args: any(self._all("or", args)),
    "contains": Conditions._contains,
    "Ref": Conditions._ref,
    "Fn::FindInMap": Conditions._find_in_map,
    "Fn::Equals": lambda self, args: self._equals("Fn::Equals", args),
    "Fn::Not": Conditions._cfn_not,
    "Fn::And": lambda self, args: all(self._all("Fn::And", args)),
    "Fn::Or": lambda self, args: any(self._all("Fn::Or", args)),
    "yaql": Conditions._yaql,
}


def _alone(condition: Json) -> str:
    """Other clouds refer to a condition by a map, here its name is enough."""
    named = isinstance(condition, dict) and [*condition] == ["Condition"]
    return f'Write the name alone: "{condition["Condition"]}".' if named else ""
