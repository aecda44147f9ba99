"""Observes the physical resources of stacks whose observation is due: it was requested, their
convergence policy has an interval, or changes of some resources were reported.

Stacks of a project are observed in batches, and resources of a batch that their type observes
together by one call. A claim is a lease with a fencing number: after a crash, another process
observes the stack anew. An observation only reads, so nothing is lost or done twice.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from engine.errors import Unavailable
from engine.loop_guard import Supervisor
from engine.plan.convergence import PolicyRules
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.fault_points import reach
from engine.store.observer import observation_credentials, observation_schedule, observations
from engine.store.observer.observation_schedule import ClaimedStack
from engine.store.observer.observations import ObservedResource, RecordedResource, ResourcePage
from engine.store.projects import usage
from engine.types.registry import TypeRegistry
from engine.words import ResourceId
from engine.work.claim_loop import POLL, ClaimLoop, DueWork
from engine.work.observer.drift_hooks import DriftHooks
from engine.work.observer.drift_reactions import ApprovedRepairStart, DriftReactions, RepairStart
from engine.work.observer.hook_watch import EVERY as WATCH_EVERY
from engine.work.observer.hook_watch import HookWatch
from engine.work.observer.observed_rows import observed_resource
from engine.work.observer.provider_calls import ProviderCalls
from engine.work.observer.provider_endpoints import ProviderEndpoints
from engine.work.observer.stack_observation import StackObservation
from engine.work.worker_metrics import WorkerMetrics

#: Batches that are observed at the same time, of all projects and of one.
BATCHES, BATCHES_OF_PROJECT = 8, 2
#: Stacks of a batch. A requested observation is a batch of its own.
BATCH = 50
#: Resources that are read and written at once, and bytes of their large properties and attributes.
PAGE, PAGE_BYTES = 2_000, 4_000_000
#: Time limit for all calls of a page; resources without an answer are then unknown.
PAGE_TIMEOUT = timedelta(minutes=2)
#: Until another process may claim the stack; renewed for each page.
LEASE = timedelta(minutes=3)
#: Until the next attempt after an internal error.
RETRY = timedelta(minutes=1)
#: Projects and stacks that are scheduled at once when the observer starts.
SCHEDULED_AT_ONCE = 1_000
#: Seconds for the release of stacks when the process stops.
RELEASE_TIMEOUT = 5
#: Rows of a project in which observers count their work.
SLOTS = 16

#: Returns whether a project may have more observations today.
WithinQuota = Callable[[Connection, str], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class _ObservedPage:
    """requests: to providers, by endpoint."""

    resources: list[ObservedResource]
    requests: Mapping[str, int]


class Observer:
    """One loop. policies: the operator's rules. repair: starts repairs. approved: starts those that
    answers to hooks have approved. new_id: of the calls of types, and of hooks. chance: a number
    from 0 up to 1, for jitter. endpoints: the requests that it may send.
    watch_every: how often what watched hooks show is observed."""

    def __init__(
        self,
        database: Database,
        registry: TypeRegistry,
        policies: PolicyRules = PolicyRules(),  # noqa: B008  frozen
        *,
        repair: RepairStart | None = None,
        approved: ApprovedRepairStart | None = None,
        within_quota: WithinQuota | None = None,
        new_id: Callable[[], UUID] = uuid4,
        page_timeout: timedelta = PAGE_TIMEOUT,
        chance: Callable[[], float] = lambda: 0.5,
        supervisor: Supervisor | None = None,
        metrics: WorkerMetrics | None = None,
        endpoints: ProviderEndpoints | None = None,
        watch_every: timedelta = WATCH_EVERY,
    ) -> None:
        self._database = database
        self.registry = registry
        self._policies = policies
        self._within_quota = within_quota
        self._guard = (supervisor or Supervisor()).guard("observer", max_pause=POLL.total_seconds())
        self._metrics = metrics or WorkerMetrics()
        self._chance = chance
        self.hook_watch = HookWatch(database, new_id, every=watch_every, supervisor=supervisor)
        self._calls = ProviderCalls(
            database,
            registry,
            endpoints or ProviderEndpoints(database, chance=chance),
            guard=self._guard,
            metrics=self._metrics,
            new_id=new_id,
            timeout=page_timeout,
        )
        self._reactions = DriftReactions(
            database, DriftHooks(database, new_id), self.hook_watch, self._guard, repair, approved
        )
        self._slot = new_id().int % SLOTS
        work = DueWork(
            claim=self._claim,
            until_next=self._until_next,
            run=self._observe_or_release,
            project_of=lambda batch: batch[0].project,
            at_once=BATCHES,
            of_project=BATCHES_OF_PROJECT,
        )
        self._loop = ClaimLoop(self._guard, work)

    def wake(self) -> None:
        """Look at the schedule: an observation was requested."""
        self._loop.wake()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set and `wake` is called; then release the stacks."""
        await self.schedule_by_rules()
        await self._loop.run(stop)

    async def schedule_by_rules(self) -> None:
        """Schedule the stacks for which an operator rule has an interval. Later stacks are
        scheduled when they are created."""
        if not self._policies.operator:
            return
        project = ""
        while True:
            async with self._database.connection() as conn:
                projects = await observation_schedule.read_projects(
                    conn, project, SCHEDULED_AT_ONCE
                )
            for project in projects:
                policy = self._policies.policy(None, project)
                if policy is not None and policy.every is not None:
                    await self._schedule_project(project, policy.every)
            if not projects:
                return

    async def _schedule_project(self, project: str, every: timedelta) -> None:
        after: UUID | None = observation_schedule.FIRST
        while after is not None:
            async with self._database.connection() as conn:
                after = await observation_schedule.schedule_project(
                    conn, project, every, after, SCHEDULED_AT_ONCE
                )

    async def observe_due(self) -> int:
        """Observe the stacks that are due, one batch after another; return how many there were."""
        return sum(map(len, await self._loop.run_due()))

    async def _claim(self, except_projects: Sequence[str]) -> list[ClaimedStack] | None:
        async with self._database.transaction() as conn:
            claimed = await observation_schedule.claim(conn, BATCH, LEASE, except_projects)
            if claimed:
                reach("observe.before")
        if claimed:
            reach("observe.after")
        return claimed or None

    async def _until_next(self, except_projects: Sequence[str]) -> timedelta | None:
        async with self._database.connection() as conn:
            return await observation_schedule.until_next(conn, except_projects)

    async def _observe_or_release(self, batch: Sequence[ClaimedStack]) -> None:
        """An error is one of a stack alone. Without the database, the lease expires."""
        try:
            await self._guard.split(
                batch,
                self._observe,
                lambda one, _: self._release([one], RETRY),
                lambda one: {"stack_id": str(one.stack_id)},
            )
        except asyncio.CancelledError:
            await self._release(batch, timedelta(0))
            raise
        except Exception as error:
            self._guard.report(error)

    async def _release(self, stacks: Sequence[ClaimedStack], until_next: timedelta | None) -> None:
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(RELEASE_TIMEOUT), self._database.connection() as conn:
                await observation_schedule.release(conn, stacks, until_next)

    async def _observe(self, batch: Sequence[ClaimedStack]) -> None:
        pending = await self._begin(batch)
        while pending:
            page, credential = await self._read_page(pending, batch[0])
            for stack_id, error in page.failed.items():
                self._guard.report(error, stack_id=str(stack_id))
                await self._release([pending.pop(stack_id).stack], RETRY)
            last = page.last
            ended = [one for key, one in pending.items() if last is None or key < last[0]]
            if last is not None and last[0] in pending:
                pending[last[0]].after = last[1]
            observed = await self._observe_page(pending, page.resources, credential)
            pending = await self._write(pending, observed, ended)
            await self._reactions.react(ended)

    async def _read_page(
        self, pending: Mapping[UUID, StackObservation], first: ClaimedStack
    ) -> tuple[ResourcePage, UUID | None]:
        """A page, and the ID of the credential that the owner of the project has handed over. It is
        read for each page, so that a deleted one is not used any more. first: of the batch. Either
        all stacks of a batch have reported resources, or none."""
        size = first.project, PAGE, PAGE_BYTES
        async with self._database.connection() as conn:
            if first.resources is None:
                after = {stack_id: one.after for stack_id, one in pending.items()}
                page = await observations.read_page(conn, after, *size)
            else:
                left = [pair for one in pending.values() for pair in one.remaining_reports()]
                page = await observations.read_reported(conn, left, *size)
            return page, await observation_credentials.find_id(conn, first.project)

    async def _begin(self, batch: Sequence[ClaimedStack]) -> dict[UUID, StackObservation]:
        """The stacks to observe; the claims of others end. A policy may have ended since."""
        deleted = [one for one in batch if one.name is None]
        chance = self._chance()
        progress = [
            StackObservation(one, self._policies.policy(one.section, one.project), chance)
            for one in batch
            if one.name is not None
        ]
        due = [one for one in progress if one.is_due]
        ended = [one.stack for one in progress if one not in due]
        roots = [one.stack.stack_id for one in due if one.is_scheduled_root]
        async with self._database.connection() as conn:
            if due and not await self._may_observe(conn, batch[0].project):
                over, due, roots = [one.stack for one in due], [], []
                self._metrics.record_observation_call("over_quota")
                await observation_schedule.release(conn, over, await usage.until_tomorrow(conn))
            if deleted:
                await observation_schedule.forget(conn, deleted)
            if ended:
                await observation_schedule.release(conn, ended, None)
            if roots:
                await observation_schedule.schedule_nested(conn, roots)
        if ended:
            await self._reactions.hold(ended, {one.stack_id: None for one in ended})
        return {one.stack.stack_id: one for one in due}

    async def _may_observe(self, conn: Connection, project: str) -> bool:
        return self._within_quota is None or await self._within_quota(conn, project)

    async def _write(
        self,
        pending: Mapping[UUID, StackObservation],
        observed: _ObservedPage,
        ended: Sequence[StackObservation],
    ) -> dict[UUID, StackObservation]:
        """Write a page, and end the observation of the stacks that have no more resources. Returns
        the others whose claim holds."""
        async with self._database.transaction("observed") as conn:
            stacks = [one.stack for one in pending.values()]
            held = await observation_schedule.renew(conn, stacks, LEASE)
            drift = 0
            if written := [one for one in observed.resources if one.stack_id in held]:
                drift = await observations.write(conn, written)
            left = [one for one in ended if one.stack.stack_id in held]
            if finished := [one.finish() for one in left if not one.deferred]:
                await observation_schedule.finish(conn, finished)
            if deferred := [one.finish_deferred() for one in left if one.deferred]:
                await observation_schedule.defer(conn, deferred)
            if observed.resources and stacks:
                await usage.add_observed(
                    conn, stacks[0].project, self._slot, observations=len(observed.resources),
                    requests=observed.requests, drift=drift,
                )  # fmt: skip
        self._metrics.record_drift(drift)
        self._metrics.record_provider_requests(sum(observed.requests.values()))
        further = held.difference(one.stack.stack_id for one in ended)
        return {stack_id: one for stack_id, one in pending.items() if stack_id in further}

    async def _observe_page(
        self,
        pending: Mapping[UUID, StackObservation],
        resources: Sequence[RecordedResource],
        credential: UUID | None,
    ) -> _ObservedPage:
        found: list[ObservedResource] = []
        groups = self._calls.group(pending, resources, str(credential or ""))
        for answer in await self._calls.call(pending, groups):
            for one in answer.group.resources:
                progress = pending[one.stack_id]
                progress.observable += 1
                observation = answer.found.get(ResourceId(one.id), answer.unknown)
                judged = progress.judge(one.name, observation)
                self._metrics.record_observation(judged.state)
                endpoint, found_by = answer.group.endpoint, progress.found_by
                found.append(observed_resource(one, judged, endpoint, found_by))
                await asyncio.sleep(0)  # patterns of the policy may match many differences
        requests = Counter[str]()
        for group in groups:
            requests[group.endpoint[2]] += group.requests
        return _ObservedPage(found, requests)
