"""The codes of logins of the command line."""

import random
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.auth.cli_login import (
    CliLogin,
    LoginCode,
    is_valid,
    login_of,
    read_login_code,
    write_login_code,
)
from hub.auth.login_secrets import challenge_of, is_user_code, new_login_secrets

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
VERIFIER = "v" * 43
LOGIN = login_of("web", VERIFIER, "BCDF-GHJK")
CODE = LoginCode(UUID(int=1), UUID(int=2), 1_800_000_000)
TEXT = write_login_code(KEY, CODE, LOGIN)


def test_a_code_is_read_for_its_login_however_the_user_has_typed_it() -> None:
    assert read_login_code([OTHER_KEY, KEY], TEXT, LOGIN) == CODE
    for typed in ("bcdf-ghjk", "BCDFGHJK", " BCDF GHJK "):
        assert read_login_code([KEY], TEXT, replace(LOGIN, user_code=typed)) == CODE


@pytest.mark.parametrize(
    "other",
    [
        login_of("web", "w" * 43, "BCDF-GHJK"),
        login_of("web", VERIFIER, "BCDF-GHJL"),
        login_of("we", VERIFIER, "BCDF-GHJK"),
        login_of("web", VERIFIER, ""),
        CliLogin("web", "", "BCDF-GHJK"),
        CliLogin("web", VERIFIER, "BCDF-GHJK"),
    ],
    ids=["verifier", "user code", "project", "no user code", "no challenge", "plain challenge"],
)
def test_a_code_is_not_read_for_another_login(other: CliLogin) -> None:
    assert read_login_code([KEY], TEXT, other) is None


def test_a_code_of_another_key_is_not_read() -> None:
    assert read_login_code([OTHER_KEY], TEXT, LOGIN) is None
    assert read_login_code([], TEXT, LOGIN) is None


@given(st.integers(0, len(TEXT) - 1), st.sampled_from("AZaz09-_"))
def test_a_changed_code_is_not_read(at: int, letter: str) -> None:
    changed = TEXT[:at] + letter + TEXT[at + 1 :]
    found = read_login_code([KEY], changed, LOGIN)
    assert found is None if changed != TEXT else found == CODE


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_no_other_text_is_a_code(text: str) -> None:
    assert read_login_code([KEY], text, LOGIN) is None


def test_the_challenge_is_that_of_rfc_7636() -> None:
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert challenge_of(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_new_secrets_are_valid_and_not_shown() -> None:
    source = random.Random(1)
    one, two = (new_login_secrets(source.randbytes, source.choice) for _ in range(2))
    assert is_user_code(one.user_code) and one.user_code[4] == "-"
    assert is_valid(CliLogin("web", one.challenge, one.user_code))
    assert not {one.verifier, one.state, one.user_code} & {two.verifier, two.state, two.user_code}
    assert len({one.verifier, one.state, one.challenge}) == 3
    for secret in (one.verifier, one.state, one.user_code):
        assert secret not in repr(one)


@pytest.mark.parametrize("text", ["", "BCDF-GHJ", "BCDF-GHJKL", "BCDF-GHJA", "BCDF-GHJ1"])
def test_other_texts_are_no_user_codes(text: str) -> None:
    assert not is_user_code(text)
