"""Wait conditions: resources that complete when a handle has received enough signals."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson

from engine.errors import Findings
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, InternalType, Outcome, Wait
from engine.types.signal_urls import resource_of
from engine.types.wait_conditions.handles import FAILURE, NO_SIGNAL, SUCCESS, LatestSignals
from engine.words import Json

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


class WaitCondition(InternalType):
    """The timeout starts with the operation; its end is in the progress."""

    supersedable = True

    def __init__(self, words: ConditionNames) -> None:
        self._words = words
        self.schema = _schema(words)

    def create(self, call: Call) -> Outcome:
        if call.properties[self._words.handle] == NO_SIGNAL:
            return self._done(call, LatestSignals(()))
        if not call.progress:
            return self._start(call)
        if call.signal_resource_type not in self._words.handles:
            return _failed(self._no_handle())
        return self._evaluate(call, LatestSignals(call.signals))

    def update(self, call: Call) -> Outcome:
        """Wait again, for the new count; earlier signals count."""
        return self.create(call)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        handle = properties.get(self._words.handle)
        if isinstance(handle, str) and handle != NO_SIGNAL and resource_of(handle) is None:
            findings.add(f"{place}.{self._words.handle}", *self._wrong_handle())

    def _start(self, call: Call) -> Outcome:
        """Wait for the handle; called again at once with the signals that it already has."""
        handle = resource_of(call.properties[self._words.handle], call.stack_id)
        if handle is None:
            return _failed(self._no_handle())
        until = call.now + timedelta(seconds=call.properties[self._words.timeout])
        return Wait(call.now, {"until": until.isoformat()}, signal_resource_id=handle)

    def _evaluate(self, call: Call, signals: LatestSignals) -> Outcome:
        words, wanted = self._words, call.properties[self._words.count]
        if failures := signals.reasons(FAILURE):
            return _failed(f"{words.called}Failure: {';'.join(failures)}")
        if len(signals) >= wanted:
            return self._done(call, signals)
        if call.superseded:
            return _failed("the change ended before the signals arrived")
        progress = call.progress or {}
        until = datetime.fromisoformat(progress["until"])
        if call.now < until:
            return Wait(
                until, progress, signal_resource_id=resource_of(call.properties[words.handle])
            )
        received = "".join(
            f" - {';'.join(reasons)}" for reasons in [signals.reasons(SUCCESS)] if reasons
        )
        return _failed(f"{words.called}Timeout: {len(signals)} of {wanted} received{received}")

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


def _failed(reason: str) -> Failed:
    """Failed with a reason that is public: own texts, and the reasons of signals, which are not
    secret."""
    return Failed(reason, public_reason=reason)
