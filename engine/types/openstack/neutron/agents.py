"""Which agents of Neutron serve a network or router."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from engine.types.openstack.cloud import Session, id_of, segment
from engine.types.openstack.service_errors import CONFLICT, CloudError
from engine.types.openstack.services import NETWORK


@dataclass(frozen=True, slots=True)
class AgentKind:
    """what: one agent, in messages. objects, agents: collections in the path of the list of an
    object's agents. of_agent: the collection of an agent's objects. field: the ID of an object.
    exclusive: an agent must be removed before another one is added.
    """

    what: str
    objects: str
    agents: str
    of_agent: str
    field: str
    exclusive: bool


DHCP: Final = AgentKind(
    "DHCP agent", "networks", "dhcp-agents", "dhcp-networks", "network_id", exclusive=False
)
L3: Final = AgentKind("L3 agent", "routers", "l3-agents", "l3-routers", "router_id", exclusive=True)


async def set_agents(
    session: Session, kind: AgentKind, object_id: str, wanted: Collection[str]
) -> None:
    """Make these the agents of an object. May be repeated. Raises CloudError."""
    present = await _read_agents(session, kind, object_id)
    extra = sorted(present - {*wanted})
    missing = [one for one in dict.fromkeys(wanted) if one not in present]
    if kind.exclusive:
        await _remove(session, kind, object_id, extra)
    for agent in missing:
        await _add(session, kind, object_id, agent)
    if not kind.exclusive:
        await _remove(session, kind, object_id, extra)


async def _read_agents(session: Session, kind: AgentKind, object_id: str) -> set[str]:
    path = f"/{kind.objects}/{segment(object_id)}/{kind.agents}"
    return {id_of(NETWORK, one) for one in await session.list(NETWORK, path, "agents")}


async def _add(session: Session, kind: AgentKind, object_id: str, agent: str) -> None:
    path, doing = f"/agents/{segment(agent)}/{kind.of_agent}", f"add the {kind.what}"
    try:
        await session.send(NETWORK, "POST", path, doing, {kind.field: object_id})
    except CloudError as error:
        if error.status != CONFLICT:
            raise
        if agent not in await _read_agents(session, kind, object_id):
            raise


async def _remove(
    session: Session, kind: AgentKind, object_id: str, agents: Collection[str]
) -> None:
    """An agent that does not serve the object any more is none to remove."""
    for agent in agents:
        path = f"/agents/{segment(agent)}/{kind.of_agent}/{segment(object_id)}"
        try:
            await session.send(NETWORK, "DELETE", path, f"remove the {kind.what}")
        except CloudError as error:
            if not error.is_missing and error.status != CONFLICT:
                raise
