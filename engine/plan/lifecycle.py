"""The rules of `lifecycle` that change an operation: ignored differences, and causes of a
replacement.

engine/hot/definition/lifecycle.py reads them from the template. engine/plan/protection.py has the
rules that forbid an operation.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

import orjson

from engine.hot.definition.lifecycle import Lifecycle
from engine.plan.resource_change import ResourceChange, ResourceState
from engine.words import Json, Operation, ResourceAction


@dataclass(frozen=True, slots=True)
class Triggers:
    """The values of `replace_when` by the text of their expression.

    before: digests of the values at the last operation. now: the current digests; None: not known
    yet.
    """

    before: Mapping[str, Json] = field(default_factory=dict)
    now: Mapping[str, str | None] = field(default_factory=dict)

    def changed_expressions(self) -> list[str]:
        """Return the expressions whose value has changed. One without an earlier value has not."""
        return [
            text
            for text, value in self.now.items()
            if value is not None and self.before.get(text, value) != value
        ]

    def is_known(self) -> bool:
        return None not in self.now.values()


def trigger_digest(value: Json) -> str:
    """Return the digest of a value of `replace_when`: 64 hexadecimal digits."""
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer beyond 64 bits
        written = json.dumps(value, sort_keys=True).encode("utf-8", "surrogatepass")
    return sha256(written).hexdigest()


def keep_ignored(
    rules: Lifecycle, actual: ResourceState | None, properties: Mapping[str, Json]
) -> Mapping[str, Json]:
    """Return the properties with the applied values of ignored ones. A resource that is created or
    replaced gets the values of its template; the caller passes them then.
    """
    names = ignored_names(rules, actual, properties)
    if not names or actual is None:
        return properties
    before = actual.properties or {}
    kept = {name: value for name, value in properties.items() if name not in names}
    return kept | {name: before[name] for name in names if name in before}


def ignored_names(
    rules: Lifecycle, actual: ResourceState | None, properties: Mapping[str, Json]
) -> frozenset[str]:
    """Return the names of the properties that keep their applied values."""
    if actual is None or actual.action in (ResourceAction.INIT, ResourceAction.DELETE):
        return frozenset()
    if rules.ignores_all:
        return frozenset(properties.keys() | (actual.properties or {}).keys())
    return rules.ignored


def with_replacement(
    rules: Lifecycle, triggers: Triggers, change: ResourceChange
) -> ResourceChange:
    """Return the change as a replacement if `replace_when` demands that, with the cause."""
    if change.operation not in (None, Operation.UPDATE):
        return change
    causes = [*sorted(change.changed & rules.replace_on), *triggers.changed_expressions()]
    if not causes:
        return change
    fixed = change.fixed - rules.replace_on
    cause = f"replace_when: {', '.join(causes)} changed"
    return replace(
        change,
        operation=Operation.UPDATE if fixed else Operation.REPLACE,
        fixed=fixed,
        cause="" if fixed else cause,
    )
