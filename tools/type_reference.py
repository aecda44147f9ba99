"""Writes the tables of properties and attributes of resource types from their schemas."""

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.hooks.derived_tokens import TokenKeys
from engine.hot.schema.type_schema import Constraint, Property, TypeSchema
from engine.types.command import Command, CommandSettings
from engine.types.contract import ResourceType
from engine.types.http import Http, HttpSettings
from engine.types.openstack import openstack_types
from engine.types.operator_credentials import Credentials
from engine.types.registry import built_in
from engine.types.remote_stack import Endpoints, RemoteStack
from engine.types.software import ServerUrls, software_types
from engine.words import Json
from tools.generated_sections import table, with_sections
from tools.type_observation import ALONE, BY_CHECK, BY_LIST, NOT, ObservingCloud, observation_of

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
#: The types with sections in compute-types.md.
COMPUTE = ("OS::Cinder::", "OS::Glance::", "OS::Nova::")
#: The types in resource-types.md; the others are those of openstack-types.md.
OWN = ("AWS::AutoScaling::", "AWS::CloudFormation::", "Headgate::", "OS::Heat::")
#: Properties that an update may change according to the schema, but that the type replaces.
REPLACING = {("OS::Cinder::VolumeAttachment", "volume_id")}
#: In the column of a table.
OBSERVED = {BY_LIST: "by lists", ALONE: "one by one", BY_CHECK: "by check", NOT: "no"}
HEAD = """# Properties and attributes

`make reference` writes this page from the schemas of the resource types. `headgate type show TYPE`
shows the same for a type of the server that you use, also for installed types.
[Resource types](resource-types.md) and [Types of OpenStack](openstack-types.md) describe what the
types do. [Servers, volumes and images](compute-types.md) has the properties of `OS::Nova::*`,
`OS::Cinder::*` and `OS::Glance::*`.

The column *update* says what an update of the property does:

- *in place*: the resource is updated. Some types replace it for certain changes, or after a
  failure; their descriptions say when.
- *replace*: Headgate creates a new resource, and deletes the old one after every resource that
  used it has switched to the new one.
- *never*: an update that changes it is refused.

A property inside a map or list (`ports[].port`) changes together with it. All types also have the
attribute `show`. Constraints with a name, such as `nova.flavor`, are
[custom constraints](resource-types.md#custom-constraints). Headgate does not record since which
release it has a type or property.

*Observed* says how Headgate finds [drift](../how-to/repair-drift.md) of the resources of a type.
Types of a cloud need a [credential](../how-to/use-openstack.md#find-drift) that may read them. The
members of groups and nested stacks are observed by their own types.
"""


def types() -> Mapping[str, ResourceType]:
    """All types, also those that the operator can turn on."""
    unused: Any = None
    cloud: Any = ObservingCloud()
    servers = ServerUrls(TokenKeys.single(b""), "")
    registry = built_in(
        random.SystemRandom(),
        Command(CommandSettings()),
        Http(HttpSettings(enabled=True), unused, Credentials({})),
        RemoteStack(Endpoints({}), unused, Credentials({})),
        *software_types(unused, servers),
        *openstack_types(cloud, unused, servers),
    )
    return {name: registry.get(name) for name in registry.schemas()}


def schemas() -> Mapping[str, TypeSchema]:
    return {name: one.schema for name, one in types().items()}


def properties_page() -> str:
    parts = [HEAD]
    for name, one in sorted(types().items()):
        if not name.startswith(COMPUTE):
            parts += [f"## {name}\n", f"{one.schema.description}\n", _tables(name, one) + "\n"]
    return "\n".join(parts)


def _tables(name: str, one: ResourceType) -> str:
    return f"Observed: {observation_of(name, one)}.\n\n{type_tables(one.schema)}"


def compute_page() -> str:
    sections = {
        name: _tables(name, one) for name, one in types().items() if name.startswith(COMPUTE)
    }
    return with_sections(REFERENCE / "compute-types.md", sections)


