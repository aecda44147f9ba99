"""What is said of a hook that has waited for a while: a reminder, or that others may answer now."""

from dataclasses import dataclass, field

from engine.store.hooks import Held
from engine.words import Json


@dataclass(frozen=True, slots=True)
class Reminder:
    """kind, sentence, told: of the event. written: what the hook's row is to say."""

    kind: str
    sentence: str
    written: Json
    told: dict[str, Json] = field(default_factory=dict)


def reminder(held: Held) -> Reminder:
    """For a hook whose time to speak has come."""
    asked, rule = held.asked, held.asked.rule
    of = f"Hook {asked.point} of {asked.resource_name or 'the stack'}"
    escalates = (
        rule.escalate is not None
        and not asked.escalated
        and held.now >= asked.clock.opened_at + rule.escalate.after
    )
    written = {
        "stack_id": held.stack_id,
        "id": held.id,
        "wake_at": _next(held, escalates),
        "reminded": not escalates,
        "escalated": escalates,
    }
    if escalates and rule.escalate is not None:
        to = list(rule.escalate.to)
        said = f"{of} has no answer yet; {', '.join(to) or 'another approver'} may answer it now"
        return Reminder("headgate.hook.escalated", said, written, {"to": to})
    said = f"{of} still waits for an answer"
    return Reminder("headgate.hook.reminder", said, written, {"reminder": held.reminders + 1})


def _next(held: Held, escalates: bool) -> Json:
    """When to speak again; None: not before the deadline decides."""
    asked, rule = held.asked, held.asked.rule
    times = []
    if rule.remind is not None:
        passed = (held.now - asked.clock.opened_at) // rule.remind
        times.append(asked.clock.opened_at + (passed + 1) * rule.remind)
    if rule.escalate is not None and not asked.escalated and not escalates:
        times.append(asked.clock.opened_at + rule.escalate.after)
    return min(times, default=None)
