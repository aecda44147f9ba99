"""What is told of a subscription itself: made, changed, enabled, disabled, removed. Pure.

These events are of no stack: each subscription counts its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from channels.envelope import shown_target
from channels.store.records import SubscriptionRecord, SubscriptionState
from engine.words import Json


class Kind(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"
    CHANGED = "changed"
    ROTATED = "rotated"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class News:
    """about: the subscription as it is now, or was last. by: who did it, for people."""

    kind: Kind
    about: SubscriptionRecord
    reason: str
    by: str

    @property
    def type(self) -> str:
        return f"headgate.subscription.{self.kind}"

    @property
    def data(self) -> dict[str, Json]:
        """As it is stored with the event; no secret, and of the target what people may see."""
        one, chosen = self.about, self.about.selection
        return {
            "subscription": str(one.id),
            "channel": one.channel,
            "target": shown_target(one.target),
            "state": one.state,
            "origin": one.origin,
            "stack_id": str(chosen.stack_id) if chosen.stack_id else None,
            "events": list(chosen.events),
            "stacks": list(chosen.stacks),
            "resources": list(chosen.resources),
            "types": list(chosen.types),
            "points": list(chosen.points),
            "tags": list(chosen.tags),
            "ordered": one.ordered,
            "by": self.by,
        }


def news(
    before: SubscriptionRecord | None, after: SubscriptionRecord | None, by: str
) -> Sequence[News]:
    """What became of a subscription. None: there was none, or is none any more."""
    if after is None:
        return [News(Kind.DELETED, before, "It was removed", by)] if before else []
    if before is None:
        return [News(Kind.ENABLED, after, "It was made", by)]
    told = []
    if _settings(before) != _settings(after):
        told.append(News(Kind.CHANGED, after, "Its settings were changed", by))
    if before.state != after.state:
        enabled = after.state == SubscriptionState.ENABLED
        kind = Kind.ENABLED if enabled else Kind.DISABLED
        told.append(News(kind, after, "It delivers again" if enabled else after.reason, by))
    return told


def _settings(one: SubscriptionRecord) -> SubscriptionRecord:
    """Without what changes by itself."""
    return replace(one, state="", reason="", failures=0)
