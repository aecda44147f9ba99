"""What a resource type says about its properties and attributes: data that the language checks by.

Written once by each resource type (engine/types), read by validation, planning and the API.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from engine.words import Json

#: An attribute that every type has.
SHOW = "show"


class Kind(StrEnum):
    """Types of properties and attributes, with the names the Orchestration API shows."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "list"
    MAP = "map"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One rule for a value. Exactly the fields that its ``kind`` names are set.

    kind: length {min, max}, range {min, max}, modulo {step, offset}, allowed_values,
    allowed_pattern, custom_constraint. ``description`` replaces the message when the rule fails.
    """

    kind: str
    min: int | float | None = None
    max: int | float | None = None
    step: int | float | None = None
    offset: int | float | None = None
    allowed: tuple[Json, ...] = ()
    pattern: str = ""
    name: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Property:
    """Schema of one property. ``fields`` describes a map's entries, ``items`` a list's items.

    former_names: under which templates may still give it; it is as if they gave the present one.
    converts: a parameter of a nested template: a list may be text with commas, a map JSON text or a
    list.
    """

    kind: Kind
    description: str = ""
    required: bool = False
    default: Json = None
    constraints: tuple[Constraint, ...] = ()
    update_allowed: bool = False
    immutable: bool = False
    hidden: bool = False
    converts: bool = False
    fields: Mapping[str, "Property"] | None = None
    items: "Property | None" = None
    former_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Attribute:
    """Schema of one attribute. ``secret``: masked wherever people or listeners look. of_members:
    its path begins with the name of an attribute of what is inside."""

    kind: Kind = Kind.ANY
    description: str = ""
    secret: bool = False
    of_members: bool = False


@dataclass(frozen=True, slots=True)
class Grouping:
    """What a type says of the members that it holds, from its properties as far as they are known.

    sample: a template's document with members as they are written, one for all that are alike, and
    its parameters; None where nothing can be told yet. size: how many there are; None: unknown.
    place(where in that template): where it is among the properties. of_each: an attribute that
    members have is one of the group's, too: the list of them. types_only: nothing but the members'
    types is known before the group is made.
    """

    sample: Callable[[Mapping[str, Json]], tuple[Mapping[str, Json], Mapping[str, Json]] | None]
    size: Callable[[Mapping[str, Json]], int | None]
    place: Callable[[str], str]
    of_each: bool = False
    types_only: bool = False


@dataclass(frozen=True, slots=True)
class TypeSchema:
    """What planning, validation and the API need to know of a resource type.

    any_property / any_attribute: takes whatever it is given (OS::Heat::None does).
    snapshots: can keep something by which it can be restored.
    signals: may be sent data, which its operations wait for.
    secret_reference: what get_resource gives is a secret; so it is where an attribute is one.
    names_resources: properties whose texts are names of resources of the same template.
    renewed: each update puts another in its place, though nothing differs.
    steps: inside its operations, those that somebody may be asked to confirm.
    update_policy: what a template's ``update_policy`` may say; where it is empty, anything may be
    said, and nobody reads it.
    renames: some property, at any depth, has former names.
    inside: of a nested template: its resources, which ``resource.<name>`` attributes reach.
    grouping: of a type that holds members. of_members: attributes that these have; None: unknown.
    secret_members: their references or attributes are nobody's to see. secret_inside: the same of
    these resources of a nested template.
    """

    name: str
    properties: Mapping[str, Property] = field(default_factory=dict)
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    description: str = ""
    any_property: bool = False
    any_attribute: bool = False
    snapshots: bool = False
    signals: bool = False
    secret_reference: bool = False
    names_resources: tuple[str, ...] = ()
    renewed: bool = False
    steps: tuple[str, ...] = ()
    inside: frozenset[str] = frozenset()
    update_policy: Mapping[str, Property] = field(default_factory=dict)
    grouping: Grouping | None = None
    of_members: frozenset[str] | None = None
    secret_members: bool = False
    secret_inside: frozenset[str] = frozenset()
    renames: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "renames", _renames(self.properties))

    def has_secrets(self) -> bool:
        """Whether its reference, or an attribute of it, is a secret."""
        among = self.secret_members or bool(self.secret_inside) or self.secret_reference
        return among or any(one.secret for one in self.attributes.values())

    def hides(self, attribute: str) -> bool:
        """Whether an attribute is nobody's to see."""
        if self.secret_members:
            return True
        if (known := self.attributes.get(attribute)) is not None:
            return known.secret
        prefix, _, path = attribute.partition(".")
        return prefix == "resource" and path.partition(".")[0] in self.secret_inside

    def has_attribute(self, name: str) -> bool:
        """Whether it can be read; ``resource.<name>.<attribute>`` reads inside a template."""
        if self.any_attribute or name == SHOW or name in self.attributes:
            return True
        prefix, _, path = name.partition(".")
        if self.grouping is None:
            return prefix == "resource" and path.split(".", 1)[0] in self.inside
        if prefix == "resource" and path:
            return self.members_have(path.partition(".")[2] or SHOW)
        return self.grouping.of_each and self.members_have(name)

    def members_have(self, name: str) -> bool:
        """Whether an attribute of members can be read, as far as that is known."""
        known = self.of_members
        return known is None or name in known or name == SHOW or name.startswith("resource.")

    def attribute_names(self) -> list[str]:
        inside = (f"resource.{name}" for name in sorted(self.inside))
        of_each = self.grouping.of_each if self.grouping else False
        return [
            *self.attributes,
            SHOW,
            *inside,
            *(sorted(self.of_members or ()) if of_each else ()),
        ]


def _renames(fields: Mapping[str, Property]) -> bool:
    return any(
        one.former_names
        or (one.fields is not None and _renames(one.fields))
        or (one.items is not None and _renames({"": one.items}))
        for one in fields.values()
    )
