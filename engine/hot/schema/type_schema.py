"""Schemas of resource types: properties, attributes and behaviour that the language checks.

Each resource type (engine/types) defines one; validation, planning and the API read it.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

from engine.errors import nearest
from engine.hot.schema.absent_types import ABSENT_TYPES
from engine.words import Json

#: An attribute of every type.
SHOW = "show"


class Kind(StrEnum):
    """Types of properties and attributes, with the names that the Orchestration API shows."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "list"
    MAP = "map"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint of a value. Only the fields that belong to its kind are set.

    kind: length {min, max}, range {min, max}, modulo {step, offset}, allowed_values,
    allowed_pattern, custom_constraint {name}, schema. description: replaces the message when the
    constraint is violated. schema: a JSON schema.
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
    schema: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Property:
    """Schema of one property. fields: schema of a map's entries. items: schema of a list's items.

    former_names: deprecated names that templates may still use. accepts_text: a parameter of a
    nested template; a list may be comma-delimited text, a map JSON text or a list. public: readers
    can see its value, for example as the physical ID, so a value computed from a secret is refused.
    obsolete: accepted with a warning, because it has no effect any more.
    """

    kind: Kind
    description: str = ""
    required: bool = False
    default: Json = None
    constraints: tuple[Constraint, ...] = ()
    update_allowed: bool = False
    immutable: bool = False
    hidden: bool = False
    public: bool = False
    accepts_text: bool = False
    fields: Mapping[str, "Property"] | None = None
    items: "Property | None" = None
    former_names: tuple[str, ...] = ()
    obsolete: bool = False


#: A property that an update changes in place.
updatable = partial(Property, update_allowed=True)


@dataclass(frozen=True, slots=True)
class Attribute:
    """Schema of one attribute.

    secret: masked in responses and events. takes_member_attribute: its path begins with the name of
    a member's attribute. public: not derived from the properties, so it is not secret when they
    are.
    """

    kind: Kind = Kind.ANY
    description: str = ""
    secret: bool = False
    takes_member_attribute: bool = False
    public: bool = False


@dataclass(frozen=True, slots=True)
class Grouping:
    """How a type with members derives them from its properties, as far as these are known.

    sample: returns (template document with one member of each kind, parameters); None if nothing is
    known yet. size: returns the number of members; None if unknown. place: maps a place in the
    sample's document to a place in the properties; a name with dots or brackets is "member" there.
    of_each: member attributes are also attributes
    of the group, as lists. types_only: only the members' types are known before the group is
    created.
    """

    sample: Callable[[Mapping[str, Json]], tuple[Mapping[str, Json], Mapping[str, Json]] | None]
    size: Callable[[Mapping[str, Json]], int | None]
    place: Callable[[str], str]
    of_each: bool = False
    types_only: bool = False


@dataclass(frozen=True, slots=True)
class ImplicitDependency:
    """A dependency without a reference: on resources of a type in the same template.

    type: of these resources. own, other: paths of properties such as ``networks.*.network``: only
    resources whose value at `other` is the same as one at `own`; "": all resources of the type.
    """

    type: str
    own: str = ""
    other: str = ""


