"""Signals that a server sends to another service, so that it needs no connection to Headgate: it
uploads them with a signed URL to an object of Swift, or posts them to a queue of Zaqar with
credentials of its own.

The types use the port `ObjectSignals`; engine/types/openstack/swift/signal_objects.py and
engine/types/openstack/zaqar/signal_queues.py implement it. An operation that waits calls
`next_wait` first, and reads the signals if it returns None. Messages of a queue expire, so the
operation keeps those that it has read (`Uploads.kept`).
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

import orjson

from engine.errors import HeadgateError
from engine.types.completion import AcceptedOperation
from engine.types.contract import Call, ResourceType, Wait
from engine.types.operation_outcomes import next_poll
from engine.types.regions import listed_region, name_in_region, region_definition
from engine.words import Json

TEMP_URL: Final = "TEMP_URL_SIGNAL"
ZAQAR: Final = "ZAQAR_SIGNAL"
#: Bytes of the longest signal.
MAX_BYTES: Final = 65_536
#: Seconds between two lists of the observer, at most.
OBSERVER_PAUSE: Final = 5.0
#: Seconds between two reads by the operation itself: with the observer, and without it at most.
READ_PAUSE, POLL_PAUSE = 30.0, 5.0
#: What the name of a signal object begins with, and that of a queue.
PREFIX: Final = "headgate-signal-"
QUEUE_PREFIX: Final = "headgate-queue-"
_NAME = re.compile(
    rf"(?:{PREFIX}|{QUEUE_PREFIX})(?P<stack>[0-9a-f]{{32}})-(?P<resource>[0-9a-f]{{32}})"
    r"-(?P<operation>[0-9a-f]{32})(?![0-9a-f])"
)
#: In the progress and in the data of a resource: the messages that it has read (`Uploads.kept`).
MESSAGES: Final = "messages"
#: In the data beside the messages: the name of their object. A replacement may have another one.
_SOURCE: Final = "messages_of"
#: In the progress of a waiting operation: the number of signals that it has read, when it reads
#: again, and how often it has read without finding a new one.
_KNOWN, _READ_AT, _TRIES = "known", "read_at", "tries"


#: What the operator can do if a transport that uses Zaqar is refused.
OPERATOR_REMEDY: Final = "The operator can set [resource_types.openstack.stack_users]."
#: Why a resource cannot be deleted while Headgate does not use Zaqar, and what the operator can do.
LEFT_BEHIND: Final = (
    "The resource has a user of Keystone and a queue of Zaqar, which Headgate cannot delete without"
    " [resource_types.openstack.stack_users]. The operator must set it until all these resources"
    " are deleted."
)


@dataclass(frozen=True, slots=True)
class SignalObject:
    """url: accepts PUT without further credentials. It is a secret. credentials: of a queue, in its
    place: a user of Keystone, and the name of the queue, by the names that agents expect."""

    name: str
    url: str = field(default="", repr=False)
    credentials: Mapping[str, Json] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Uploads:
    """What was uploaded to an object. contents: the oldest first; None for what is longer than
    `MAX_BYTES`. excess: why later ones are not read, and what to do; "" if all were read. kept: the
    messages, [ID, content or None], that the operation keeps in `MESSAGES`, because they expire."""

    contents: Sequence[bytes | None] = ()
    excess: str = ""
    kept: Sequence[Json] = ()


class ObjectSignals(Protocol):
    """The methods raise ServiceError. service: its name, for messages."""

    @property
    def service(self) -> str: ...

    @property
    def needs_credential(self) -> bool:
        """Whether the methods act with `Call.credential`."""

    @property
    def has_observer(self) -> bool:
        """Whether the observer can list the objects of all projects."""

    async def is_available(self, call: Call) -> bool:
        """Whether the region of the stack has the service."""

    async def create(self, call: Call) -> SignalObject:
        """Create the object of the operation; another call of the operation returns the same."""

    async def read(self, call: Call, name: str) -> Uploads:
        """What was uploaded to an object, up to a limit."""

    async def remove(self, call: Call, *, keep: str = "") -> None:
        """Delete the objects of a resource, with all that was uploaded, except `keep`."""

    def list_all(self, project: str, region: str) -> AsyncIterator[Mapping[str, Json]]:
        """`ResourceType.read_objects` for the signals of a project in a region: `number_of` of each
        signal."""

    @property
    def endpoint(self) -> str:
        """The service, as `ResourceType.objects_endpoint` names it."""


@dataclass(frozen=True, slots=True)
class SignalServices:
    """The services to which servers can send signals. None: Headgate does not use it."""

    swift: ObjectSignals | None = None
    zaqar: ObjectSignals | None = None

    def by_transport(self, transport: Json) -> ObjectSignals | None:
        """The service of a transport; None: it needs none, or there is none."""
        return {TEMP_URL: self.swift, ZAQAR: self.zaqar}.get(str(transport))

    def by_name(self, name: str) -> ObjectSignals | None:
        """The service with the object of this name."""
        return self.zaqar if name.startswith(QUEUE_PREFIX) else self.swift

    @property
    def transports(self) -> frozenset[str]:
        """The transports that can be used."""
        known = {TEMP_URL: self.swift, ZAQAR: self.zaqar}
        return frozenset(name for name, service in known.items() if service is not None)


NO_SERVICES: Final = SignalServices()


def object_name(call: Call, transport: str = TEMP_URL) -> str:
    """The name of the object of an operation. A replacement has another one."""
    return f"{resource_prefix(call, transport)}{call.operation_key.hex}"


def resource_prefix(call: Call, transport: str = TEMP_URL) -> str:
    """What the names of all objects of a resource begin with."""
    prefix = QUEUE_PREFIX if transport == ZAQAR else PREFIX
    return f"{prefix}{call.stack_id.hex}-{call.resource_id.hex}-"


def ids_of(name: str) -> tuple[UUID, UUID, UUID]:
    """The IDs of the stack, of the resource and of the operation of an object. Raises
    ValueError."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise ValueError(name)
    return UUID(found["stack"]), UUID(found["resource"]), UUID(found["operation"])


