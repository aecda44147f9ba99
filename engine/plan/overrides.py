"""Adopted values: observed values that the desired state of a resource has taken over. Pure.

An override replaces the value of the template as long as the template has the value that it had
when the observed one was adopted. If the template agrees with the override, or has another value,
the override ends. A rollback brings back those that its change ended.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from engine.words import Json

#: The key of overrides in the column `lifecycle` of a resource.
OVERRIDES = "overrides"
#: The key of those that a change ended, for its rollback: {at, overrides}, with all of that time.
ENDED = "ended"

#: Where a value is in properties: the name of a property, and keys of maps below it.
Place = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Override:
    """path: of the difference. places: in the properties; all stand for the same value. template:
    the value of the template. value: the adopted one. by, by_id: the principal. at: in ISO format.
    written: (template, value) at each place, if a place has them in another form, such as with
    escaped placeholders; empty: they are the same at all places.
    """

    path: str
    places: Sequence[Place]
    template: Json = field(repr=False)
    value: Json = field(repr=False)
    by: str
    by_id: str
    at: str
    written: Sequence[tuple[Json, Json]] = field(default=(), repr=False)

    def encode(self) -> dict[str, Json]:
        stored = asdict(self) | {"places": [[*place] for place in self.places]}
        written = stored.pop("written")
        return stored | ({"written": [[*one] for one in written]} if written else {})

    def at_places(self) -> Iterator[tuple[Place, Json, Json]]:
        """Each place, and the value of the template and the adopted one there."""
        written = self.written or [(self.template, self.value)] * len(self.places)
        for place, (template, value) in zip(self.places, written, strict=True):
            yield place, template, value

    def is_in(self, properties: Mapping[str, Json]) -> bool:
        """Whether properties have the adopted value."""
        return all(value_at(properties, place) == value for place, _, value in self.at_places())

    def replaces(self, properties: Mapping[str, Json]) -> bool:
        """Whether properties of the template have the value that the override replaces."""
        return self.template != self.value and all(
            value_at(properties, place) == template for place, template, _ in self.at_places()
        )


def decode_overrides(stored: Json) -> list[Override]:
    return [
        Override(
            **one
            | {
                "places": tuple(map(tuple, one["places"])),
                "written": tuple(map(tuple, one.get("written", ()))),
            }
        )
        for one in stored or ()
    ]


def apply_overrides(
    properties: Mapping[str, Json], overrides: Sequence[Override]
) -> tuple[Mapping[str, Json], list[Override]]:
    """Return the properties of the template with adopted values, and the overrides that have not
    ended."""
    left = [one for one in overrides if one.replaces(properties)]
    return with_adopted(properties, left), left


def without_patched(overrides: Sequence[Override], patched: Collection[str]) -> Sequence[Override]:
    """Return the overrides of properties that an answer `patch` does not set."""
    return [one for one in overrides if not any(place[0] in patched for place in one.places)]


def add_overrides(
    properties: Mapping[str, Json], before: Sequence[Override], new: Sequence[Override]
) -> list[Override]:
    """Return the overrides of a resource after an adoption. properties: recorded before it. One
    that is adopted again keeps the template's value, and ends if that is adopted."""
    earlier = {one.path: one for one in before if one.is_in(properties)}
    added: dict[str, Override] = {}
    for one in new:
        old = earlier.get(one.path)
        added[one.path] = one if old is None else _with_template_of(one, old)
    return [one for one in (earlier | added).values() if one.template != one.value]


def _with_template_of(one: Override, old: Override) -> Override:
    before = {place: template for place, template, _ in old.at_places()}
    if not (one.written or old.written):
        return replace(one, template=old.template)
    written = tuple((before.get(place, old.template), value) for place, _, value in one.at_places())
    return replace(one, template=old.template, written=written)


def with_adopted(
    properties: Mapping[str, Json], overrides: Sequence[Override]
) -> Mapping[str, Json]:
    """Return properties with adopted values."""
    for one in overrides:
        for place, _, value in one.at_places():
            properties = with_value(properties, place, value)
    return properties


def value_at(properties: Mapping[str, Json], place: Place) -> Json:
    """None also if there is no such value: for types, both mean the same."""
    found: Any = properties
    for key in place:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def with_value(
    properties: Mapping[str, Json], place: Sequence[str], value: Json
) -> dict[str, Json]:
    """Return properties with a value at a place."""
    name, *below = place
    inner = properties.get(name)
    new = with_value(inner if isinstance(inner, Mapping) else {}, below, value) if below else value
    return {**properties, name: new}
