"""Write the settings into deploy/helm/headgate/values.schema.json: make helm-schema.

Helm then refuses unknown settings below `config` before it changes anything. The rest of the file
is written by hand.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from hub.settings.settings import Settings

SCHEMA = Path(__file__).parents[1] / "deploy" / "helm" / "headgate" / "values.schema.json"
#: YAML reads the name `on` of a setting as true, and Helm makes it a text. The chart writes `on`.
READ_AS = {"on": "true"}
SIMPLE = {bool: "boolean", int: "integer", float: "number"}


def describe_section(section: type[BaseModel]) -> dict[str, Any]:
    """A JSON schema that refuses unknown names. It checks few values: Headgate checks all."""
    properties = {name: describe(one.annotation) for name, one in section.model_fields.items()}
    also = {READ_AS[name]: one for name, one in properties.items() if name in READ_AS}
    return {"type": "object", "additionalProperties": False, "properties": properties | also}


def describe(of: Any) -> dict[str, Any]:
    origin, arguments = get_origin(of), get_args(of)
    if origin is Annotated:
        return describe(arguments[0])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (UnionType, Union):
        one, *others = [one for one in arguments if one is not type(None)]
        return {} if others else describe(one)
    if origin is tuple:
        return _describe_items(describe(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": describe(arguments[1])}
    if isinstance(of, type) and issubclass(of, BaseModel):
        return describe_section(of)
    return {"type": SIMPLE[of]} if of in SIMPLE else {}


def _describe_items(item: dict[str, Any]) -> dict[str, Any]:
    """A list of tables. Lists of other values can be one text, too."""
    return {"type": "array", "items": item} if item.get("type") == "object" else {}


def with_settings(text: str) -> str:
    """The schema with the settings of this version."""
    schema = json.loads(text)
    schema["definitions"]["settings"] = describe_section(Settings)
    return json.dumps(schema, indent=2) + "\n"


def main() -> None:
    SCHEMA.write_text(with_settings(SCHEMA.read_text()))


if __name__ == "__main__":
    main()
