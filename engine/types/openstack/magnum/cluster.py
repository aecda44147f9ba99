"""OS::Magnum::Cluster: a cluster of machines that run containers.

Magnum answers a request before its conductor stores the change: a new cluster does not exist yet,
and an updated or deleted one still has its former status. While Magnum stores or removes the node
groups of a cluster, it can read neither the cluster nor a list with it.
"""

import re
from collections.abc import Awaitable, Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from engine.types.contract import Call, Done, Outcome, Replace, Wait
from engine.types.openstack.cloud import Cloud, Session, segment
from engine.types.openstack.cloud_operation import poll
from engine.types.openstack.magnum.lookups import CLUSTER_TEMPLATES
from engine.types.openstack.magnum.magnum_type import MagnumType
from engine.types.openstack.magnum.schema import CLUSTER
from engine.types.openstack.object_type import NAME, Mark, ObjectRow, is_alike
from engine.types.openstack.operation_marker import MARKER
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import CONTAINER_INFRASTRUCTURE
from engine.words import Json

BAD_REQUEST: Final = 400
NODE_COUNT, LABELS = "node_count", "labels"
#: The length limit of names.
MAX_NAME: Final = 242
_BUSY: Final = frozenset(
    f"{change}_IN_PROGRESS" for change in ("CREATE", "UPDATE", "DELETE", "ROLLBACK")
)
_UPDATE_FAILED, _DELETE_FAILED = "UPDATE_FAILED", "DELETE_FAILED"
_FAILED: Final = frozenset(
    {"CREATE_FAILED", _UPDATE_FAILED, "ROLLBACK_FAILED", "RESUME_FAILED", _DELETE_FAILED}
)
#: In the progress of a repeated create: how often it has found no cluster.
READS: Final = "reads"
#: Reads, and the seconds between them, before a repeated create sends its request again.
MAX_READS: Final = 3
READ_PAUSE: Final = 2.0
#: In the progress: the cluster exists.
SEEN: Final = "seen"
#: In the progress of an update: `_version` of the cluster before the request.
BEFORE: Final = "before"
#: Polls after which a cluster whose status has not changed is as it stays.
MAX_UNCHANGED: Final = 10
#: Polls of a delete after which a failure is its own, and none of an earlier delete.
MAX_STALE: Final = 4
#: Seconds until a cluster without node groups is read again.
UNREADABLE_PAUSE: Final = 1.0
_NO_GROUPS: Final = re.compile(r"field/attribute (master|node)_count\b")
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_.-]+")


