"""Words that schemas are written in: those of events, and those of the API's answers."""

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
    """A map with these keys; others may come to it later."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


def list_of(schema: Json) -> Json:
    return {"type": "array", "items": schema}


def map_of(schema: Json) -> Json:
    """A map whose keys are names."""
    return {"type": "object", "additionalProperties": schema}


def or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}
