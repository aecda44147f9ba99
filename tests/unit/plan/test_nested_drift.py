"""The state of resources that own nested stacks, by the drift inside."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

from engine.plan.nested_drift import MemberDrift, NestedDrift, NestedOwner, derive_drift
from engine.words import ObservedState

START = datetime(2026, 12, 1, tzinfo=UTC)
ROOT, GROUP, PAIR = UUID(int=1), UUID(int=2), UUID(int=3)
MISSING, CHANGED, UNKNOWN = ObservedState.MISSING, ObservedState.CHANGED, ObservedState.UNKNOWN


def member(
    stack: UUID, name: str, state: ObservedState = MISSING, since: int = 0, observed: int = 100
) -> MemberDrift:
    return MemberDrift(
        stack, id_of(name), name, state, START + timedelta(hours=since),
        START + timedelta(hours=observed),
    )  # fmt: skip


def id_of(name: str) -> UUID:
    return UUID(bytes=name.encode().rjust(16, b"\0"))


def owner(stack: UUID, name: str, nested: UUID, level: int = 0, members: int = 10) -> NestedOwner:
    return NestedOwner(stack, id_of(name), name, nested, level, members)


def reasons(found: Mapping[tuple[UUID, UUID], NestedDrift]) -> list[tuple[str, str]]:
    return [(one.state.value, one.reason) for one in found.values()]


def test_members_that_differ_are_named_by_their_number_and_in_order() -> None:
    members = [member(GROUP, name) for name in ("10", "9", "2", "1", "3", "4", "5")]
    found = derive_drift(members, [owner(ROOT, "group", GROUP)])
    assert reasons(found) == [
        ("degraded", "7 of 10 members differ: 1 (missing), 2 (missing), 3 (missing), 4 (missing), "
                     "5 (missing) and 2 more")
    ]  # fmt: skip


def test_what_is_unknown_is_named_after_what_differs() -> None:
    members = [member(GROUP, "1", UNKNOWN, 1, 5), member(GROUP, "2", CHANGED, 2, 7)]
    (found,) = derive_drift(members, [owner(ROOT, "group", GROUP)]).values()
    assert (found.state, found.reason) == (
        ObservedState.DEGRADED,
        "1 of 10 members differs: 2 (changed); 1 of 10 members has no known state: 1 (unknown)",
    )
    # It has differed since a member does, and was observed when all of them were.
    assert found.since == START + timedelta(hours=2)
    assert found.observed_at == START + timedelta(hours=5)


def test_nothing_is_derived_where_nothing_differs() -> None:
    owners = [owner(ROOT, "group", GROUP), owner(ROOT, "other", PAIR)]
    assert derive_drift([], owners) == {}
    assert derive_drift([member(ROOT, "a")], owners) == {}
    assert derive_drift([member(GROUP, "1")], owners).keys() == {(ROOT, id_of("group"))}


def test_an_owner_that_differs_itself_has_its_own_state_for_the_owner_above() -> None:
    owners = [owner(ROOT, "group", GROUP, members=2), owner(GROUP, "1", PAIR, 1, members=3)]
    inside = member(PAIR, "a", CHANGED)
    for own, shown in (
        ([], "1 (degraded)"),
        ([member(GROUP, "1", UNKNOWN)], "1 (degraded)"),
        ([member(GROUP, "1", MISSING)], "1 (missing)"),
    ):
        found = derive_drift([inside, *own], owners)
        assert found[ROOT, id_of("group")].reason == f"1 of 2 members differs: {shown}"
        assert found[GROUP, id_of("1")].reason == "1 of 3 members differs: a (changed)"


def test_more_members_may_differ_than_a_nested_stack_has_now() -> None:
    members = [member(GROUP, "1"), member(GROUP, "2")]
    found = derive_drift(members, [owner(ROOT, "group", GROUP, members=0)])
    assert reasons(found) == [("degraded", "2 of 2 members differ: 1 (missing), 2 (missing)")]
