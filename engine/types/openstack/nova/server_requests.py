"""Requests about a server that several operations send. Coroutines raise CloudError."""

from collections.abc import Mapping
from typing import Final

from engine.types.contract import Call, Wait
from engine.types.openstack.cloud import Session, segment
from engine.types.openstack.cloud_operation import read_again
from engine.types.openstack.nova.server_state import lacks_fault
from engine.types.openstack.services import COMPUTE
from engine.words import Json

#: In the progress of an operation: it has read a server without a fault again.
_FAULT_AWAITED: Final = "fault_awaited"


def server_name(call: Call) -> str:
    """The name of the server; one of ours stays the same in later operations."""
    return str(call.properties.get("name") or call.data.get("name") or call.own_name)


async def find_server(session: Session, server_id: str) -> Mapping[str, Json] | None:
    return await session.find(
        COMPUTE, f"/servers/{segment(server_id)}", "server", "read the server"
    )


async def post_action(session: Session, call: Call, action: Json, doing: str) -> Json:
    """Have Nova do something with the server of a call."""
    path = f"/servers/{segment(call.physical_id)}/action"
    return await session.request(COMPUTE, "POST", path, doing, action)


def wait_for_fault(
    call: Call, server: Mapping[str, Json], progress: Mapping[str, Json]
) -> Wait | None:
    """Wait once for the reason of the status ERROR; None: there is one, or Nova has none."""
    if not lacks_fault(server) or progress.get(_FAULT_AWAITED):
        return None
    reason = "Went to status ERROR"
    return read_again(call, {**progress, _FAULT_AWAITED: True}, reason, reason)
