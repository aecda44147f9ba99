"""The sinks of an environment as they are stored, and the events that they get."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from channels.selection import Selection, Traits
from channels.store.records import SubscriptionRecord
from channels.store.sinks import SinkChanges, _sinks

STACK, SINK = UUID(int=1), UUID(int=2)
ROOT = Traits("p", "headgate.stack.update.completed", STACK, "s")
NESTED = Traits("p", "headgate.stack.update.completed", UUID(int=3), "s-web-1", root_id=STACK)


def sink(removed_at_sequence: int | None = None) -> SubscriptionRecord:
    return SubscriptionRecord(
        id=SINK, project="p", channel="webhook", target="https://a.test",
        selection=Selection(stack_id=STACK), ordered=True, state="enabled", reason="",
        origin="environment", removed_at_sequence=removed_at_sequence, failures=0,
        created_at=datetime(2026, 1, 2, tzinfo=UTC), name="", owner="ann",
    )  # fmt: skip


#: Declared before, and from the fifth event of the stack on; whether the sink gets the fourth and
#: the sixth event, and one of a nested stack that is published with them.
CHANGES = {
    "named": (set[UUID](), {SINK}, (False, True, True)),
    "dropped": ({SINK}, set[UUID](), (True, False, True)),
    "kept": ({SINK}, {SINK}, (True, True, True)),
    "another's": (set[UUID](), set[UUID](), (False, False, False)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_sink_that_a_change_adds_or_removes(what: str) -> None:
    before, after, expected = CHANGES[what]
    changes = SinkChanges({STACK: [(0, before), (5, after)]})
    included = [changes.includes(sink(), ROOT, number) for number in (4, 6)]
    assert (*included, changes.includes(sink(), NESTED, 900)) == expected


def test_without_a_change_a_sink_gets_events_until_it_is_dropped() -> None:
    for one, expected in ((sink(), True), (sink(removed_at_sequence=5), False)):
        assert SinkChanges().includes(one, NESTED, 2) is expected
    assert SinkChanges().includes(sink(removed_at_sequence=5), ROOT, 4)
    assert not SinkChanges().includes(sink(removed_at_sequence=5), ROOT, 5)


def test_a_time_zone_that_this_system_does_not_know_concerns_its_sink_alone() -> None:
    """It stays as it is declared; its deliveries fail with the reason."""
    night = {"from": "22:00", "to": "07:00", "timezone": "Mars/Base"}
    plain = {"type": "webhook", "target": "https://example.org/"}
    people = {"type": "slack", "target": "https://example.org/", "quiet_hours": night}
    daily = people | {"quiet_hours": None, "digest": {"every": "daily", "timezone": "Mars/Base"}}
    row = {
        "stack_id": STACK, "project": "p", "sinks": [plain, people, daily], "owner": "ann",
        "owner_id": "", "owner_roles": [],
    }  # fmt: skip
    first, second, third = _sinks(row)
    assert "quiet_hours" not in first and "digest" not in first and first["ordered"] is True
    assert (second["quiet_hours"], second["ordered"]) == (night, False)
    assert (third["digest"], third["ordered"]) == (daily["digest"], False)
