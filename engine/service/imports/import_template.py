"""The template that imports existing resources. Pure.

It has the properties whose values differ from the defaults of the schema. A property whose value is
the ID of another imported resource refers to that resource, unless the reference would close a
cycle. What must be given, and each secret value, is a parameter without a default; what the
language would read as a call of a function is a parameter with a default, because defaults are
data.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import yaml

from engine.hot.language.versions import VERSIONS
from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.words import Json

#: The version of the language: the first with the section `import`.
VERSION: Final = "2026-12-01"
#: Characters of a resource name that comes from the name of an object, and of a reason in a
#: comment.
MAX_NAME, MAX_REASON = 100, 300
#: IDs of at least this length are of one object only, whatever the property.
UNIQUE_LENGTH: Final = 16
_NAME = re.compile(r"[^A-Za-z0-9_]+")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_SECRET: Final = Property(Kind.STRING, hidden=True)
_PARAMETER_KINDS: Final[Mapping[Kind, str]] = {
    Kind.STRING: "string",
    Kind.INTEGER: "number",
    Kind.NUMBER: "number",
    Kind.BOOLEAN: "boolean",
    Kind.LIST: "json",
    Kind.MAP: "json",
    Kind.ANY: "json",
}


@dataclass(frozen=True, slots=True)
class ImportedObject:
    """An object that was read. name: of the object; "": its type names the resource. reference: the
    value of get_resource; None: nothing may refer to it. unread: the reasons for properties that
    could not be read. secrets: the paths to values in the properties that become hidden parameters,
    one for equal values at the end of equal names."""

    schema: TypeSchema
    physical_id: str
    name: str
    properties: Mapping[str, Json] = field(repr=False)
    unread: Mapping[str, str] = field(default_factory=dict)
    reference: str | None = None
    secrets: Sequence[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True)
class ImportTemplate:
    """text: YAML. names: of the resources, in the order of the objects. required: the parameters
    without a default."""

    text: str = field(repr=False)
    names: Sequence[str]
    required: Sequence[str]


def write_import_template(objects: Sequence[ImportedObject]) -> ImportTemplate:
    """Return a template that has and imports these objects, in their order."""
    names = name_resources(objects)
    writer = _Writer(names, objects)
    bodies = [writer.properties(number) for number in range(len(objects))]
    text = f"heat_template_version: {VERSION}\ndescription: Imported resources.\n"
    if writer.parameters:
        text += _block({"parameters": writer.parameters})
    entries = [
        {"resource": name, "id": _escape(one.physical_id)}
        for name, one in zip(names, objects, strict=True)
    ]
    text += _block({"import": entries}) if entries else ""
    text += "resources:" + ("\n" if objects else " {}\n")
    for name, one, properties in zip(names, objects, bodies, strict=True):
        text += f"  {_block(name).strip()}:\n    type: {_block(one.schema.name)}"
        for key, reason in sorted(one.unread.items()):
            text += f"    # {_comment(f'{key}: {reason}')}\n"
        if properties:
            text += _indent(_block({"properties": properties}), 4)
    required = [key for key, one in writer.parameters.items() if "default" not in one]
    return ImportTemplate(text, names, required)


def name_resources(objects: Sequence[ImportedObject]) -> list[str]:
    """Return a name for each resource: that of its object, made valid and unique."""
    names: list[str] = []
    used: set[str] = set()
    for one in objects:
        kind = one.schema.name.rpartition("::")[2].lower()
        base = _NAME.sub("_", one.name)[:MAX_NAME].strip("_") or kind
        base = f"{kind}_{base}" if base[0].isdigit() else base
        name, number = base, 1
        while name in used:
            number += 1
            name = f"{base}_{number}"
        used.add(name)
        names.append(name)
    return names


class _Writer:
    """Writes the properties of each object, and collects the parameters of all."""

    def __init__(self, names: Sequence[str], objects: Sequence[ImportedObject]) -> None:
        self.parameters: dict[str, dict[str, Json]] = {}
        self._names, self._objects = names, objects
        self._by_reference: dict[str, int] = {}
        for number, one in enumerate(objects):
            if one.reference:
                self._by_reference.setdefault(one.reference, number)
        self._users: dict[int, set[int]] = {}
        self._secrets: dict[tuple[int, str, Json], Json] = {}

    def properties(self, number: int) -> dict[str, Json]:
        one = self._objects[number]
        written: dict[str, Json] = {}
        for key, known in one.schema.current_properties():
            value = one.properties.get(key)
            if value is None or known.hidden:
                if known.required:
                    why = one.unread.get(key, "")
                    written[key] = self._parameter(number, key, known, {"description": why})
            elif value == known.default and type(value) is type(known.default):
                continue
            elif _has_call(value):
                if any(path[0] == key for path in one.secrets):
                    written[key] = self._parameter(number, key, replace(known, hidden=True), {})
                else:
                    written[key] = self._parameter(number, key, known, {"default": value})
            else:
                written[key] = self._snippet(number, value, known, (key,))
        return written

    def _parameter(self, number: int, key: str, known: Property, more: dict[str, Json]) -> Json:
        name = base = f"{self._names[number]}_{_NAME.sub('_', key)}"
        count = 1
        while name in self.parameters:
            count += 1
            name = f"{base}_{count}"
        kind = "json" if "default" in more else _PARAMETER_KINDS[known.kind]
        hidden: dict[str, Json] = {"hidden": True} if known.hidden else {}
        self.parameters[name] = {"type": kind, **hidden, **more}
        return {"get_param": name}

    def _snippet(
        self, number: int, value: Json, known: Property | None, path: tuple[str, ...] = ()
    ) -> Json:
        """A value in the language. known: its schema, if there is one. path: to it, outside of
        lists."""
        if path in self._objects[number].secrets:
            return self._secret(number, path, value)
        if isinstance(value, str):
            name = self._refer(number, value, known)
            return _escape(value) if name is None else {"get_resource": name}
        if isinstance(value, list):
            items = known.items if known is not None else None
            return [self._snippet(number, one, items) for one in value]
        if isinstance(value, Mapping):
            fields = (known.fields if known is not None else None) or {}
            return {
                key: self._snippet(number, one, fields.get(key), (*path, key) if path else ())
                for key, one in value.items()
            }
        return value

    def _secret(self, number: int, path: tuple[str, ...], value: Json) -> Json:
        """A hidden parameter without a default, the same for an equal value of the same name."""
        same = (number, path[-1].lower(), value)
        if same not in self._secrets:
            self._secrets[same] = self._parameter(number, "_".join(path), _SECRET, {})
        return self._secrets[same]

    def _refer(self, number: int, text: str, known: Property | None) -> str | None:
        """The name of the resource that a text refers to; None: it is no such reference."""
        target = self._by_reference.get(text)
        if target is None or target == number:
            return None
        is_one_object = len(text) >= UNIQUE_LENGTH and any(map(str.isdigit, text))
        if not is_one_object and not _names_type(known, self._objects[target].schema.name):
            return None
        if number in self._objects_behind(target):
            return None
        self._users.setdefault(number, set()).add(target)
        return self._names[target]

    def _objects_behind(self, start: int) -> set[int]:
        """The objects that one refers to, also through others."""
        found: set[int] = set()
        left = [start]
        while left:
            for one in self._users.get(left.pop(), ()):
                if one not in found:
                    found.add(one)
                    left.append(one)
        return found


def _names_type(known: Property | None, type_name: str) -> bool:
    """Whether a property names objects of a type, such as ``nova.keypair`` OS::Nova::KeyPair."""
    if known is None:
        return False
    wanted = ".".join(type_name.split("::")[-2:]).lower()
    return any(one.kind == "custom_constraint" and one.name == wanted for one in known.constraints)


def _has_call(value: Json) -> bool:
    """Whether the language reads a value, or a part of it, as a call of a function."""
    if isinstance(value, Mapping):
        if len(value) == 1 and next(iter(value)) in VERSIONS[VERSION].functions:
            return True
        return any(map(_has_call, value.values()))
    return isinstance(value, list) and any(map(_has_call, value))


def _escape(text: str) -> str:
    """A text without references of the language."""
    return text.replace("${", "$${")


def _comment(text: str) -> str:
    """One line. Only printable characters: others could end the comment."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return line if len(line) <= MAX_REASON else f"{line[:MAX_REASON]}..."


def _indent(text: str, spaces: int) -> str:
    return "".join(f"{' ' * spaces}{line}\n" for line in _lines(text))


def _lines(text: str) -> Iterator[str]:
    """The lines of a YAML text. Other characters that end lines are escaped in it."""
    yield from text.removesuffix("\n").split("\n")


class _Dumper(yaml.SafeDumper):
    """Quotes each text that is not a plain word."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = None if _PLAIN.fullmatch(text) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


def _block(value: Json) -> str:
    """A value in YAML, in one line each for texts."""
    text = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, width=1_000_000_000, default_flow_style=False
    )
    return text.removesuffix("...\n")
