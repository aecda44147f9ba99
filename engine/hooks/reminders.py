"""When a waiting hook sends reminders, and when it is escalated. Pure.

Both count from the opening of the hook: a reminder each `remind`, and one escalation after
`escalate.after`. `engine.work.timers` sends them, and `engine.store.hooks.deadlines` stores when
the next one is due.
"""

from datetime import datetime, timedelta

from engine.hooks.rule import Rule


def first_wait(rule: Rule) -> timedelta | None:
    """The time from the opening to the first reminder or escalation; None: there is none."""
    return min((one for one in (rule.remind, _escalation(rule)) if one is not None), default=None)


def must_escalate(rule: Rule, opened_at: datetime, now: datetime, *, escalated: bool) -> bool:
    after = _escalation(rule)
    return after is not None and not escalated and now >= opened_at + after


def next_time(
    rule: Rule, opened_at: datetime, now: datetime, *, escalated: bool
) -> datetime | None:
    """The next reminder or escalation after `now`; None: not before the deadline."""
    times = []
    if rule.remind is not None:
        times.append(opened_at + ((now - opened_at) // rule.remind + 1) * rule.remind)
    after = _escalation(rule)
    if after is not None and not escalated:
        times.append(opened_at + after)
    return min(times, default=None)


def _escalation(rule: Rule) -> timedelta | None:
    return rule.escalate.after if rule.escalate is not None else None
