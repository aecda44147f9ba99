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
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from uuid import UUID, uuid4

import orjson

from engine.errors import NotFound, Unavailable
from engine.hot.expressions.masking import MASK
from engine.loop_guard import Supervisor
from engine.plan.convergence import ConvergencePolicy, PolicyRules, ignores
from engine.plan.drift import REPAIRED_AS
from engine.plan.observation_risk import Risk, next_interval, urgency
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.fault_points import reach
from engine.store.hooks.drift_hooks import ApprovedRepair, read_approved_repairs
from engine.store.observer import (
    drift_rows,
    observation_credentials,
    observation_schedule,
    observations,
)
from engine.store.observer.observation_schedule import (
    ClaimedStack,
    DeferredObservation,
    FinishedObservation,
)
from engine.store.observer.observations import ObservedResource, RecordedResource, ResourcePage
from engine.store.projects import usage
from engine.store.stacks.stack_locks import lock_stacks, split_path
from engine.types.contract import Call, ResourceType
from engine.types.observation import PRESENT, Difference, Observation, count_requests, shorten
from engine.types.registry import TypeRegistry
from engine.types.text_cleaning import replace_nul
from engine.words import FoundBy, Json, ObservedState, OnDrift, ResourceId, StackId
from engine.work.claim_loop import POLL, ClaimLoop, DueWork
from engine.work.drift_hooks import DriftHooks, holds
from engine.work.endpoint_back_off import Endpoint, FailedEndpoint, is_blocked, is_throttled
from engine.work.hook_watch import EVERY as WATCH_EVERY
from engine.work.hook_watch import HookWatch
from engine.work.prepare import HIDDEN_REASON
from engine.work.provider_endpoints import MAX_REASON, ProviderEndpoints
from engine.work.worker_metrics import WorkerMetrics

#: Batches that are observed at the same time, of all projects and of one; calls of types at the
#: same time for each batch.
BATCHES, BATCHES_OF_PROJECT, CALLS = 8, 2, 10
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
#: After a repair window has opened, its stacks are observed within a fifth of this time.
WINDOW_DELAY = timedelta(minutes=5)
#: Projects and stacks that are scheduled at once when the observer starts.
SCHEDULED_AT_ONCE = 1_000
#: Seconds for the release of stacks when the process stops.
RELEASE_TIMEOUT = 5
#: Rows of a project in which observers count their work.
SLOTS = 16
#: Differences of a resource that are kept.
MAX_DIFFERENCES = 20

#: Returns whether a project may have more observations today.
WithinQuota = Callable[[Connection, str], Awaitable[bool]]
#: `Repairs.start`.
RepairStart = Callable[[str, UUID, list[str], int], Awaitable[None]]
#: `Repairs.start_approved`.
ApprovedRepairStart = Callable[[str, UUID, ApprovedRepair], Awaitable[None]]

#: Before every change.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_ANSWER = "the type did not report a state of the resource"
#: Why drift of a resource with `external_id`, or of data, is not repaired.
EXTERNAL = "the stack does not own the physical resource"


class ObservationFault(Exception):
    """A type raised an error. The text is the reason to show."""


