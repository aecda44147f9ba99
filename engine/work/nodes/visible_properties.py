"""A node's properties with secrets masked."""

from collections.abc import Mapping

from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import decode
from engine.hot.expressions.masking import MASK, contains_mask
from engine.hot.functions.function import FunctionError
from engine.hot.schema.properties import mask_as_map, mask_hidden
from engine.hot.schema.type_schema import TypeSchema
from engine.store.traversals.advance import Work
from engine.words import GATES, IN_PLACE_OPERATIONS, Direction, Json, Operation
from engine.work.nodes.hook_opening import NotificationData
from engine.work.nodes.prepare import Inputs, PreparedNode, masks_properties


def notification_data(prepared: PreparedNode) -> NotificationData:
    """Return properties and changes with secrets masked."""
    work = prepared.work
    if work.operation in GATES:
        return NotificationData({}, {})
    shown = _mask_properties(prepared)
    if prepared.change.operation not in (Operation.UPDATE, Operation.REPLACE):
        return NotificationData(shown, {})
    before = mask_properties(work.masked_properties or work.properties or {}, prepared.type.schema)
    hidden = {name for name, value in shown.items() if contains_mask(value)}
    return NotificationData(
        shown,
        {
            name: {
                "from": MASK if name in hidden else before.get(name),
                "to": shown.get(name),
            }
            for name in sorted(prepared.change.changed)
        },
    )


def kept_view(prepared: PreparedNode) -> Mapping[str, Json] | None:
    """Return the masked properties to store, for later notifications; None if none is secret."""
    if not keeps_secrets(prepared):
        return None
    work = prepared.work
    if _reads_no_definition(work) or work.operation in GATES:
        return work.masked_properties
    kept = prepared.ignored and work.masked_properties is not None
    return _mask_properties(prepared) if kept or masks_properties(work) else None


def _reads_no_definition(work: Work) -> bool:
    """Return whether the operation reads no definition, so that the stored view applies."""
    return work.direction == Direction.CLEANUP or work.operation in IN_PLACE_OPERATIONS


def keeps_secrets(prepared: PreparedNode) -> bool:
    """Return whether a stored value of the resource may be secret, and is therefore encrypted.

    If not, `kept_view` is None, and no text or attribute of the resource is secret.
    """
    if prepared.has_secrets is None:
        prepared.has_secrets = _keeps_secrets(prepared)
    return prepared.has_secrets


def _keeps_secrets(prepared: PreparedNode) -> bool:
    schema, work = prepared.type.schema, prepared.work
    return (
        work.masked_properties is not None
        or work.patched is not None
        or bool(work.secret_attributes)
        or Inputs(work.inputs or {}).has_secrets
        or _has_secrets(work.definition or {})
        or schema.has_secrets()
        or schema.hides
        or prepared.type.has_nested_stack  # whose values may be secret
    )


def _has_secrets(definition: Mapping[str, Json]) -> bool:
    return _hides_properties(definition) or bool(definition.get("secret_metadata"))


def _hides_properties(definition: Mapping[str, Json]) -> bool:
    return definition.get("masked") is not None or bool(definition.get("secret_references"))


def _mask_properties(prepared: PreparedNode) -> dict[str, Json]:
    """Return the properties with secrets masked; ignored ones as they were masked when they were
    applied."""
    found = _shown_by_definition(prepared)
    if not prepared.ignored:
        return found
    work = prepared.work
    before = mask_properties(work.masked_properties or work.properties or {}, prepared.type.schema)
    shown = {name: value for name, value in found.items() if name not in prepared.ignored}
    return shown | {name: before[name] for name in prepared.ignored if name in before}


def _shown_by_definition(prepared: PreparedNode) -> dict[str, Json]:
    work, definition = prepared.work, prepared.work.definition or {}
    schema = prepared.type.schema
    if _reads_no_definition(work):
        return mask_properties(work.masked_properties or prepared.properties, schema)
    inputs = Inputs(work.inputs or {})
    if not _hides_properties(definition) and not inputs.has_secrets:
        return mask_properties(prepared.properties, schema)
    view = inputs.mask(definition.get("secret_references") or ())
    found = mask_properties(_resolve_properties(definition, view, prepared.properties), schema)
    patched = mask_properties(work.patched or {}, schema)
    return found | {
        name: MASK if contains_mask(found.get(name)) else value for name, value in patched.items()
    }


def _resolve_properties(
    definition: Mapping[str, Json], view: Inputs, properties: Mapping[str, Json]
) -> Mapping[str, Json]:
    """Return the template's properties with secrets masked."""
    stored = definition["properties"] if definition["masked"] is None else definition["masked"]
    try:
        found = resolve(decode(stored, definition["version"]), view, masked=True)
    except FunctionError:  # evaluation with masks may exceed the cost budget
        found = MASK
    whole: Mapping[str, Json] = mask_as_map(found or {}, properties)
    return whole


def mask_properties(properties: Mapping[str, Json], schema: TypeSchema) -> dict[str, Json]:
    """Return resolved properties with hidden ones of the schema, at any depth, replaced by
    ``******``."""
    return dict(mask_hidden(schema, properties) if schema.hides else properties)
