"""Text and JSON of other services."""

import pytest

from engine.types.text_cleaning import decode_json

NESTED = 1_000


def test_json_has_no_nul() -> None:
    assert decode_json(b'{"a\\u0000": ["b\\u0000", 1, null]}') == {"a\ufffd": ["b\ufffd", 1, None]}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "unexpected character"),
        (b"[" * NESTED + b"]" * NESTED, "too many levels"),
        (b"[" * 100_000, "line 1 column"),
    ],
    ids=["html", "levels", "open"],
)
def test_what_cannot_be_processed_is_a_value_error(body: bytes, reason: str) -> None:
    """Other services choose what they respond with, also how many levels it has."""
    with pytest.raises(ValueError, match=reason):
        decode_json(body)
