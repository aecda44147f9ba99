"""Writes headgate/documents.py: the types of the API's responses and events for the Python client.

They are generated from the components of /openapi.json and from the schemas of the events, which
come from the same classes as the server's responses. `make client-documents` runs it, and a test
fails when the file differs.
"""

import ast
import json
import keyword
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

from channels.schemas.event_schemas import SCHEMAS
from channels.selection import WAITING
from hub.api import headgate, orchestration
from hub.api.openapi import openapi

Json = Any
ROOT = Path(__file__).parents[1]
TARGET = ROOT / "headgate" / "documents.py"
HEADER = '''"""The documents of responses and events, as the API describes them in /openapi.json.

Generated from the server's response classes by `make client-documents`; do not edit.
"""

from typing import Any, Literal, NotRequired, TypedDict

Json = Any
'''
PLAIN = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "array": "list[Json]",
    "object": "dict[str, Json]",
}
REFERENCE = "#/components/schemas/"


class DocumentWriter:
    """Classes by name, in the order in which they are first used. components: schemas by name."""

    def __init__(self, components: Mapping[str, Json]) -> None:
        self._components = components
        #: The name of the class of each anonymous object, by its schema.
        self._anonymous: dict[str, str] = {}
        self.texts: dict[str, str] = {}

    def type_of(self, schema: Json, name: str) -> str:
        """name: of the class, if the schema is an anonymous object."""
        match schema:
            case {"$ref": str(reference)}:
                return self._component(reference.removeprefix(REFERENCE))
            case {"anyOf": [*choices]} | {"oneOf": [*choices]}:
                return self._union(choices, name)
            case {"const": constant}:
                return f"Literal[{constant!r}]"
            case {"enum": [*words]}:
                return f"Literal[{', '.join(map(repr, words))}]"
            case {"type": [*types]}:
                return self._union([{**schema, "type": one} for one in types], name)
            case {"type": "array", "items": items} if items:
                return f"list[{self.type_of(items, name)}]"
            case {"type": "object", "properties": {**properties}} if properties:
                return self._object(schema, name)
            case {"type": "object", "additionalProperties": {**values}} if values:
                return f"dict[str, {self.type_of(values, name)}]"
            case {"type": str(kind)}:
                return PLAIN[kind]
        return "Json"

    def _union(self, choices: list[Json], name: str) -> str:
        return " | ".join(dict.fromkeys(self.type_of(one, name) for one in choices))

    def _component(self, name: str) -> str:
        schema = self._components[name]
        if "properties" not in schema:
            return self.type_of(schema, name)
        if name not in self.texts:
            self.write(name, schema)
        return name

    def _object(self, schema: Json, name: str) -> str:
        key = json.dumps(schema, sort_keys=True)
        if key not in self._anonymous:
            self._anonymous[key] = name
            self.write(name, schema)
        return self._anonymous[key]

    def write(self, name: str, schema: Json) -> None:
        """Add the class of an object with these properties."""
        if name in self.texts:
            raise ValueError(f"two documents are named {name}")
        self.texts[name] = ""  # a schema can contain itself
        required = set(schema.get("required", ()))
        fields = {
            key: kind if key in required else f"NotRequired[{kind}]"
            for key, one in schema["properties"].items()
            for kind in [self.type_of(one, f"{name}{_class_name(key)}")]
        }
        # A class is written after the classes that it uses.
        del self.texts[name]
        if any(not key.isidentifier() or keyword.iskeyword(key) for key in fields):
            items = "".join(f"    {key!r}: {kind!r},\n" for key, kind in fields.items())
            self.texts[name] = f"{name} = TypedDict({name!r}, {{\n{items}}})\n"
            return
        lines = [f"{key}: {_quoted(kind, name)}" for key, kind in fields.items()]
        if description := schema.get("description"):
            lines.insert(0, f'"""{description}"""\n')
        self.texts[name] = f"class {name}(TypedDict):\n{indent(chr(10).join(lines), '    ')}\n"


def _quoted(kind: str, name: str) -> str:
    """A class that contains itself is named in quotes."""
    return f'"{kind}"' if re.search(rf"\b{name}\b", kind) else kind


def _class_name(key: str) -> str:
    return "".join(part.capitalize() for part in key.replace("$", "").split("_"))


def response_names(routes: Mapping[str, Json]) -> Iterator[str]:
    """The components of all successful and failed responses."""
    for operations in routes.values():
        for operation in operations.values():
            for response in operation["responses"].values():
                for content in response.get("content", {}).values():
                    schema = content.get("schema", {})
                    for one in schema.get("anyOf", [schema]):
                        if reference := one.get("$ref"):
                            yield reference.removeprefix(REFERENCE)


def text() -> str:
    """The module, before it is formatted."""
    routes = [
        one
        for one in (*headgate.ROUTES, *orchestration.ROUTES)
        if not one.path.startswith("/cfn") and not one.path.startswith("/{version:")
    ]
    document = openapi(routes)
    components = document["components"]["schemas"]
    writer = DocumentWriter(components)
    for name in sorted(
        {*response_names(document["paths"]), "CloudEvent", "HeatProblem", "OwnProblem"}
    ):
        if "properties" in components[name] and name not in writer.texts:
            writer.write(name, components[name])
    # Its objects get the names of those of a hook, where they are equal.
    writer.write("Notification", SCHEMAS[WAITING]["properties"]["data"])
    return HEADER + "".join(f"\n\n{one}" for one in writer.texts.values())


def normalized(module: str) -> str:
    """A module without the differences that formatting makes."""
    return ast.unparse(ast.parse(module))


def main() -> None:
    TARGET.write_text(text())
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", str(TARGET)]
    subprocess.run(ruff, check=True)  # noqa: S603


if __name__ == "__main__":
    main()
