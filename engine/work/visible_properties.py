"""What people may see of a node's properties: secrets masked."""

from collections.abc import Mapping

from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import decode
from engine.hot.expressions.masking import MASK, contains_mask
from engine.hot.functions.function import FunctionError
from engine.hot.schema.properties import has_hidden, mask_as_map
from engine.hot.schema.type_schema import TypeSchema
from engine.store.advance import Work
from engine.words import GATES, VISITS, Direction, Json, Operation
from engine.work.hook_opening import Notice
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
    hidden = {name for name, value in shown.items() if contains_mask(value)}
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
    reads = Inputs(work.inputs or {}).has_secrets
    return _shown(prepared) if reads or _has_secrets(definition) else None


def _stays_as_it_was(work: Work) -> bool:
    """Whether no definition has a part in it: what people may see was kept with the row."""
    return work.direction == Direction.CLEANUP or work.operation in VISITS


def keeps_secrets(prepared: Prepared) -> bool:
    """Whether anything that is kept of the resource may be secret, and so is sealed."""
    schema, work = prepared.type.schema, prepared.work
    return (
        work.shown is not None
        or work.patched is not None
        or bool(work.secret)
        or Inputs(work.inputs or {}).has_secrets
        or _has_secrets(work.definition or {})
        or schema.has_secrets()
        or has_hidden(schema.properties)
        or prepared.type.has_nested_stack  # what is inside may be
    )


def _has_secrets(definition: Mapping[str, Json]) -> bool:
    return _hides_properties(definition) or bool(definition.get("secret_metadata"))


def _hides_properties(definition: Mapping[str, Json]) -> bool:
    return definition.get("masked") is not None or bool(definition.get("secret_references"))


def _shown(prepared: Prepared) -> dict[str, Json]:
    work, definition = prepared.work, prepared.work.definition or {}
    schema = prepared.type.schema
    if _stays_as_it_was(work):
        return masked(work.shown or prepared.properties, schema)
    inputs = Inputs(work.inputs or {})
    if not _hides_properties(definition) and not inputs.has_secrets:
        return masked(prepared.properties, schema)
    view = inputs.masked(definition.get("secret_references") or ())
    found = masked(_resolved(definition, view, prepared.properties), schema)
    patched = masked(work.patched or {}, schema)
    return found | {
        name: MASK if contains_mask(found.get(name)) else value for name, value in patched.items()
    }


def _resolved(
    definition: Mapping[str, Json], view: Inputs, properties: Mapping[str, Json]
) -> Mapping[str, Json]:
    """The properties as the template has them, with masks in the place of secrets."""
    stored = definition["properties"] if definition["masked"] is None else definition["masked"]
    try:
        found = resolve(decode(stored, definition["version"]), view, masked=True)
    except FunctionError:  # masks may cost more than the values themselves
        found = MASK
    whole: Mapping[str, Json] = mask_as_map(found or {}, properties)
    return whole


def masked(properties: Mapping[str, Json], schema: TypeSchema) -> dict[str, Json]:
    """`properties` with those that the type hides replaced by ``******``."""
    return {
        name: MASK if value is not None and _hides(schema, name) else value
        for name, value in properties.items()
    }


def _hides(schema: TypeSchema, name: str) -> bool:
    known = schema.properties.get(name)
    return known is not None and known.hidden
