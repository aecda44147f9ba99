"""The `lifecycle` of a resource: when its differences cause no update or a replacement, and whether
it may be destroyed. engine/plan/lifecycle.py applies the rules.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from engine.errors import Findings, one_of
from engine.hot.evaluation.evaluator import Evaluator
from engine.hot.expressions.expression import Expression, encode, is_static
from engine.hot.schema.type_schema import TypeSchema
from engine.words import Json

#: Stands for all properties in `ignore_changes`.
ALL: Final = "all"
KEYS: Final = ("prevent_destroy", "ignore_changes", "replace_when")
#: Maximum number of items of one list, and characters of an expression as messages show it.
MAX_ITEMS: Final = 100
MAX_TEXT: Final = 120


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The rules of one resource.

    ignored: names of properties whose differences cause no update; ignores_all: those of every
    property. replace_on: names of properties whose difference causes a replacement. triggers:
    expressions by their text; a changed value causes a replacement. secret: a trigger reads a
    secret.
    """

    prevent_destroy: bool = False
    ignored: frozenset[str] = frozenset()
    ignores_all: bool = False
    replace_on: frozenset[str] = frozenset()
    triggers: Mapping[str, Expression] = field(default_factory=dict)
    secret: bool = False

    def encode(self) -> dict[str, Json]:
        """Return the stored form without the triggers; `decode_lifecycle` reverses it."""
        stored: dict[str, Json] = {}
        if self.prevent_destroy:
            stored["prevent_destroy"] = True
        if self.ignores_all or self.ignored:
            stored["ignore_changes"] = ALL if self.ignores_all else sorted(self.ignored)
        if self.replace_on:
            stored["replace_on"] = sorted(self.replace_on)
        return stored

    def encode_triggers(self) -> dict[str, Json]:
        return {text: encode(value) for text, value in self.triggers.items()}


NO_LIFECYCLE: Final = Lifecycle()


def decode_lifecycle(stored: Mapping[str, Json] | None) -> Lifecycle:
    """Return the rules that `Lifecycle.encode` stored. stored: None for no rules."""
    if not stored:
        return NO_LIFECYCLE
    ignored = stored.get("ignore_changes", ())
    return Lifecycle(
        bool(stored.get("prevent_destroy")),
        frozenset(() if ignored == ALL else ignored),
        ignored == ALL,
        frozenset(stored.get("replace_on", ())),
    )


def read_lifecycle(
    given: Json,
    schema: TypeSchema | None,
    place: str,
    evaluator: Evaluator,
    disabled: frozenset[str] = frozenset(),
) -> Lifecycle:
    """Return the lifecycle of the resource `evaluator.owner`. Faults are added to the findings.

    disabled: resources whose condition is false; they trigger nothing. Sets `secret` of the
    evaluator if a trigger reads a secret.
    """
    findings = evaluator.scope.findings
    if not isinstance(given, dict):
        findings.add(place, '"lifecycle" must be a map.', f"Keys: {', '.join(KEYS)}")
        return NO_LIFECYCLE
    for key in given:
        if key not in KEYS:
            reason = f'"{key}" is not a valid keyword inside a lifecycle'
            findings.add(f"{place}.{key}", reason, one_of(str(key), KEYS, "Keys"))
    reader = _Reader(schema, place, evaluator, disabled)
    ignored, ignores_all = reader.read_ignored(given.get("ignore_changes"))
    replace_on, triggers = reader.causes(given.get("replace_when"))
    secret = evaluator.secret
    prevents = reader.prevents(given.get("prevent_destroy"))
    return Lifecycle(prevents, ignored, ignores_all, replace_on, triggers, secret)


