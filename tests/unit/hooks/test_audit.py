"""The trail of decisions: whoever changes it, takes from it or moves it about, is found out."""

import hashlib
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.hooks.hash_chain import FORM, NOTHING, Entry, chained, first_wrong, hash_of
from engine.words import Json

NAMES = tuple(one.name for one in fields(Entry))
STACKS = (UUID(int=1), UUID(int=2))

texts = st.text(max_size=20)
times = st.datetimes(
    datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)  # noqa: DTZ001
)  # fmt: skip
#: What the store gives back as it was given.
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
    "door": texts,
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


def entry(stack_id: UUID = STACKS[0], kind: str = "continue", **more: Json) -> Entry:
    given: dict[str, Json] = {"hook_id": UUID(int=9), "by": "ann", "door": "api",
                              "at": datetime(2026, 1, 1, tzinfo=UTC)}  # fmt: skip
    return Entry(stack_id, kind=kind, **given | more)


@st.composite
def entries(draw: st.DrawFn, stack_id: UUID = STACKS[0]) -> Entry:
    drawn = {name: draw(VALUES[name]) for name in NAMES[1:-3]}
    return Entry(stack_id, **drawn)


@st.composite
def trails(draw: st.DrawFn, least: int = 1) -> list[Entry]:
    return chained(draw(st.lists(entries(), min_size=least, max_size=6)), {})


def same(one: Json, other: Json) -> bool:
    """Whether two values are one and the same in JSON; 1 and 1.0, or 1 and true, are not."""
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        other, option=orjson.OPT_SORT_KEYS
    )


@given(trails(0))
def test_a_trail_as_it_was_written_is_right(trail: list[Entry]) -> None:
    assert [one.number for one in trail] == list(range(1, len(trail) + 1))
    assert all(len(one.hash) == 64 for one in trail)
    assert first_wrong(trail) is None


@given(trails(), st.data())
@pytest.mark.parametrize("name", NAMES)
def test_any_change_of_any_field_of_any_entry_is_found(
    name: str, trail: list[Entry], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(trail) - 1))
    value = data.draw(VALUES[name])
    assume(not same(value, getattr(trail[place], name)))
    changed = [*trail]
    changed[place] = replace(trail[place], **{name: value})
    said = first_wrong(changed)
    assert said is not None and said.startswith(f"entry {place + 1} ")


@given(trails(2), st.data())
def test_any_removal_but_that_of_the_end_is_found(trail: list[Entry], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(trail) - 2))
    last = data.draw(st.integers(first, len(trail) - 2))
    assert first_wrong(trail[:first] + trail[last + 1 :]) == f"entry {first + 1} is missing"


@given(trails(2), st.data())
def test_what_is_cut_off_at_the_end_leaves_a_right_trail(
    trail: list[Entry], data: st.DataObject
) -> None:
    assert first_wrong(trail[: data.draw(st.integers(0, len(trail)))]) is None


def numbered_anew(trail: list[Entry]) -> list[Entry]:
    return [replace(one, number=place) for place, one in enumerate(trail, start=1)]


@given(trails(2), st.data(), st.sampled_from([lambda trail: trail, numbered_anew]))
def test_any_swap_is_found_numbered_anew_or_not(
    trail: list[Entry], data: st.DataObject, after: Callable[[list[Entry]], list[Entry]]
) -> None:
    one, other = data.draw(
        st.lists(st.integers(0, len(trail) - 1), min_size=2, max_size=2, unique=True)
    )
    swapped = [*trail]
    swapped[one], swapped[other] = trail[other], trail[one]
    said = first_wrong(after(swapped))
    assert said is not None and said.startswith(f"entry {min(one, other) + 1} ")


@given(trails(2), st.data())
def test_what_was_removed_is_found_though_the_rest_is_numbered_anew(
    trail: list[Entry], data: st.DataObject
) -> None:
    gone = data.draw(st.integers(0, len(trail) - 2))
    said = first_wrong(numbered_anew(trail[:gone] + trail[gone + 1 :]))
    assert said is not None and said.startswith(f"entry {gone + 1} ")


@given(trails(), entries(), st.data())
def test_what_was_put_in_is_found(trail: list[Entry], added: Entry, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(trail) - 1))
    before = trail[place - 1].hash if place else NOTHING
    forged = replace(added, number=place + 1)
    forged = replace(forged, hash=hash_of(forged, before))
    assume(forged != trail[place])
    put_in = numbered_anew([*trail[:place], forged, *trail[place:]])
    assert first_wrong(put_in) is not None


