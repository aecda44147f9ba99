"""All cells come to the same tokens, whichever process compares them, and no revocation is lost."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from engine.store.access.token_copies import USE_INTERVAL, TokenState, compare_cells

CELLS = "abc"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = st.none() | st.integers(0, 9).map(lambda n: BEGIN + timedelta(seconds=40 * n))
TOKENS = st.dictionaries(
    st.integers(0, 4).map(lambda n: UUID(int=n)), st.tuples(TIMES, TIMES), max_size=5
)
States = dict[str, dict[UUID, TokenState]]


def states(found: list[dict[UUID, tuple[datetime | None, datetime | None]]]) -> States:
    return {
        name: {
            token: TokenState(token, used, revoked, name if revoked else None)
            for token, (used, revoked) in tokens.items()
        }
        for name, tokens in zip(CELLS, found, strict=True)
    }


def copied(before: States) -> States:
    """As the database applies what a cell lacks."""
    after = {name: dict(tokens) for name, tokens in before.items()}
    for name, lacks in compare_cells(before).items():
        for origin, ids in lacks.missing.items():
            after[name] |= {one: before[origin][one] for one in ids}
        for one in lacks.revoked:
            own = after[name][one.id]
            after[name][one.id] = TokenState(own.id, own.used_at, one.revoked_at, one.revoked_by)
        for one in lacks.used:
            own = after[name][one.id]
            after[name][one.id] = TokenState(own.id, one.used_at, own.revoked_at, own.revoked_by)
    return after


@given(found=st.lists(TOKENS, min_size=3, max_size=3))
def test_cells_come_to_the_same_tokens(
    found: list[dict[UUID, tuple[datetime | None, datetime | None]]],
) -> None:
    before = states(found)
    after = copied(before)
    ids = {token for tokens in before.values() for token in tokens}
    revoked = {t for tokens in before.values() for t, one in tokens.items() if one.revoked_at}
    for tokens in after.values():
        assert {*tokens} == ids
        assert {token for token, one in tokens.items() if one.revoked_at} == revoked
    # The use of a token that two cells lacked comes with the next comparison.
    after = copied(after)
    for token in ids:
        used = [one[token].used_at for one in after.values()]
        latest = max(filter(None, used), default=None)
        assert all(one is None if latest is None else one and one >= latest - USE_INTERVAL
                   for one in used)  # fmt: skip
    assert compare_cells(after) == {}


def test_the_tokens_of_one_cell_are_complete() -> None:
    assert compare_cells({"a": {UUID(int=1): TokenState(UUID(int=1), None, BEGIN, "x")}}) == {}
    assert compare_cells({}) == {}