@dataclass(frozen=True, slots=True)
class TypeSchema:
    """The description of a resource type for validation, planning and the API.

    any_property, any_attribute: accepts any (as OS::Heat::None). snapshots: supports snapshots.
    signals: accepts signals. secret_reference: the result of get_resource is secret.
    public_reference: it is not secret although an attribute is; otherwise it is.
    names_resources: properties whose items are names of resources in the same template. renewed:
    every update replaces it, even if nothing differs. steps: steps of its operations at which a
    hook may pause. update_policy: schema of `update_policy`; if empty, any content is accepted and
    ignored. renames: some property has former names. nested_resources: of a nested template, the
    resources that `resource.<name>` attributes can read. grouping: set for types with members.
    member_attributes: attributes of the members; None if unknown. has_secret_members: references or
    attributes of members are secret. secret_resources: resources of a nested template with secret
    attributes. of_template: a template defines the type. follows: after which other resources of a
    template its resources come. hides: some property is hidden, at any depth.
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
    public_reference: bool = False
    names_resources: tuple[str, ...] = ()
    renewed: bool = False
    steps: tuple[str, ...] = ()
    nested_resources: frozenset[str] = frozenset()
    update_policy: Mapping[str, Property] = field(default_factory=dict)
    grouping: Grouping | None = None
    member_attributes: frozenset[str] | None = None
    has_secret_members: bool = False
    secret_resources: frozenset[str] = frozenset()
    of_template: bool = False
    follows: tuple[ImplicitDependency, ...] = ()
    renames: bool = field(init=False, default=False)
    hides: bool = field(init=False, default=False)
    _has_secrets: bool = field(init=False, default=False, repr=False)

    def __post_init__(self) -> None:
        # Computed here, because the worker asks for each node.
        object.__setattr__(self, "renames", _renames(self.properties))
        object.__setattr__(self, "hides", has_hidden(self.properties))
        among = self.has_secret_members or bool(self.secret_resources) or self.secret_reference
        secret = among or any(one.secret for one in self.attributes.values())
        object.__setattr__(self, "_has_secrets", secret)

    def has_secrets(self) -> bool:
        """Return whether the reference or any attribute is secret."""
        return self._has_secrets

    def has_secret_reference(self) -> bool:
        """Return whether the result of get_resource is secret."""
        return self._has_secrets and not self.public_reference

    def is_secret(self, attribute: str) -> bool:
        """Return whether an attribute is secret."""
        if self.has_secret_members:
            return True
        if (known := self.attributes.get(attribute)) is not None:
            return known.secret
        prefix, _, path = attribute.partition(".")
        return prefix == "resource" and path.partition(".")[0] in self.secret_resources

    def current_properties(self) -> list[tuple[str, Property]]:
        """Return the properties that are not obsolete, by name."""
        return [(name, one) for name, one in self.properties.items() if not one.obsolete]

    def has_attribute(self, name: str) -> bool:
        """Return whether the attribute exists, including `resource.<name>.<attribute>`."""
        if self.any_attribute or name == SHOW or name in self.attributes:
            return True
        prefix, _, path = name.partition(".")
        if self.grouping is None:
            return prefix == "resource" and path.split(".", 1)[0] in self.nested_resources
        if prefix == "resource" and path:
            return self.members_have(path.partition(".")[2] or SHOW)
        return self.grouping.of_each and self.members_have(name)

    def members_have(self, name: str) -> bool:
        """Return whether members have the attribute; true if their attributes are unknown."""
        known = self.member_attributes
        return known is None or name in known or name == SHOW or name.startswith("resource.")

    def attribute_names(self) -> list[str]:
        inside = (f"resource.{name}" for name in sorted(self.nested_resources))
        of_each = self.grouping.of_each if self.grouping else False
        return [
            *self.attributes,
            SHOW,
            *inside,
            *(sorted(self.member_attributes or ()) if of_each else ()),
        ]


#: Prefixes of the types that the operator can turn on, and how.
OPTIONAL_TYPES: Mapping[str, str] = dict.fromkeys(
    (
        "AWS::EC2::",
        "OS::Aodh::",
        "OS::Barbican::",
        "OS::Cinder::",
        "OS::Designate::",
        "OS::Glance::",
        "OS::Keystone::",
        "OS::Magnum::",
        "OS::Manila::",
        "OS::Mistral::",
        "OS::Neutron::",
        "OS::Nova::",
        "OS::Octavia::",
        "OS::Swift::",
        "OS::Trove::",
        "OS::Zaqar::",
    ),
    "No OpenStack is configured. The operator can turn on the types of OpenStack:"
    " [resource_types.openstack] enabled = true.",
)


#: Of files that are not template files for Heat and Headgate, but were meant as such.
OTHER_SUFFIXES = (".yml", ".hot", ".json")


def unknown_type_remedy(name: str, known: Collection[str]) -> str:
    """Return what to do about an unknown type: why Headgate does not have it and what to use
    instead, how to turn it on, or the nearest known name; "" for none."""
    if (absent := ABSENT_TYPES.get(name)) is not None:
        return f"{absent.reason} {absent.remedy}"
    for prefix, remedy in OPTIONAL_TYPES.items():
        if name.startswith(prefix) and not any(one.startswith(prefix) for one in known):
            return remedy
    if name.endswith(OTHER_SUFFIXES):
        return "The name of a template file ends with .yaml or .template: rename it."
    return nearest(name, list(known))


def without_required(schema: TypeSchema) -> TypeSchema:
    """Return the schema without required properties."""
    properties = {name: replace(one, required=False) for name, one in schema.properties.items()}
    return replace(schema, properties=properties)


def has_hidden(fields: Mapping[str, Property]) -> bool:
    """Return whether any property, at any depth, is hidden."""
    return any(
        one.hidden
        or (one.fields is not None and has_hidden(one.fields))
        or (one.items is not None and has_hidden({"": one.items}))
        for one in fields.values()
    )


def _renames(fields: Mapping[str, Property]) -> bool:
    return any(
        one.former_names
        or (one.fields is not None and _renames(one.fields))
        or (one.items is not None and _renames({"": one.items}))
        for one in fields.values()
    )
