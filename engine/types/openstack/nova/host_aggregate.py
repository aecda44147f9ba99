"""OS::Nova::HostAggregate: hosts with common metadata. For administrators."""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.types.contract import Call
from engine.types.openstack.cloud import Cloud, Session, segment
from engine.types.openstack.nova.schema import HOST_AGGREGATE
from engine.types.openstack.object_type import ObjectRow, ObjectType
from engine.types.openstack.services import COMPUTE
from engine.types.text_cleaning import as_text
from engine.words import Json

_ROW: Final = ObjectRow(
    "host aggregate",
    COMPUTE,
    "/os-aggregates",
    "aggregate",
    "aggregates",
    separate=frozenset({"hosts", "metadata"}),
    marked=False,
)
#: An entry that Nova itself writes into the metadata.
_ZONE = "availability_zone"


class HostAggregate(ObjectType):
    replaces_tainted = False

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(HOST_AGGREGATE, _ROW, cloud)

    def observation_key(self, call: Call) -> str | None:
        return None  # the list has no filter by ID

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        aggregate_id = self.id_of(found)
        given = call.properties.get("metadata") or {}
        wanted: dict[str, Json] = {str(name): as_text(one) for name, one in given.items()}
        known = found.get("metadata") or {}
        removed: dict[str, Json] = {
            name: None for name in known if name != _ZONE and name not in wanted
        }
        if removed or any(known.get(name) != one for name, one in wanted.items()):
            action = {"set_metadata": {"metadata": {**wanted, **removed}}}
            await _act(session, path, aggregate_id, action)
        hosts, now = call.properties.get("hosts") or [], found.get("hosts") or []
        await _change_hosts(session, path, aggregate_id, hosts, now)
        return await self.get(session, path, aggregate_id)

    async def remove(self, call: Call, session: Session, path: str, object_id: str) -> None:
        """Nova deletes only an aggregate without hosts."""
        found = await self.get(session, path, object_id)
        await _change_hosts(session, path, object_id, [], found.get("hosts") or [])
        await super().remove(call, session, path, object_id)


async def _change_hosts(
    session: Session, path: str, aggregate_id: str, wanted: Sequence[str], now: Sequence[str]
) -> None:
    for action, hosts in (
        ("remove_host", sorted(set(now) - set(wanted))),
        ("add_host", sorted(set(wanted) - set(now))),
    ):
        for host in hosts:
            await _act(session, path, aggregate_id, {action: {"host": host}})


async def _act(session: Session, path: str, aggregate_id: str, action: Json) -> None:
    doing = "change the host aggregate"
    await session.request(COMPUTE, "POST", f"{path}/{segment(aggregate_id)}/action", doing, action)