def openstack_page() -> str:
    rows = [
        (
            f"[`{name}`](type-properties.md#{_anchor(name)})",
            one.schema.description,
            _in_place(one.schema),
            OBSERVED.get(observation_of(name, one), "one by one"),
        )
        for name, one in sorted(types().items())
        if not name.startswith((*OWN, *COMPUTE))
    ]
    listed = table(("type", "purpose", "in place", "observed"), *rows)
    return with_sections(REFERENCE / "openstack-types.md", {"types": listed})


def _in_place(schema: TypeSchema) -> str:
    updated = [f"`{name}`" for name, one in schema.properties.items() if one.update_allowed]
    return ", ".join(updated) or "none"


def _anchor(heading: str) -> str:
    return heading.lower().replace(":", "")


def type_tables(schema: TypeSchema) -> str:
    parts = []
    rows = [
        row for name, one in schema.current_properties() for row in _rows(schema.name, name, one)
    ]
    if rows:
        parts.append(table(("property", "update", "type", "default", "meaning"), *rows))
    elif schema.any_property:
        parts.append("Any properties.")
    else:
        parts.append("No properties.")
    policy = [row for name, one in schema.update_policy.items() for row in _rows("", name, one, "")]
    if policy:
        inner = [(name, kind, default, meaning) for name, _, kind, default, meaning in policy]
        parts.append(table(("update policy", "type", "default", "meaning"), *inner))
    attributes = [
        (f"`{name}`", str(one.kind), one.description + (" Secret." if one.secret else ""))
        for name, one in schema.attributes.items()
    ]
    if attributes:
        parts.append(table(("attribute", "type", "meaning"), *attributes))
    return "\n\n".join(parts)


def _rows(
    kind: str, name: str, one: Property, update: str | None = None
) -> Iterator[tuple[str, ...]]:
    """A property and those inside of it. update: of inner ones, which change with the outer one."""
    if update is None:
        update = "replace" if (kind, name) in REPLACING else _update(one)
    yield f"`{name}`", update, _kind(one), _default(one), " ".join(_meaning(one))
    for field, inner in (one.fields or {}).items():
        yield from _rows(kind, f"{name}.{field}", inner, "")
    if one.items is not None:
        for field, inner in (one.items.fields or {}).items():
            yield from _rows(kind, f"{name}[].{field}", inner, "")


def _update(one: Property) -> str:
    if one.update_allowed:
        return "in place"
    return "never" if one.immutable else "replace"


def _kind(one: Property) -> str:
    if one.items is None:
        return str(one.kind)
    inner = str(one.items.kind)
    return f"list of {inner if inner == 'any' else f'{inner}s'}".replace("list of any", "list")


def _default(one: Property) -> str:
    if one.required:
        return "required"
    return "" if one.default is None else _literal(one.default)


def _meaning(one: Property) -> Iterator[str]:
    if text := " ".join(one.description.split()):
        yield text if text.endswith((".", "!")) else f"{text}."
    for rule in one.constraints:
        yield _rule(rule)
    if one.items is not None:
        for rule in one.items.constraints:
            yield f"Each item: {_rule(rule)}"
    if one.hidden:
        yield "Secret."
    if one.former_names:
        yield f"Formerly {', '.join(f'`{name}`' for name in one.former_names)}."


def _rule(rule: Constraint) -> str:
    match rule.kind:
        case "allowed_values":
            return f"One of {', '.join(map(_literal, rule.allowed))}."
        case "allowed_pattern":
            return f"Matches `{rule.pattern}`."
        case "custom_constraint":
            return f"Constraint `{rule.name}`."
        case "schema":
            return "Must satisfy a JSON schema."
        case "modulo":
            offset = f" plus {rule.offset}" if rule.offset else ""
            return f"A multiple of {rule.step}{offset}."
        case "length":
            return f"Length {_bounds(rule)}."
        case _:
            return f"Range: {_bounds(rule)}."


def _bounds(rule: Constraint) -> str:
    if rule.max is None:
        return f"at least {rule.min}"
    return f"at most {rule.max}" if rule.min is None else f"{rule.min} to {rule.max}"


def _literal(value: Json) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return f"`{text}`"
