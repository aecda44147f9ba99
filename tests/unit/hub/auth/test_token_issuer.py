"""Names of users and tokens."""

from uuid import UUID

import pytest

from engine.errors import Invalid
from hub.auth.token_issuer import TokenRequest, issue


def request(password: str | None) -> TokenRequest:
    return TokenRequest(
        UUID(int=1), "p", "ci:deploy", ["author"], "test", password, random_bytes=bytes(32)
    )


def test_a_password_needs_a_name_without_a_colon() -> None:
    with pytest.raises(Invalid) as error:
        issue(request("long enough for a password"))
    (finding,) = error.value.findings
    assert finding.place == "name"
    assert "contains a colon" in finding.reason


def test_a_token_may_have_a_name_with_a_colon() -> None:
    assert issue(request(None))[0].name == "ci:deploy"
