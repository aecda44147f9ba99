"""Hooks that have waited for a while: when somebody is reminded, and when others are asked, too."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.hooks.answers import Asked
from engine.hooks.deadline import HookClock
from engine.hooks.rule import Escalation, Rule
from engine.principal import named
from engine.store.hooks import Held
from engine.words import HookState, Json, Point
from engine.work.reminders import reminder

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
TO = ("role:admin", "user:eve")


def held(
    waited: timedelta, *, remind: timedelta | None = None, escalate: timedelta | None = None,
    to: tuple[str, ...] = TO, escalated: bool = False, reminders: int = 0, name: str = "db",
) -> Held:  # fmt: skip
    """A hook that was opened `waited` ago."""
    rule = Rule(
        Point.PRE_UPDATE, remind=remind, escalate=Escalation(escalate, to) if escalate else None
    )
    asked = Asked(
        HookState.WAITING, name, rule.point, "d",
        HookClock(NOW - waited, 90 * HOUR, NOW + 90 * HOUR), None, None, None, rule, named("ann"),
        escalated=escalated,
    )  # fmt: skip
    fields: dict[str, Json] = dict.fromkeys(Held.__dataclass_fields__)
    given = {"id": UUID(int=1), "stack_id": UUID(int=2), "asked": asked, "now": NOW}
    return Held(**fields | given | {"reminders": reminders})


def next_in(one: Held) -> timedelta | None:
    """How long until it is spoken of again."""
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
def test_what_is_said_and_when_the_next_is(
    waited: float, remind: float | None, escalate: float | None, escalated: bool,
    kind: str, then: float | None,
) -> None:  # fmt: skip
    one = held(
        waited * HOUR, remind=remind * HOUR if remind else None,
        escalate=escalate * HOUR if escalate else None, escalated=escalated,
    )  # fmt: skip
    said = reminder(one)
    assert said.kind == f"headgate.hook.{kind}"
    assert said.row["escalated"] is (kind == "escalated")
    assert said.row["reminded"] is (kind == "reminder")
    assert next_in(one) == (None if then is None else then * HOUR)


def test_a_reminder_says_which_it_is() -> None:
    said = reminder(held(3 * HOUR, remind=HOUR, reminders=2))
    assert said.reason == "Hook pre-update of db still waits for an answer"
    assert said.data == {"reminder": 3}
    assert (said.row["stack_id"], said.row["id"]) == (UUID(int=2), UUID(int=1))


@pytest.mark.parametrize(
    ("to", "name", "sentence"),
    [
        (TO, "db", "db has no answer yet; role:admin, user:eve may"),
        ((), "db", "db has no answer yet; another approver may"),
        (TO, "", "the stack has no answer yet; role:admin, user:eve may"),
    ],
)
def test_an_escalation_says_whom_it_is_for(to: tuple[str, ...], name: str, sentence: str) -> None:
    said = reminder(held(HOUR, escalate=HOUR, to=to, name=name))
    assert said.reason == f"Hook pre-update of {sentence} answer it now"
    assert said.data == {"to": list(to)}


hours = st.timedeltas(timedelta(seconds=1), timedelta(days=3))


@given(hours, hours, st.none() | hours, st.booleans())
def test_reminders_keep_to_the_times_of_the_rule_however_late_one_comes(
    waited: timedelta, remind: timedelta, escalate: timedelta | None, escalated: bool
) -> None:
    one = held(waited, remind=remind, escalate=escalate, escalated=escalated)
    wait = next_in(one)
    assert wait is not None and timedelta(0) < wait <= remind
    due = waited + wait
    assert due % remind == timedelta(0) or due == escalate


@given(hours, hours | st.none(), hours)
def test_it_is_escalated_once_and_not_before_its_time(
    waited: timedelta, remind: timedelta | None, after: timedelta
) -> None:
    one = held(waited, remind=remind, escalate=after)
    for _ in range(50):
        said = reminder(one)
        assert said.row["escalated"] is (one.now >= one.asked.clock.opened_at + after)
        if said.row["escalated"]:
            asked = replace(one.asked, escalated=True)
            assert not reminder(replace(one, asked=asked)).row["escalated"]
            return
        wake: datetime = said.row["wake_at"]
        assert one.now < wake <= one.asked.clock.opened_at + after
        one = replace(one, now=wake, reminders=one.reminders + 1)
