"""Hooks with `watch`: what they show is observed while they wait. If it changed, the hook is
replaced by one that shows the difference. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.hooks.drift_digests import are_comparable, digests_differ
from engine.words import Json, ObservedState

#: Keys of a notification: the difference, as at drift hooks, and why the hook was replaced.
DRIFT, RENEWED = "drift", "renewed"
#: How many times the hook of a node is replaced at most, so that an object that changes all the
#: time does not make it wait forever.
MAX_RENEWALS = 20
#: Differences that a reason names.
MAX_NAMED = 3
_WHAT: Mapping[ObservedState, str] = {
    ObservedState.MISSING: "does not exist anymore",
    ObservedState.CHANGED: "has changed",
    ObservedState.DEGRADED: "does not work",
    ObservedState.PRESENT: "is as recorded again",
}


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """What an observation says about the object of a hook. since: RFC 3339; "": PRESENT. digest: of
    the differences with their values; None: it is not known (`engine.hooks.drift_digests`)."""

    state: ObservedState
    differences: Sequence[Mapping[str, Json]] = ()
    reason: str = ""
    since: str = ""
    digest: str | None = None

    def as_document(self) -> dict[str, Json]:
        return {
            "state": self.state,
            "differences": [dict(one) for one in self.differences],
            "reason": self.reason,
            "since": self.since,
        }


def is_shown(notification: Mapping[str, Json], digest: str | None, found: ObservedObject) -> bool:
    """Return whether a notification shows what an observation says. digest: of the drift that it
    shows."""
    shown = notification.get(DRIFT) or {}
    before = (shown.get("state", ObservedState.PRESENT), shown.get("differences") or [])
    same = before == (found.state, [dict(one) for one in found.differences])
    return same and not digests_differ(digest, found.digest)


def new_digest(
    notification: Mapping[str, Json], digest: str | None, found: ObservedObject
) -> str | None:
    """Return the digest of the drift that a notification shows if it was recorded without one, or
    with one that cannot be compared; else None."""
    known = found.digest is None or are_comparable(digest, found.digest)
    return None if known or not is_shown(notification, digest, found) else found.digest


def renew(
    notification: Mapping[str, Json],
    found: ObservedObject,
    hook_id: str,
    digest: str | None = None,
) -> dict[str, Json] | None:
    """Return the notification of the hook that replaces a waiting one; None: it stays. hook_id: of
    the waiting one. digest: of the drift that it shows. An unknown state changes nothing."""
    same = is_shown(notification, digest, found)
    times = (notification.get(RENEWED) or {}).get("times", 0)
    if found.state is ObservedState.UNKNOWN or same or times >= MAX_RENEWALS:
        return None
    kept = {key: value for key, value in notification.items() if key != DRIFT}
    drift = {} if found.state is ObservedState.PRESENT else {DRIFT: found.as_document()}
    renewed = {"times": times + 1, "previous": hook_id, "reason": _reason(found)}
    return {**kept, **drift, RENEWED: renewed}


def _reason(found: ObservedObject) -> str:
    text = f"the resource {_WHAT[found.state]}"
    paths = [str(one["path"]) for one in found.differences]
    if not paths:
        return text
    more = f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else ""
    return f"{text}: {', '.join(paths[:MAX_NAMED])}{more}"