@given(st.lists(st.sampled_from(STACKS), max_size=12))
def test_two_stacks_in_one_call_have_a_trail_each(stacks: list[UUID]) -> None:
    made = chained([entry(stack, kind=str(n)) for n, stack in enumerate(stacks)], {})
    assert [one.kind for one in made] == [str(n) for n in range(len(stacks))]
    for stack in STACKS:
        mine = [one for one in made if one.stack_id == stack]
        assert first_wrong(mine) is None
        alone = chained([replace(one, number=0, hash="") for one in mine], {})
        assert alone == mine


@given(trails(2), st.data())
def test_a_trail_goes_on_where_it_was_left(trail: list[Entry], data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(trail) - 1))
    written, rest = trail[:place], [replace(one, number=0, hash="") for one in trail[place:]]
    last = {STACKS[0]: (written[-1].number, written[-1].hash), STACKS[1]: (7, "f" * 64)}
    assert chained(rest, last) == trail[place:]
    assert last[STACKS[0]] == (written[-1].number, written[-1].hash)


def test_the_first_entry_of_a_stack_says_that_there_is_none_before_it() -> None:
    (one,) = chained([entry()], {})
    assert one.hash == hash_of(replace(one, hash=""), NOTHING)
    assert first_wrong(chained([entry()], {STACKS[0]: (0, "a" * 64)})) is not None


def test_an_entry_of_another_stack_does_not_pass_for_one_of_this() -> None:
    (mine,), (theirs,) = chained([entry()], {}), chained([entry(STACKS[1])], {})
    assert mine.hash != theirs.hash
    assert first_wrong([replace(theirs, stack_id=STACKS[0])]) is not None


def test_the_same_moment_is_the_same_wherever_the_clock_stands() -> None:
    east = timezone(timedelta(hours=5, minutes=30))
    (one,) = chained([entry(at=datetime(2026, 1, 1, 12, 0, 0, 7, tzinfo=UTC))], {})
    assert first_wrong([replace(one, at=one.at.astimezone(east))]) is None
    assert first_wrong([replace(one, at=one.at + timedelta(microseconds=1))]) is not None


@given(datas)
def test_data_is_the_same_after_it_was_kept_as_text(data: Json) -> None:
    kept = orjson.loads(orjson.dumps(data, option=orjson.OPT_SORT_KEYS))
    assert hash_of(entry(data=data), NOTHING) == hash_of(entry(data=kept), NOTHING)


def test_the_order_of_keys_is_of_no_matter() -> None:
    one, other = (
        entry(data={"a": 1, "b": {"c": 2, "d": 3}}),
        entry(data={"b": {"d": 3, "c": 2}, "a": 1}),
    )
    assert hash_of(one, NOTHING) == hash_of(other, NOTHING)


@pytest.mark.parametrize("wrong", [2, 0, -1])
def test_a_trail_that_does_not_begin_with_one_lacks_its_beginning(wrong: int) -> None:
    (one,) = chained([entry()], {})
    assert first_wrong([replace(one, number=wrong)]) == "entry 1 is missing"


def of_form_1(**more: Json) -> Entry:
    """An entry as an earlier version wrote it."""
    return entry(form=1, number=1, **more)


def test_an_entry_of_an_earlier_version_verifies_by_the_fields_of_its_time() -> None:
    written = of_form_1()
    # What version 0.1 wrote for this entry.
    text = (
        f'{{"address":"","at":"2026-01-01T00:00:00.000000+00:00","by":"ann","data":null,'
        f'"digest":"","door":"api","hook_id":"{UUID(int=9)}","kind":"continue","number":1,'
        f'"reason":"","stack_id":"{STACKS[0]}"}}'
    )
    expected = hashlib.sha256(f"{NOTHING}\n{text}".encode()).hexdigest()
    assert hash_of(written, NOTHING) == expected
    newer = chained([entry(principal="token:1")], {STACKS[0]: (1, expected)})
    assert first_wrong([replace(written, hash=expected), *newer]) is None


@pytest.mark.parametrize("added", ["principal", "token_id"])
def test_what_a_form_does_not_cover_must_be_empty(added: str) -> None:
    written = of_form_1()
    written = replace(written, hash=hash_of(written, NOTHING))
    forged: Entry = replace(written, **{added: "token:of-another"})  # type: ignore[arg-type]
    assert first_wrong([forged]) == f"entry 1 has a {added}, which its hash does not cover"


@pytest.mark.parametrize("form", [0, FORM + 1])
def test_an_unknown_form_is_found(form: int) -> None:
    odd = entry(number=1, form=form)
    odd = replace(odd, hash=hash_of(odd, NOTHING))
    assert "form" in (first_wrong([odd]) or "")
