"""The progress of an operation on a remote stack, and its status reasons. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from engine.types.contract import Call, Done, Failed, Outcome, Stopped, Wait
from engine.types.poll_interval import next_poll
from engine.types.remote_stack.api import RemoteStackId, RemoteStackView
from engine.types.remote_stack.endpoints import Endpoint
from engine.words import Json

#: Maximum number of hooks in a reason.
MOST_HOOKS = 5
#: Maximum number of notified targets of a hook in a reason.
MOST_ASKED = 3


@dataclass(frozen=True, slots=True)
class PollState:
    """The progress of an operation. seen: when the action was last seen in progress. tries: number
    of polls. hooks: whether the endpoint lists waiting hooks. snapshot: the ID of the snapshot in
    progress, or ""."""

    place: RemoteStackId
    seen: datetime
    tries: int = 0
    hooks: bool = True
    snapshot: str = ""

    @classmethod
    def read(cls, progress: Mapping[str, Json]) -> Self:
        return cls(
            RemoteStackId(progress["name"], progress["id"]),
            datetime.fromisoformat(progress["seen"]),
            progress["tries"],
            progress["hooks"],
            progress["snapshot"],
        )

    def to_progress(self) -> dict[str, Json]:
        return {
            "name": self.place.name,
            "id": self.place.id,
            "seen": self.seen.isoformat(),
            "tries": self.tries,
            "hooks": self.hooks,
            "snapshot": self.snapshot,
        }

    def again(
        self,
        now: datetime,
        endpoint: Endpoint,
        reason: str,
        public: str = "the remote stack is not ready",
    ) -> Wait:
        progress = replace(self, tries=self.tries + 1).to_progress()
        wake = next_poll(now, self.tries, endpoint.interval)
        return Wait(wake, progress, reason, public_reason=public)

    def lost(self, now: datetime, endpoint: Endpoint) -> bool:
        """Whether the action was not seen for longer than the endpoint's patience."""
        return now - self.seen > timedelta(seconds=endpoint.patience)


def data_of(place: RemoteStackId) -> dict[str, Json]:
    return {"name": place.name}


def is_about(shown: RemoteStackView, action: str) -> bool:
    """Whether the last action of a stack is the requested one. A create also counts as done if
    another client has since changed the stack."""
    return shown.action == action or (action == "CREATE" and shown.action != "DELETE")


def ended(call: Call, shown: RemoteStackView, endpoint: Endpoint) -> Outcome:
    """The outcome of a remote action that has ended."""
    place, data = shown.place, data_of(shown.place)
    match shown.status:
        case "COMPLETE" if shown.action == "DELETE":
            return Done(None)
        case "COMPLETE":
            return Done(place.id, shown.attributes, data)
        case "STOPPED":
            public = "the remote stack was stopped"
            return Stopped(_failure_reason(shown, endpoint), place.id, data, public_reason=public)
        case _:
            public = "the remote stack failed"
            return Failed(_failure_reason(shown, endpoint), place.id, data, public_reason=public)


def _failure_reason(shown: RemoteStackView, endpoint: Endpoint) -> str:
    what = f"the stack {shown.place.name} at {endpoint.name} is {shown.action}_{shown.status}"
    return f"{what}: {shown.reason}" if shown.reason else what


def under_way(
    shown: RemoteStackView, endpoint: Endpoint, hooks: Sequence[Mapping[str, Json]] | None
) -> str:
    """The reason of a wait. hooks: the waiting hooks of the remote stack."""
    what = f"the stack {shown.place.name} at {endpoint.name} is {shown.action}_{shown.status}"
    named = [_hook(one, endpoint) for one in (hooks or [])[:MOST_HOOKS]]
    more = len(hooks or []) - len(named)
    return "; ".join([what, *named, *([f"and {more} more"] if more > 0 else [])])


def hooks_under_way(endpoint: Endpoint, hooks: Sequence[Mapping[str, Json]] | None) -> str:
    """What is waited for, without text of the remote stack: where its hooks are answered."""
    known = [one.get("id") for one in (hooks or [])[:MOST_HOOKS]]
    urls = [f"{endpoint.url}/hooks/{one}" for one in known if _is_uuid(one)]
    waiting = f"; hooks wait: {', '.join(urls)}" if urls else ""
    return f"the remote stack is not ready{waiting}"


def _is_uuid(value: Json) -> bool:
    try:
        return str(UUID(value)) == value if isinstance(value, str) else False
    except ValueError:
        return False


def _hook(hook: Mapping[str, Json], endpoint: Endpoint) -> str:
    where = hook.get("path") or hook.get("resource_name") or "the stack"
    asked = [str(one.get("target")) for one in (hook.get("asked") or [])[:MOST_ASKED]]
    notified = f"notified: {', '.join(asked)}" if asked else "no subscription was notified"
    return (
        f"its hook {hook.get('id')} waits at {hook.get('point')} of {where}"
        f" until {hook.get('deadline')}, {notified}:"
        f" {endpoint.url}/hooks/{hook.get('id')}"
    )
