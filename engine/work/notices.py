"""What people may see of a node's properties: secrets masked."""

from collections.abc import Mapping

from engine.hot.expression import decode
from engine.hot.properties import has_hidden
from engine.hot.resolve import MASK, resolve
from engine.hot.schema import TypeSchema
from engine.store.advance import Work
from engine.words import GATES, VISITS, Direction, Json, Operation
from engine.work.opening import Notice
from engine.work.prepare import Inputs, Prepared


def notice(prepared: Prepared) -> Notice:
    """Properties and changes as people may see them."""
    work = prepared.work
    if work.operation in GATES:
        return Notice({}, {})
    shown = _shown(prepared)
    if prepared.change.operation not in (Operation.UPDATE, Operation.REPLACE):
        return Notice(shown, {})
    before = masked(work.shown or work.properties or {}, prepared.type.schema)
    hidden = {name for name, value in shown.items() if MASK in str(value)}
    return Notice(
        shown,
        {
            name: {
                "from": MASK if name in hidden else before.get(name),
                "to": shown.get(name),
            }
            for name in sorted(prepared.change.changed)
        },
    )


def kept_view(prepared: Prepared) -> Mapping[str, Json] | None:
    """What is kept beside the properties, so that later notices tell no secret either."""
    work, definition = prepared.work, prepared.work.definition or {}
    if _stays_as_it_was(work) or work.operation in GATES:
        return work.shown
    return _shown(prepared) if _has_secrets(definition) else None


def _stays_as_it_was(work: Work) -> bool:
    """Whether no definition has a part in it: what people may see was kept with the row."""
    return work.direction == Direction.CLEANUP or work.operation in VISITS


def keeps_secrets(prepared: Prepared) -> bool:
    """Whether anything that is kept of the resource may be secret, and so is sealed."""
    schema, work = prepared.type.schema, prepared.work
    return (
        work.shown is not None
        or work.patched is not None
        or _has_secrets(work.definition or {})
        or schema.has_secrets()
        or has_hidden(schema.properties)
        or prepared.type.nests  # what is inside may be
    )


def _has_secrets(definition: Mapping[str, Json]) -> bool:
    return _hides_properties(definition) or bool(definition.get("secret_metadata"))


def _hides_properties(definition: Mapping[str, Json]) -> bool:
    return definition.get("masked") is not None or bool(definition.get("secret_references"))


def _shown(prepared: Prepared) -> dict[str, Json]:
    work, definition = prepared.work, prepared.work.definition or {}
    schema = prepared.type.schema
    secret = definition.get("secret_references") or []
    if _stays_as_it_was(work):
        return masked(work.shown or prepared.properties, schema)
    if not _hides_properties(definition):
        return masked(prepared.properties, schema)
    patched = masked(work.patched or {}, schema)
    stored = definition["properties"] if definition["masked"] is None else definition["masked"]
    values = {
        name: [MASK if name in secret else reference, attributes]
        for name, (reference, attributes) in (work.inputs or {}).items()
    }
    expression = decode(stored, definition["version"])
    return masked(resolve(expression, Inputs(values), masked=True) or {}, schema) | patched


def masked(properties: Mapping[str, Json], schema: TypeSchema) -> dict[str, Json]:
    """`properties` with those that the type hides replaced by ``******``."""
    return {
        name: MASK if value is not None and _hides(schema, name) else value
        for name, value in properties.items()
    }


def _hides(schema: TypeSchema, name: str) -> bool:
    known = schema.properties.get(name)
    return known is not None and known.hidden
