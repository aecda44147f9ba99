"""Writes the tables of docs/reference/events.md: the event types, and the fields of their data."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from channels.schemas.event_schemas import SCHEMAS
from channels.schemas.event_types import EVENT_TYPES
from engine.words import Json
from tools.generated_sections import table, with_sections

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "events.md"
#: One type of those whose data have the same fields -> the heading of the table.
FIELD_TABLES: Mapping[str, str] = {
    "headgate.stack.create.started": "Fields of stack events",
    "headgate.resource.create.started": "Fields of resource events",
    "headgate.resource.create.restarted": "Fields of restarted operations",
    "headgate.resource.move.completed": "Fields of moves",
    "headgate.resource.drift.detected": "Fields of drift",
    "headgate.hook.waiting": "Fields of a hook notification",
    "headgate.hook.answered": "Fields of other hook events",
    "headgate.delivery.dead": "Fields of deliveries",
    "headgate.subscription.enabled": "Fields of subscription events",
    "headgate.subscription.test": "Fields of test events",
    "headgate.audit.signed": "Fields of signed checkpoints",
    "headgate.usage.recorded": "Fields of usage",
}
_FORMATS = {"uuid": "UUID", "date-time": "time", "date": "date", "uri": "URL"}


def events_page() -> str:
    return with_sections(PAGE, {"event types": event_types(), "fields": field_tables()})


def event_types() -> str:
    rows = ((f"`{pattern}`", when) for pattern, when in EVENT_TYPES.items())
    return table(("type", "recorded when"), *rows)


def field_tables() -> str:
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for kind, schema in SCHEMAS.items():
        groups[tuple(path for path, *_ in _fields(_data(schema)))].append(kind)
    by_type = {kind: kinds for kinds in groups.values() for kind in kinds}
    headings = {by_type[kind][0]: heading for kind, heading in FIELD_TABLES.items()}
    if sorted(headings) != sorted(kinds[0] for kinds in groups.values()):
        raise ValueError(
            "FIELD_TABLES needs one heading for each group of types with the same data"
        )
    return "\n\n".join(
        f"### {FIELD_TABLES[kind]}\n\n{', '.join(_patterns(by_type[kind]))}\n\n"
        + _field_table([_data(SCHEMAS[one]) for one in by_type[kind]])
        for kind in FIELD_TABLES
    )


def _data(schema: Json) -> Json:
    return schema["properties"]["data"]


def _fields(schema: Json, prefix: str = "") -> Iterator[tuple[str, Json, bool]]:
    """The path, the schema of each field at any depth, and whether it is always there."""
    required = schema.get("required", [])
    for name, one in schema.get("properties", {}).items():
        yield prefix + name, one, name in required
        inside = _without_null(one)
        yield from _fields(inside, f"{prefix}{name}.")
        yield from _fields(_without_null(inside.get("items", {})), f"{prefix}{name}[].")


def _without_null(schema: Json) -> Json:
    choices = schema.get("anyOf", [schema])
    return choices[0]


def _field_table(data: Sequence[Json]) -> str:
    rows: list[tuple[str, ...]] = []
    for same in zip(*map(_fields, data), strict=True):
        path, _, always = same[0]
        values = list(dict.fromkeys(_type_text([one for _, one, _ in same])))
        rows.append((f"`{path}`", " or ".join(values) + ("" if always else "; may be absent")))
    return table(("field", "value"), *rows)


def _type_text(schemas: Sequence[Json]) -> Iterator[str]:
    """What a field may be in any of the schemas."""
    literals: dict[str, None] = {}
    for schema in schemas:
        inside = _without_null(schema)
        known: list[Any] = inside.get("enum", [inside["const"]] if "const" in inside else [])
        literals |= dict.fromkeys(f"`{str(one).lower() if one is True else one}`" for one in known)
    if literals:
        yield ", ".join(literals)
    for schema in schemas:
        inside = _without_null(schema)
        if "enum" not in inside and "const" not in inside:
            yield from _kinds(inside)
    if any("anyOf" in schema for schema in schemas):
        yield "null"


def _kinds(schema: Json) -> Iterator[str]:
    declared = schema.get("type", "any value")
    for kind in [declared] if isinstance(declared, str) else declared:
        if kind == "string":
            yield _FORMATS.get(schema.get("format", ""), "string")
        elif kind == "array":
            items = _without_null(schema.get("items", {}))
            text = " or ".join(_type_text([items])) if items else ""
            plural = f"{text}s" if text in ("string", "map", "list") else text
            yield f"list of {plural}" if text else "list"
        elif kind == "object":
            yield "map"
        else:
            yield kind


def _patterns(kinds: Iterable[str]) -> Iterator[str]:
    """The types with alternatives in braces."""
    lasts: dict[str, list[str]] = defaultdict(list)
    for kind in kinds:
        prefix, _, last = kind.rpartition(".")
        lasts[prefix].append(last)
    firsts: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for prefix, found in lasts.items():
        parent, _, name = prefix.rpartition(".")
        firsts[parent, tuple(found)].append(name)
    for (parent, moments), names in firsts.items():
        yield f"`{parent}.{_braces(names)}.{_braces(moments)}`"


def _braces(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else "{" + ",".join(names) + "}"
