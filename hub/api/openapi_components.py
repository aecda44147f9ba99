"""The types that response documents consist of, and their OpenAPI components.

A response document is a TypedDict: handlers build a plain dict that mypy checks against it, or
`document_of` takes its fields from records, and pydantic generates the component of the OpenAPI
document from the same class.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, TypeVar, cast
from uuid import UUID

from pydantic import Field, TypeAdapter, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from channels.envelope import rfc3339
from channels.schemas.event_schemas import HOOK_DOCUMENT, HOOK_OF_PROJECT, POINT, TRACEPARENT
from engine.words import Json

_REFERENCE = "#/components/schemas/{model}"

Document = dict[str, Json]
Count = Annotated[int, Field(ge=0)]
Uuid = Annotated[str, WithJsonSchema({"type": "string", "format": "uuid"})]
Uri = Annotated[str, WithJsonSchema({"type": "string", "format": "uri"})]
#: RFC 3339, in UTC.
Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time", "pattern": "Z$"})]
#: An insertion point of a hook, such as ``pre-create``.
HookPoint = Annotated[str, WithJsonSchema(POINT)]
TraceParent = Annotated[str, WithJsonSchema(TRACEPARENT)]
#: A hook as in events; its schema is shared with the event schemas.
HookDocument = Annotated[Document, WithJsonSchema(HOOK_DOCUMENT)]
#: The same in the list of all projects.
HookOfProjectDocument = Annotated[Document, WithJsonSchema(HOOK_OF_PROJECT)]


def one_of(values: Iterable[str]) -> WithJsonSchema:
    """For Annotated: a string with one of these values."""
    return WithJsonSchema({"type": "string", "enum": [str(value) for value in values]})


T = TypeVar("T")


def document_of(kind: type[T], *records: object, **computed: Json) -> T:
    """A document of this TypedDict: computed fields, and for each other field the attribute of this
    name of the first record that has it."""
    names = _attributes(cast(Any, kind), frozenset(computed), tuple(map(type, records)))
    values = {name: getattr(records[place], name) for name, place in names}
    plain = {
        name: write(value) if (write := _PLAIN.get(type(value))) else value
        for name, value in values.items()
    }
    return cast(T, plain | computed)


@cache
def _attributes(
    kind: Any, computed: frozenset[str], records: tuple[type, ...]
) -> list[tuple[str, int]]:
    """Each field that is not computed, with the number of the record that has it."""
    names = [name for name in kind.__annotations__ if name not in computed]
    return [
        (name, next(place for place, one in enumerate(records) if hasattr(one, name)))
        for name in names
    ]


#: Types of values that JSON has no value for.
_PLAIN: Mapping[type, Callable[[Any], Json]] = {datetime: rfc3339, UUID: str, tuple: list}


#: A type by its identity, and the direction.
_Key = tuple[int, JsonSchemaMode]


class _Generator(GenerateJsonSchema):
    """Leaves out titles, which repeat the names of the fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class Components:
    """Schemas of types. `generate` handles all registered types at once, so that each named type
    becomes one component with one name."""

    def __init__(self) -> None:
        self._adapters: dict[_Key, tuple[Any, TypeAdapter[Any]]] = {}
        self._schemas: dict[_Key, Json] = {}
        self.schemas: dict[str, Json] = {}

    def response(self, kind: Any) -> None:
        self._register(kind, "serialization")

    def request(self, kind: Any) -> None:
        self._register(kind, "validation")

    def _register(self, kind: Any, mode: JsonSchemaMode) -> None:
        if (id(kind), mode) not in self._adapters:
            self._adapters[id(kind), mode] = kind, TypeAdapter(kind)

    def generate(self) -> None:
        inputs = [(key, mode, adapter) for (key, mode), (_, adapter) in self._adapters.items()]
        schemas, shared = TypeAdapter.json_schemas(
            inputs, ref_template=_REFERENCE, schema_generator=_Generator
        )
        self._schemas = {**schemas}
        self.schemas = shared.get("$defs", {})

    def schema(self, kind: Any, mode: JsonSchemaMode) -> Json:
        """The schema of a registered type: in most cases a reference to its component."""
        return self._schemas[id(kind), mode]
