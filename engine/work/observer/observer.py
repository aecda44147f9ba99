"""Observes the physical resources of stacks whose observation is due: it was requested, their
convergence policy has an interval, or changes of some resources were reported.

Stacks of a project are observed in batches, and resources of a batch that their type observes
together by one call. A claim is a lease with a fencing number, renewed as long as its process
works: after a crash, another process observes the stack anew when the lease has expired. An
observation only reads, so nothing is lost or done twice.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID, uuid4

from engine.errors import Unavailable
from engine.hooks.drift_digests import DriftDigests
from engine.loop_guard import Supervisor
from engine.plan.convergence import PolicyRules
from engine.store.database import Database
from engine.store.fault_points import reach
from engine.store.observer import observation_schedule
from engine.store.observer.observation_schedule import ClaimedStack
from engine.types.registry import TypeRegistry
from engine.work.claim_loop import PATIENCE, POLL, BusyProjects, ClaimLoop, ClaimSlot, DueWork
from engine.work.observer.batch_observer import PAGE, RETRY, BatchObserver, WithinQuota
from engine.work.observer.claim_renewal import ClaimRenewal
from engine.work.observer.drift_hooks import DriftHooks
from engine.work.observer.drift_reactions import DriftReactions
from engine.work.observer.drift_reports import DriftReports
from engine.work.observer.hook_watch import EVERY as WATCH_EVERY
from engine.work.observer.hook_watch import HookWatch
from engine.work.observer.list_reader import ListReader
from engine.work.observer.nested_observer import NestedObserver
from engine.work.observer.provider_calls import ProviderCalls
from engine.work.observer.provider_endpoints import ProviderEndpoints
from engine.work.observer.repair_reactions import (
    ApprovedRepairStart,
    RepairReactions,
    RepairStart,
)
from engine.work.observer.request_admission import RequestAdmission
from engine.work.observer.type_faults import TypeFaults
from engine.work.worker_metrics import WorkerMetrics

#: Batches that are observed at the same time, of all projects and of one.
BATCHES, BATCHES_OF_PROJECT = 8, 2
#: Further batches of all projects, as long as so many wait for a service.
WAITING_BATCHES = 24
#: Of all of these, those for projects whose services answer.
RESERVED_BATCHES = 2
#: Further batches of a project that users have requested, as long as so many of it wait.
URGENT_BATCHES = 2
#: Until another process may claim a stack; renewed three times in this time.
LEASE = timedelta(seconds=30)
#: Stacks of a batch. A requested observation is a batch of its own.
BATCH = 50
#: Time limit for all calls of a page; resources without an answer are then unknown.
PAGE_TIMEOUT = timedelta(minutes=2)
#: Projects and stacks that are scheduled at once when the observer starts.
SCHEDULED_AT_ONCE = 1_000
#: Seconds for the release of stacks when the process stops.
RELEASE_TIMEOUT = 5
#: Why a stack is observed later.
FAILED = "its observation has failed because of an internal error"
#: Rows of a project in which observers count their work.
SLOTS = 16


class Observer:
    """One loop. policies: the operator's rules. repair: starts repairs. approved: starts those that
    answers to hooks have approved. lease: of claims. new_id: of the calls of types, and of hooks.
    chance: a number from 0 up to 1, for jitter. endpoints: the requests that it may send.
    watch_every: how often what watched hooks show is observed. page, digests: see
    `BatchObserver`. patience: see `ClaimSlot`."""

    def __init__(
        self,
        database: Database,
        registry: TypeRegistry,
        policies: PolicyRules = PolicyRules(),  # noqa: B008  frozen
        *,
        repair: RepairStart | None = None,
        approved: ApprovedRepairStart | None = None,
        within_quota: WithinQuota | None = None,
        lease: timedelta = LEASE,
        new_id: Callable[[], UUID] = uuid4,
        page_timeout: timedelta = PAGE_TIMEOUT,
        chance: Callable[[], float] = lambda: 0.5,
        supervisor: Supervisor | None = None,
        metrics: WorkerMetrics | None = None,
        endpoints: ProviderEndpoints | None = None,
        watch_every: timedelta = WATCH_EVERY,
        page: int = PAGE,
        digests: DriftDigests | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._database = database
        self.registry = registry
        self._policies = policies
        self._lease = lease
        supervisor = supervisor or Supervisor()
        self._guard = supervisor.guard("observer", max_pause=POLL.total_seconds())
        self._renewal = ClaimRenewal(database, lease, supervisor)
        metrics = metrics or WorkerMetrics()
        self.hook_watch = HookWatch(database, new_id, every=watch_every, supervisor=supervisor)
        endpoints = endpoints or ProviderEndpoints(database, chance=chance)
        admission = RequestAdmission(database, endpoints, metrics)
        calls = ProviderCalls(
            registry, admission, guard=self._guard, new_id=new_id, timeout=page_timeout
        )
        reports = DriftReports(database, self._guard)
        self.repairs = RepairReactions(database, self._guard, reports, repair, approved, supervisor)
        reactions = DriftReactions(
            reports, DriftHooks(database, new_id), self.hook_watch, self._guard, self.repairs
        )
        self._batches = BatchObserver(
            database,
            policies,
            calls,
            ListReader(admission, self._guard, page_timeout),
            NestedObserver(registry, TypeFaults(self._guard)),
            reactions,
            guard=self._guard,
            metrics=metrics,
            lease=lease,
            chance=chance,
            slot=new_id().int % SLOTS,
            within_quota=within_quota,
            release=self._release,
            page=page,
            digests=digests,
        )
        work = DueWork(
            claim=self._claim,
            until_next=self._until_next,
            run=self._observe_or_release,
            project_of=lambda batch: batch[0].project,
            at_once=BATCHES,
            of_project=BATCHES_OF_PROJECT,
            waiting=WAITING_BATCHES,
            reserved=RESERVED_BATCHES,
            urgent=URGENT_BATCHES,
            is_reported=lambda batch: batch[0].of_report,
            patience=patience,
        )
        self._loop = ClaimLoop(self._guard, work)

    def wake(self) -> None:
        """Look at the schedule: an observation was requested."""
        self._loop.wake()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set and `wake` is called; then release the stacks."""
        await self.schedule_by_rules()
        async with self._renewal.running(), asyncio.TaskGroup() as tasks:
            tasks.create_task(self.repairs.run(stop))
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

    async def _claim(self, limits: BusyProjects) -> list[ClaimedStack] | None:
        async with self._database.transaction(by_index=True) as conn:
            claimed = await observation_schedule.claim(
                conn, BATCH, self._lease, limits.projects,
                urgent_only=limits.urgent_only, reports_last=limits.reports_last,
            )  # fmt: skip
            if claimed:
                reach("observe.before")
        if claimed:
            reach("observe.after")
        return claimed or None

    async def _until_next(self, except_projects: Sequence[str]) -> timedelta | None:
        async with self._database.connection() as conn:
            return await observation_schedule.until_next(conn, except_projects)

    async def _observe_or_release(self, batch: Sequence[ClaimedStack], slot: ClaimSlot) -> None:
        """An error is one of a stack alone. Without the database, the lease expires."""
        try:
            with self._renewal.holding(batch):
                await self._guard.split(
                    batch,
                    lambda part: self._batches.observe(part, slot),
                    lambda one, _: self._release([one], RETRY, FAILED),
                    lambda one: {"stack_id": str(one.stack_id)},
                )
        except asyncio.CancelledError:
            await self._release(batch, timedelta(0))
            raise
        except Exception as error:
            self._guard.report(error)

    async def _release(
        self, stacks: Sequence[ClaimedStack], until_next: timedelta | None, reason: str = ""
    ) -> None:
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(RELEASE_TIMEOUT), self._database.connection() as conn:
                await observation_schedule.release(conn, stacks, until_next, reason)
