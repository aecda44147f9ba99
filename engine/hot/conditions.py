"""Conditions: named ones are decided once for each definition, in any order, circles refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.errors import Findings, nearest
from engine.hot.data_functions import CONTAINS
from engine.hot.function import Wrong
from engine.hot.resolve import select
from engine.hot.versions import Unavailable, Version
from engine.words import Json


@dataclass(slots=True)
class Conditions:
    """Decides conditions: a name, a boolean, or a map that calls a condition function.

    parameters: converted values. failed: some named condition could not be decided; a finding
    says why, and nothing that depends on conditions should be judged any further.
    """

    named: Mapping[str, Json]
    version: Version
    parameters: Mapping[str, Json]
    findings: Findings
    failed: bool = False
    decided: dict[str, bool] = field(default_factory=dict)
    deciding: list[str] = field(default_factory=list)

    def decide_all(self) -> None:
        for name in self.named:
            self._named(name)

    def decide(self, condition: Json, place: str) -> bool:
        """Return whether a condition holds. Raises Wrong."""
        if isinstance(condition, bool):
            return condition
        if isinstance(condition, str):
            return self._named(condition)
        value = self._value(condition) if isinstance(condition, dict) else None
        if not isinstance(value, bool):
            raise Wrong(f'Invalid condition "{condition}"')
        return value

    def _named(self, name: str) -> bool:
        if (known := self.decided.get(name)) is not None:
            return known
        if name not in self.named:
            raise Wrong(f'Invalid condition "{name}"', nearest(name, list(self.named)))
        if name in self.deciding:
            raise Wrong(f'Circular definition for condition "{name}"')
        self.deciding.append(name)
        result = False
        try:
            result = self.decide(self.named[name], name)
        except Wrong as wrong:
            self.failed = True
            remedy = str(wrong.args[1]) if len(wrong.args) > 1 else ""
            reason = f"Condition validation error: {wrong.args[0]}"
            self.findings.add(f"conditions.{name}", reason, remedy)
        finally:
            self.deciding.pop()
        self.decided[name] = result
        return result

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
        if not isinstance(name, str) or name not in self.parameters:
            near = nearest(str(name), list(self.parameters))
            raise Wrong(f"The Parameter ({name}) was not provided.", near)
        value = self.parameters[name]
        return select(value, path, "") if path else value

    def _equals(self, args: Json) -> Json:
        if not isinstance(args, list) or len(args) != 2:
            raise Wrong('Arguments to "equals" must be of the form: [value_1, value_2]')
        first, second = self._value(args)
        return bool(first == second)

    def _not(self, args: Json) -> Json:
        if isinstance(args, list):
            if len(args) != 1:
                raise Wrong('"not" takes one condition.')
            args = args[0]
        return not self.decide(args, "")

    def _all(self, name: str, args: Json) -> list[bool]:
        if not isinstance(args, list) or len(args) < 2:
            raise Wrong(f'The minimum number of condition arguments to "{name}" is 2.')
        return [self.decide(item, "") for item in args]

    def _contains(self, args: Json) -> Json:
        known = self._value(args)
        CONTAINS.shape(known)
        return CONTAINS.apply(known)


CALLS: Mapping[str, Callable[[Conditions, Json], Json]] = {
    "get_param": Conditions._get_param,
    "equals": Conditions._equals,
    "not": Conditions._not,
    "and": lambda self, args: all(self._all("and", args)),
    "or": lambda self, args: any(self._all("or", args)),
    "contains": Conditions._contains,
}
