"""OS::Manila::Share: a shared file system."""

from collections.abc import Collection, Mapping
from typing import Final

from engine.types.contract import Call
from engine.types.openstack.cloud import Cloud, Session, id_of, segment
from engine.types.openstack.manila.listed_type import ListedType
from engine.types.openstack.manila.lookups import SHARE_NETWORKS, SHARE_TYPES, SNAPSHOTS
from engine.types.openstack.manila.schema import SHARE
from engine.types.openstack.object_type import DESCRIPTION, NAME, ObjectRow
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import SHARED_FILE_SYSTEM
from engine.types.text_cleaning import as_text
from engine.words import Json

METADATA, ACCESS_RULES = "metadata", "access_rules"
#: States of an access rule that Manila removes.
_REMOVED: Final = frozenset({"queued_to_deny", "denying"})
_BUSY: Final = frozenset({"creating", "creating_from_snapshot", "manage_starting"})
#: The microversion that added messages about objects.
_WITH_MESSAGES: Final = {"X-OpenStack-Manila-API-Version": "2.37"}
_ERROR_DELETING: Final = "error_deleting"


class Share(ListedType):
    detailed_list = "/shares/detail"

    def __init__(self, cloud: Cloud) -> None:
        row = ObjectRow(
            "share", SHARED_FILE_SYSTEM, "/shares", "share", "shares",
            fields={
                "share_protocol": "share_proto", "snapshot": "snapshot_id",
                "share_network": "share_network_id",
            },
            lookups={
                "snapshot": SNAPSHOTS, "share_network": SHARE_NETWORKS, "share_type": SHARE_TYPES,
            },
            separate=frozenset({METADATA, ACCESS_RULES}),
            busy=_BUSY, failed=frozenset({"error", _ERROR_DELETING}),
        )  # fmt: skip
        super().__init__(SHARE, row, cloud)

    async def failure_reason(self, session: Session, found: Mapping[str, Json]) -> str:
        """Manila keeps the cause as a message about the share."""
        query = {"resource_id": self.id_of(found)}
        pages = session.pages(
            SHARED_FILE_SYSTEM, "/messages", "messages", query, headers=_WITH_MESSAGES
        )
        try:
            texts = {str(one.get("user_message") or "") async for page in pages for one in page}
        except CloudError:
            return self.status(found)
        return ": ".join((self.status(found), *sorted(filter(None, texts))))

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        fields = await super().fields_for_create(call, session)
        return {**fields, METADATA: _texts(call.properties.get(METADATA))}

    async def put(
        self, session: Session, path: str, object_id: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        """An update has other names for the name and the description."""
        former = {NAME: "display_name", DESCRIPTION: "display_description"}
        sent = {former.get(name, name): one for name, one in fields.items()}
        return await super().put(session, path, object_id, sent)

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        object_id = self.id_of(found)
        share = f"{path}/{segment(object_id)}"
        if call.previous is not None and self.touches(call, METADATA):
            body = {METADATA: _texts(call.properties.get(METADATA))}
            doing = "change the metadata of the share"
            await session.request(SHARED_FILE_SYSTEM, "PUT", f"{share}/metadata", doing, body)
        if self.touches(call, ACCESS_RULES):
            await _write_access(session, share, call.properties.get(ACCESS_RULES) or [])
        return await self.get(session, path, object_id)

    async def attributes_of(self, session: Session, found: Mapping[str, Json]) -> dict[str, Json]:
        known = await super().attributes_of(session, found)
        path = f"{self.row.path}/{segment(self.id_of(found))}/export_locations"
        exported = await session.list(SHARED_FILE_SYSTEM, path, "export_locations")
        return {**known, "export_locations": [one.get("path") for one in exported]}

    async def remove(self, call: Call, session: Session, path: str, object_id: str) -> None:
        """Manila deletes no share that it still creates."""
        found = await self.get(session, path, object_id)
        status = self.status(found)
        if status in _BUSY:
            public = "the share is being created"
            raise CloudError(f"{public}: {status}", retry=True, public=public)
        if status != "deleting":
            await super().remove(call, session, path, object_id)

    async def is_deleting(self, call: Call, session: Session, path: str) -> bool:
        found = await self.find(session, path, str(call.physical_id))
        if found is not None and self.status(found) == _ERROR_DELETING:
            public = "the share could not be deleted"
            reason = await self.failure_reason(session, found)
            raise CloudError(f"{public}: {reason}", public=public)
        return found is not None

    # ---- observation

    def is_observed(self, name: str) -> bool:
        """Manila shows the share type by its ID."""
        return name == METADATA or super().is_observed(name)

    def is_same(self, name: str, desired: Json, observed: Json) -> bool:
        if name == METADATA:
            return _texts(desired) == _texts(observed)
        return super().is_same(name, desired, observed)


def _texts(metadata: Json) -> dict[str, str]:
    given: Mapping[str, Json] = metadata or {}
    return {str(name): as_text(one) for name, one in given.items()}


async def _write_access(
    session: Session, share: str, rules: Collection[Mapping[str, Json]]
) -> None:
    """Allow access by these rules, and by no others. Manila removes a rule after its answer, and
    accepts no other one for the same client before."""
    path, doing = f"{share}/action", "change the access rules of the share"
    wanted = {
        (str(one["access_type"]), str(one["access_to"])): str(one.get("access_level") or "rw")
        for one in rules
    }
    answer = await session.request(SHARED_FILE_SYSTEM, "POST", path, doing, {"access_list": None})
    kept, removed = set(), set()
    listed = answer.get("access_list") if isinstance(answer, Mapping) else None
    for one in listed or ():
        client = str(one.get("access_type")), str(one.get("access_to"))
        is_removed = one.get("state") in _REMOVED
        is_usable = not is_removed and one.get("state") != "error"
        if is_usable and wanted.get(client) == one.get("access_level"):
            kept.add(client)
            continue
        removed.add(client)
        if not is_removed:
            body: Json = {"deny_access": {"access_id": id_of(SHARED_FILE_SYSTEM, one)}}
            await session.request(SHARED_FILE_SYSTEM, "POST", path, doing, body)
    for (kind, to), level in wanted.items():
        if (kind, to) not in kept | removed:
            body = {"allow_access": {"access_type": kind, "access_to": to, "access_level": level}}
            await session.request(SHARED_FILE_SYSTEM, "POST", path, doing, body)
    if removed & wanted.keys():
        public = "a former access rule of the share is being removed"
        raise CloudError(public, retry=True, public=public)