@dataclass(slots=True)
class _Group:
    """Resources that one call observes. requests: how many it has sent."""

    type: ResourceType
    endpoint: Endpoint
    resources: list[RecordedResource] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    requests: int = 0


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a call returned. unknown: of the resources that it did not report, or of all."""

    group: _Group
    found: Mapping[ResourceId, Observation]
    unknown: Observation

    @property
    def failure(self) -> Observation | None:
        """Why it returned no state of a resource; None: it did."""
        states = list(self.found.values()) or [self.unknown]
        usable = any(one.state is not ObservedState.UNKNOWN for one in states)
        return None if usable else states[0]

    @property
    def throttling(self) -> Observation | None:
        """Why the provider requests fewer requests; None: it does not."""
        return next(filter(is_throttled, (*self.found.values(), self.unknown)), None)


@dataclass(frozen=True, slots=True)
class _ObservedPage:
    """requests: to providers, by endpoint."""

    resources: list[ObservedResource]
    requests: Mapping[str, int]


@dataclass(slots=True)
class _Progress:
    """The observation of one stack. chance: from 0 up to 1, of its interval; the same for the
    stacks of a batch, so that those with the same interval stay together. after: the last resource
    so far. retry: until the next attempt, if an endpoint has failed. deferred: resources that the
    budget of requests leaves out; budget: until there is more; shortage: why."""

    stack: ClaimedStack
    policy: ConvergencePolicy | None
    chance: float
    after: UUID = observation_schedule.FIRST
    observable: int = 0
    not_observable: int = 0
    retry: timedelta | None = None
    deferred: list[UUID] = field(default_factory=list)
    budget: timedelta | None = None
    shortage: str = ""

    @property
    def is_due(self) -> bool:
        """Its policy may have ended since it became due."""
        stack, policy = self.stack, self.policy
        return bool(stack.requested or stack.reported or (policy and policy.every))

    @property
    def found_by(self) -> FoundBy:
        """What causes the observation."""
        if self.stack.requested:
            return FoundBy.REQUEST
        return FoundBy.REPORT if self.stack.reported else FoundBy.POLICY

    def remaining_reports(self) -> list[tuple[UUID, UUID]]:
        """(ID of the stack, ID of the resource) for each reported resource not observed yet."""
        left = sorted(one for one in self.stack.resources or () if one > self.after)
        return [(self.stack.stack_id, one) for one in left]

    def finish(self) -> FinishedObservation:
        every = self.policy.every if self.policy else None
        every = every and next_interval(every, self._risk, self.chance)
        if every is not None and self.retry is not None:
            every = min(every, self.retry)
        opens = self.policy.repairs_in(self.stack.claimed_at) if self.policy else None
        if every is not None and opens:
            # Repairs start after an observation.
            every = min(every, opens + WINDOW_DELAY * self.chance)
        return FinishedObservation(self.stack, every, self.observable, self.not_observable)

    def defer(self, resource_id: UUID, wait: timedelta, shortage: str) -> None:
        """Leave out a resource, because the budget of requests is used up."""
        self.observable += 1
        self.deferred.append(resource_id)
        if self.budget is None or wait < self.budget:
            self.budget, self.shortage = wait, shortage

    def finish_deferred(self) -> DeferredObservation:
        return DeferredObservation(
            self.stack, self.deferred, self.budget or timedelta(0), self.shortage,
            self.observable, self.not_observable,
        )  # fmt: skip

    @property
    def _risk(self) -> Risk:
        differs = ObservedState.CHANGED if self.stack.differs else None
        return Risk(differs, self.stack.claimed_at - (self.stack.changed_at or EPOCH), self.drifted)

    @property
    def drifted(self) -> timedelta | None:
        """See `Risk`."""
        drifted_at = self.stack.drifted_at
        return self.stack.claimed_at - drifted_at if drifted_at else None

    @property
    def age(self) -> timedelta | None:
        """Time since the last observation; None: there was none."""
        observed_at = self.stack.observed_at
        return self.stack.claimed_at - observed_at if observed_at else None

    def judge(self, name: str, found: Observation) -> Observation:
        """The observation without the differences that the policy ignores."""
        if self.policy is None or not found.differences:
            return found
        path = split_path(self.stack.path or "")
        ignored = self.policy.ignored_paths(path, name)
        left = [one for one in found.differences if not ignores(ignored, one.path)]
        if not left and found.state is ObservedState.CHANGED:
            return PRESENT
        return replace(found, differences=left)


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
        self._registry = registry
        self._policies = policies
        self._repair = repair
        self._approved = approved
        self._drift_hooks = DriftHooks(database, new_id)
        self._within_quota = within_quota
        self._new_id = new_id
        self._page_timeout = page_timeout.total_seconds()
        self._guard = (supervisor or Supervisor()).guard("observer", max_pause=POLL.total_seconds())
        self._metrics = metrics or WorkerMetrics()
        self._chance = chance
        self.hook_watch = HookWatch(database, new_id, every=watch_every, supervisor=supervisor)
        self._endpoints = endpoints or ProviderEndpoints(database, chance=chance)
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
            await self._react(ended)

    async def _read_page(
        self, pending: Mapping[UUID, _Progress], first: ClaimedStack
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

    async def _react(self, ended: Sequence[_Progress]) -> None:
        """Report drift, open hooks about it, and repair it, as the policies say. What fails is done
        after the next observation."""
        if not ended:
            return
        await self._report_drift(ended)
        renewal = self.hook_watch.renew([one.stack.stack_id for one in ended])
        await self._guard.attempt(renewal)
        ended = [one for one in ended if not one.deferred]
        if not ended:
            return
        stacks = [one.stack for one in ended]
        await self._hold(stacks, {one.stack.stack_id: one.policy for one in ended})
        limits = {
            one.stack.root_id: one.policy.repairs
            for one in ended
            if one.policy
            and one.stack.root_id
            and one.policy.repairs_in(one.stack.claimed_at) == timedelta(0)
        }
        if limits and self._repair is not None:
            await self._start_repairs(ended[0].stack.project, limits, self._repair)

    async def _report_drift(self, ended: Sequence[_Progress]) -> None:
        policies = {
            one.stack.stack_id: one.policy
            for one in ended
            if one.policy is not None and one.policy.on_drift is not OnDrift.IGNORE
        }
        if not policies:
            return
        async with self._database.connection() as conn:
            tolerated = {stack_id: policy.tolerate for stack_id, policy in policies.items()}
            unreported = await drift_rows.read_unreported(conn, tolerated)
        for stack_id in unreported:
            await self._guard.attempt(
                self._report(stack_id, policies[stack_id]), stack_id=str(stack_id)
            )

    async def _hold(
        self,
        stacks: Sequence[ClaimedStack],
        policies: Mapping[UUID, ConvergencePolicy | None],
    ) -> None:
        """Open and close hooks about drift, and start the repairs that their answers approved."""
        due = await self._drift_hooks.read_due(policies)
        for one in stacks:
            if one.stack_id in due:
                update = self._drift_hooks.update(one, policies[one.stack_id])
                await self._guard.attempt(update, stack_id=str(one.stack_id))
        roots = {one.root_id for one in stacks if one.root_id and holds(policies[one.stack_id])}
        if not roots or self._approved is None:
            return
        async with self._database.connection() as conn:
            approved = await read_approved_repairs(conn, [*roots], [*REPAIRED_AS])
        for root_id, repair in approved.items():
            if repair.names:
                start = self._approved(stacks[0].project, root_id, repair)
                await self._guard.attempt(start, stack_id=str(root_id))
            if repair.has_external:
                await self._guard.attempt(self._record_external(root_id), stack_id=str(root_id))

    async def _start_repairs(
        self, project: str, limits: Mapping[UUID, int], start: RepairStart
    ) -> None:
        async with self._database.connection() as conn:
            drifted = await drift_rows.read_repairable(conn, [*limits], [*REPAIRED_AS])
        for one in drifted:
            root_id = one.root_id
            if one.names:
                repair = start(project, root_id, one.names, limits[root_id])
                await self._guard.attempt(repair, stack_id=str(root_id))
            if one.has_external:
                recorded = self._record_external(root_id)
                await self._guard.attempt(recorded, stack_id=str(root_id))

    async def _record_external(self, root_id: UUID) -> None:
        async with self._database.transaction() as conn:
            stacks = await drift_rows.read_tree(conn, root_id)
            await lock_stacks(conn, stacks)
            await drift_rows.record_unrepaired(conn, stacks, EXTERNAL, external=True)

    async def _report(self, stack_id: UUID, policy: ConvergencePolicy) -> None:
        async with self._database.transaction("report") as conn:
            await lock_stacks(conn, [stack_id])
            await drift_rows.report(conn, stack_id, policy.tolerate)

    async def _begin(self, batch: Sequence[ClaimedStack]) -> dict[UUID, _Progress]:
        """The stacks to observe; the claims of others end. A policy may have ended since."""
        deleted = [one for one in batch if one.name is None]
        chance = self._chance()
        progress = [
            _Progress(one, self._policies.policy(one.section, one.project), chance)
            for one in batch
            if one.name is not None
        ]
        due = [one for one in progress if one.is_due]
        ended = [one.stack for one in progress if one not in due]
        roots = [one.stack.stack_id for one in due if _is_scheduled_root(one)]
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
            await self._hold(ended, {one.stack_id: None for one in ended})
        return {one.stack.stack_id: one for one in due}

    async def _may_observe(self, conn: Connection, project: str) -> bool:
        return self._within_quota is None or await self._within_quota(conn, project)

    async def _write(
        self,
        pending: Mapping[UUID, _Progress],
        observed: _ObservedPage,
        ended: Sequence[_Progress],
    ) -> dict[UUID, _Progress]:
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
        pending: Mapping[UUID, _Progress],
        resources: Sequence[RecordedResource],
        credential: UUID | None,
    ) -> _ObservedPage:
        found: list[ObservedResource] = []
        groups = self._groups(pending, resources, str(credential or ""))
        for answer in await self._observe_groups(pending, groups):
            for one in answer.group.resources:
                progress = pending[one.stack_id]
                progress.observable += 1
                observation = answer.found.get(ResourceId(one.id), answer.unknown)
                judged = progress.judge(one.name, observation)
                self._metrics.record_observation(judged.state)
                endpoint, found_by = answer.group.endpoint, progress.found_by
                found.append(_observed_resource(one, judged, endpoint, found_by))
                await asyncio.sleep(0)  # patterns of the policy may match many differences
        requests = Counter[str]()
        for group in groups:
            requests[group.endpoint[2]] += group.requests
        return _ObservedPage(found, requests)

    def _groups(
        self, pending: Mapping[UUID, _Progress], page: Sequence[RecordedResource], credential: str
    ) -> list[_Group]:
        """The groups of a page, without the resources that cannot be observed. credential: see
        `Call.observation_credential`."""
        groups: dict[tuple[str, str], _Group] = {}
        for recorded in page:
            progress = pending[recorded.stack_id]
            try:
                type_ = self._registry.get(recorded.type)
            except NotFound:  # the plug-in of an earlier process
                progress.not_observable += 1
                continue
            stack = progress.stack
            call = recorded_call(
                stack.project, StackId(stack.stack_id), stack.name or "", recorded, self._new_id(),
                credential,
            )  # fmt: skip
            known = self._key(type_, call)
            if known is None:
                progress.not_observable += 1
                continue
            key, url = known
            group = groups.get((recorded.type, key))
            if group is None:
                endpoint = (progress.stack.project, recorded.type, url)
                group = groups[recorded.type, key] = _Group(type_, endpoint)
            group.resources.append(recorded)
            group.calls.append(call)
        return [*groups.values()]

    def _key(self, type_: ResourceType, call: Call) -> tuple[str, str] | None:
        """The key and the endpoint of the type; None also if the type raises an error."""
        try:
            key = type_.observation_key(call)
            return None if key is None else (key, type_.observation_endpoint(call))
        except Exception as error:
            self._guard.report(error, resource_type=type_.schema.name)
            return None

    async def _observe_groups(
        self, pending: Mapping[UUID, _Progress], groups: Sequence[_Group]
    ) -> list[_Answer]:
        """Call the types, except for endpoints that have failed before, and as far as the budgets
        of requests allow. Requested observations are made also after a failure, unless the provider
        has requested fewer requests."""
        if not groups:
            return []
        requested = any(one.stack.requested for one in pending.values())
        known = await self._endpoints.read_failed([*{one.endpoint for one in groups}])
        skipped: list[_Answer] = []
        wanted: list[_Group] = []
        for group in groups:
            failed = known.get(group.endpoint)
            if failed is None or not is_blocked(failed, requested=requested):
                wanted.append(group)
                continue
            self._metrics.record_observation_call("skipped")
            skipped.append(_Answer(group, {}, failed.observation))
            self._retry(pending, group, failed.remaining)
        granted = await self._grant(pending, wanted)
        answers = await self._call_all(granted)
        extra = Counter[str]()
        for group in granted:
            extra[group.endpoint[2]] += group.requests - 1
        await self._endpoints.charge(extra)
        await self._judge_endpoints(pending, answers, known)
        return [*skipped, *answers]

    async def _grant(
        self, pending: Mapping[UUID, _Progress], groups: Sequence[_Group]
    ) -> list[_Group]:
        """The groups for which the budgets have a request; the resources of the others are left
        out. A call that needs more requests uses them up for later ones."""
        by_endpoint: dict[str, list[_Group]] = {}
        for group in groups:
            by_endpoint.setdefault(group.endpoint[2], []).append(group)
        if not groups:
            return []
        needs = {key: len(found) for key, found in by_endpoint.items()}
        grants = await self._endpoints.take(groups[0].endpoint[0], needs)
        granted: list[_Group] = []
        short = [key for key, grant in grants.items() if grant.count < needs[key]]
        states = await self._read_states(pending) if short else {}
        for key, found in by_endpoint.items():
            count, wait = grants[key].count, timedelta(seconds=grants[key].wait)
            if key in short:
                found.sort(key=lambda one: -_urgency(one, pending, states))
                self._metrics.record_observation_call("delayed", len(found) - count)
            granted += found[:count]
            for one in (one for group in found[count:] for one in group.resources):
                pending[one.stack_id].defer(one.id, wait, self._endpoints.shortage(key))
        return granted

    async def _read_states(
        self, pending: Mapping[UUID, _Progress]
    ) -> dict[tuple[UUID, UUID], ObservedState]:
        async with self._database.connection() as conn:
            return await observations.read_states(conn, [*pending])

    async def _call_all(self, groups: Sequence[_Group]) -> list[_Answer]:
        """Call the types. After a provider has requested fewer requests, its other groups are not
        called."""
        limit = asyncio.Semaphore(CALLS)
        end = asyncio.get_running_loop().time() + self._page_timeout
        throttled: dict[Endpoint, Observation] = {}

        async def call(group: _Group) -> _Answer:
            found: Mapping[ResourceId, Observation] = {}
            reason = NO_ANSWER
            try:
                async with asyncio.timeout_at(end), limit:
                    if stopped := throttled.get(group.endpoint):
                        return _Answer(group, {}, stopped)
                    found = await self._call(group)
            except TimeoutError:
                reason = f"there was no answer within {self._page_timeout:g} s"
            except ObservationFault as fault:
                reason = str(fault)
            answer = _Answer(group, found, Observation.unknown(reason, reason))
            if answer.throttling is not None:
                throttled[group.endpoint] = _without_secrets(group, answer.throttling)
            return answer

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(call(group)) for group in groups]
        return [task.result() for task in running]

    async def _judge_endpoints(
        self,
        pending: Mapping[UUID, _Progress],
        answers: Sequence[_Answer],
        known: Mapping[Endpoint, FailedEndpoint],
    ) -> None:
        """An endpoint has failed if no call to it returned a state, or if it requested fewer
        requests. known: those that had failed before."""
        by_endpoint: dict[Endpoint, list[_Answer]] = {}
        for answer in answers:
            self._metrics.record_observation_call("failed" if answer.failure else "succeeded")
            by_endpoint.setdefault(answer.group.endpoint, []).append(answer)
        failed: dict[Endpoint, Observation] = {}
        for endpoint, found in by_endpoint.items():
            throttling = [one.throttling for one in found]
            failures = [one.failure for one in found]
            by_failure = throttling if any(throttling) else failures
            first = next((n for n, one in enumerate(by_failure) if one is not None), None)
            if first is not None and (any(throttling) or all(failures)):
                observation = by_failure[first] or found[first].unknown
                failed[endpoint] = _without_secrets(found[first].group, observation)
        succeeded = [one for one in by_endpoint if one not in failed]
        pauses = await self._endpoints.record(succeeded, failed, known)
        for endpoint, pause in pauses.items():
            for answer in by_endpoint[endpoint]:
                self._retry(pending, answer.group, pause)

    def _retry(self, pending: Mapping[UUID, _Progress], group: _Group, pause: timedelta) -> None:
        """Observe the stacks of a group again after this time, when its endpoint may be."""
        for one in group.resources:
            progress = pending[one.stack_id]
            progress.retry = min(pause, progress.retry or pause)

    async def _call(self, group: _Group) -> Mapping[ResourceId, Observation]:
        """An error of the type is an internal error of this call alone, and an observation that
        cannot be stored one of its resource. Raises ObservationFault."""
        try:
            with count_requests() as count:
                try:
                    answer = group.type.observe(group.calls)
                    found = await answer if isawaitable(answer) else answer
                finally:
                    group.requests = max(count.sent, 1)
            return {call.resource_id: self._valid(group, found[call.resource_id])
                    for call in group.calls if call.resource_id in found}  # fmt: skip
        except Exception as error:
            fault = self._guard.report(error, resource_type=group.type.schema.name)
            raise ObservationFault(str(fault)) from None

    def _valid(self, group: _Group, observation: Observation) -> Observation:
        """The observation, or an unknown state."""
        try:
            values = [[one.path, one.desired, one.observed] for one in observation.differences]
            orjson.dumps([observation.state, values, observation.reason[:MAX_REASON],
                          observation.public_reason[:MAX_REASON]])  # fmt: skip
        except Exception as error:
            fault = str(self._guard.report(error, resource_type=group.type.schema.name))
            return Observation.unknown(fault, fault)
        return observation


def _is_scheduled_root(one: _Progress) -> bool:
    """A request makes nested stacks due itself, and reported changes make none due."""
    stack = one.stack
    scheduled = one.policy and one.policy.every and stack.resources is None
    return bool(stack.stack_id == stack.root_id and not stack.requested and scheduled)


def recorded_call(
    project: str,
    stack_id: StackId,
    stack_name: str,
    recorded: RecordedResource,
    key: UUID,
    credential: str = "",
) -> Call:
    """A call about the recorded state of a resource. credential: `Call.observation_credential`."""
    return Call(
        project=project,
        stack_id=stack_id,
        stack_name=stack_name,
        resource_id=ResourceId(recorded.id),
        resource_name=recorded.name,
        operation_key=key,
        now=recorded.now,
        properties=recorded.properties or {},
        previous=recorded.properties,
        physical_id=recorded.physical_id,
        data=recorded.data,
        attributes=recorded.attributes,
        has_secrets=recorded.has_secrets,
        observation_credential=credential,
    )


def _urgency(
    group: _Group,
    pending: Mapping[UUID, _Progress],
    states: Mapping[tuple[UUID, UUID], ObservedState],
) -> float:
    """That of its most urgent resource. states: of resources that differ."""
    return max(
        urgency(
            pending[one.stack_id].age,
            Risk(
                states.get((one.stack_id, one.id)),
                one.now - one.updated_at,
                pending[one.stack_id].drifted,
            ),
        )
        for one in group.resources
    )


def _without_secrets(group: _Group, observation: Observation) -> Observation:
    """An observation that holds for other resources, too."""
    if not any(one.has_secrets for one in group.resources):
        return observation
    return replace(observation, reason=_shown_reason(observation, hidden=True))


def _shown_reason(observation: Observation, *, hidden: bool) -> str:
    if not hidden:
        return observation.reason
    return observation.public_reason or (HIDDEN_REASON if observation.reason else "")


def _observed_resource(
    recorded: RecordedResource, observation: Observation, endpoint: Endpoint, found_by: FoundBy
) -> ObservedResource:
    """The row of an observation, without secrets."""
    # The next update repeats the operation that failed, unless there is nothing to update.
    repeated = not recorded.applied and observation.state in (
        ObservedState.CHANGED, ObservedState.DEGRADED
    )  # fmt: skip
    if observation.state is ObservedState.PRESENT or repeated:
        return ObservedResource(recorded.stack_id, recorded.id, recorded.updated_at, None)
    reason = _shown_reason(observation, hidden=recorded.has_secrets)
    return ObservedResource(
        recorded.stack_id,
        recorded.id,
        recorded.updated_at,
        str(observation.state),
        [
            _difference(one, masked=recorded.has_secrets)
            for one in observation.differences[:MAX_DIFFERENCES]
        ],
        replace_nul(reason[:MAX_REASON]),
        endpoint[2] if observation.state is ObservedState.UNKNOWN else "",
        found_by,
    )


def _difference(one: Difference, *, masked: bool) -> dict[str, Json]:
    desired, observed = (MASK, MASK) if masked else (one.desired, one.observed)
    return {
        "path": one.path,
        "desired": shorten(desired),
        "observed": shorten(replace_nul(observed)),
    }