class Cluster(MagnumType):
    replaces_tainted = False

    def __init__(self, cloud: Cloud) -> None:
        row = ObjectRow(
            "cluster", CONTAINER_INFRASTRUCTURE, "/clusters", "", "clusters",
            fields={"cluster_template": "cluster_template_id"},
            lookups={"cluster_template": CLUSTER_TEMPLATES},
            marked=False, busy=_BUSY, failed=_FAILED,
        )  # fmt: skip
        super().__init__(CLUSTER, row, cloud)

    async def failure_reason(self, session: Session, found: Mapping[str, Json]) -> str:
        faults = found.get("faults")
        causes = faults.values() if isinstance(faults, Mapping) else ()
        texts = [found.get("status_reason"), *causes]
        return ": ".join(dict.fromkeys([self.status(found), *map(str, filter(None, texts))]))

    async def guard(self, call: Call, run: Awaitable[Outcome]) -> Outcome:
        return await super().guard(call, self._wait_for_groups(call, run))

    async def _wait_for_groups(self, call: Call, run: Awaitable[Outcome]) -> Outcome:
        try:
            return await run
        except CloudError as error:
            if not _lacks_groups(error):
                raise
        public = "Magnum is storing or removing the node groups of a cluster"
        until = call.now + timedelta(seconds=UNREADABLE_PAUSE)
        return Wait(until, call.progress or {}, public, public_reason=public)

    # ---- create

    def mark(self, call: Call) -> Mark:
        """By a label, if the template gives the name: Magnum does not rename clusters."""
        if call.properties.get(NAME):
            label = {MARKER: str(call.operation_key)}
            return Mark({LABELS: label, "merge_labels": True}, {})
        name = _NOT_IN_NAMES.sub("-", call.own_name)[-MAX_NAME:].lstrip("0123456789_.-")
        return Mark({NAME: name}, {})

    def has_mark(self, found: Mapping[str, Json], mark: Mark) -> bool:
        """The labels of the template are there as well."""
        if LABELS not in mark.fields:
            return super().has_mark(found, mark)
        return is_alike(mark.fields[LABELS], found.get(LABELS))

    def saves_id(self, call: Call) -> bool:
        return True

    async def _create(self, call: Call, session: Session) -> Outcome:
        """A repeated create looks for its cluster several times: the conductor may not have stored
        it yet."""
        progress = call.progress or {}
        waits = self._read_again(call) if call.repeated or READS in progress else None
        if waits is not None and "id" not in progress:
            path = self.row.path
            if await self.find_created(call, session, path, self.mark(call)) is None:
                return waits
        return await super()._create(call, session)

    def _read_again(self, call: Call) -> Wait | None:
        """Wait for the next read of the list that may lack a cluster; None: it was the last."""
        progress = dict(call.progress or {})
        reads = progress.get(READS, 0)
        if reads >= MAX_READS:
            return None
        until = call.now + timedelta(seconds=READ_PAUSE)
        public = "the cluster of the interrupted request may not be stored yet"
        return Wait(until, {**progress, READS: reads + 1}, public, public_reason=public)

    async def _continue(self, call: Call, session: Session) -> Outcome:
        progress = dict(call.progress or {})
        if call.previous is None and not progress.get(SEEN):
            found = await self.find(session, self.row.path, progress["id"])
            if found is None:
                public = "the conductor of Magnum has not stored the cluster yet"
                return poll(call, progress, public, public)
        else:
            found = await self.get(session, self.row.path, progress["id"])
        if BEFORE in progress and not await self._has_begun(call, session, found):
            public = "the conductor of Magnum has not begun the update yet"
            return poll(call, progress, public, public)
        outcome = await self._finish(call, session, found)
        if isinstance(outcome, Wait):
            return Wait(
                outcome.until,
                {**outcome.progress, SEEN: True},
                outcome.reason,
                public_reason=outcome.public_reason,
            )
        return outcome

    # ---- update

    async def _update(self, call: Call, session: Session) -> Outcome:
        if (call.progress or {}).get("id"):
            return await self._continue(call, session)
        path, object_id = self.row.path, str(call.physical_id)
        fields = await self.fields_for_update(call, session, self._changed_properties(call))
        if (found := await self.find(session, path, object_id)) is None:
            return Replace()  # it was deleted outside of the stack
        status = self.status(found)
        if status in self.row.busy:
            # Magnum would accept the update, and its conductor would ignore it.
            public = "another change of the cluster is in progress"
            return poll(call, dict(call.progress or {}), f"{public}: {status}", public)
        if status in self.row.failed and status != _UPDATE_FAILED:
            return Replace()  # Magnum does not change such a cluster
        if NODE_COUNT in fields:
            found = {**found, NODE_COUNT: await self._read_node_count(session, object_id)}
        patch = self.patch_of(found, fields)
        if status == _UPDATE_FAILED and fields.keys() <= {NODE_COUNT}:
            await self._resize(session, object_id, call.properties[NODE_COUNT])
        elif patch:
            await self.send_patch(session, path, object_id, patch)
        else:
            return await self._finish(call, session, found, path)
        return Wait(call.now, {"id": object_id, "path": path, BEFORE: _version(found)})

    async def _resize(self, session: Session, object_id: str, nodes: Json) -> None:
        """Repeat a failed update. The conductor ignores other updates of such a cluster."""
        path = f"{self.row.path}/{segment(object_id)}/actions/resize"
        body = {NODE_COUNT: nodes}
        await session.request(CONTAINER_INFRASTRUCTURE, "POST", path, "resize the cluster", body)

    async def _has_begun(self, call: Call, session: Session, found: Mapping[str, Json]) -> bool:
        """Whether the conductor has begun the update. Its times are full seconds, so that an update
        may leave the cluster as it was before."""
        progress, status = call.progress or {}, self.status(found)
        if status in self.row.busy:
            return True
        if _version(found) == progress[BEFORE] and progress.get("tries", 0) < MAX_UNCHANGED:
            return False
        if status in self.row.failed:
            return True
        nodes = await self._read_node_count(session, progress["id"])
        return bool(nodes == call.properties.get(NODE_COUNT))

    async def _read_node_count(self, session: Session, object_id: str) -> Json:
        """The number of nodes that the property sets: those of the default group."""
        path = f"{self.row.path}/{segment(object_id)}/nodegroups"
        groups = await session.list(
            CONTAINER_INFRASTRUCTURE, path, "nodegroups", {"role": "worker"}
        )
        return next((one.get(NODE_COUNT) for one in groups if one.get("is_default")), None)

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        """Magnum refuses all but the number of nodes: others are sent if they have changed, so that
        the operation fails with its reason."""
        fields = await super().fields_for_update(call, session, names)
        return {name: one for name, one in fields.items() if name in {NODE_COUNT, *call.changed}}

    # ---- delete

    async def _delete(self, call: Call, session: Session) -> Outcome:
        if call.physical_id is None:
            lost = await self._find_lost(call, session, self.row.path)
            if lost is None:
                return self._wait_for_lost(call) or Done(None)
            call = replace(call, physical_id=lost)
        return await super()._delete(call, session)

    def _wait_for_lost(self, call: Call) -> Wait | None:
        """As `_read_again`, for a delete of what a create may have left."""
        deleted = "tries" in (call.progress or {})
        return None if deleted or "lost" not in call.data else self._read_again(call)

    async def remove(self, call: Call, session: Session, path: str, object_id: str) -> None:
        if "tries" not in (call.progress or {}):  # else Magnum is deleting it
            await super().remove(call, session, path, object_id)

    async def is_deleting(self, call: Call, session: Session, path: str) -> bool:
        try:
            found = await self.find(session, path, str(call.physical_id))
        except CloudError as error:
            if not _lacks_groups(error):
                raise
            return True
        if found is None:
            return False
        tries = (call.progress or {}).get("tries", 0)
        if self.status(found) == _DELETE_FAILED and tries >= MAX_STALE:
            public = "the cluster could not be deleted"
            reason = await self.failure_reason(session, found)
            raise CloudError(f"{public}: {reason}", public=public)
        return True


def _lacks_groups(error: CloudError) -> bool:
    """Whether Magnum refuses to read a cluster, or a list with it, that has no node groups."""
    return error.status == BAD_REQUEST and _NO_GROUPS.search(error.message) is not None


def _version(found: Mapping[str, Json]) -> list[Json]:
    """What changes with each change of a cluster."""
    return [found.get("status"), found.get("updated_at")]
