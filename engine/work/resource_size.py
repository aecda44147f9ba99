"""The quota on what one resource computes: its properties, its attributes and the type's own data.

What is beyond it fails its own resource, before it becomes a statement that fails those of others.
"""

from collections.abc import Mapping

from engine.node.inputs import Broke, Claimed
from engine.store.document_size import size_of
from engine.words import Json, Operation
from engine.work.job import NodeInput
from engine.work.prepare import Prepared
from engine.work.transition_encoder import Result

#: Operations that write what they compute. Others, and above all a delete, work whatever the quota.
_MEASURED = frozenset(
    {Operation.CREATE, Operation.UPDATE, Operation.REPLACE, Operation.ADOPT, Operation.CHECK}
)


def within_quota_before(prepared: Prepared, said: NodeInput | None, most: int) -> NodeInput | None:
    """The input before an operation, or a failure if the properties exceed the quota."""
    going_on = said is None or isinstance(said.input, Claimed)
    if not going_on or prepared.change.operation not in _MEASURED:
        return said
    size = size_of(prepared.properties)
    if size <= most:
        return said
    return NodeInput(Broke(_too_large("properties", size, most)), Result(prepared.work.properties))


def within_quota(prepared: Prepared, said: NodeInput, most: int) -> NodeInput:
    """The input after an operation, or a failure if its result exceeds the quota. The physical
    resource is recorded, so that it can be deleted."""
    result = said.result
    if Operation(prepared.work.operation) not in _MEASURED:
        return said
    given = [result.attributes, result.data, result.progress, result.seen]
    size = size_of(result.properties) + size_of(given)
    if size <= most:
        return said
    kept = Result(
        properties=result.properties,
        shown=result.shown,
        physical_id=result.physical_id,
        data=_small(result.data, most),
    )
    return NodeInput(Broke(_too_large("properties and attributes", size, most)), kept)


def _small(data: Mapping[str, Json], most: int) -> Mapping[str, Json]:
    return data if size_of(data) <= most else {}


def _too_large(what: str, size: int, most: int) -> str:
    return (
        f"{what} of {size} bytes exceed the quota resource_bytes of {most} bytes. Make them"
        " smaller; the operator sets the quota in [quotas]."
    )
