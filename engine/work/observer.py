"""Observes the physical resources of stacks whose observation is due.

Resources of a page that their type observes together are observed by one call.
A claim is a lease with a fencing number: after a crash, another process observes the stack anew. An
observation only reads, so nothing is lost or done twice.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from inspect import isawaitable
from uuid import UUID, uuid4

import orjson

from engine.errors import NotFound, Unavailable
from engine.hot.expressions.masking import MASK
from engine.loops import Fault, Supervisor, wait_at_most
from engine.store import observations
from engine.store.database import Database
from engine.store.observations import ClaimedStack, ObservedResource, RecordedResource
from engine.types.contract import Call, ResourceType
from engine.types.observation import Difference, Observation
from engine.types.registry import Registry
from engine.types.text_cleaning import replace_nul
from engine.words import Json, ObservedState, ResourceId, StackId
from engine.work.prepare import HIDDEN_REASON

#: Stacks that are observed at the same time, of all projects and of one; calls of types at the same
#: time for each stack.
STACKS, STACKS_OF_PROJECT, CALLS = 8, 2, 10
#: Resources that are read and written at once, and bytes of their large properties and attributes.
PAGE, PAGE_BYTES = 2_000, 4_000_000
#: Time limit for all calls of a page; resources without an answer are then unknown.
PAGE_TIMEOUT = timedelta(minutes=2)
#: Until another process may claim the stack; renewed for each page.
LEASE = timedelta(minutes=3)
#: Until the next attempt after an internal error.
RETRY = timedelta(minutes=1)
#: Seconds for the release of a stack when the process stops.
RELEASE_TIMEOUT = 5
#: Longest time between two looks at the schedule.
POLL = timedelta(seconds=10)
#: Characters of the value of a difference as JSON, and of a reason; longer ones are shortened.
MAX_VALUE, MAX_REASON = 1_000, 1_000

NO_ANSWER = "the type did not report a state of the resource"


class ObservationFault(Exception):
    """A type raised an error. The text is the reason to show."""


@dataclass(slots=True)
class _Group:
    """Resources that one call observes."""

    type: ResourceType
    resources: list[RecordedResource] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


class Observer:
    """One loop. new_id: of the calls of types."""

    def __init__(
        self,
        database: Database,
        registry: Registry,
        *,
        new_id: Callable[[], UUID] = uuid4,
        page_timeout: timedelta = PAGE_TIMEOUT,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._registry = registry
        self._new_id = new_id
        self._page_timeout = page_timeout.total_seconds()
        self._guard = (supervisor or Supervisor()).guard("observer", max_pause=POLL.total_seconds())
        self._wake = asyncio.Event()
        self._running: dict[asyncio.Task[None], ClaimedStack] = {}

    def wake(self) -> None:
        """Look at the schedule: an observation was requested."""
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set and `wake` is called; then release the stacks."""
        async with asyncio.TaskGroup() as group:
            try:
                await self._guard.run(lambda: self._turn(group), stop)
            finally:
                for task in self._running:
                    task.cancel()

    async def _turn(self, group: asyncio.TaskGroup) -> None:
        self._wake.clear()
        while len(self._running) < STACKS and (stack := await self._claim()) is not None:
            task = group.create_task(self._observe_or_release(stack))
            self._running[task] = stack
            task.add_done_callback(self._end)
        poll, due = POLL.total_seconds(), None
        if len(self._running) < STACKS:
            async with self._database.connection() as conn:
                due = await observations.until_next(conn, self._busy_projects())
        seconds = poll if due is None else min(poll, max(due.total_seconds(), 0.01))
        await wait_at_most(self._wake, seconds)

    def _end(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._wake.set()

    async def observe_due(self) -> int:
        """Observe the stacks that are due, one after another; return how many there were."""
        count = 0
        while (stack := await self._claim()) is not None:
            await self._observe_or_release(stack)
            count += 1
        return count

    def _busy_projects(self) -> list[str]:
        """The projects that have as many stacks under way as they may."""
        counts = Counter(stack.project for stack in self._running.values())
        return [project for project, count in counts.items() if count >= STACKS_OF_PROJECT]

    async def _claim(self) -> ClaimedStack | None:
        async with self._database.transaction() as conn:
            claimed = await observations.claim(conn, 1, LEASE, self._busy_projects())
        return claimed[0] if claimed else None

    async def _observe_or_release(self, stack: ClaimedStack) -> None:
        """An error is one of this stack alone. Without the database, the lease expires."""
        try:
            done = await self._guard.attempt(
                self._observe_stack(stack), stack_id=str(stack.stack_id)
            )
            if not isinstance(done, Fault):
                return
        except Unavailable:
            return
        except asyncio.CancelledError:
            await self._release(stack, timedelta(0))
            raise
        await self._release(stack, RETRY)

    async def _release(self, stack: ClaimedStack, until_next: timedelta) -> None:
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(RELEASE_TIMEOUT), self._database.connection() as conn:
                await observations.postpone(conn, stack, until_next)

    async def _observe_stack(self, stack: ClaimedStack) -> None:
        if stack.name is None:
            async with self._database.connection() as conn:
                await observations.forget(conn, stack)
            return
        observable, not_observable = 0, 0
        page = await self._read_page(stack, observations.FIRST)
        while page:
            groups, without_key = self._groups(stack, page)
            observed = await self._observe_groups(groups)
            observable += len(observed)
            not_observable += without_key
            async with self._database.transaction() as conn:
                if not await observations.renew(conn, stack, LEASE):
                    return  # another process observes the stack
                if observed:
                    await observations.write(conn, stack.stack_id, observed)
            page = await self._read_page(stack, page[-1].id)
        async with self._database.connection() as conn:
            await observations.finish(conn, stack, observable, not_observable)

    async def _read_page(self, stack: ClaimedStack, after: UUID) -> list[RecordedResource]:
        async with self._database.connection() as conn:
            return await observations.read_page(conn, stack, after, PAGE, PAGE_BYTES)

    def _groups(
        self, stack: ClaimedStack, page: Sequence[RecordedResource]
    ) -> tuple[list[_Group], int]:
        """The groups of a page, and the number of resources that cannot be observed."""
        groups: dict[tuple[str, str], _Group] = {}
        without_key = 0
        for recorded in page:
            try:
                type_ = self._registry.get(recorded.type)
            except NotFound:  # the plug-in of an earlier process
                without_key += 1
                continue
            call = _call_of(stack, recorded, self._new_id())
            key = self._key(type_, call)
            if key is None:
                without_key += 1
                continue
            group = groups.setdefault((recorded.type, key), _Group(type_))
            group.resources.append(recorded)
            group.calls.append(call)
        return [*groups.values()], without_key

    def _key(self, type_: ResourceType, call: Call) -> str | None:
        """The key of the type; None also if the type raises an error."""
        try:
            return type_.observation_key(call)
        except Exception as error:
            self._guard.report(error, resource_type=type_.schema.name)
            return None

    async def _observe_groups(self, groups: Sequence[_Group]) -> list[ObservedResource]:
        limit, end = (
            asyncio.Semaphore(CALLS),
            asyncio.get_running_loop().time() + self._page_timeout,
        )

        async def observe(group: _Group) -> list[ObservedResource]:
            found: Mapping[ResourceId, Observation] = {}
            reason = NO_ANSWER
            try:
                async with asyncio.timeout_at(end), limit:
                    found = await self._call(group)
            except TimeoutError:
                reason = f"there was no answer within {self._page_timeout:g} s"
            except ObservationFault as fault:
                reason = str(fault)
            unknown = Observation.unknown(reason, reason)
            return [
                _observed(one, found.get(ResourceId(one.id), unknown)) for one in group.resources
            ]

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(observe(group)) for group in groups]
        return [one for task in running for one in task.result()]

    async def _call(self, group: _Group) -> Mapping[ResourceId, Observation]:
        """An error of the type is an internal error of this call alone. Raises ObservationFault."""
        try:
            answer = group.type.observe(group.calls)
            return await answer if isawaitable(answer) else answer
        except Exception as error:
            fault = self._guard.report(error, resource_type=group.type.schema.name)
            raise ObservationFault(str(fault)) from None


