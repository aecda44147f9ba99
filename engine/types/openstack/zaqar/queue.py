"""OS::Zaqar::Queue: a queue, whose name is its ID.

Its create, which may find a queue of another client, marks its own in the metadata. Zaqar answers a
read of a queue that does not exist like one of a queue without metadata: only its list tells.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Final

from engine.errors import Findings
from engine.types.contract import Call, Outcome
from engine.types.openstack.cloud import Cloud, Session, object_in, segment
from engine.types.openstack.cloud_operation import keep_for_successor
from engine.types.openstack.object_type import (
    NAME,
    Mark,
    ObjectRow,
    RepairedType,
    existing_error,
    is_alike,
)
from engine.types.openstack.operation_marker import MARKER, check_metadata
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import MESSAGING
from engine.types.openstack.zaqar.queue_names import fitting_name, reason_against
from engine.types.openstack.zaqar.schema import QUEUE
from engine.words import Json

METADATA: Final = "metadata"
DETAILED: Final = {"detailed": "true"}
PATCH_TYPE: Final = "application/openstack-messaging-v2.0-json-patch"
CREATED: Final = 201


class Queue(RepairedType):
    lists_all, reads_unlisted = True, False

    def __init__(self, cloud: Cloud) -> None:
        row = ObjectRow(
            "queue", MESSAGING, "/queues", "", "queues", cleared={METADATA: {}},
            named=False, marked=False,
        )  # fmt: skip
        super().__init__(QUEUE, row, cloud)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        name = properties.get(NAME)
        if isinstance(name, str) and name and (reason := reason_against(name)):
            findings.add(f"{place}.{NAME}", f'"{name}" is not valid: {reason}', "Change it.")
        check_metadata(properties, place, findings)

    async def delete(self, call: Call) -> Outcome:
        return await keep_for_successor(self, call) or await super().delete(call)

    def mark(self, call: Call) -> Mark:
        return Mark({MARKER: str(call.operation_key)}, {})

    def id_of(self, found: Mapping[str, Json]) -> str:
        return str(found[NAME])

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        name = call.properties.get(NAME) or fitting_name(call.own_name)
        return {NAME: name, METADATA: call.properties.get(METADATA) or {}}

    async def post(
        self, call: Call, session: Session, path: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        name, doing = str(fields[NAME]), "create the queue"
        metadata = {**fields[METADATA], MARKER: fields[MARKER]}
        response = await session.send(MESSAGING, "PUT", f"{path}/{name}", doing, metadata)
        if response.status != CREATED:  # it existed, and Zaqar has not changed it
            found = await self.find(session, path, name)
            if found is None or found.get(MARKER) != fields[MARKER]:
                raise existing_error(self.row.what, name)
        return _queue(name, metadata)

    async def put(
        self, session: Session, path: str, object_id: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        """Replace the metadata, except of the mark."""
        before = await self.get(session, path, object_id)
        doing, location = "update the queue", f"{path}/{segment(object_id)}"
        if changes := patch(before[METADATA], fields[METADATA] or {}):
            await session.send(MESSAGING, "PATCH", location, doing, changes, media_type=PATCH_TYPE)
        return await self.get(session, path, object_id)

    async def get(self, session: Session, path: str, object_id: str) -> Mapping[str, Json]:
        doing = "read the queue"
        answer = await session.request(MESSAGING, "GET", f"{path}/{segment(object_id)}", doing)
        metadata = object_in(MESSAGING, doing, answer, "")
        if MARKER in metadata:
            return _queue(object_id, metadata)
        async for one in self._queues(session):
            if one[NAME] == object_id:
                return one
        reason = f"the queue {object_id} does not exist"
        raise CloudError(reason, status=404, public="the queue does not exist")

    async def _queues(self, session: Session) -> AsyncIterator[Mapping[str, Json]]:
        async for page in self.list_all(session):
            for one in page:
                yield one

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        async for one in self._queues(session):
            if mark.is_on(one):
                return one
        return None

    async def attributes_of(self, session: Session, found: Mapping[str, Json]) -> dict[str, Json]:
        root = await session.endpoint(MESSAGING, "find the queue")
        href = f"{root}{self.row.path}/{segment(found[NAME])}"
        return {"href": href, "show": {METADATA: found[METADATA]}}

    # ---- observation

    def observation_key(self, call: Call) -> str | None:
        known = call.physical_id is not None and bool(call.observation_credential)
        return self.schema.name if known else None

    def observer_session(self, call: Call) -> Session:
        return self.cloud.owner_session(call)

    async def list_all(self, session: Session) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        async for page in session.pages(MESSAGING, self.row.path, self.row.list_key, DETAILED):
            yield [_listed_queue(one) for one in page]

    def is_observed(self, name: str) -> bool:
        return name == METADATA

    def observed_paths(self, properties: Mapping[str, Json]) -> Collection[str] | None:
        return [METADATA]


def patch(before: Mapping[str, Json], after: Mapping[str, Json]) -> list[Json]:
    """The changes that turn the metadata of a queue into others. Settings of Zaqar that are not in
    them get its defaults."""
    return [
        *(
            {"op": "remove", "path": _pointer(name)}
            for name in sorted(before.keys() - after.keys())
        ),
        *(
            {"op": "add", "path": _pointer(name), "value": value}
            for name, value in after.items()
            if name not in before or not is_alike(value, before[name]) or value is None
        ),
    ]


def _pointer(name: str) -> str:
    return f"/{METADATA}/{name.replace('~', '~0').replace('/', '~1')}"


def _listed_queue(one: Mapping[str, Json]) -> Mapping[str, Json]:
    if METADATA not in one:
        return {NAME: str(one.get(NAME))}
    known = one.get(METADATA)
    return _queue(str(one.get(NAME)), known if isinstance(known, Mapping) else {})


def _queue(name: str, metadata: Mapping[str, Json]) -> Mapping[str, Json]:
    own = {key: one for key, one in metadata.items() if key != MARKER}
    return {NAME: name, METADATA: own, MARKER: metadata.get(MARKER)}
