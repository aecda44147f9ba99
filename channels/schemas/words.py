"""JSON schema fragments, for the schemas of events and of API responses."""

from collections.abc import Mapping

from engine.words import Json

TEXT: Json = {"type": "string"}
TEXT_OR_NULL: Json = {"type": ["string", "null"]}
NUMBER: Json = {"type": "number"}
COUNT: Json = {"type": "integer", "minimum": 0}
FLAG: Json = {"type": "boolean"}
MAP: Json = {"type": "object"}
LIST: Json = {"type": "array"}
ANYTHING: Json = {}
NOTHING: Json = {"type": "null"}
UUID: Json = {"type": "string", "format": "uuid"}
TIME: Json = {"type": "string", "format": "date-time", "pattern": "Z$"}


def one_of(*values: str) -> Json:
    return {"enum": [str(value) for value in values]}


def fields(required: Mapping[str, Json], optional: Mapping[str, Json] | None = None) -> Json:
    """An object with these keys; later versions may add keys."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


def list_of(schema: Json) -> Json:
    return {"type": "array", "items": schema}


def map_of(schema: Json) -> Json:
    """An object with arbitrary keys."""
    return {"type": "object", "additionalProperties": schema}


def or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}
