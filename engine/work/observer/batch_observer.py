"""Observes the resources of a batch: stacks of one project that one claim has found due.

Resources are read page by page. Those of a page that their type observes together are one call. If
a batch has several pages, resources whose objects a list has are left until all pages were read, so
that the list is read once for all of them and not for each page.
"""

import asyncio
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from engine.hooks.drift_digests import DriftDigests
from engine.loop_guard import Guard
from engine.plan.convergence import PolicyRules
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.observer import (
    observation_credentials,
    observation_schedule,
    observations,
    waiting_repairs,
)
from engine.store.observer.observation_schedule import ClaimedStack
from engine.store.observer.observations import ObservedResource, RecordedResource, ResourcePage
from engine.store.projects import usage
from engine.types.contract import Call
from engine.types.observation import Observation
from engine.types.observed_list import ObservedList
from engine.words import ResourceId
from engine.work.claim_loop import ClaimSlot
from engine.work.observer.batch_outcomes import BatchOutcomes
from engine.work.observer.call_groups import CallGroup, FoundObjects, GroupKey
from engine.work.observer.drift_reactions import DriftReactions
from engine.work.observer.list_reader import ListReader
from engine.work.observer.nested_observer import NO_ENDPOINT, NestedObserver
from engine.work.observer.observed_rows import has_hidden_values, observed_resource
from engine.work.observer.provider_calls import ProviderCalls
from engine.work.observer.stack_observation import StackObservation
from engine.work.worker_metrics import WorkerMetrics

#: Resources that are read and written at once, and bytes of their large properties and attributes.
PAGE, PAGE_BYTES = 2_000, 4_000_000
#: Resources of a batch that are left until its lists are read.
LISTED = 50_000
#: Of all batches of a process together: if there are more, a batch reads its lists as soon as it
#: has left MIN_LISTED. Each needs about 600 bytes.
LISTED_OF_ALL, MIN_LISTED = 100_000, 4_000
#: Until the next attempt after an internal error.
RETRY = timedelta(minutes=1)

#: Returns whether a project may have more observations today.
WithinQuota = Callable[[Connection, str], Awaitable[bool]]
#: Ends claims without an observation for a reason, and sets when the next one is; None: when it is
#: requested.
Release = Callable[[Sequence[ClaimedStack], timedelta | None, str], Awaitable[None]]
#: Why stacks are not observed if the project may have no more observations today.
OVER_QUOTA = "the project has used up its quota of observations"


@dataclass(slots=True)
class ObservedBatch:
    """stacks: those whose claim holds, by ID. unread: those whose resources were not all read.
    listed: resources that are left until lists are read, by the key of their group. waiting: their
    stacks. outcomes: of its requests so far. slot: of the claim."""

    project: str
    stacks: dict[UUID, StackObservation]
    slot: ClaimSlot
    unread: set[UUID] = field(default_factory=set)
    listed: dict[GroupKey, CallGroup] = field(default_factory=dict)
    waiting: set[UUID] = field(default_factory=set)
    outcomes: BatchOutcomes = field(default_factory=BatchOutcomes)

    def leave(self, group: CallGroup) -> None:
        """Leave the resources of a group until lists are read, without what is read again then."""
        empty = replace(group, resources=[], calls=[])
        left = self.listed.setdefault(group.key, empty)
        schema = group.type.schema
        left.resources += [
            replace(one.without_content(), has_secrets=has_hidden_values(one, schema))
            for one in group.resources
        ]
        self.waiting.update(one.stack_id for one in group.resources)

    def count_listed(self) -> int:
        """How many resources are left until lists are read."""
        return sum(len(group.resources) for group in self.listed.values())

    def ended_stacks(self) -> list[StackObservation]:
        """The stacks without further resources."""
        further = self.unread | self.waiting
        return [one for key, one in self.stacks.items() if key not in further]

    def remove(self, stack_id: UUID) -> StackObservation:
        self.unread.discard(stack_id)
        return self.stacks.pop(stack_id)


