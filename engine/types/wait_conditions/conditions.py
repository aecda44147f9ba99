"""Wait conditions: resources that complete when a handle has received enough signals."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

import orjson

from engine.errors import Findings, Invalid
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, InternalType, Outcome, Wait
from engine.types.http_client import ServiceError
from engine.types.object_signals import (
    MESSAGES,
    NO_SERVICES,
    ObjectSignals,
    ReceivesObjects,
    SignalServices,
    Uploads,
    contents_of,
    kept_messages,
    messages_data,
    object_of,
    owner_of,
    parse_body,
)
from engine.types.signal_urls import resource_of
from engine.types.wait_conditions.handles import (
    FAILURE,
    NO_SIGNAL,
    SUCCESS,
    SWIFT,
    LatestSignals,
    read_signal,
)
from engine.words import Json

#: In the progress: the end of the wait, and the number of signals that came to Headgate.
_UNTIL, _SENT = "until", "sent"
#: Twelve hours, in seconds.
MAX_TIMEOUT = 43_200


@dataclass(frozen=True, slots=True)
class ConditionNames:
    """The differences between the types. handles: the accepted types of handles. called: the name
    in failure reasons. max_count: the maximum count; None: unlimited."""

    name: str
    handle: str
    timeout: str
    count: str
    data: str
    handles: tuple[str, ...]
    called: str = "WaitCondition"
    seconds: Kind = Kind.NUMBER
    max_count: int | None = None
    restarts_count: bool = True


_SIGNED = ("AWS::CloudFormation::WaitConditionHandle", "OS::Heat::UpdateWaitConditionHandle")
CONDITIONS = (
    ConditionNames(
        "OS::Heat::WaitCondition", "handle", "timeout", "count", "data",
        ("OS::Heat::WaitConditionHandle", *_SIGNED),
    ),
    ConditionNames(
        "AWS::CloudFormation::WaitCondition", "Handle", "Timeout", "Count", "Data", _SIGNED,
        seconds=Kind.INTEGER,
    ),
    ConditionNames(
        "OS::Heat::SwiftSignal", "handle", "timeout", "count", "data",
        ("OS::Heat::SwiftSignalHandle",), "SwiftSignal", max_count=1_000, restarts_count=False,
    ),
)  # fmt: skip


def _schema(words: ConditionNames) -> TypeSchema:
    return TypeSchema(
        words.name,
        description=f"Waits for a number of signals to {' or '.join(words.handles)}.",
        properties={
            words.handle: Property(
                Kind.STRING, "The handle: its value of get_resource.", required=True
            ),
            words.timeout: Property(
                words.seconds,
                "Timeout in seconds.",
                required=True,
                constraints=(Constraint("range", min=1, max=MAX_TIMEOUT),),
            ),
            words.count: Property(
                Kind.INTEGER,
                "Number of SUCCESS signals to wait for.",
                default=1,
                update_allowed=words.restarts_count,
                constraints=(Constraint("range", min=1, max=words.max_count),),
            ),
        },
        attributes={
            words.data: Attribute(
                Kind.STRING, "The data of the signals by ID, as JSON.", public=True
            )
        },
    )


class WaitCondition(ReceivesObjects, InternalType):
    """The timeout starts with the operation; its end is in the progress."""

    supersedable = True

    def __init__(self, words: ConditionNames, services: SignalServices = NO_SERVICES) -> None:
        self._words = words
        self.schema = _schema(words)
        self.services = services
        self.uses_credential = services.swift is not None

    def needs_credential(self, call: Call) -> bool:
        """Only a wait for an object reads it; the first call begins the wait."""
        _, service = self._source_of(call)
        return service is not None and service.needs_credential and bool(call.progress)

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        handle = call.properties[self._words.handle]
        if handle == NO_SIGNAL:
            return self._done(call, LatestSignals(()))
        if not call.progress:
            return self._start(call)
        if call.signal_resource_type not in self._words.handles:
            return _failed(self._no_handle())
        name, service = self._source_of(call)
        if service is not None:
            return self._receive(call, service, name)
        return self._evaluate(call, LatestSignals(call.signals))

    def update(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Wait again, for the new count; earlier signals count."""
        return self.create(call)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        handle = properties.get(self._words.handle)
        if isinstance(handle, str) and handle != NO_SIGNAL and _handle_of(handle) is None:
            findings.add(f"{place}.{self._words.handle}", *self._wrong_handle())

    def _start(self, call: Call) -> Outcome:
        """Wait for the handle; called again at once with the signals that it already has."""
        handle = _handle_of(call.properties[self._words.handle], call.stack_id)
        if handle is None:
            return _failed(self._no_handle())
        until = call.now + timedelta(seconds=call.properties[self._words.timeout])
        return Wait(call.now, {_UNTIL: until.isoformat()}, signal_resource_id=handle)

    def _source_of(self, call: Call) -> tuple[str, ObjectSignals | None]:
        """(object of the handle, service that has it); None: its signals come to Headgate."""
        handle = call.properties.get(self._words.handle)
        name = object_of(handle) if isinstance(handle, str) else None
        return (name, self.services.by_name(name)) if name is not None else ("", None)

    async def _receive(self, call: Call, objects: ObjectSignals, name: str) -> Outcome:
        """Read the signals of the object of the handle, in addition to those that came to Headgate.
        While the service does not respond, they are only late."""
        progress, until = call.progress or {}, _end_of(call)
        handle, late = owner_of(name), f"no further signal came through {objects.service} yet"
        if len(call.signals) == progress.get(_SENT):
            waits = await self.next_wait(call, name, until, late)
            if waits is not None:
                return replace(waits, signal_resource_id=handle)
        error = None
        before = kept_messages(call, name)
        uploaded = Uploads(contents_of(before), kept=before)
        try:
            uploaded = await objects.read(call, name)
        except ServiceError as raised:
            error = raised
        read = [_signal_of(body, number) for number, body in enumerate(uploaded.contents, 1)]
        signals = LatestSignals([*call.signals, *read])
        outcome = self._evaluate(call, signals, error, uploaded.excess)
        if isinstance(outcome, Done | Failed):
            # Also after a failure: the messages may expire before the next change waits again.
            return replace(outcome, data=messages_data(uploaded, name))
        if not isinstance(outcome, Wait):
            return outcome
        messages = {MESSAGES: list(uploaded.kept)} if uploaded.kept else {}
        kept = {_UNTIL: progress[_UNTIL], _SENT: len(call.signals), **messages}
        known = len(uploaded.contents) if error is None else None
        reason = late if error is None else error.public
        waits = await self.wait_for_object(call, name, known, kept, until, reason)
        return replace(waits, signal_resource_id=handle)

    def _evaluate(
        self,
        call: Call,
        signals: LatestSignals,
        error: ServiceError | None = None,
        excess: str = "",
    ) -> Outcome:
        """error: why further signals cannot be read now. excess: why they are never read."""
        words, wanted = self._words, call.properties[self._words.count]
        if failures := signals.reasons(FAILURE):
            return _failed(f"{words.called}Failure: {';'.join(failures)}")
        if len(signals) >= wanted:
            return self._done(call, signals)
        if excess:
            return _failed(f"{words.called}Failure: {excess}")
        if call.superseded:
            return _failed("the change ended before the signals arrived")
        until = _end_of(call)
        if call.now < until:
            handle = _handle_of(call.properties[words.handle])
            return Wait(until, call.progress, signal_resource_id=handle)
        received = "".join(
            f" - {';'.join(reasons)}" for reasons in [signals.reasons(SUCCESS)] if reasons
        )
        why = f". The signals cannot be read: {error.public}" if error is not None else ""
        return _failed(f"{words.called}Timeout: {len(signals)} of {wanted} received{received}{why}")

    def _done(self, call: Call, signals: LatestSignals) -> Done:
        data = orjson.dumps(signals.data()).decode()
        return Done(str(call.resource_id), {self._words.data: data})

    def _no_handle(self) -> str:
        return " ".join(self._wrong_handle())

    def _wrong_handle(self) -> tuple[str, str]:
        """(reason, remedy). The value of a handle may be a secret, so it is not included."""
        kinds = " or ".join(self._words.handles)
        reason = "this is not a valid wait condition handle."
        return reason, f"Use {{get_resource: NAME}} of a resource of this stack of type {kinds}."


def _end_of(call: Call) -> datetime:
    return datetime.fromisoformat((call.progress or {})[_UNTIL])


def _handle_of(text: str, stack_id: UUID | None = None) -> UUID | None:
    """The ID of the handle that a value of get_resource names; None for other texts.

    stack_id: None is also returned for a handle of another stack.
    """
    if (name := object_of(text)) is not None:
        return owner_of(name) if object_of(text, stack_id) else None
    return resource_of(text, stack_id)


def _signal_of(body: bytes | None, number: int) -> dict[str, Json]:
    """An uploaded signal. An invalid one is a failure, because its sender has no other response."""
    fields = parse_body(body)
    try:
        if not isinstance(fields, str):
            return read_signal(fields, SWIFT, number)
        wrong = fields
    except Invalid as error:
        wrong = str(error)
    reason = f"signal {number} is invalid: {wrong}"
    return {"id": str(number), "status": FAILURE, "reason": reason, "data": None}


def _failed(reason: str) -> Failed:
    """Failed with a reason that is public: own texts, and the reasons of signals, which are not
    secret."""
    return Failed(reason, public_reason=reason)
