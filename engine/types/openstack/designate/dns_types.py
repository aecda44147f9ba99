"""OS::Designate::Zone and RecordSet: names in DNS.

A name exists once: a zone of a name in the cloud, records of a name and type in their zone. A
create finds its object by the description, if the template gives none; else by the name, after it
has saved that there was no such object.

Designate carries out changes in the background: an object is `PENDING` meanwhile.
"""

import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Final

from engine.errors import Findings
from engine.types.contract import Call
from engine.types.openstack.cloud import Cloud, Session, object_in
from engine.types.openstack.designate.lookups import ZONES
from engine.types.openstack.designate.schema import RECORD_SET, ZONE
from engine.types.openstack.object_type import DESCRIPTION, NAME, Mark, ObjectRow, RepairedType
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import DNS
from engine.words import Json

#: The header with which an administrator reads the objects of all projects.
ALL_PROJECTS: Final = {"X-Auth-All-Projects": "true"}
#: Characters of one part of a name.
MAX_LABEL: Final = 63
TYPE, SECONDARY = "type", "SECONDARY"
EMAIL, TTL, MASTERS, PRIMARIES = "email", "ttl", "masters", "primaries"
_NO_LABEL = re.compile(r"[^a-z0-9-]+")
_PENDING, _ERROR = frozenset({"PENDING"}), "ERROR"


class DnsType(RepairedType):
    """list_path: of such objects in all zones."""

    lists_all, reads_unlisted = True, False
    list_path: str

    def mark(self, call: Call) -> Mark:
        """By the description, if the template gives none: an object cannot be renamed."""
        if call.properties.get(DESCRIPTION):
            return Mark({}, {})
        text = f"Created by Headgate: operation {call.operation_key}"
        return Mark({DESCRIPTION: text}, {DESCRIPTION: text})

    async def post(
        self, call: Call, session: Session, path: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        return await session.create(DNS, path, "", f"create the {self.row.what}", fields)

    async def put(
        self, session: Session, path: str, object_id: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        doing, method = f"update the {self.row.what}", self.row.update_method
        answer = await session.request(DNS, method, f"{path}/{object_id}", doing, fields)
        return object_in(DNS, doing, answer, "")

    def _object(self, answer: Json) -> Mapping[str, Json]:
        return object_in(DNS, f"read the {self.row.what}", answer, "")

    async def remove(self, call: Call, session: Session, path: str, object_id: str) -> None:
        """Send no second delete while Designate carries out the first one."""
        found = await self.get(session, path, object_id)
        if found.get("action") != "DELETE" or self.status(found) == _ERROR:
            await super().remove(call, session, path, object_id)

    async def is_deleting(self, call: Call, session: Session, path: str) -> bool:
        found = await self.find(session, path, str(call.physical_id))
        if found is not None and self.status(found) == _ERROR and found.get("action") == "DELETE":
            public = f"the {self.row.what} could not be deleted"
            remedy = "Its servers refuse the change: ask the operator, then repeat the delete."
            raise CloudError(f"{public}: {_ERROR}. {remedy}", public=public)
        return found is not None

    async def failure_reason(self, session: Session, found: Mapping[str, Json]) -> str:
        return f"{self.status(found)} at {found.get('action')}: its servers refuse the change"

    # ---- observation

    def observation_key(self, call: Call) -> str | None:
        known = call.physical_id is not None and self.cloud.can_observe(call)
        return self.schema.name if known else None

    def list_all(self, session: Session) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        """Of all projects, or of that of the observer."""
        headers = ALL_PROJECTS if session.reads_all_projects else {}
        return session.pages(DNS, self.list_path, self.row.list_key, headers=headers)


class Zone(DnsType):
    list_path = "/zones"

    def __init__(self, cloud: Cloud) -> None:
        row = ObjectRow(
            "zone", DNS, "/zones", "", "zones", fields={PRIMARIES: MASTERS},
            cleared={MASTERS: [], PRIMARIES: []}, busy=_PENDING, update_method="PATCH",
        )  # fmt: skip
        super().__init__(ZONE, row, cloud)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        kind = properties.get(TYPE) or "PRIMARY"
        needed = PRIMARIES if kind == SECONDARY else EMAIL
        if not properties.get(needed) and not (kind == SECONDARY and properties.get(MASTERS)):
            reason = f"is missing: a zone of the type {kind} requires it"
            findings.add(f"{place}.{needed}", reason, "Set it.")
        name = properties.get(NAME)
        if isinstance(name, str) and name and not name.endswith("."):
            findings.add(f"{place}.{NAME}", "does not end with a dot", f'Write "{name}.".')

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        return _with_primaries(await super().fields_for_create(call, session), call.properties)

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        """Designate cannot forget a time to live or an address: they stay, as in Heat."""
        kept = {one for one in (TTL, EMAIL) if call.properties.get(one) is None}
        fields = await super().fields_for_update(call, session, set(names) - kept)
        return _with_primaries(fields, call.properties) if MASTERS in fields else fields

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        if mark.fields:
            return await super().find_created(call, session, path, mark)
        found = await ZONES.find_named(session, str(call.properties[NAME]))
        return next(iter(found), None)

    async def attributes_of(self, session: Session, found: Mapping[str, Json]) -> dict[str, Json]:
        known = await super().attributes_of(session, found)
        return {**known, "serial": str(found.get("serial") or "")}

    def is_observed(self, name: str) -> bool:
        return name not in (MASTERS, PRIMARIES) and super().is_observed(name)


class RecordSet(DnsType):
    list_path = "/recordsets"

    def __init__(self, cloud: Cloud) -> None:
        row = ObjectRow(
            "record set", DNS, "/zones/{zone}/recordsets", "", "recordsets",
            lookups={"zone": ZONES}, busy=_PENDING,
        )  # fmt: skip
        super().__init__(RECORD_SET, row, cloud)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if properties.get("records") == []:
            findings.add(f"{place}.records", "is empty", "Give at least one record.")

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        fields = await super().fields_for_create(call, session)
        return {**fields, NAME: await self._name_of(call, session)}

    async def _name_of(self, call: Call, session: Session) -> str:
        """The whole name. One without a dot at its end, or derived from the stack, is relative to
        the zone."""
        given = str(call.properties.get(NAME) or "")
        if given.endswith("."):
            return given
        path = await self.collection(call.properties, session, call.project)
        doing = "read the zone"
        answer = await session.request(DNS, "GET", path.removesuffix("/recordsets"), doing)
        label = given or _NO_LABEL.sub("-", call.own_name.lower())[-MAX_LABEL:].strip("-")
        return f"{label}.{object_in(DNS, doing, answer, '').get('name')}"

    def is_same(self, name: str, desired: Json, observed: Json) -> bool:
        """A name without a dot at its end is relative to the zone."""
        if name == NAME and isinstance(desired, str) and not desired.endswith("."):
            return str(observed).lower().startswith(f"{desired.lower()}.")
        return super().is_same(name, desired, observed)

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        if mark.fields:
            return await super().find_created(call, session, path, mark)
        name = await self._name_of(call, session)
        query = {NAME: name, TYPE: str(call.properties[TYPE])}
        found = await session.list(DNS, path, self.row.list_key, query)
        same = (one for one in found if one.get(TYPE) == query[TYPE])
        return next((one for one in same if str(one.get(NAME)).lower() == name.lower()), None)


def _with_primaries(fields: dict[str, Json], properties: Mapping[str, Json]) -> dict[str, Json]:
    """`primaries` replaces its former name."""
    given = properties.get(PRIMARIES) or properties.get(MASTERS)
    return {**fields, MASTERS: given} if given else fields
