"""What is sent and answered looks like: schemas, each told once and pointed to."""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import BaseModel

from channels.schemas.words import TEXT, UUID, fields, list_of, or_null
from engine.words import Json

_PLACE = "#/components/schemas/{model}"


@dataclass(frozen=True, slots=True)
class Shape:
    """A schema with a name, under which it stands in ``components/schemas``."""

    name: str
    schema: Json


class Shapes:
    """Puts references in the place of shapes, and keeps what they point to."""

    def __init__(self) -> None:
        self._known: dict[str, Shape] = {}
        self.schemas: dict[str, Json] = {}

    def plain(self, schema: Json) -> Json:
        """The schema as JSON. Raises ValueError when two different shapes have one name."""
        if isinstance(schema, Shape):
            return self._reference(schema)
        if isinstance(schema, dict):
            return {name: self.plain(part) for name, part in schema.items()}
        if isinstance(schema, list):
            return [self.plain(part) for part in schema]
        return schema

    def of_model(self, model: type[BaseModel]) -> Json:
        """The schema of what may be sent; what it is made of stands beside the other shapes."""
        schema: dict[str, Json] = model.model_json_schema(ref_template=_PLACE)
        for name, part in schema.pop("$defs", {}).items():
            self._reference(Shape(name, part))
        return schema

    def _reference(self, shape: Shape) -> Json:
        if shape.name not in self._known:
            self._known[shape.name] = shape
            self.schemas[shape.name] = self.plain(shape.schema)
        elif self._known[shape.name] != shape:
            raise ValueError(f"two shapes are named {shape.name}")
        return inside(shape.name)


def inside(name: str) -> Json:
    """A shape from within itself."""
    return {"$ref": _PLACE.format(model=name)}


def page_of(name: str, shape: Json, following: Json = UUID) -> Json:
    """A list under its name, and where the next page begins."""
    return fields({name: list_of(shape), "next": or_null(following)})


def texts(names: Iterable[str]) -> dict[str, Json]:
    return dict.fromkeys(names, TEXT)
