"""PollState for a stack at another endpoint, and what people read of it meanwhile. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

from engine.types.contract import Call, Done, Failed, Outcome, Stopped, Wait
from engine.types.poll_interval import next_poll
from engine.types.remote_stack.api import RemoteStackId, RemoteStackView
from engine.types.remote_stack.endpoints import Endpoint
from engine.words import Json

#: So many of its hooks are named.
MOST_HOOKS = 5
#: So many of those who were asked.
MOST_ASKED = 3


@dataclass(frozen=True, slots=True)
class PollState:
    """How far an operation has come. seen: when what was asked for was last seen under way. tries:
    how often it was looked. hooks: whether the endpoint tells of waiting hooks. snapshot: the id of
    the one that is being made; ""."""

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

    def written(self) -> dict[str, Json]:
        return {
            "name": self.place.name,
            "id": self.place.id,
            "seen": self.seen.isoformat(),
            "tries": self.tries,
            "hooks": self.hooks,
            "snapshot": self.snapshot,
        }

    def again(self, now: datetime, endpoint: Endpoint, reason: str) -> Wait:
        progress = replace(self, tries=self.tries + 1).written()
        return Wait(next_poll(now, self.tries, endpoint.interval), progress, reason)

    def lost(self, now: datetime, endpoint: Endpoint) -> bool:
        """Whether it was out of sight for longer than one waits."""
        return now - self.seen > timedelta(seconds=endpoint.patience)


def data_of(place: RemoteStackId) -> dict[str, Json]:
    return {"name": place.name}


def is_about(shown: RemoteStackView, action: str) -> bool:
    """Whether a stack does, or did, what is waited for. What was made may have been changed since,
    by somebody over there: it is made all the same."""
    return shown.action == action or (action == "CREATE" and shown.action != "DELETE")


def ended(call: Call, shown: RemoteStackView, endpoint: Endpoint) -> Outcome:
    """Of what has come to its end over there."""
    place, data = shown.place, data_of(shown.place)
    match shown.status:
        case "COMPLETE" if shown.action == "DELETE":
            return Done(None)
        case "COMPLETE":
            return Done(place.id, shown.attributes, data)
        case "STOPPED":
            return Stopped(_unwell(shown, endpoint), place.id, data)
        case _:
            return Failed(_unwell(shown, endpoint), place.id, data)


def _unwell(shown: RemoteStackView, endpoint: Endpoint) -> str:
    what = f"the stack {shown.place.name} at {endpoint.name} is {shown.action}_{shown.status}"
    return f"{what}: {shown.reason}" if shown.reason else what


def under_way(
    shown: RemoteStackView, endpoint: Endpoint, hooks: Sequence[Mapping[str, Json]] | None
) -> str:
    """What is waited for. hooks: those that wait over there."""
    what = f"the stack {shown.place.name} at {endpoint.name} is {shown.action}_{shown.status}"
    named = [_hook(one, endpoint) for one in (hooks or [])[:MOST_HOOKS]]
    more = len(hooks or []) - len(named)
    return "; ".join([what, *named, *([f"and {more} more"] if more > 0 else [])])


def _hook(hook: Mapping[str, Json], endpoint: Endpoint) -> str:
    where = hook.get("path") or hook.get("resource_name") or "the stack"
    asked = [str(one.get("target")) for one in (hook.get("asked") or [])[:MOST_ASKED]]
    told = f"notified: {', '.join(asked)}" if asked else "no subscription was notified"
    return (
        f"its hook {hook.get('id')} waits at {hook.get('point')} of {where}"
        f" until {hook.get('deadline')}, {told}:"
        f" {endpoint.url}/hooks/{hook.get('id')}"
    )
