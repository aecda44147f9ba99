"""Requests about a server that several operations send. All functions raise CloudError."""

from collections.abc import Mapping

from engine.types.contract import Call
from engine.types.openstack.cloud import Session, segment
from engine.types.openstack.services import COMPUTE
from engine.words import Json


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
