"""What instances and clusters of Trove have in common: deletes that Trove carries out after its
answer, and refuses while it creates the object; and instances whose server does not run, which are
not waited for until the time limit."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from engine.types.contract import Call, Done, Outcome, Wait
from engine.types.observation import Observation
from engine.types.openstack.cloud import Session
from engine.types.openstack.cloud_operation import poll, proceed
from engine.types.openstack.object_type import NAME, ObjectType
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import DATABASE
from engine.words import Json, ObservedState

#: Values of `status` of an instance.
BUSY: Final = frozenset(
    {
        "NEW", "BUILD", "REBOOT", "RESIZE", "UPGRADE", "BACKUP", "PROMOTE", "EJECT", "LOGGING",
        "DETACH", "SHUTDOWN", "RESTARTING", "UPGRADING", "UNKNOWN",
    }
)  # fmt: skip
#: Those of an instance whose server does not run: Trove deletes it, or its server does not exist
#: (SHUTDOWN); it is stopped, or Nova moves it (UNKNOWN).
_NO_SERVER, _UNKNOWN = "SHUTDOWN", "UNKNOWN"
STOPPED: Final = frozenset({_NO_SERVER, _UNKNOWN})
#: In the progress of a create or update: the polls that have found no running server, one after the
#: other.
STOPPED_POLLS: Final = "stopped_polls"
#: Polls, in some three minutes, until a server does not come back.
MAX_STOPPED: Final = 40
FAILED: Final = frozenset({"ERROR", "FAILED"})
#: The remedy for an object that an update cannot repair.
REPAIR: Final = "Repair it with Trove, or have it replaced: mark the resource unhealthy."
_UNPROCESSABLE: Final = 422
#: In the progress of a delete: Trove has accepted it.
ACCEPTED: Final = "accepted"
#: In the progress of a delete: the polls that have found a failed object, one after the other.
FAILED_POLLS: Final = "failed_polls"
#: Polls of a delete until a failed object is one that cannot be deleted.
MAX_FAILED: Final = 20


FLAVOR, SIZE, REPLICA_OF = "flavor", "size", "replica_of"
TYPE, VERSION = "datastore_type", "datastore_version"
#: The fields of the properties that an observation compares, besides the name.
_PLACES: Final = {
    FLAVOR: (FLAVOR, "id"),
    SIZE: ("volume", SIZE),
    TYPE: ("datastore", "type"),
    VERSION: ("datastore", "version"),
    REPLICA_OF: (REPLICA_OF, "id"),
}


class TroveType(ObjectType):
    replaces_tainted = False
    lists_all = True

    def saves_id(self, call: Call) -> bool:
        return True

    async def _continue(self, call: Call, session: Session) -> Outcome:
        found = await self.get(session, self.row.path, (call.progress or {})["id"])
        return self.wait_until_ready(call, found) or await self._finish(call, session, found)

    def wait_until_ready(self, call: Call, found: Mapping[str, Json]) -> Wait | None:
        """Wait while an object changes; None: it does not. Raises CloudError for one whose server
        does not come back."""
        progress, status = dict(call.progress or {}), self.status(found)
        stopped = progress.get(STOPPED_POLLS, 0) + 1 if status in STOPPED else 0
        if stopped > MAX_STOPPED:
            raise self._server_error(status)
        if not stopped and progress.pop(STOPPED_POLLS, 0):
            return proceed(call, progress)  # its server runs again: a later stop is another one
        if status not in self.row.busy:
            return None
        public = f"the {self.row.what} is not ready"
        progress |= {"id": self.id_of(found), STOPPED_POLLS: stopped}
        return poll(call, progress, f"{public}: {status}", public)

    def _server_error(self, status: str) -> CloudError:
        public = f"the server of the {self.row.what} does not run"
        return CloudError(f"{public}: {status}. {REPAIR}", public=public)

    async def _check(self, call: Call, session: Session) -> Outcome:
        outcome = await super()._check(call, session)
        shown = outcome.attributes.get("show") if isinstance(outcome, Done) else None
        if (status := self.status(shown or {})) in STOPPED:
            raise self._server_error(status)
        return outcome

    def delete_remedy(self) -> str:
        """What to do about an object that cannot be deleted."""
        return ""

    async def _delete(self, call: Call, session: Session) -> Outcome:
        path = self.row.path
        object_id = call.physical_id or await self._find_lost(call, session, path)
        if object_id is None or (found := await self.find(session, path, object_id)) is None:
            return Done(None)
        progress, status = dict(call.progress or {}), self.status(found)
        failed = progress.get(FAILED_POLLS, 0) + 1 if status in self.row.failed else 0
        if failed > MAX_FAILED:
            raise await self._not_deleted(session, found)
        progress[FAILED_POLLS] = failed
        if progress.get(ACCEPTED):
            public = f"the {self.row.what} is being deleted"
            return poll(call, progress, public, public)
        try:
            await self.remove(call, session, path, object_id)
        except CloudError as error:
            if error.is_missing:
                return Done(None)
            if error.status != _UNPROCESSABLE:
                raise
            public = f"the {self.row.what} cannot be deleted yet"
            return poll(call, progress, f"{public}: {status}", public)
        return proceed(call, {**progress, ACCEPTED: True, FAILED_POLLS: 0})

    async def _not_deleted(self, session: Session, found: Mapping[str, Json]) -> CloudError:
        public = f"the {self.row.what} could not be deleted"
        reason = await self.failure_reason(session, found)
        return CloudError(f"{public}: {reason}. {self.delete_remedy()}".rstrip(), public=public)

    # ---- observation

    def list_all(self, session: Session) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        """Of all projects, or of that of the observer."""
        path, key = self.row.path, self.row.list_key
        if session.reads_all_projects:
            return session.pages(DATABASE, f"/mgmt{path}", key, {"deleted": "false"})
        return session.pages(DATABASE, path, key)

    def is_observed(self, name: str) -> bool:
        return name == NAME or name in _PLACES

    def compare(self, call: Call, found: Mapping[str, Json]) -> Observation:
        shown = call.attributes.get("show")
        readable = flat(shown) if isinstance(shown, Mapping) else {}
        seen = replace(call, attributes={**call.attributes, "show": readable})
        if (status := self.status(found)) == _NO_SERVER:
            reason = f"the server of the {self.row.what} does not run"
            return Observation(ObservedState.DEGRADED, (), f"{reason}: {status}", reason)
        return super().compare(seen, {**flat(found), "status": status})


def flat(found: Mapping[str, Json]) -> dict[str, Json]:
    """The fields of an object, by property."""
    fields = {NAME: found[NAME]} if NAME in found else {}
    for name, (outer, inner) in _PLACES.items():
        one = found.get(outer)
        if isinstance(one, Mapping) and one.get(inner) is not None:
            fields[name] = one[inner]
    return fields
