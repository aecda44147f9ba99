"""Tokens and passwords, presented, compared and given out."""

import base64
import hashlib
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as draw
from hypothesis import strategies as st

from engine.errors import Invalid
from hub.auth import secrets
from hub.auth.credentials import RequestCredentials, cache_key, request_credentials
from hub.auth.roles import IMPLIED, RIGHTS, Right, Role, rights_of, with_implied
from hub.auth.token_issuer import TokenRequest, given


def test_a_token_names_its_id_and_hides_the_rest() -> None:
    token_id = uuid4()
    token = secrets.write_token(token_id, bytes(range(32)))
    assert secrets.id_in(token) == token_id
    hashed = secrets.hash_token(token)
    assert token not in hashed and token[-43:] not in hashed
    assert secrets.is_token(token, hashed)
    assert not secrets.is_token(token[:-1] + "x", hashed)


@pytest.mark.parametrize(
    "text", ["", "hgt_", "hgt_" + "0" * 32, "hgt_" + "g" * 32 + "_" + "A" * 43,
             "hgt_" + "0" * 32 + "_" + "A" * 44, " hgt_" + "0" * 32 + "_" + "A" * 43, "gAAAAAB"]
)  # fmt: skip
def test_what_is_no_token_has_no_id(text: str) -> None:
    assert secrets.id_in(text) is None


def test_a_password_is_salted_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_COST", 2**4)
    one, two = (secrets.hash_password("correct horse", salt) for salt in (b"a" * 16, b"b" * 16))
    assert one != two and "correct" not in one
    assert secrets.is_password("correct horse", one) and secrets.is_password("correct horse", two)
    assert not secrets.is_password("correct hors", one)


#: "correct horse", as version 0.1.0 stored it.
OLD = "scrypt$16384$8$1$YWFhYWFhYWFhYWFhYWFhYQ$"


def test_a_hash_with_other_parameters_is_compared_and_known_as_weak() -> None:
    digest = hashlib.scrypt(b"correct horse", salt=b"a" * 16, n=2**14, r=8, p=1, dklen=32)
    old = OLD + base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert secrets.is_password("correct horse", old) and not secrets.is_password("other", old)
    now = secrets.hash_password("correct horse", b"a" * 16)
    assert now.startswith("scrypt$131072$8$1$")  # what OWASP recommends
    assert (secrets.is_weak(old), secrets.is_weak(now)) == (True, False)
    assert not secrets.is_weak(secrets.NO_PASSWORD)
    assert not secrets.is_password("", secrets.NO_PASSWORD)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)  # it imports as it begins
@draw(st.dictionaries(
    st.sampled_from(["Authorization", "X-Auth-Token", "X-Auth-User", "X-Auth-Key", "X-Roles",
                     "X-Headgate-Credential"]),
    st.text(max_size=60)
    | st.sampled_from(["Basic", "Basic YTpi", "Bearer", "bearer x", "Basic é"]),
))  # fmt: skip
def test_whatever_headers_say_something_is_read_and_never_shown(headers: dict[str, str]) -> None:
    found = request_credentials(headers)
    shown = RequestCredentials(user=found.user, said_roles=found.said_roles)
    assert repr(found) == repr(shown)  # nothing else is in it


def test_what_headers_present() -> None:
    assert request_credentials({"Authorization": "Basic YWRhOnB3OjE="}) == RequestCredentials(
        user="ada", password="pw:1"
    )
    assert request_credentials({"Authorization": "bEaReR  t "}).bearer == "t"
    assert request_credentials({"X-Auth-User": "a", "X-Auth-Key": "k"}) == RequestCredentials(
        user="a", password="k"
    )
    assert request_credentials({"X-Roles": "a, b,,"}).said_roles == ("a", "b")
    assert request_credentials({"X-Auth-User": "ada"}).nothing


def test_keys_of_what_differs_differ() -> None:
    here, there = (
        RequestCredentials(password="a", block=one) for one in ("203.0.113.7", "203.0.113.8")
    )
    assert cache_key(here) != cache_key(there)
    some = [
        RequestCredentials(token="a"), RequestCredentials(bearer="a"),
        RequestCredentials(user="a"), RequestCredentials(password="a"),
        RequestCredentials(user="a", password="b"), RequestCredentials(user="a\0b"),
    ]  # fmt: skip
    assert len({cache_key(one, project) for one in some for project in ("p", "q")}) == 12


def test_each_role_has_a_right_and_what_it_implies() -> None:
    assert set(RIGHTS) == set(IMPLIED) == set(Role)
    assert set(RIGHTS.values()) == set(Right) - {Right.NOTHING}
    for role, implied in IMPLIED.items():
        for one in implied:
            assert set(IMPLIED[one]) <= set(implied), role
    assert with_implied(["approver", "dba", "approver"]) == ("approver", "reader", "dba")
    assert rights_of(["dba"]) == {Right.NOTHING}


def wish(**more: object) -> TokenRequest:
    said: dict[str, object] = {
        "id": UUID(int=1), "project": "p", "name": "ci", "roles": ["author"], "by": "root",
        "random_bytes": b"r" * 32,
    }  # fmt: skip
    return TokenRequest(**(said | more))  # type: ignore[arg-type]


def test_what_is_given_and_what_is_kept_of_it() -> None:
    kept, token = given(wish(expires_in="90d"))
    assert token is not None and secrets.is_token(token, kept.hash)
    assert kept.lasts is not None and kept.lasts.days == 90
    kept, token = given(wish(password="long enough it is"))
    assert token is None and secrets.is_password("long enough it is", kept.hash)
    assert "long enough" not in repr(wish(password="long enough it is"))


def test_a_password_of_the_form_of_a_token_is_refused() -> None:
    with pytest.raises(Invalid, match="has the form of a token"):
        given(wish(password=secrets.write_token(UUID(int=1), b"r" * 32)))


def test_all_that_is_wrong_with_a_wish_is_said_at_once() -> None:
    with pytest.raises(Invalid) as refused:
        given(wish(name="", roles=["boss"], expires_in="x", password="short"))
    places = [one.place for one in refused.value.findings]
    assert places == ["name", "roles", "expires_in", "password"]
    assert "short" not in str(refused.value)
