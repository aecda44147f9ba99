"""The hash chain of the audit log: what it covers, and the errors that it reveals.

tests/property/test_hash_chain.py checks the same with random chains.
"""

import hashlib
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from engine.hooks.hash_chain import FORM, NOTHING, Entry, chain_entries, first_error, hash_of
from engine.words import Json

STACKS = (UUID(int=1), UUID(int=2))
TIME = datetime(2026, 1, 1, tzinfo=UTC)
#: A different value of each field.
CHANGES: dict[str, Json] = {
    "stack_id": STACKS[1],
    "hook_id": None,
    "at": TIME + timedelta(microseconds=1),
    "data": {"size": 2},
    "form": FORM - 1,
    "number": 7,
    "hash": "f" * 64,
}


def entry(stack_id: UUID = STACKS[0], kind: str = "continue", **more: Json) -> Entry:
    fields: dict[str, Json] = {"hook_id": UUID(int=9), "by": "ann", "channel": "api",
                              "at": TIME}  # fmt: skip
    return Entry(stack_id, kind=kind, **fields | more)


CHAIN = chain_entries([entry(data={"size": n}) for n in (0, 1, 3)], {})


def renumbered(chain: list[Entry]) -> list[Entry]:
    return [replace(one, number=place) for place, one in enumerate(chain, start=1)]


def test_a_chain_as_written_verifies() -> None:
    assert [one.number for one in CHAIN] == [1, 2, 3]
    assert [len(one.hash) for one in CHAIN] == [64, 64, 64]
    assert first_error(CHAIN) is None
    assert first_error(CHAIN[:2]) is None


@pytest.mark.parametrize("name", [one.name for one in fields(Entry)])
def test_a_change_of_any_field_is_found(name: str) -> None:
    changed = replace(CHAIN[1], **{name: CHANGES.get(name, "changed")})
    assert (first_error([CHAIN[0], changed, CHAIN[2]]) or "").startswith("entry 2 ")


def test_a_removed_entry_is_found() -> None:
    assert first_error([CHAIN[0], CHAIN[2]]) == "entry 2 is missing"
    assert (first_error(renumbered([CHAIN[0], CHAIN[2]])) or "").startswith("entry 2 ")


def test_swapped_entries_are_found() -> None:
    swapped = [CHAIN[1], CHAIN[0], CHAIN[2]]
    assert (first_error(swapped) or "").startswith("entry 1 ")
    assert (first_error(renumbered(swapped)) or "").startswith("entry 1 ")


def test_an_inserted_entry_is_found() -> None:
    forged = replace(entry(kind="reject"), number=2)
    forged = replace(forged, hash=hash_of(forged, CHAIN[0].hash))
    assert first_error(renumbered([CHAIN[0], forged, *CHAIN[1:]])) is not None


def test_the_first_entry_of_a_stack_has_no_predecessor() -> None:
    (one,) = chain_entries([entry()], {})
    assert one.hash == hash_of(replace(one, hash=""), NOTHING)
    assert first_error(chain_entries([entry()], {STACKS[0]: (0, "a" * 64)})) is not None


def test_an_entry_of_another_stack_does_not_verify() -> None:
    (mine,), (theirs,) = chain_entries([entry()], {}), chain_entries([entry(STACKS[1])], {})
    assert mine.hash != theirs.hash
    assert first_error([replace(theirs, stack_id=STACKS[0])]) is not None


def test_the_time_zone_of_an_entry_does_not_matter() -> None:
    east = timezone(timedelta(hours=5, minutes=30))
    (one,) = chain_entries([entry(at=datetime(2026, 1, 1, 12, 0, 0, 7, tzinfo=UTC))], {})
    assert first_error([replace(one, at=one.at.astimezone(east))]) is None
    assert first_error([replace(one, at=one.at + timedelta(microseconds=1))]) is not None


def test_the_order_of_keys_does_not_matter() -> None:
    one, other = (
        entry(data={"a": 1, "b": {"c": 2, "d": 3}}),
        entry(data={"b": {"d": 3, "c": 2}, "a": 1}),
    )
    assert hash_of(one, NOTHING) == hash_of(other, NOTHING)


@pytest.mark.parametrize("wrong", [2, 0, -1])
def test_a_chain_that_does_not_start_at_one_lacks_its_start(wrong: int) -> None:
    (one,) = chain_entries([entry()], {})
    assert first_error([replace(one, number=wrong)]) == "entry 1 is missing"


def entry_of_form_1(**more: Json) -> Entry:
    """An entry as an earlier version wrote it."""
    return entry(form=1, number=1, **more)


def test_an_entry_of_an_earlier_version_is_verified_with_its_fields() -> None:
    written = entry_of_form_1()
    # The hash that version 0.1 wrote for this entry.
    text = (
        f'{{"address":"","at":"2026-01-01T00:00:00.000000+00:00","by":"ann","data":null,'
        f'"digest":"","door":"api","hook_id":"{UUID(int=9)}","kind":"continue","number":1,'
        f'"reason":"","stack_id":"{STACKS[0]}"}}'
    )
    expected = hashlib.sha256(f"{NOTHING}\n{text}".encode()).hexdigest()
    assert hash_of(written, NOTHING) == expected
    newer = chain_entries([entry(principal="token:1")], {STACKS[0]: (1, expected)})
    assert first_error([replace(written, hash=expected), *newer]) is None


@pytest.mark.parametrize("added", ["principal", "token_id"])
def test_fields_that_a_form_does_not_cover_must_be_empty(added: str) -> None:
    written = entry_of_form_1()
    written = replace(written, hash=hash_of(written, NOTHING))
    forged: Entry = replace(written, **{added: "token:of-another"})  # type: ignore[arg-type]
    assert first_error([forged]) == f"entry 1 has a {added}, which its hash does not cover"


@pytest.mark.parametrize("form", [0, FORM + 1])
def test_an_unknown_form_is_found(form: int) -> None:
    odd = entry(number=1, form=form)
    odd = replace(odd, hash=hash_of(odd, NOTHING))
    assert "form" in (first_error([odd]) or "")
