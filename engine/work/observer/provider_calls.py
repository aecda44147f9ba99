"""Calls of resource types that observe: resources that a type observes together are one call."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from inspect import isawaitable
from uuid import UUID

from engine.errors import NotFound
from engine.loop_guard import Guard
from engine.store.observer.observations import RecordedResource
from engine.types.contract import Call, ResourceType
from engine.types.observation import Observation, count_requests
from engine.types.regions import name_in_region
from engine.types.registry import TypeRegistry
from engine.words import ResourceId, StackId
from engine.work.claim_loop import ClaimSlot
from engine.work.observer.batch_outcomes import BatchOutcomes
from engine.work.observer.call_groups import CallGroup, CallResult, GroupKey
from engine.work.observer.call_time_limit import CallTimeLimit
from engine.work.observer.endpoint_back_off import Endpoint
from engine.work.observer.observed_rows import recorded_call
from engine.work.observer.request_admission import RequestAdmission, public_observation
from engine.work.observer.stack_observation import StackObservation
from engine.work.observer.type_faults import (
    NO_ANSWER,
    TypeFaults,
    no_answer_within,
    not_sent_within,
)

#: Calls of types at the same time for each batch of stacks.
CALLS = 10


class ProviderCalls:
    """timeout: for all calls of a page; resources without an answer are then unknown. new_id: of
    the calls."""

    def __init__(
        self,
        registry: TypeRegistry,
        admission: RequestAdmission,
        *,
        guard: Guard,
        new_id: Callable[[], UUID],
        timeout: timedelta,
    ) -> None:
        self._registry = registry
        self._admission = admission
        self._guard = guard
        self._faults = TypeFaults(guard)
        self._new_id = new_id
        self._timeout = timeout.total_seconds()

    def group(
        self,
        pending: Mapping[UUID, StackObservation],
        page: Sequence[RecordedResource],
        credential: str,
    ) -> list[CallGroup]:
        """The groups of a page, without the resources that cannot be observed. credential: see
        `Call.observation_credential`."""
        groups: dict[GroupKey, CallGroup] = {}
        for recorded in page:
            progress = pending[recorded.stack_id]
            try:
                type_ = self._registry.get(recorded.type)
            except NotFound:  # the plug-in of an earlier process
                progress.not_observable += 1
                continue
            call = self.call_of(progress, recorded, credential)
            known = self._key(type_, call)
            if known is None:
                progress.not_observable += 1
                continue
            key, url = (recorded.type, known[0]), known[1]
            group = groups.get(key)
            if group is None:
                endpoint = (progress.stack.project, recorded.type, url)
                request = _digest(known[0], recorded)
                group = groups[key] = CallGroup(key, type_, endpoint, request)
            group.resources.append(recorded)
            group.calls.append(call)
        return [*groups.values()]

    def call_of(self, progress: StackObservation, one: RecordedResource, credential: str) -> Call:
        """A call about a resource of the stack."""
        stack = progress.stack
        return recorded_call(
            stack.project, StackId(stack.stack_id), stack.name or "", one, self._new_id(),
            credential, stack.region,
        )  # fmt: skip

    def _key(self, type_: ResourceType, call: Call) -> tuple[str, str] | None:
        """The key and the endpoint of the type; None also if the type raises an error."""
        try:
            key = type_.observation_key(call)
            if key is None:
                return None
            endpoint = type_.observation_endpoint(call)
            return name_in_region(key, call.region), name_in_region(endpoint, call.region)
        except Exception as error:
            self._guard.report(error, resource_type=type_.schema.name)
            return None

    async def call(
        self,
        pending: Mapping[UUID, StackObservation],
        groups: Sequence[CallGroup],
        outcomes: BatchOutcomes,
        slot: ClaimSlot,
    ) -> list[CallResult]:
        """Call the types of the groups that are admitted. outcomes: of the requests of the batch,
        with these ones later. slot: of the batch, which waits for the answers. An endpoint that
        has answered nothing in the batch gets all of the requests only if it answers one of some.
        """
        if not groups:
            return []
        admitted = await self._admission.admit(pending, groups)
        first, others = outcomes.split(admitted.groups)
        with slot.waiting():
            answers = await self._call_all(first)
            answered = {one.group.endpoint for one in answers if others and one.shows_answer}
            answers += await self._call_all([one for one in others if one.endpoint in answered])
        left = [one for one in others if one.endpoint not in answered]
        skipped = self._admission.skip(left, outcomes)
        for one in answers:
            self._admission.leave_out(pending, one.group, one.left_out)
        await self._admission.settle(pending, admitted, answers, outcomes)
        return [*admitted.skipped, *answers, *skipped]

    async def finish(self, outcomes: BatchOutcomes) -> None:
        """Record what the requests of a batch have shown, after the last one."""
        await self._admission.finish(outcomes)

    async def _call_all(self, groups: Sequence[CallGroup]) -> list[CallResult]:
        """Call the types. After a provider has requested fewer requests, its other groups are not
        called."""
        places, begun = asyncio.Semaphore(CALLS), set[CallGroup]()
        limit = CallTimeLimit(self._timeout)
        throttled: dict[Endpoint, Observation] = {}

        async def call(group: CallGroup) -> CallResult:
            try:
                async with limit.apply(), places:
                    if stopped := throttled.get(group.endpoint):
                        return CallResult(group, {}, stopped)
                    begun.add(group)
                    answer = await self._observe(group, limit)
            except TimeoutError:
                late = no_answer_within if group in begun else not_sent_within
                answer = CallResult(group, {}, late(self._timeout))
            if answer.throttling is not None:
                throttled[group.endpoint] = public_observation(group, answer.throttling)
            return answer

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(call(group)) for group in groups]
        return [task.result() for task in running]

    async def _observe(self, group: CallGroup, limit: CallTimeLimit) -> CallResult:
        """An error of the type is an internal error of this call alone, and an observation that
        cannot be stored one of its resource."""
        try:
            with count_requests(
                partial(self._admission.admit_further, group),
                partial(self._admission.pace, group, limit),
            ) as count:
                try:
                    answer = group.type.observe(group.calls)
                    found = await answer if isawaitable(answer) else answer
                finally:
                    group.requests = max(count.sent, 1)
            reported = {
                call.resource_id: self._faults.check(group.type, found[call.resource_id])
                for call in group.calls
                if call.resource_id in found
            }
        except Exception as error:
            return CallResult(group, {}, self._faults.report(group.type, error))
        if not count.is_short:
            return CallResult(group, reported, NO_ANSWER)
        left_out = [one for one in group.resources if ResourceId(one.id) not in found]
        group.resources = [one for one in group.resources if ResourceId(one.id) in found]
        return CallResult(group, reported, NO_ANSWER, left_out)


def _digest(key: str, recorded: RecordedResource) -> str:
    """See `CallGroup.request`. After an operation on a resource with a call of its own, the call is
    another one."""
    own = recorded.updated_at.isoformat() if str(recorded.id) in key else ""
    return hashlib.sha256(f"{key} {own}".encode()).hexdigest()
