"""The quota on the size of one resource: its properties, attributes and the type's own data.

A resource that exceeds it fails before it is part of a statement with others.
"""

from collections.abc import Mapping

from engine.node.inputs import Claimed, OperationFailed
from engine.store.document_size import size_of
from engine.words import Json, Operation
from engine.work.job import NodeInput
from engine.work.prepare import Prepared
from engine.work.transition_encoder import Result

#: Operations that write computed values. Others, above all delete, ignore the quota.
_MEASURED = frozenset(
    {Operation.CREATE, Operation.UPDATE, Operation.REPLACE, Operation.ADOPT, Operation.CHECK}
)


def within_quota_before(
    prepared: Prepared, node_input: NodeInput | None, most: int
) -> NodeInput | None:
    """The input before an operation, or a failure if the properties exceed the quota."""
    continues = node_input is None or isinstance(node_input.input, Claimed)
    if not continues or prepared.change.operation not in _MEASURED:
        return node_input
    size = size_of(prepared.properties)
    if size <= most:
        return node_input
    return NodeInput(
        OperationFailed(_too_large("properties", size, most)), Result(prepared.work.properties)
    )


def within_quota(prepared: Prepared, node_input: NodeInput, most: int) -> NodeInput:
    """The input after an operation, or a failure if its result exceeds the quota. The physical
    resource is recorded, so that it can be deleted."""
    result = node_input.result
    if Operation(prepared.work.operation) not in _MEASURED:
        return node_input
    given = [result.attributes, result.data, result.progress, result.seen]
    size = size_of(result.properties) + size_of(given)
    if size <= most:
        return node_input
    kept = Result(
        properties=result.properties,
        shown=result.shown,
        physical_id=result.physical_id,
        data=_small(result.data, most),
    )
    return NodeInput(OperationFailed(_too_large("properties and attributes", size, most)), kept)


def _small(data: Mapping[str, Json], most: int) -> Mapping[str, Json]:
    return data if size_of(data) <= most else {}


def _too_large(what: str, size: int, most: int) -> str:
    return (
        f"{what} of {size} bytes exceed the quota resource_bytes of {most} bytes. Make them"
        " smaller; the operator sets the quota in [quotas]."
    )