@dataclass(frozen=True, slots=True)
class ObservedPage:
    """observed: resources that providers were asked about. requests: to them, by endpoint."""

    resources: Sequence[ObservedResource] = ()
    observed: int = 0
    requests: Mapping[str, int] = field(default_factory=dict)


class BatchObserver:
    """policies: the operator's rules. lease: of claims; see `ClaimRenewal`. chance: a number from 0
    up to 1, for jitter. slot: the row of a project in which this process counts its work. page:
    resources that are read at once. digests: of drift; None: it is compared as it is shown."""

    def __init__(
        self,
        database: Database,
        policies: PolicyRules,
        calls: ProviderCalls,
        lists: ListReader,
        nested: NestedObserver,
        reactions: DriftReactions,
        *,
        guard: Guard,
        metrics: WorkerMetrics,
        lease: timedelta,
        chance: Callable[[], float],
        slot: int,
        within_quota: WithinQuota | None,
        release: Release,
        page: int = PAGE,
        digests: DriftDigests | None = None,
    ) -> None:
        self._database = database
        self._policies = policies
        self._calls = calls
        self._lists = lists
        self._nested = nested
        self._reactions = reactions
        self._guard = guard
        self._metrics = metrics
        self._lease = lease
        self._chance = chance
        self._slot = slot
        self._within_quota = within_quota
        self._release = release
        self._page = page
        self._under_way: list[ObservedBatch] = []
        self._digests = digests

    async def observe(self, claimed: Sequence[ClaimedStack], slot: ClaimSlot) -> None:
        """Observe the stacks of a claim, and end it. Raises Unavailable."""
        batch = await self._begin(claimed, slot)
        self._under_way.append(batch)
        try:
            await self._observe(batch, claimed[0])
        finally:
            self._under_way[:] = [one for one in self._under_way if one is not batch]

    async def _observe(self, batch: ObservedBatch, first: ClaimedStack) -> None:
        while batch.unread:
            page = await self._read_page(batch, first)
            owners, others = self._nested.split(page.resources)
            inside = await self._observe_nested(batch, owners)
            groups = await self._group(batch, others)
            if page.last is not None or batch.listed:
                groups = [one for one in groups if not self._leave_listed(batch, one)]
            batch.outcomes.is_last = not (batch.unread or batch.listed)
            await self._call(batch, groups, inside)
            if batch.listed and (not batch.unread or self._must_read_lists(batch)):
                await self._observe_lists(batch)
        await self._calls.finish(batch.outcomes)

    def _must_read_lists(self, batch: ObservedBatch) -> bool:
        """Whether a batch, or all of the process, has left so many resources that it cannot leave
        more."""
        left = batch.count_listed()
        return left >= LISTED or (
            left >= MIN_LISTED
            and sum(one.count_listed() for one in self._under_way) >= LISTED_OF_ALL
        )

    def _leave_listed(self, batch: ObservedBatch, group: CallGroup) -> bool:
        """Leave a group whose objects a list has until lists are read; False: it has none."""
        if not self._lists.has_list(group):
            return False
        batch.leave(group)
        return True

    async def _begin(self, claimed: Sequence[ClaimedStack], slot: ClaimSlot) -> ObservedBatch:
        """The stacks to observe; the claims of others end. A policy may have ended since."""
        project = claimed[0].project
        deleted = [one for one in claimed if one.name is None]
        chance = self._chance()
        progress = [
            StackObservation(one, self._policies.policy(one.section, one.project), chance)
            for one in claimed
            if one.name is not None
        ]
        due = [one for one in progress if one.is_due]
        ended = [one.stack for one in progress if one not in due]
        roots = [one.stack.stack_id for one in due if one.is_scheduled_root]
        async with self._database.connection() as conn:
            if due and not await self._may_observe(conn, project):
                over, due, roots = [one.stack for one in due], [], []
                self._metrics.record_observation_call("over_quota")
                tomorrow = await usage.until_tomorrow(conn)
                await observation_schedule.release(conn, over, tomorrow, OVER_QUOTA)
            if deleted:
                await observation_schedule.forget(conn, deleted)
            if ended:
                await observation_schedule.release(conn, ended, None)
            if roots:
                await observation_schedule.schedule_nested(conn, roots)
        if ended:
            await self._reactions.hold(ended, {one.stack_id: None for one in ended})
        stacks = {one.stack.stack_id: one for one in due}
        return ObservedBatch(project, stacks, slot, set(stacks))

    async def _may_observe(self, conn: Connection, project: str) -> bool:
        return self._within_quota is None or await self._within_quota(conn, project)

    async def _read_page(self, batch: ObservedBatch, first: ClaimedStack) -> ResourcePage:
        """The next resources. first: of the claim. Either all of its stacks have reported
        resources, or none."""
        unread = {key: one for key, one in batch.stacks.items() if key in batch.unread}
        size = batch.project, self._page, PAGE_BYTES
        async with self._database.connection() as conn:
            if first.resources is None:
                after = {key: one.after for key, one in unread.items()}
                page = await observations.read_page(conn, after, *size)
            else:
                left = [pair for one in unread.values() for pair in one.remaining_reports()]
                page = await observations.read_some(conn, left, *size)
        await self._release_unreadable(batch, page)
        if page.last is None:
            batch.unread.clear()
        else:
            stack_id, resource_id = page.last
            batch.unread = {one for one in batch.unread if one >= stack_id}
            if stack_id in batch.unread:
                batch.stacks[stack_id].after = resource_id
        return page

    async def _read_again(
        self, batch: ObservedBatch, wanted: Iterable[tuple[UUID, UUID]]
    ) -> AsyncIterator[Sequence[RecordedResource]]:
        """Pages of resources that were left, as they are now. wanted: their stacks and IDs."""
        left = sorted(wanted)
        while left := [one for one in left if one[0] in batch.stacks]:
            async with self._database.connection() as conn:
                page = await observations.read_some(
                    conn, left, batch.project, self._page, PAGE_BYTES
                )
            await self._release_unreadable(batch, page)
            yield page.resources
            if page.last is None:
                return
            left = [one for one in left if one > page.last]

    async def _read_unchanged(
        self, batch: ObservedBatch, left: Sequence[RecordedResource]
    ) -> AsyncIterator[Sequence[RecordedResource]]:
        """As `_read_again`, without resources that have changed since: what a list says about them
        may be older than the change."""
        known = {(one.stack_id, one.id): one.updated_at for one in left}
        async for page in self._read_again(batch, known):
            unchanged: list[RecordedResource] = []
            for one in page:
                if one.updated_at == known[one.stack_id, one.id]:
                    unchanged.append(one)
                else:
                    batch.stacks[one.stack_id].pass_over(one.id)
            yield unchanged

    async def _group(
        self, batch: ObservedBatch, page: Sequence[RecordedResource]
    ) -> list[CallGroup]:
        return self._calls.group(batch.stacks, page, await self._read_credential(batch))

    async def _read_credential(self, batch: ObservedBatch) -> str:
        """The ID of the credential that the owner of the project has handed over; "": none. It is
        read for each page, so that a deleted one is not used any more."""
        async with self._database.connection() as conn:
            return str(await observation_credentials.find_id(conn, batch.project) or "")

    async def _release_unreadable(self, batch: ObservedBatch, page: ResourcePage) -> None:
        for stack_id, error in page.failed.items():
            self._guard.report(error, stack_id=str(stack_id))
            await self._release([batch.remove(stack_id).stack], RETRY, str(error).rstrip("."))

    async def _observe_nested(
        self, batch: ObservedBatch, owners: Sequence[RecordedResource]
    ) -> list[ObservedResource]:
        """Observe resources that own nested stacks: without a request, so without a budget."""
        if not owners:
            return []
        async with self._database.connection() as conn:
            found = await self._nested.observe(conn, owners)
        observed: list[ObservedResource] = []
        for one in owners:
            progress = batch.stacks[one.stack_id]
            if one.id not in found:
                progress.pass_over(one.id)
                continue
            observation = found[one.id]
            if observation is None:
                progress.not_observable += 1
                continue
            progress.observable += 1
            progress.nested += 1
            self._metrics.record_observation(observation.state)
            schema = self._nested.schema_of(one)
            found_by = progress.found_by
            observed.append(
                observed_resource(one, observation, schema, NO_ENDPOINT, found_by, polled=True)
            )
        return observed

    async def _call(
        self,
        batch: ObservedBatch,
        groups: Sequence[CallGroup],
        inside: Sequence[ObservedResource] = (),
    ) -> None:
        """Observe the resources of groups by a call for each. inside: resources that own nested
        stacks, which are written with them."""
        observed = [*inside]
        for answer in await self._calls.call(batch.stacks, groups, batch.outcomes, batch.slot):
            was_polled = answer.group.requests > 0
            for one in answer.group.resources:
                found = answer.found.get(ResourceId(one.id), answer.unknown)
                observed.append(self._judge(batch, answer.group, one, found, polled=was_polled))
                await asyncio.sleep(0)  # patterns of the policy may match many differences
        requests = Counter[str]()
        for group in groups:
            requests[group.endpoint[2]] += group.requests
        asked = sum(len(group.resources) for group in groups if group.requests)
        await self._write(batch, ObservedPage(observed, asked, requests))

    def _judge(
        self,
        batch: ObservedBatch,
        group: CallGroup,
        one: RecordedResource,
        found: Observation,
        *,
        polled: bool,
    ) -> ObservedResource:
        progress = batch.stacks[one.stack_id]
        progress.observable += 1
        progress.polled = progress.polled or polled
        judged = progress.judge(one.name, found)
        self._metrics.record_observation(judged.state)
        return observed_resource(
            one, judged, group.type.schema, group.endpoint, progress.found_by,
            polled=polled, request=group.request, digests=self._digests,
        )  # fmt: skip

    async def _write(self, batch: ObservedBatch, observed: ObservedPage) -> None:
        """Write observations, and end those of the stacks that have no more resources. Stacks whose
        claim does not hold any more leave the batch."""
        ended = batch.ended_stacks()
        async with self._database.transaction("observed") as conn:
            stacks = [one.stack for one in batch.stacks.values()]
            held = await observation_schedule.renew(conn, stacks, self._lease)
            drift = 0
            if written := [one for one in observed.resources if one.stack_id in held]:
                result = await observations.write(conn, written)
                drift = result.found
                for row in written:
                    batch.stacks[row.stack_id].record(row.id, row.state)
                for stack_id, resource_id in result.changed:
                    batch.stacks[stack_id].changed.add(resource_id)
            left = [one for one in ended if one.stack.stack_id in held]
            await self._end(conn, left, held)
            if stacks and (observed.observed or any(observed.requests.values())):
                await usage.add_observed(
                    conn, batch.project, self._slot, observations=observed.observed,
                    requests=observed.requests, drift=drift,
                )  # fmt: skip
        self._metrics.record_drift(drift)
        self._metrics.record_provider_requests(sum(observed.requests.values()))
        over = {one.stack.stack_id for one in ended}
        for stack_id in [one for one in batch.stacks if one in over or one not in held]:
            batch.remove(stack_id)
        await self._reactions.react(left)

    async def _end(
        self, conn: Connection, ended: Sequence[StackObservation], times: Mapping[UUID, datetime]
    ) -> None:
        """End observations, and record what they have found. times: of the database, by stack."""
        again = [(one.stack.stack_id, one.observed_again) for one in ended if one.observed_again]
        if again:
            await observation_schedule.report_resources(conn, again)
        for one in ended:
            one.ended_at = times[one.stack.stack_id]
        if found := [one.found_drift for one in ended if one.found_drift]:
            await waiting_repairs.keep(conn, found, again=False)
        if finished := [one.finish(times[one.stack.stack_id]) for one in ended if not one.deferred]:
            await observation_schedule.finish(conn, finished)
        if deferred := [one.finish_deferred() for one in ended if one.deferred]:
            await observation_schedule.defer(conn, deferred)

    async def _observe_lists(self, batch: ObservedBatch) -> None:
        """Observe the resources that were left. A list with those of one page is read by a call of
        the type, as if there were no others; a longer one is compared page by page."""
        for groups in _by_size(batch.listed.values(), self._page):
            if len(groups[0].resources) > self._page:
                await self._observe_long_list(batch, groups[0])
                continue
            wanted = [(one.stack_id, one.id) for group in groups for one in group.resources]
            async for page in self._read_again(batch, wanted):
                await self._call(batch, await self._group(batch, page))
        batch.listed.clear()
        batch.waiting.clear()
        await self._write(batch, ObservedPage())

    async def _observe_long_list(self, batch: ObservedBatch, group: CallGroup) -> None:
        async def compare(listed: ObservedList, found: FoundObjects) -> list[RecordedResource]:
            return await self._compare(batch, group, listed, found)

        group.resources = [one for one in group.resources if one.stack_id in batch.stacks]
        credential = await self._read_credential(batch)
        call = await self._read_call(batch, group.resources, credential)
        if call is None:
            return
        result = await self._lists.read(batch.stacks, group, call, compare, batch.slot)
        async for page in self._read_unchanged(batch, result.left):
            calls = [
                self._calls.call_of(batch.stacks[one.stack_id], one, credential) for one in page
            ]
            missing = await self._lists.observe_missing(result, calls, batch.slot)
            polled = group.requests > 0
            observed = [
                self._judge(batch, group, one, found, polled=polled)
                for one, call in zip(page, calls, strict=True)
                if (found := missing.get(call.resource_id)) is not None
            ]
            self._lists.leave_out(batch.stacks, group, [
                one
                for one, call in zip(page, calls, strict=True)
                if call.resource_id not in missing
            ])  # fmt: skip
            await self._write(batch, ObservedPage(observed, len(observed) if polled else 0))
        await self._lists.settle(batch.stacks, result, batch.outcomes)
        await self._write(batch, ObservedPage(requests={group.endpoint[2]: group.requests}))

    async def _read_call(
        self, batch: ObservedBatch, left: Sequence[RecordedResource], credential: str
    ) -> Call | None:
        """A call about one of the resources; None: all have changed."""
        async for page in self._read_unchanged(batch, left):
            for one in page:
                return self._calls.call_of(batch.stacks[one.stack_id], one, credential)
        return None

    async def _compare(
        self, batch: ObservedBatch, group: CallGroup, listed: ObservedList, found: FoundObjects
    ) -> list[RecordedResource]:
        """Compare the objects of a page of a list with their resources, and renew the claims.
        Returns the resources whose objects are not complete."""
        credential, written = group.calls[0].observation_credential, False
        objects = {(one.stack_id, one.id): shown for one, shown in found}
        incomplete: list[RecordedResource] = []
        async for page in self._read_unchanged(batch, [one for one, _ in found]):
            observed: list[ObservedResource] = []
            for one in page:
                call = self._calls.call_of(batch.stacks[one.stack_id], one, credential)
                judged = self._lists.compare(group, listed, call, objects[one.stack_id, one.id])
                if judged is None:
                    incomplete.append(one)
                else:
                    observed.append(self._judge(batch, group, one, judged, polled=True))
                await asyncio.sleep(0)  # patterns of the policy may match many differences
            await self._write(batch, ObservedPage(observed, len(observed)))
            written = True
        if not written:
            await self._write(batch, ObservedPage())
        return incomplete


def _by_size(groups: Iterable[CallGroup], size: int) -> Iterator[list[CallGroup]]:
    """Groups with so many resources in sum, or one that has more by itself."""
    chosen: list[CallGroup] = []
    count = 0
    for group in groups:
        if chosen and count + len(group.resources) > size:
            yield chosen
            chosen, count = [], 0
        chosen.append(group)
        count += len(group.resources)
    if chosen:
        yield chosen