def object_of(text: str, stack_id: UUID | None = None) -> str | None:
    """The name of the object in its URL or in another text; None for other texts.

    stack_id: None is also returned for an object of another stack.
    """
    found = _NAME.search(text)
    if found is None or (stack_id is not None and found["stack"] != stack_id.hex):
        return None
    return found[0]


def owner_of(name: str) -> UUID:
    """The ID of the resource of an object."""
    return ids_of(name)[1]


def number_of(name: str, number: int) -> str:
    """The ID, for the observer, of the signal with this number to an object."""
    return f"{name}#{number}"


def kept_messages(call: Call, name: str) -> Sequence[Json]:
    """The messages to this object that the operation or an earlier one has read, as
    `Uploads.kept`: also one of the resource that this one replaces, which may have ended early."""
    progress = call.progress if isinstance(call.progress, Mapping) else {}
    former = call.replaced_data if call.replaced_data.get(_SOURCE) == name else {}
    return progress.get(MESSAGES) or call.data.get(MESSAGES) or former.get(MESSAGES) or ()


def messages_data(uploaded: Uploads, name: str) -> dict[str, Json]:
    """What the data of a resource have of the messages to this object, for its next operation."""
    return {MESSAGES: list(uploaded.kept), _SOURCE: name} if uploaded.kept else {}


def contents_of(kept: Sequence[Json]) -> list[bytes | None]:
    """`Uploads.contents` of kept messages."""
    return [None if content is None else str(content).encode() for _, content in kept]


def parse_body(body: bytes | None) -> Mapping[str, Json] | str:
    """The fields of an uploaded signal, none for an empty body; or the reason why it is invalid."""
    if body is None:
        return f"it is longer than {MAX_BYTES} bytes"
    if not body.strip():
        return {}
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return "it is not valid JSON"
    return found if isinstance(found, dict) else "it is not a JSON object"


class ReceivesObjects(ResourceType):
    """A type whose operations may wait for signals that are objects."""

    services: SignalServices = NO_SERVICES

    async def read_objects(
        self, project: str, definition: Mapping[str, Json]
    ) -> AsyncIterator[Mapping[str, Json]]:
        if self.services.swift is not None:
            async for page in self.services.swift.list_all(project, listed_region(definition)):
                yield page

    def objects_endpoint(self, definition: Mapping[str, Json]) -> str:
        return self.services.swift.endpoint if self.services.swift is not None else ""

    def is_complete(self, definition: Mapping[str, Json], found: Json) -> bool:
        return True

    async def next_wait(
        self, call: Call, name: str, until: datetime | None, reason: str
    ) -> Wait | None:
        """Wait on, because there is no reason to read the object. until: the end of the wait."""
        progress = call.progress or {}
        if _READ_AT not in progress or call.superseded or call.cancelled:
            return None
        read_at = datetime.fromisoformat(progress[_READ_AT])
        end = read_at if until is None else min(read_at, until)
        if call.now >= end or await self._has_signal(call, name, progress[_KNOWN] + 1):
            return None
        return Wait(end, progress, reason, public_reason=reason)

    async def wait_for_object(
        self,
        call: Call,
        name: str,
        known: int | None,
        progress: Mapping[str, Json],
        until: datetime | None,
        reason: str,
    ) -> Wait:
        """Wait for the next signal to an object. known: the number of signals that were read; None:
        they cannot be read now."""
        last = call.progress or {}
        kept = last.get(_KNOWN, 0) if known is None else known
        tries = last.get(_TRIES, 0) + 1 if kept == last.get(_KNOWN) else 0
        woken = _READ_AT in last and call.now < datetime.fromisoformat(last[_READ_AT])
        observed = self._is_observed(name) and known is not None and (tries == 0 or not woken)
        if observed:
            read_at = call.now + timedelta(seconds=READ_PAUSE)
            if await self._has_signal(call, name, kept + 1):
                read_at = call.now
        else:
            read_at = next_poll(call.now, tries, POLL_PAUSE)
        waits = {**progress, _KNOWN: kept, _READ_AT: read_at.isoformat(), _TRIES: tries}
        end = read_at if until is None else min(read_at, until)
        return Wait(end, waits, reason, public_reason=reason)

    def _is_observed(self, name: str) -> bool:
        service = self.services.by_name(name)
        return self.completions is not None and service is not None and service.has_observer

    async def _has_signal(self, call: Call, name: str, number: int) -> bool:
        """Whether the observer has found this signal; if not, it looks for it. False without an
        observer."""
        if not self._is_observed(name) or self.completions is None:
            return False
        accepted = AcceptedOperation(
            call.project,
            call.stack_id,
            call.operation_key,
            self.schema.name,
            name_in_region("signals", call.region),
            number_of(name, number),
            region_definition(call.region),
            OBSERVER_PAUSE,
        )
        try:
            return await self.completions.wait(accepted) is not None
        except HeadgateError:
            return False  # the operation reads the object itself after a while
