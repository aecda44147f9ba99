"""The drift of resources that own nested stacks, compared with its definition."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from engine.plan.nested_drift import MemberDrift, NestedOwner, derive_drift
from engine.words import ObservedState

START = datetime(2026, 12, 1, tzinfo=UTC)
DIFFERING = [one for one in ObservedState if one is not ObservedState.PRESENT]


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[MemberDrift], list[NestedOwner], list[int]]:
    """Stacks by number, of which 0 is the root; each other one is owned by a resource of an earlier
    one. parents: of each."""
    count = draw(st.integers(1, 7))
    parents = [0, *(draw(st.integers(0, number - 1)) for number in range(1, count))]
    levels = [0]
    for parent in parents[1:]:
        levels.append(levels[parent] + 1)
    owners = [
        NestedOwner(
            UUID(int=parents[one]), UUID(int=1000 + one), f"o{one}", UUID(int=one),
            levels[parents[one]], 3,
        )
        for one in range(1, count)
    ]  # fmt: skip
    own = draw(st.dictionaries(st.integers(1, count), st.sampled_from(DIFFERING)))
    inside = draw(
        st.lists(st.tuples(st.integers(0, count - 1), st.sampled_from(DIFFERING)), max_size=8)
    )
    drifted = [
        MemberDrift(
            UUID(int=parents[one]), UUID(int=1000 + one), f"o{one}", state, START, START
        )
        for one, state in own.items()
        if one < count
    ] + [
        MemberDrift(
            UUID(int=stack), UUID(int=2000 + number), f"m{number}", state,
            START + timedelta(hours=number), START,
        )
        for number, (stack, state) in enumerate(inside)
    ]  # fmt: skip
    return drifted, draw(st.permutations(owners)), parents


@given(trees())
def test_an_owner_is_degraded_if_anything_below_differs_and_else_unknown(
    tree: tuple[list[MemberDrift], list[NestedOwner], list[int]],
) -> None:
    drifted, owners, parents = tree
    found = derive_drift(drifted, owners)

    def below(stack: int) -> list[MemberDrift]:
        nested = [one for one in range(1, len(parents)) if parents[one] == stack]
        own = [one for one in drifted if one.stack_id.int == stack]
        return own + [each for one in nested for each in below(one)]

    for owner in owners:
        inside = below(owner.nested_id.int)
        derived = found.get((owner.stack_id, owner.resource_id))
        if not inside:
            assert derived is None
            continue
        assert derived is not None
        differs = [one for one in inside if one.state is not ObservedState.UNKNOWN]
        wanted = ObservedState.DEGRADED if differs else ObservedState.UNKNOWN
        assert derived.state is wanted
        assert len(derived.reason) < 300
    assert len(found) <= len(owners)