def _call_of(stack: ClaimedStack, recorded: RecordedResource, key: UUID) -> Call:
    return Call(
        project=stack.project,
        stack_id=StackId(stack.stack_id),
        stack_name=stack.name or "",
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
    )


def _observed(recorded: RecordedResource, observation: Observation) -> ObservedResource:
    """The row of an observation, without secrets."""
    if observation.state is ObservedState.PRESENT:
        return ObservedResource(recorded.id, recorded.updated_at, None)
    reason = observation.reason
    if recorded.has_secrets:
        reason = observation.public_reason or (HIDDEN_REASON if reason else "")
    return ObservedResource(
        recorded.id,
        recorded.updated_at,
        str(observation.state),
        [_difference(one, masked=recorded.has_secrets) for one in observation.differences],
        replace_nul(reason[:MAX_REASON]),
    )


def _difference(one: Difference, *, masked: bool) -> dict[str, Json]:
    desired, observed = (MASK, MASK) if masked else (one.desired, one.observed)
    return {
        "path": one.path,
        "desired": _shortened(desired),
        "observed": _shortened(replace_nul(observed)),
    }


def _shortened(value: Json) -> Json:
    """The value, or the beginning of its JSON."""
    text = orjson.dumps(value, default=str).decode()
    return value if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}..."
