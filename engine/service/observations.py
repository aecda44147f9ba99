"""Observations of stacks, the drift that they found, and its repair by an update."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from engine.errors import Unavailable
from engine.missing_objects import no_stack
from engine.plan.convergence import ConvergencePolicy, PolicyRules
from engine.plan.drift import REPAIRED_AS, DriftMarks
from engine.service.completions import StoredCompletions
from engine.service.observation_times import NextObservation, find_next, find_pauses
from engine.service.requests.quotas import OBSERVATIONS, Quotas
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.observer import converge_requests, drift_rows, observation_schedule
from engine.store.observer.converge_requests import ConvergeStatus
from engine.store.observer.drift_rows import DriftedResource, UnobservedResource
from engine.store.observer.nested_states import DriftedOwner, read_drifted_owners
from engine.store.observer.observation_schedule import ObservationStatus, ReportedChanges
from engine.store.observer.provider_endpoints import PausedObservation, read_paused
from engine.store.projects.usage import until_tomorrow
from engine.store.resources.overrides import AdoptedValue, read_tree_overrides
from engine.store.stacks.stack_locks import lock_stack

#: Time limit of `Observations.complete`, and seconds between two polls.
WAIT = timedelta(seconds=30)
PAUSE = 0.1
#: After the begin of a day: observations that have waited for it are due.
SOON = timedelta(minutes=1)


async def repair_drift(conn: Connection, stack_id: UUID, names: Sequence[str] | None = None) -> int:
    """Make the update of this transaction repair the drift of a stack and its nested stacks, as
    observed last; return the number of resources. names: of the resources of the stack that the
    update selects; None: all. The caller has locked these stacks."""
    return await drift_rows.mark_drifted(conn, stack_id, REPAIRED_AS, names)


async def read_repairs(
    conn: Connection, stack_id: UUID, names: Sequence[str] | None = None
) -> DriftMarks:
    """What `repair_drift` would repair, without a lock."""
    return await drift_rows.read_marks(conn, stack_id, REPAIRED_AS, names)


async def read_unobserved(
    conn: Connection, stack_id: UUID, names: Sequence[str] | None = None
) -> list[UnobservedResource]:
    """What a converge cannot repair, because its state is unknown. names: of `repair_drift`."""
    return await drift_rows.read_unobserved(conn, stack_id, names)


@dataclass(frozen=True, slots=True)
class StackDrift:
    """The resources of a stack and its nested stacks that differ from their recorded state, the
    observed values that answers have adopted, and the observations that wait. nested: the resources
    in whose nested stacks these are. converge: the last change of the stack, if that is one with
    several rounds."""

    status: ObservationStatus
    resources: list[DriftedResource]
    nested: list[DriftedOwner]
    policy: ConvergencePolicy | None
    adopted: list[AdoptedValue]
    paused: list[PausedObservation]
    converge: ConvergeStatus | None = None

    def find_next(self, resource: DriftedResource | None = None) -> NextObservation | None:
        """When the stack or one of the resources is observed next; None: when it is requested."""
        return find_next(self.status, self.policy, self.paused, resource)


def _nearest_midnight(at: datetime) -> datetime:
    """at: about midnight, because the clock of the database may differ."""
    day = at.astimezone(UTC) + timedelta(hours=12)
    return day.replace(hour=0, minute=0, second=0, microsecond=0)


class Observations:
    def __init__(
        self,
        database: Database,
        policies: PolicyRules,
        completions: StoredCompletions,
        quotas: Callable[[str], Quotas],
    ) -> None:
        """quotas: of a project."""
        self._database = database
        self._quotas = quotas
        self._policies = policies
        self._completions = completions

    async def request(self, project: str, stack_id: UUID) -> None:
        """Observe a stack and its nested stacks soon. Raises LimitReached; NotFound, also for a
        deleted stack."""
        async with self._database.transaction("accept") as conn:
            locked = await lock_stack(conn, project, stack_id)
            if locked is None or locked.deleted:
                raise no_stack(stack_id)
            await observation_schedule.request(conn, stack_id)
            await self._quotas(project).check(conn, project, OBSERVATIONS, more=1)

    async def report(
        self, project: str | None, changes: Sequence[tuple[str, str | None]]
    ) -> ReportedChanges:
        """Observe resources of a project (None: of all) soon, because they may have changed.
        changes: physical IDs and types (None: any). Objects for which operations wait are read
        in place of the resources of these operations, which are not counted. Others with the same
        ID are observed, too."""
        await self._completions.make_due(project, [one for one, _ in changes])
        async with self._database.transaction("accept") as conn:
            return await observation_schedule.report_changes(conn, project, changes)

    async def within_quota(self, conn: Connection, project: str) -> bool:
        """Whether a project may have more observations today."""
        limit, used = await self._quotas(project).read_usage(conn, project, OBSERVATIONS)
        return not limit or used < limit

    async def drift(self, project: str, stack_id: UUID, *, deleted: bool = False) -> StackDrift:
        """The last observation. The caller has found the stack in its project. deleted: it is not
        observed any more."""
        async with self._database.snapshot() as conn:
            status = await observation_schedule.read_status(conn, stack_id)
            section = await observation_schedule.read_section(conn, stack_id)
            policy = self._policies.policy(section, project)
            adopted = await read_tree_overrides(conn, stack_id)
            converge = await converge_requests.read_status(conn, stack_id)
            if deleted:
                ended = replace(status, due=False, requested=False, next_at=None, starting=False)
                return StackDrift(ended, [], [], None, adopted, [], converge)
            drifted = await drift_rows.read_drift(conn, stack_id)
            nested = await read_drifted_owners(conn, stack_id, drifted)
            quota = await self._read_quota(conn, project, status)
            paused = find_pauses(status, policy, await read_paused(conn, stack_id), quota)
            return StackDrift(status, drifted, nested, policy, adopted, paused, converge)

    async def _read_quota(
        self, conn: Connection, project: str, status: ObservationStatus
    ) -> PausedObservation | None:
        """What waits because the quota of today is used up; None: nothing does."""
        quotas = self._quotas(project)
        if not quotas.observations_per_day:
            return None
        if not (status.due or status.starting or status.next_at):
            return None
        limit, used = await quotas.read_usage(conn, project, OBSERVATIONS)
        tomorrow = _nearest_midnight(datetime.now(UTC) + await until_tomorrow(conn))
        later = status.next_at is not None and status.next_at > tomorrow + SOON
        if used < limit or (later and not (status.due or status.starting)):
            return None
        reason = (
            f"the project has used up its quota of {limit} {OBSERVATIONS.words}"
            f" ([quotas] {OBSERVATIONS.name})"
        )
        return PausedObservation("", "", status.observable, tomorrow, reason, of_quota=True)

    async def complete(self, project: str, stack_id: UUID, wait: timedelta = WAIT) -> None:
        """Observe a stack and its nested stacks now. Raises NotFound; Unavailable, if that takes
        longer than `wait`."""
        await self.request(project, stack_id)
        try:
            async with asyncio.timeout(wait.total_seconds()):
                while True:
                    async with self._database.connection() as conn:
                        if not (await observation_schedule.read_status(conn, stack_id)).requested:
                            return
                    await asyncio.sleep(PAUSE)
        except TimeoutError:
            raise Unavailable(
                f"The stack was not observed within {wait.total_seconds():g} s.",
                remedy="Wait until GET .../drift says that it was observed, then try again.",
            ) from None
