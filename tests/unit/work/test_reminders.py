"""When a reminder of a waiting hook is due, and when it is escalated."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from engine.hooks.deadline import HookClock
from engine.hooks.rule import Escalation, Rule
from engine.principal import principal_of_name
from engine.store.hooks.locked_hooks import LockedHook
from engine.words import HookState, Json, Point
from engine.work.timers import reminder

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
TO = ("role:admin", "user:eve")


def waiting_hook(
    waited: timedelta, *, remind: timedelta | None = None, escalate: timedelta | None = None,
    to: tuple[str, ...] = TO, escalated: bool = False, reminders: int = 0, name: str = "db",
) -> LockedHook:  # fmt: skip
    """A hook that was opened `waited` ago."""
    rule = Rule(
        Point.PRE_UPDATE, remind=remind, escalate=Escalation(escalate, to) if escalate else None
    )
    fields: dict[str, Json] = dict.fromkeys(LockedHook.__dataclass_fields__)
    known = {
        "id": UUID(int=1), "stack_id": UUID(int=2), "now": NOW, "reminders": reminders,
        "state": HookState.WAITING, "resource_name": name, "point": rule.point, "digest": "d",
        "clock": HookClock(NOW - waited, 90 * HOUR, NOW + 90 * HOUR), "rule": rule,
        "requested_by": principal_of_name("ann"), "escalated": escalated,
    }  # fmt: skip
    return LockedHook(**fields | known)


def next_in(one: LockedHook) -> timedelta | None:
    """The time until the next reminder or escalation."""
    wake: datetime | None = reminder(one).row["wake_at"]
    return None if wake is None else wake - NOW


@pytest.mark.parametrize(
    ("waited", "remind", "escalate", "escalated", "kind", "then"),
    [
        (1, 1, None, False, "reminder", 1),
        (3, 1, None, False, "reminder", 1),
        (2.5, 1, None, False, "reminder", 0.5),
        (4, 4, 6, False, "reminder", 2),
        (4, 4, 9, False, "reminder", 4),
        (6, 4, 6, False, "escalated", 2),
        (6, None, 6, False, "escalated", None),
        (8, 4, 6, False, "escalated", 4),
        (8, 4, 6, True, "reminder", 4),
        (5, 4, 6, True, "reminder", 3),
        (4, 4, 4, False, "escalated", 4),
        (99, None, 1, False, "escalated", None),
        (1, None, 2, False, "reminder", 1),
        (1, None, None, False, "reminder", None),
    ],
)
def test_the_due_reminder_and_the_next_time(
    waited: float, remind: float | None, escalate: float | None, escalated: bool,
    kind: str, then: float | None,
) -> None:  # fmt: skip
    one = waiting_hook(
        waited * HOUR, remind=remind * HOUR if remind else None,
        escalate=escalate * HOUR if escalate else None, escalated=escalated,
    )  # fmt: skip
    reminded = reminder(one)
    assert reminded.kind == f"headgate.hook.{kind}"
    assert reminded.row["escalated"] is (kind == "escalated")
    assert reminded.row["reminded"] is (kind == "reminder")
    assert next_in(one) == (None if then is None else then * HOUR)


def test_a_reminder_has_its_number() -> None:
    reminded = reminder(waiting_hook(3 * HOUR, remind=HOUR, reminders=2))
    assert reminded.reason == "Hook pre-update of db is still waiting for an answer"
    assert reminded.data == {"reminder": 3}
    assert (reminded.row["stack_id"], reminded.row["id"]) == (UUID(int=2), UUID(int=1))


@pytest.mark.parametrize(
    ("to", "name", "sentence"),
    [
        (TO, "db", "db has no answer yet; role:admin, user:eve may"),
        ((), "db", "db has no answer yet; another approver may"),
        (TO, "", "the stack has no answer yet; role:admin, user:eve may"),
    ],
)
def test_an_escalation_names_the_added_approvers(
    to: tuple[str, ...], name: str, sentence: str
) -> None:
    reminded = reminder(waiting_hook(HOUR, escalate=HOUR, to=to, name=name))
    assert reminded.reason == f"Hook pre-update of {sentence} answer it now"
    assert reminded.data == {"to": list(to)}
