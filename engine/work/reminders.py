"""Reminders and escalations of waiting hooks."""

from dataclasses import dataclass, field

from engine.store.hooks import Held
from engine.words import Json


@dataclass(frozen=True, slots=True)
class Reminder:
    """kind, reason, data: of the event. row: the changes of the hook's row."""

    kind: str
    reason: str
    row: Json
    data: dict[str, Json] = field(default_factory=dict)


def reminder(held: Held) -> Reminder:
    """Return the reminder or escalation that is due."""
    asked, rule = held.asked, held.asked.rule
    of = f"Hook {asked.point} of {asked.resource_name or 'the stack'}"
    escalates = (
        rule.escalate is not None
        and not asked.escalated
        and held.now >= asked.clock.opened_at + rule.escalate.after
    )
    row = {
        "stack_id": held.stack_id,
        "id": held.id,
        "wake_at": _next(held, escalates),
        "reminded": not escalates,
        "escalated": escalates,
    }
    if escalates and rule.escalate is not None:
        to = list(rule.escalate.to)
        reason = f"{of} has no answer yet; {', '.join(to) or 'another approver'} may answer it now"
        return Reminder("headgate.hook.escalated", reason, row, {"to": to})
    reason = f"{of} still waits for an answer"
    return Reminder("headgate.hook.reminder", reason, row, {"reminder": held.reminders + 1})


def _next(held: Held, escalates: bool) -> Json:
    """Return when the next reminder or escalation is due; None: not before the deadline."""
    asked, rule = held.asked, held.asked.rule
    times = []
    if rule.remind is not None:
        passed = (held.now - asked.clock.opened_at) // rule.remind
        times.append(asked.clock.opened_at + (passed + 1) * rule.remind)
    if rule.escalate is not None and not asked.escalated and not escalates:
        times.append(asked.clock.opened_at + rule.escalate.after)
    return min(times, default=None)
