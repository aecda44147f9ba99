"""Which events the sinks of an environment hear."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from channels.selection import Selection, Traits
from channels.store.records import SubscriptionRecord
from channels.store.sinks import SinkChanges

STACK, SINK = UUID(int=1), UUID(int=2)
AROUND = Traits("p", "headgate.stack.update.completed", STACK, "s")
INSIDE = Traits("p", "headgate.stack.update.completed", UUID(int=3), "s-web-1", root_id=STACK)


def sink(named_until: int | None = None) -> SubscriptionRecord:
    return SubscriptionRecord(
        id=SINK, project="p", channel="webhook", target="https://a.test",
        selection=Selection(stack_id=STACK), ordered=True, state="enabled", reason="",
        origin="environment", named_until=named_until, failures=0,
        created_at=datetime(2026, 1, 2, tzinfo=UTC), name="", owner="ann",
    )  # fmt: skip


#: Before, and from the stack's fifth event on; what it hears of its stack's fourth and sixth event,
#: and of one inside that is published with them.
CHANGES = {
    "named": (set[UUID](), {SINK}, (False, True, True)),
    "dropped": ({SINK}, set[UUID](), (True, False, True)),
    "kept": ({SINK}, {SINK}, (True, True, True)),
    "another's": (set[UUID](), set[UUID](), (False, False, False)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_sink_that_comes_or_goes(what: str) -> None:
    before, after, heard = CHANGES[what]
    named = SinkChanges({STACK: [(0, before), (5, after)]})
    told = [named.includes(sink(), AROUND, number) for number in (4, 6)]
    assert (*told, named.includes(sink(), INSIDE, 900)) == heard


def test_where_nothing_changes_it_hears_until_it_is_dropped() -> None:
    for one, heard in ((sink(), True), (sink(named_until=5), False)):
        assert SinkChanges().includes(one, INSIDE, 2) is heard
    assert SinkChanges().includes(sink(named_until=5), AROUND, 4)
    assert not SinkChanges().includes(sink(named_until=5), AROUND, 5)
