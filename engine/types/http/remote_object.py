"""The object that a service created: its data, and the progress of operations on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from engine.types.contract import Call, Done, Outcome, Wait
from engine.types.http.schema import DEFAULT_INTERVAL
from engine.types.poll_interval import next_poll
from engine.words import Json


@dataclass(frozen=True, slots=True)
class RemoteObject:
    """id: None while it is unknown. key: of the operation that created it. unfinished: the previous
    operation failed."""

    id: str | None
    key: str
    outputs: Mapping[str, Json] = field(default_factory=dict, repr=False)
    secrets: Mapping[str, Json] = field(default_factory=dict, repr=False)
    unfinished: bool = False

    @classmethod
    def begun(cls, call: Call) -> Self:
        return cls(None, str(call.operation_key))

    @classmethod
    def read(cls, kept: Mapping[str, Json], physical_id: str | None, key: str) -> Self:
        """Read the object from a resource's data. key: for an adopted object."""
        return cls(
            physical_id,
            kept.get("key") or key,
            kept.get("outputs") or {},
            kept.get("secrets") or {},
            bool(kept.get("unfinished")),
        )

    def data(self, *, unfinished: bool = False) -> dict[str, Json]:
        return {
            "key": self.key,
            "outputs": self.outputs,
            "secrets": self.secrets,
            "unfinished": unfinished,
        }

    def values(self) -> dict[str, Json]:
        """The values of the placeholders."""
        return {
            "id": self.id,
            "key": self.key,
            **{f"outputs.{name}": value for name, value in self.outputs.items()},
            **{f"secrets.{name}": value for name, value in self.secrets.items()},
        }

    def done(self, reason: str = "") -> Done:
        attributes = {"outputs": self.outputs, "secrets": self.secrets}
        return Done(self.id, attributes, self.data(), reason)


def object_of(call: Call) -> RemoteObject:
    if call.progress is not None:
        return object_in_progress(call)
    return RemoteObject.read(call.data, call.physical_id, str(call.operation_key))


def object_in_progress(call: Call) -> RemoteObject:
    made = (call.progress or {})["made"]
    return RemoteObject.read(made, made["id"], made["key"])


def since_of(call: Call) -> datetime:
    since = (call.progress or {}).get("since")
    return datetime.fromisoformat(since) if since else call.now


def then_read(call: Call, made: RemoteObject) -> Outcome:
    """Save the object before the next request."""
    return Wait(call.now, progress_of(made)) if call.properties.get("read") else made.done()


def poll_again(
    call: Call, made: RemoteObject, since: datetime, reason: str, *, public: str
) -> Wait:
    tries = (call.progress or {}).get("tries", 0)
    longest = float(call.properties.get("interval") or DEFAULT_INTERVAL)
    progress = {**progress_of(made), "since": since.isoformat(), "tries": tries + 1}
    return Wait(next_poll(call.now, tries, longest), progress, reason, public_reason=public)


def progress_of(made: RemoteObject) -> dict[str, Json]:
    return {"made": {"id": made.id, **made.data()}}
