"""Attributes of a resource, as people may see them."""

from collections.abc import Iterator, Mapping

from engine.hot.inside import shown
from engine.hot.repeating import repeats
from engine.hot.resolve import MASK
from engine.hot.schema import TypeSchema
from engine.store.records import ResourceRecord
from engine.words import Json


def shown_attributes(one: ResourceRecord, schema: TypeSchema | None) -> dict[str, Json]:
    """Those that their type keeps secret are masked; and so is whatever repeats a hidden value of
    the properties, as the value of an OS::Heat::Value does."""
    secret = (
        {name for name, known in schema.attributes.items() if known.secret} if schema else set()
    )
    hidden = set(_hidden(one.properties, one.shown)) if one.shown is not None else set()
    return {
        name: MASK if name in secret or repeats(value, hidden) else value
        for name, value in shown(one.attributes or {}, MASK).items()
    }


def _hidden(value: Json, shown: Json) -> Iterator[str]:
    """Texts of which people see something else. shown: None: nobody sees any of the value."""
    if value == shown:
        return
    if isinstance(value, Mapping):
        for name, below in value.items():
            yield from _hidden(below, shown.get(name) if isinstance(shown, Mapping) else None)
    elif isinstance(value, list):
        known = (
            shown if isinstance(shown, list) and len(shown) == len(value) else [None] * len(value)
        )
        for below, seen in zip(value, known, strict=True):
            yield from _hidden(below, seen)
    elif value not in (None, "", True, False):
        yield str(value)
