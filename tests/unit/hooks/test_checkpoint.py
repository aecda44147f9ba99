"""Signed checkpoints: changed, forged, reordered and removed ones are found."""

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from engine.hooks.checkpoint import (
    FIRST,
    Checkpoint,
    Head,
    Signer,
    as_document,
    digest_of,
    first_fault,
    from_document,
    newest_heads,
    sign,
)

TIME = datetime(2026, 11, 23, 4, 5, 6, 7, tzinfo=UTC)
ONE, TWO = UUID(int=1), UUID(int=2)


def signer(key: bytes) -> Callable[[bytes], bytes]:
    return lambda message: hmac.digest(key, message, hashlib.sha256)


KEYS = {"k": b"key"}


def verify(key_id: str, message: bytes, signature: bytes) -> bool | None:
    key = KEYS.get(key_id)
    return None if key is None else signer(key)(message) == signature


def chain(count: int, project: str = "p") -> list[Checkpoint]:
    checkpoints: list[Checkpoint] = []
    previous = FIRST
    for number in range(1, count + 1):
        heads = [Head(ONE, number, f"{number:064x}"), Head(TWO, 1, "f" * 64)]
        one = Checkpoint(project, number, TIME, previous, heads)
        checkpoints.append(sign(one, Signer("k", signer(b"key"))))
        previous = checkpoints[-1].digest
    return checkpoints


def test_valid_chains_of_several_projects_have_no_error() -> None:
    assert first_fault([*chain(3), *chain(2, "q")], verify) is None


def test_a_checkpoint_is_restored_from_its_json_line() -> None:
    (one,) = chain(1)
    assert from_document(json.loads(json.dumps(as_document(one)))) == one
    assert as_document(one)["at"] == "2026-11-23T04:05:06.000007Z"


def test_a_checkpoint_repeated_after_a_crash_is_no_error() -> None:
    first, second = chain(2)
    assert first_fault([first, first, second, second], verify) is None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"heads": [Head(ONE, 2, "0" * 64)]}, "checkpoint 2 of project p was changed"),
        ({"at": datetime(2000, 1, 1, tzinfo=UTC)}, "checkpoint 2 of project p was changed"),
        ({"project": "q"}, "checkpoint 2 of project q was changed"),
        ({"signature": "00" * 32}, "checkpoint 2 of project p has no valid signature"),
        ({"signature": "no hex"}, "checkpoint 2 of project p has no valid signature"),
        ({"key_id": "other"}, "checkpoint 2 of project p is signed by key other"),
    ],
)
def test_a_changed_checkpoint_is_named(change: dict[str, object], fault: str) -> None:
    first, second, third = chain(3)
    found = first_fault([first, replace(second, **change), third], verify)  # type: ignore[arg-type]
    assert found is not None and found.startswith(fault)


def test_a_changed_checkpoint_with_a_new_digest_has_no_valid_signature() -> None:
    first, second = chain(2)
    forged = replace(second, heads=[Head(ONE, 2, "0" * 64)])
    forged = replace(forged, digest=digest_of(forged))
    assert first_fault([first, forged], verify) == (
        "checkpoint 2 of project p has no valid signature"
    )


def test_a_missing_checkpoint_is_named_by_its_successor() -> None:
    first, _, third = chain(3)
    assert first_fault([first, third], verify) == (
        "a checkpoint before checkpoint 3 of project p is missing"
    )
    assert first_fault(chain(3)[1:], verify) is not None


def test_every_head_that_was_signed_counts() -> None:
    heads = newest_heads(chain(3))
    assert [head.number for head in heads[ONE]] == [1, 2, 3]
    assert [head.number for head in heads[TWO]] == [1]


@pytest.mark.parametrize("document", [None, [], "x", {}, {"project": "p"}, {"heads": [1]}])
def test_an_invalid_line_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match="not a checkpoint"):
        from_document(document)
