"""Checks properties and results of operations against the quota `resource_bytes`."""

from collections.abc import Mapping

from engine.node.node import Claimed, OperationFailed
from engine.store.connection import size_of
from engine.words import Json, Operation
from engine.work.nodes.job import NodeInput
from engine.work.nodes.prepare import PreparedNode
from engine.work.nodes.transition_encoder import Result

#: Operations that write computed values. Others, above all delete, ignore the quota.
_MEASURED = frozenset(
    {Operation.CREATE, Operation.UPDATE, Operation.REPLACE, Operation.ADOPT, Operation.CHECK}
)


def check_size_before(
    prepared: PreparedNode, node_input: NodeInput | None, max_bytes: int
) -> NodeInput | None:
    """The input before an operation, or a failure if the properties exceed the quota."""
    continues = node_input is None or isinstance(node_input.input, Claimed)
    if not continues or prepared.change.operation not in _MEASURED:
        return node_input
    size = size_of(prepared.properties)
    if size <= max_bytes:
        return node_input
    return NodeInput(
        OperationFailed(_too_large("properties", size, max_bytes)), Result(prepared.work.properties)
    )


def check_size(prepared: PreparedNode, node_input: NodeInput, max_bytes: int) -> NodeInput:
    """The input after an operation, or a failure if its result exceeds the quota. The physical
    resource is recorded, so that it can be deleted."""
    result = node_input.result
    if Operation(prepared.work.operation) not in _MEASURED:
        return node_input
    computed = [result.attributes, result.data, result.progress, result.seen]
    size = size_of(result.properties) + size_of(computed)
    if size <= max_bytes:
        return node_input
    kept = Result(
        properties=result.properties,
        masked_properties=result.masked_properties,
        physical_id=result.physical_id,
        data=_data_within_limit(result.data, max_bytes),
    )
    return NodeInput(
        OperationFailed(_too_large("properties and attributes", size, max_bytes)), kept
    )


def _data_within_limit(data: Mapping[str, Json], max_bytes: int) -> Mapping[str, Json]:
    return data if size_of(data) <= max_bytes else {}


def _too_large(what: str, size: int, max_bytes: int) -> str:
    return (
        f"{what} of {size} bytes exceed the quota resource_bytes of {max_bytes} bytes. Make them"
        " smaller; the operator sets the quota in [quotas]."
    )