@dataclass(frozen=True, slots=True)
class _Reader:
    schema: TypeSchema | None
    place: str
    evaluator: Evaluator
    disabled: frozenset[str]

    @property
    def _findings(self) -> Findings:
        return self.evaluator.scope.findings

    def prevents(self, given: Json) -> bool:
        place = f"{self.place}.prevent_destroy"
        value = self.evaluator.evaluate(given, place)
        if value is None or isinstance(value, bool):
            return bool(value)
        self._findings.add(
            place,
            '"prevent_destroy" must be true or false, known when the stack is defined.',
            "Write the value, or take it from a parameter of type boolean.",
        )
        return True

    def read_ignored(self, given: Json) -> tuple[frozenset[str], bool]:
        place = f"{self.place}.ignore_changes"
        value = self.evaluator.evaluate(given, place)
        if value == ALL:
            return frozenset(), True
        names = [] if value is None else value
        if not self._is_list(names, place) or not is_static(names):
            reason = '"ignore_changes" must be "all" or a list of names of properties.'
            self._findings.add(place, reason, "Write the names, for example [user_data].")
            return frozenset(), False
        for index, name in enumerate(names):
            if not self._is_property(name):
                self._report_name(f"{place}[{index}]", name, self._properties(), "property")
        return frozenset(name for name in names if isinstance(name, str)), False

    def causes(self, given: Json) -> tuple[frozenset[str], dict[str, Expression]]:
        """Return the names of properties, and the expressions by their text."""
        place = f"{self.place}.replace_when"
        if given is None:
            return frozenset(), {}
        if not self._is_list(given, place):
            reason = '"replace_when" must be a list of names and expressions.'
            self._findings.add(place, reason, 'Write a list, for example ["image", "network"].')
            return frozenset(), {}
        names: set[str] = set()
        triggers: dict[str, Expression] = {}
        for index, item in enumerate(given):
            here = f"{place}[{index}]"
            if isinstance(item, str) and "${" not in item:
                self._add_name(item, here, names, triggers)
            elif isinstance(item, bool | int | float) or item is None:
                reason = "This is neither a name nor an expression: it never changes."
                self._findings.add(here, reason, "Write a name, or a call such as get_param.")
            else:
                triggers[_text_of(item)] = self.evaluator.evaluate(item, here)
        return frozenset(names), triggers

    def _add_name(
        self, name: str, place: str, names: set[str], triggers: dict[str, Expression]
    ) -> None:
        resources = self.evaluator.scope.types
        if name in resources and name != self.evaluator.owner:
            if self._is_property(name) and not (self.schema and self.schema.any_property):
                reason = f'"{name}" is a resource and a property of this resource.'
                self._findings.add(
                    place, reason, f"For the resource, write {{get_resource: {name}}}."
                )
            triggers[name] = self.evaluator.get_resource(name, place)
        elif name in self.disabled:
            return
        elif self._is_property(name):
            names.add(name)
        else:
            known = [
                *self._properties(),
                *(
                    one
                    for one in self.evaluator.scope.known_resources()
                    if one != self.evaluator.owner
                ),
            ]
            self._report_name(place, name, known, "property or resource")

    def _is_property(self, name: Json) -> bool:
        if self.schema is None:
            return True
        return isinstance(name, str) and (
            self.schema.any_property or name in self.schema.properties
        )

    def _properties(self) -> list[str]:
        return [*self.schema.properties] if self.schema else []

    def _report_name(self, place: str, name: Json, known: list[str], what: str) -> None:
        self._findings.add(
            place, f'There is no {what} "{name}".', one_of(str(name), known, "Known names")
        )

    def _is_list(self, value: Json, place: str) -> bool:
        if isinstance(value, list) and len(value) > MAX_ITEMS:
            self._findings.add(
                place, f"The list has more than {MAX_ITEMS} items.", f"Keep at most {MAX_ITEMS}."
            )
        return isinstance(value, list)


def _text_of(item: Json) -> str:
    """Return an expression as messages show it; unique, also if it is shortened."""
    text = item if isinstance(item, str) else json.dumps(item, sort_keys=True, default=str)
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}... ({sha256(text.encode()).hexdigest()[:12]})"
