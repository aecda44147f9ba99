"""What the types of load balancers have in common.

Octavia carries out a request after it has answered it. Until then, `provisioning_status` of the
object begins with PENDING, and the load balancer with all that belongs to it is immutable: Octavia
refuses each other request with a conflict, and the operation waits.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final

from engine.types.completion import ObjectsUnknown
from engine.types.contract import Call, Outcome, Wait
from engine.types.observation import Observation, admit_requests
from engine.types.observed_list import ObservedList
from engine.types.openstack.addresses import canonical
from engine.types.openstack.cloud import Session, segment
from engine.types.openstack.cloud_operation import observed_list, unknown_state, wait_for_observer
from engine.types.openstack.names import ID
from engine.types.openstack.object_type import REFUSED, TAGS, Mark, RepairedType
from engine.types.openstack.service_errors import CONFLICT, CloudError
from engine.types.openstack.services import LOAD_BALANCER
from engine.types.operation_outcomes import next_poll
from engine.types.regions import listed_region
from engine.words import Json, ResourceId

#: Values of `provisioning_status`.
PENDING: Final = frozenset({"PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE"})
ERROR, DELETED = "ERROR", "DELETED"
#: Seconds of the longest pause between two requests while something is immutable: a change takes
#: about as long, and many operations take turns.
MAX_TURN: Final = 2.0
#: Refusals because something is immutable, until the load balancer is read: it may be in ERROR.
REFUSALS_UNTIL_READ: Final = 5
_IMMUTABLE: Final = re.compile(r"is immutable|Invalid state PENDING_\w+ of loadbalancer")
_ADDRESSES: Final = frozenset({"address", "monitor_address", "vip_address"})
_REMEDY: Final = (
    "Octavia does not publish the reason; the operator of the cloud finds it in the log of "
    "octavia-worker."
)


class OctaviaType(RepairedType):
    """A type whose objects belong to a load balancer. A load balancer in ERROR is replaced."""

    async def guard(self, call: Call, run: Awaitable[Outcome]) -> Outcome:
        return await super().guard(call, self._wait_while_immutable(call, run))

    async def _wait_while_immutable(self, call: Call, run: Awaitable[Outcome]) -> Outcome:
        try:
            return await run
        except CloudError as error:
            if error.status == CONFLICT and _IMMUTABLE.search(error.message):
                return await self._wait_until_mutable(call, error)
            if error.status == CONFLICT and call.replaced is not None:
                raise self._replacement_error(call, error) from None
            if error.status == 403 and "Quota" in error.message:
                raise await self._quota_error(call, error) from None
            raise

    def _replacement_error(self, call: Call, error: CloudError) -> CloudError:
        """The error about a replacement that conflicts, perhaps with what it replaces, which is
        deleted after it."""
        remedy = (
            f"It may have the place of the {self.row.what} that it replaces, {call.replaced}: then "
            "remove the resource from the template with one update, and add it with the next."
        )
        return CloudError(f"{error}. {remedy}", status=error.status, public=error.public)

    async def _wait_until_mutable(self, call: Call, error: CloudError) -> Outcome:
        progress = dict(call.progress or {})
        refusals = progress.get(REFUSED, 0)
        if refusals % REFUSALS_UNTIL_READ == REFUSALS_UNTIL_READ - 1:
            await self._check_load_balancer(call, error.message)
        until = next_poll(call.now, refusals, MAX_TURN)
        public = "another change of the load balancer is in progress"
        return Wait(until, {**progress, REFUSED: refusals + 1}, public, public_reason=public)

    async def _check_load_balancer(self, call: Call, message: str) -> None:
        """Raises CloudError if the load balancer of a refusal stays immutable."""
        if (named := ID.search(message)) is None:
            return
        session, balancer = self.cloud.session(call), named.group()
        found = await session.find(
            LOAD_BALANCER,
            f"/lbaas/loadbalancers/{segment(balancer)}",
            "loadbalancer",
            "read the load balancer",
        )
        if found is not None and self.status(found) == ERROR:
            public = "the load balancer is in ERROR, where Octavia changes nothing"
            raise CloudError(
                f"{public}: {balancer}. Repair it with `openstack loadbalancer failover`, or delete"
                " it with `openstack loadbalancer delete --cascade`.",
                public=public,
            )

    async def _quota_error(self, call: Call, error: CloudError) -> CloudError:
        """The error about a quota with the limits of the project."""
        session = self.cloud.session(call)
        try:
            path = f"/lbaas/quotas/{segment(call.project)}"
            limits = await session.find(LOAD_BALANCER, path, "quota", "read the quota") or {}
        except CloudError:
            limits = {}
        known = [f"{name}: {one}" for name, one in sorted(limits.items()) if isinstance(one, int)]
        shown = f" Limits of the project: {', '.join(known)}." if known else ""
        remedy = "Delete what is not needed, or ask the operator of the cloud for a higher quota."
        reason = f"Quota exceeded: {error.message}.{shown} {remedy}"
        return CloudError(
            reason, status=error.status, public="the quota of the project is exceeded"
        )

    # ---- operations

    def status(self, found: Mapping[str, Json]) -> str:
        return str(found.get("provisioning_status") or "")

    async def failure_reason(self, session: Session, found: Mapping[str, Json]) -> str:
        return f"{self.status(found)}. {_REMEDY}"

    def mark(self, call: Call) -> Mark:
        """An object with a name and a description of the template gets a tag."""
        usual = super().mark(call)
        if usual.fields and not usual.renames:
            return usual
        tag = f"headgate:{call.operation_key}"
        return Mark({TAGS: [tag]}, {TAGS: tag})

    async def remove(self, call: Call, session: Session, path: str, object_id: str) -> None:
        if "tries" not in (call.progress or {}):  # else Octavia is deleting it
            await super().remove(call, session, path, object_id)

    async def is_deleting(self, call: Call, session: Session, path: str) -> bool:
        found = await self.find(session, path, str(call.physical_id))
        if found is None or self.status(found) == DELETED:
            return False
        if self.status(found) == ERROR:
            raise CloudError(
                f"the {self.row.what} could not be deleted: {ERROR}. {_REMEDY}",
                public=f"the {self.row.what} could not be deleted",
            )
        return True

    # ---- completion, observation

    async def wait_until_listed(self, call: Call) -> Wait | None:
        progress = call.progress or {}
        if (path := progress.get("path")) is None:
            return None
        reason = f"the {self.row.what} is not ready; the observer lists its collection"
        return await wait_for_observer(
            self, self.cloud, call, str(path), str(progress["id"]), reason, {"path": path}
        )

    async def read_objects(
        self, project: str, definition: Mapping[str, Json]
    ) -> AsyncIterator[Mapping[str, Json]]:
        try:
            session = self.cloud.reader_session(listed_region(definition))
            async for page in self._pages(session, str(definition["path"]), project):
                yield {self.id_of(one): one for one in page}
        except CloudError as error:
            raise ObjectsUnknown(
                error.public or f"the list of a {self.row.what} cannot be read"
            ) from None

    def is_complete(self, definition: Mapping[str, Json], found: Json) -> bool:
        return self.status(found) not in PENDING

    def observation_key(self, call: Call) -> str | None:
        known = call.physical_id is not None and self.cloud.can_observe(call)
        return self.schema.name if known else None

    def observed_list(self, call: Call) -> ObservedList | None:
        """One for all of a project. Members and rules have one for each pool and policy."""
        if "{" in self.row.path:
            return None
        return self._list(self.cloud.observer_session(call), self.row.path, call.project)

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        if (listed := self.observed_list(calls[0])) is not None:
            return await listed.observe(calls)
        session, project = self.cloud.observer_session(calls[0]), calls[0].project
        by_path: dict[str, list[Call]] = {}
        found: dict[ResourceId, Observation] = {}
        for call in calls:
            try:
                by_path.setdefault(await self._path(call, session), []).append(call)
            except CloudError as error:
                found[call.resource_id] = unknown_state(error)
        count = await admit_requests(len(by_path))
        for path, those in islice(by_path.items(), count):
            found |= await self._list(session, path, project).observe(those)
        return found

    def _list(self, session: Session, path: str, project: str) -> ObservedList:
        pages = partial(self._pages, session, path, project)
        return observed_list(pages, self.compare, f"the {self.row.what} does not exist")

    async def _pages(
        self, session: Session, path: str, project: str
    ) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        """The pages of a list; none if what the objects belong to is gone."""
        query = {} if "{" in self.row.path else {"project_id": project}
        try:
            async for page in session.pages(LOAD_BALANCER, path, self.row.list_key, query):
                yield page
        except CloudError as error:
            if not error.is_missing:
                raise

    def is_same(self, name: str, desired: Json, observed: Json) -> bool:
        if name in _ADDRESSES:
            return canonical(str(desired)) == canonical(str(observed))
        return super().is_same(name, desired, observed)
