"""Reads lists that have the objects of more resources than are read from the database at once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from uuid import UUID

from engine.loop_guard import Guard
from engine.store.observer.observations import RecordedResource
from engine.types.contract import Call
from engine.types.failure_scope import FailureScope
from engine.types.observation import Observation, count_requests
from engine.types.observed_list import ListUnreadable, ObservedList
from engine.words import Json, ResourceId
from engine.work.claim_loop import ClaimSlot
from engine.work.observer.batch_outcomes import BatchOutcomes
from engine.work.observer.call_groups import CallGroup, FoundObjects, ListResult
from engine.work.observer.call_time_limit import CallTimeLimit
from engine.work.observer.endpoint_back_off import is_throttled
from engine.work.observer.request_admission import RequestAdmission, public_observation
from engine.work.observer.stack_observation import StackObservation
from engine.work.observer.type_faults import NO_ANSWER, TypeFaults, no_answer_within

#: Time limit for a list, in time limits of a page of resources: a list may have many pages, and one
#: slow service must not keep the observer from others.
PAGES_OF_LIST = 5


class ListReader:
    """timeout: for a page of a list, and for all reads of single objects of a page of resources."""

    def __init__(self, admission: RequestAdmission, guard: Guard, timeout: timedelta) -> None:
        self._admission = admission
        self._faults = TypeFaults(guard)
        self._timeout = timeout.total_seconds()

    def has_list(self, group: CallGroup) -> bool:
        """Whether one list has the objects of the group."""
        return self._list_of(group) is not None

    async def read(
        self,
        pending: Mapping[UUID, StackObservation],
        group: CallGroup,
        call: Call,
        found: Callable[[ObservedList, FoundObjects], Awaitable[Sequence[RecordedResource]]],
        slot: ClaimSlot,
    ) -> ListResult:
        """Read the list of a group page by page, if its endpoint may get requests. found: is called
        for each page, and returns the resources whose objects are not complete. call: about one of
        its resources. slot: of the batch, which waits for each page."""
        admitted = await self._admission.admit(pending, [group])
        if admitted.skipped:
            return ListResult(group, admitted, group.resources, admitted.skipped[0].unknown)
        if not admitted.groups:
            return ListResult(group, admitted, ())
        group.calls = [call]
        left: dict[str, list[RecordedResource]] = {}
        for one in group.resources:
            left.setdefault(one.physical_id, []).append(one)
        if (listed := self._list_of(group)) is None:
            return ListResult(group, admitted, group.resources, NO_ANSWER)
        limit = CallTimeLimit(self._timeout * PAGES_OF_LIST)
        with count_requests(pace=partial(self._admission.pace, group, limit)) as count:
            pages = listed.find(left)
            incomplete: list[RecordedResource] = []

            async def compare(page: FoundObjects) -> None:
                incomplete.extend(await found(listed, page))

            failure = await self._read_pages(pending, group, pages, compare, slot, limit)
        group.requests = max(count.sent, 1)
        missing = [*incomplete, *(one for absent in left.values() for one in absent)]
        return ListResult(group, admitted, missing, failure, listed)

    async def settle(
        self,
        pending: Mapping[UUID, StackObservation],
        result: ListResult,
        outcomes: BatchOutcomes,
    ) -> None:
        """Charge the requests of a list that was read, and judge its endpoint. outcomes: of the
        requests of the batch, with these ones later."""
        if result.listed is not None:
            await self._admission.settle(pending, result.admitted, [result], outcomes)

    def leave_out(
        self,
        pending: Mapping[UUID, StackObservation],
        group: CallGroup,
        resources: Sequence[RecordedResource],
    ) -> None:
        """Leave out resources that `observe_missing` has no observation of."""
        self._admission.leave_out(pending, group, resources)

    def _list_of(self, group: CallGroup) -> ObservedList | None:
        """None also if the type raises an error."""
        try:
            return group.type.observed_list(group.calls[0])
        except Exception as error:
            self._faults.report(group.type, error)
            return None

    async def _read_pages(
        self,
        pending: Mapping[UUID, StackObservation],
        group: CallGroup,
        pages: AsyncIterator[FoundObjects],
        found: Callable[[FoundObjects], Awaitable[None]],
        slot: ClaimSlot,
        limit: CallTimeLimit,
    ) -> Observation | None:
        """Return why the list cannot be read to its end; it need not if no claim holds any more."""
        while pending:
            try:
                async with limit.apply(self._timeout):
                    with slot.waiting():
                        page = await anext(pages, None)
            except TimeoutError:
                pages_of = PAGES_OF_LIST if limit.is_over else 1
                return no_answer_within(self._timeout * pages_of)
            except ListUnreadable as error:
                return error.unknown
            except Exception as error:
                return self._faults.report(group.type, error)
            if page is None:
                break
            await found(page)
        return None

    def compare(
        self, group: CallGroup, listed: ObservedList, call: Call, found: Json
    ) -> Observation | None:
        """Compare an object of the list of a group with a resource; None: it is not complete."""
        try:
            observation = listed.compare(call, found)
            return observation and self._faults.check(group.type, observation)
        except Exception as error:
            return self._faults.report(group.type, error)

    async def observe_missing(
        self, result: ListResult, calls: Sequence[Call], slot: ClaimSlot
    ) -> Mapping[ResourceId, Observation]:
        """The observations of resources whose objects were not found or not complete, without those
        for which the budget has no request. The time limit applies to all calls. A provider that
        has requested fewer requests, or answered none of these calls, gets no more."""
        if result.failure is not None or result.listed is None:
            return {call.resource_id: result.failure or NO_ANSWER for call in calls}
        group, alone = result.group, [one for one in calls if result.listed.reads_alone(one)]
        count_now = await self._admission.admit_further(group, len(alone), group.requests)
        later = {call.resource_id for call in alone[count_now:]}
        calls = [call for call in calls if call.resource_id not in later]
        type_, found, unknown = result.group.type, dict[ResourceId, Observation](), NO_ANSWER
        with count_requests() as count:
            try:
                async with asyncio.timeout(self._timeout):
                    for call in calls:
                        with slot.waiting():
                            observation = await result.listed.observe_missing(call)
                        found[call.resource_id] = self._faults.check(type_, observation)
                        if is_throttled(observation):
                            unknown = result.failure = public_observation(result.group, observation)
                            break
            except TimeoutError:
                late = no_answer_within(self._timeout)
                unknown = result.failure = replace(late, scope=FailureScope.OBJECT)
            except Exception as error:
                unknown = self._faults.report(type_, error)
        usable = any(one.is_usable for one in found.values())
        if found and not usable and result.failure is None:
            first = next(iter(found.values()))
            result.failure = public_observation(result.group, first)
        result.group.requests += count.sent
        return {call.resource_id: found.get(call.resource_id, unknown) for call in calls}
