"""The hash chain of the audit log reveals every change, removal, swap and insertion."""

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime
from uuid import UUID

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.hooks.hash_chain import NOTHING, Entry, chain_entries, first_error, hash_of
from engine.words import Json
from tests.unit.hooks.test_audit_log import STACKS, entry

NAMES = tuple(one.name for one in fields(Entry))

texts = st.text(max_size=20)
times = st.datetimes(
    datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)  # noqa: DTZ001
)  # fmt: skip
#: Values that the store returns unchanged.
datas = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | texts
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
VALUES: dict[str, st.SearchStrategy[Json]] = {
    "stack_id": st.uuids(),
    "hook_id": st.none() | st.uuids(),
    "kind": texts,
    "by": texts,
    "channel": texts,
    "at": times,
    "address": texts,
    "reason": texts,
    "digest": texts,
    "data": datas,
    "principal": texts,
    "token_id": texts,
    "form": st.integers(0, 3),
    "number": st.integers(-(2**31), 2**31),
    "hash": texts | st.text("0123456789abcdef", min_size=64, max_size=64),
}


@st.composite
def entries(draw: st.DrawFn, stack_id: UUID = STACKS[0]) -> Entry:
    drawn = {name: draw(VALUES[name]) for name in NAMES[1:-3]}
    return Entry(stack_id, **drawn)


@st.composite
def chains(draw: st.DrawFn, least: int = 1) -> list[Entry]:
    return chain_entries(draw(st.lists(entries(), min_size=least, max_size=6)), {})


def same(one: Json, other: Json) -> bool:
    """Whether two values are equal in JSON; 1 and 1.0 differ, and so do 1 and true."""
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        other, option=orjson.OPT_SORT_KEYS
    )


@given(chains(0))
def test_a_chain_as_written_verifies(chain: list[Entry]) -> None:
    assert [one.number for one in chain] == list(range(1, len(chain) + 1))
    assert all(len(one.hash) == 64 for one in chain)
    assert first_error(chain) is None


@given(chains(), st.data())
@pytest.mark.parametrize("name", NAMES)
def test_any_change_of_any_field_of_any_entry_is_found(
    name: str, chain: list[Entry], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(chain) - 1))
    value = data.draw(VALUES[name])
    assume(not same(value, getattr(chain[place], name)))
    changed = [*chain]
    changed[place] = replace(chain[place], **{name: value})
    message = first_error(changed)
    assert message is not None and message.startswith(f"entry {place + 1} ")


@given(chains(2), st.data())
def test_any_removal_except_at_the_end_is_found(chain: list[Entry], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(chain) - 2))
    last = data.draw(st.integers(first, len(chain) - 2))
    assert first_error(chain[:first] + chain[last + 1 :]) == f"entry {first + 1} is missing"


@given(chains(2), st.data())
def test_a_truncated_chain_verifies(chain: list[Entry], data: st.DataObject) -> None:
    assert first_error(chain[: data.draw(st.integers(0, len(chain)))]) is None


def renumbered(chain: list[Entry]) -> list[Entry]:
    return [replace(one, number=place) for place, one in enumerate(chain, start=1)]


@given(chains(2), st.data(), st.sampled_from([lambda chain: chain, renumbered]))
def test_any_swap_is_found_renumbered_or_not(
    chain: list[Entry], data: st.DataObject, after: Callable[[list[Entry]], list[Entry]]
) -> None:
    one, other = data.draw(
        st.lists(st.integers(0, len(chain) - 1), min_size=2, max_size=2, unique=True)
    )
    swapped = [*chain]
    swapped[one], swapped[other] = chain[other], chain[one]
    message = first_error(after(swapped))
    assert message is not None and message.startswith(f"entry {min(one, other) + 1} ")


@given(chains(2), st.data())
def test_a_removal_is_found_after_renumbering(chain: list[Entry], data: st.DataObject) -> None:
    gone = data.draw(st.integers(0, len(chain) - 2))
    message = first_error(renumbered(chain[:gone] + chain[gone + 1 :]))
    assert message is not None and message.startswith(f"entry {gone + 1} ")


@given(chains(), entries(), st.data())
def test_an_insertion_is_found(chain: list[Entry], added: Entry, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(chain) - 1))
    before = chain[place - 1].hash if place else NOTHING
    forged = replace(added, number=place + 1)
    forged = replace(forged, hash=hash_of(forged, before))
    assume(forged != chain[place])
    put_in = renumbered([*chain[:place], forged, *chain[place:]])
    assert first_error(put_in) is not None


@given(st.lists(st.sampled_from(STACKS), max_size=12))
def test_two_stacks_in_one_call_have_separate_chains(stacks: list[UUID]) -> None:
    chain = chain_entries([entry(stack, kind=str(n)) for n, stack in enumerate(stacks)], {})
    assert [one.kind for one in chain] == [str(n) for n in range(len(stacks))]
    for stack in STACKS:
        mine = [one for one in chain if one.stack_id == stack]
        assert first_error(mine) is None
        alone = chain_entries([replace(one, number=0, hash="") for one in mine], {})
        assert alone == mine


@given(chains(2), st.data())
def test_a_chain_continues_after_its_last_entry(chain: list[Entry], data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(chain) - 1))
    written, rest = chain[:place], [replace(one, number=0, hash="") for one in chain[place:]]
    last = {STACKS[0]: (written[-1].number, written[-1].hash), STACKS[1]: (7, "f" * 64)}
    assert chain_entries(rest, last) == chain[place:]
    assert last[STACKS[0]] == (written[-1].number, written[-1].hash)


@given(datas)
def test_data_that_was_stored_as_text_has_the_same_hash(data: Json) -> None:
    kept = orjson.loads(orjson.dumps(data, option=orjson.OPT_SORT_KEYS))
    assert hash_of(entry(data=data), NOTHING) == hash_of(entry(data=kept), NOTHING)
