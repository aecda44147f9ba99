"""Signatures, verified with the library of receivers."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from channels.webhook import sign
from headgate import signatures

SENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "webhooks.md"
FIRST, SECOND = sign.secret_of(bytes(range(24))), sign.secret_of(bytes(range(32)))


def test_signatures_follow_the_standard() -> None:
    body = '{"grüße": 1}'
    headers = sign.headers("an-id", SENT, body.encode(), [FIRST])
    assert headers["webhook-id"] == "an-id"
    assert headers["webhook-timestamp"] == str(int(SENT.timestamp()))
    assert headers["webhook-signature"] == Webhook(FIRST).sign("an-id", SENT, body)


def test_each_secret_signs() -> None:
    headers = sign.headers("an-id", SENT, b"{}", [FIRST, SECOND])
    expected = [Webhook(secret).sign("an-id", SENT, "{}") for secret in (FIRST, SECOND)]
    assert headers["webhook-signature"].split(" ") == expected


@pytest.mark.parametrize("secret", [FIRST, SECOND])
def test_a_receiver_verifies_a_request(secret: str) -> None:
    headers = sign.headers("an-id", SENT, b"{}", [FIRST, SECOND])
    assert signatures.is_signed(
        headers, b"{}", secret, SENT + signatures.TOLERANCE - timedelta(seconds=1)
    )


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "another"},
        {"webhook-timestamp": str(int(SENT.timestamp()) + 1)},
        {"webhook-timestamp": "now"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,gr\udcff"},
        {"webhook-signature": "v1," + "A" * 43 + "="},
    ],
    ids=["id", "time", "no time", "no signature", "not ASCII", "another secret"],
)
def test_a_receiver_refuses_a_request_that_was_changed(change: dict[str, str]) -> None:
    headers = sign.headers("an-id", SENT, b"{}", [FIRST])
    assert signatures.is_signed(headers, b"{}", FIRST, SENT)
    assert not signatures.is_signed(headers | change, b"{}", FIRST, SENT)
    assert not signatures.is_signed(headers, b"{} ", FIRST, SENT)
    assert not signatures.is_signed(headers, b"{}", SECOND, SENT)
    assert not signatures.is_signed({}, b"{}", FIRST, SENT)
    for age in (
        signatures.TOLERANCE + timedelta(seconds=1),
        -signatures.TOLERANCE - timedelta(seconds=1),
    ):
        assert not signatures.is_signed(headers, b"{}", FIRST, SENT + age)


def test_the_format_of_secrets() -> None:
    assert signatures.is_secret(FIRST)
    for wrong in ("", "whsec_", "whsec_QUFB", FIRST[6:], FIRST + "!", "whsec_" + "A" * 400):
        assert not signatures.is_secret(wrong)
    with pytest.raises(ValueError, match="24 to 64"):
        sign.secret_of(b"short")


def test_the_example_of_the_reference_verifies_signatures() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", REFERENCE.read_text(), re.S)
    names: dict[str, Any] = {}
    exec(example, names)
    headers = sign.headers("an-id", datetime.now(UTC), b"{}", [FIRST])
    assert names["is_authentic"](FIRST, headers, b"{}")
    assert not names["is_authentic"](FIRST, headers, b"{} ")
    assert not names["is_authentic"](SECOND, headers, b"{}")
    assert not names["is_authentic"](FIRST, sign.headers("an-id", SENT, b"{}", [FIRST]), b"{}")
