"""What all operations on objects of OpenStack do alike: errors become outcomes, waits are polls, or
waits for the observer."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from engine.errors import HeadgateError, Unavailable
from engine.types.completion import AcceptedOperation
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType, Wait
from engine.types.observation import Observation
from engine.types.observed_list import ListUnreadable, ObservedList
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.service_errors import CloudError
from engine.types.operation_outcomes import CANCELLED, next_poll
from engine.types.regions import name_in_region, region_definition
from engine.words import Json, ObservedState

#: Seconds of the longest pause between two polls of an object.
MAX_PAUSE: Final = 5.0
#: Times, one after the other, that an operation waits as long as a service asks for, before it
#: fails.
MAX_BUSY: Final = 20
#: Seconds between two lists of objects by the observer, at most.
OBSERVER_PAUSE: Final = 5.0
#: Seconds until an operation that waits for the observer reads its object itself.
READ_PAUSE: Final = 30.0
#: Seconds until an operation reads an object again that is not as it will be.
READ_AGAIN: Final = 1.0
#: In the progress of an operation that waits for the observer: when it reads its object itself.
_READ_AT: Final = "read_at"
_BUSY, _TRIES = "busy", "tries"


class ObjectProgress(StrEnum):
    """How far an object has come on the way to the state that an operation waits for."""

    READY = "ready"
    PENDING = "pending"
    BROKEN = "broken"


async def run_guarded(
    call: Call,
    run: Callable[[], Awaitable[Outcome]],
    physical_id: str | None,
    data: Mapping[str, Json] | None = None,
) -> Outcome:
    """Run one call of an operation, and turn an error of a service into its outcome.

    A service that says how long it is busy is asked again after that time. physical_id, data: of
    the object, for a failure.
    """
    try:
        return await run()
    except CloudError as error:
        return outcome_of_error(call, error, physical_id, call.data if data is None else data)


def outcome_of_error(
    call: Call, error: CloudError, physical_id: str | None, data: Mapping[str, Json]
) -> Wait | Failed:
    """Wait for the time that a busy service asks for, a limited number of times, else Failed.

    physical_id, data: of the object, for a failure.
    """
    progress = dict(call.progress or {})
    busy = progress.get(_BUSY, 0)
    if error.retry and error.retry_after and busy < MAX_BUSY and not call.cancelled:
        until = call.now + timedelta(seconds=error.retry_after)
        return Wait(until, {**progress, _BUSY: busy + 1}, str(error), public_reason=error.public)
    return Failed(str(error), physical_id, data, error.retry, public_reason=error.public)


def poll(
    call: Call, progress: Mapping[str, Json], reason: str, public: str = "the object is not ready"
) -> Wait:
    """Wait until the next poll: the pauses grow from 0.2 to 5 s. An operation that waits for the
    observer polls less often. The service has answered: it is no longer busy."""
    tries = (call.progress or {}).get(_TRIES, 0)
    kept = {name: value for name, value in progress.items() if name != _BUSY}
    if _READ_AT in kept:
        return _read_later(call, kept, reason, public)
    when = next_poll(call.now, tries, MAX_PAUSE)
    return Wait(when, {**kept, _TRIES: tries + 1}, reason, public_reason=public)


def proceed(call: Call, progress: Mapping[str, Json], reason: str = "") -> Wait:
    """Save the progress and continue at once; the next poll is the first one again."""
    kept = {name: value for name, value in progress.items() if name not in (_READ_AT, _BUSY)}
    return Wait(call.now, {**kept, _TRIES: 0}, reason)


def read_again(call: Call, progress: Mapping[str, Json], reason: str, public: str) -> Wait:
    """Save the progress and read the object itself again after READ_AGAIN."""
    kept = proceed(call, progress).progress
    until = call.now + timedelta(seconds=READ_AGAIN)
    return Wait(until, kept, reason, public_reason=public)


def _read_later(call: Call, progress: Mapping[str, Json], reason: str, public: str) -> Wait:
    until = call.now + timedelta(seconds=READ_PAUSE)
    return Wait(until, {**progress, _READ_AT: until.isoformat()}, reason, public_reason=public)


def cancellation(physical_id: str | None, data: Mapping[str, Json]) -> Failed:
    """The failure of a cancelled operation, with the object that may exist."""
    return Failed(CANCELLED, physical_id, data, public_reason=CANCELLED)


def would_wait(call: Call, outcome: Outcome) -> bool:
    """Whether an operation waits for a time or a signal; false if it continues at once."""
    return isinstance(outcome, Wait) and (outcome.until is None or outcome.until > call.now)


def unknown_state(error: CloudError) -> Observation:
    """The observation of a resource whose object could not be read."""
    return Observation.unknown(str(error), error.public, error.throttled, error.scope)


def observed_list(
    read_pages: Callable[[], AsyncIterator[Sequence[Mapping[str, Json]]]],
    compare: Callable[[Call, Mapping[str, Json]], Observation],
    missing: str,
    *,
    id_of: Callable[[Mapping[str, Json]], str] = lambda one: str(one.get("id")),
    find: Callable[[Call], Awaitable[Mapping[str, Json] | None]] | None = None,
    unknown: Callable[[CloudError], Observation] = unknown_state,
) -> ObservedList:
    """The objects of a list of a service.

    read_pages: raises CloudError. missing: the reason of a missing object. find: reads an object
    that the list may leave out; None if it does not exist; raises CloudError. Without it, the list
    is read twice until an object is missing. unknown: the observation after an error.
    """
    gone = Observation(ObservedState.MISSING, (), missing, missing)

    async def pages() -> AsyncIterator[Iterable[tuple[str, Json]]]:
        try:
            async for page in read_pages():
                yield [(id_of(one), one) for one in page]
        except CloudError as error:
            raise ListUnreadable(unknown(error)) from None

    if find is None:
        return ObservedList(pages, compare, lambda _: gone, reads_alone=lambda _: False)

    async def observe_alone(call: Call) -> Observation:
        try:
            alone = await find(call)
            # An adopted object may be known by its name.
            if alone is not None and call.physical_id not in (id_of(alone), alone.get("name")):
                reason = "the service answered with another object"
                raise CloudError(reason, public=reason)
        except CloudError as error:
            return unknown(error)
        return gone if alone is None else compare(call, alone)

    def compare_listed(call: Call, one: Mapping[str, Json]) -> Observation | None:
        observation = compare(call, one)
        return None if observation.incomplete else observation

    return ObservedList(pages, compare_listed, observe_alone, reads=1)


async def wait_for_observer(
    type_: ResourceType,
    cloud: Cloud,
    call: Call,
    key: str,
    object_id: str,
    reason: str,
    definition: Mapping[str, Json],
) -> Wait | None:
    """Wait until the observer finds the object of an operation complete in a list.

    None: the operation reads the object itself, because the observer has found it, has not found it
    for a while, or does not exist. The reader may see more of the object than the requester, so
    what it has read is not used. key: of the list. definition: for `ResourceType.read_objects`.
    """
    if type_.completions is None or not cloud.has_reader:
        return None
    progress = dict(call.progress or {})
    accepted = AcceptedOperation(
        call.project,
        call.stack_id,
        call.operation_key,
        type_.schema.name,
        name_in_region(key, call.region),
        object_id,
        {**definition, **region_definition(call.region)},
        OBSERVER_PAUSE,
    )
    try:
        found = await type_.completions.wait(accepted)
    except Unavailable:
        return poll(call, progress, "the database is not available")
    except HeadgateError:
        return None
    if found is not None:
        return None
    if _READ_AT not in progress:
        return _read_later(call, progress, reason, reason)
    until = datetime.fromisoformat(progress[_READ_AT])
    return None if until <= call.now else Wait(until, progress, reason, public_reason=reason)


async def keep_for_successor(type_: ResourceType, call: Call) -> Outcome | None:
    """The outcome of a delete that deletes nothing, because the resource that has replaced this one
    has the same object: the template chooses its ID. None: it has another object."""
    if type_.successors is None or call.physical_id is None:
        return None
    try:
        found = await type_.successors.read(call.stack_id, call.resource_id)
    except HeadgateError as error:
        public = "the resource that has replaced this one cannot be read"
        reason = f"{public}: {error}"
        return Failed(reason, call.physical_id, call.data, retry=True, public_reason=public)
    if found is None:
        return None
    reason = "the resource that has replaced it is the same object"
    return Done(None, reason=reason, public_reason=reason)


class CloudType(ResourceType):
    """A type whose operations are code of its own, not an `ObjectRow`.

    Its methods `_delete` and `_check` are one call of these operations. They raise CloudError.
    template_ids: the template may choose the physical ID.
    """

    template_ids = False

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def wait_for_observer(
        self, call: Call, key: str, object_id: str, reason: str
    ) -> Wait | None:
        return await wait_for_observer(self, self._cloud, call, key, object_id, reason, {})

    async def delete(self, call: Call) -> Outcome:
        if self.template_ids and (kept := await keep_for_successor(self, call)) is not None:
            return kept
        return await run_guarded(call, lambda: self._delete(call), call.physical_id)

    async def check(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._check(call), call.physical_id)

    @abstractmethod
    async def _delete(self, call: Call) -> Outcome: ...

    @abstractmethod
    async def _check(self, call: Call) -> Outcome: ...
