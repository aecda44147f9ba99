"""Tokens and passwords: format, comparison and creation."""

from uuid import UUID, uuid4

import pytest

from engine.errors import Invalid
from hub.auth import secrets
from hub.auth.request_credentials import RequestCredentials, cache_key, request_credentials
from hub.auth.roles import IMPLIED, RIGHTS, Right, Role, rights_of, with_implied
from hub.auth.token_issuer import TokenRequest, issue


def test_a_token_contains_its_id_and_is_compared_by_hash() -> None:
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
def test_an_invalid_token_has_no_id(text: str) -> None:
    assert secrets.id_in(text) is None


def test_a_password_is_salted_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_COST", 2**4)
    one, two = (secrets.hash_password("correct horse", salt) for salt in (b"a" * 16, b"b" * 16))
    assert one != two and "correct" not in one
    assert secrets.is_password("correct horse", one) and secrets.is_password("correct horse", two)
    assert not secrets.is_password("correct hors", one)


def test_credentials_are_read_from_headers() -> None:
    assert request_credentials({"Authorization": "Basic YWRhOnB3OjE="}) == RequestCredentials(
        user="ada", password="pw:1"
    )
    assert request_credentials({"Authorization": "bEaReR  t "}).bearer == "t"
    assert request_credentials({"X-Auth-User": "a", "X-Auth-Key": "k"}) == RequestCredentials(
        user="a", password="k"
    )
    assert request_credentials({"X-Roles": "a, b,,"}).claimed_roles == ("a", "b")
    assert request_credentials({"X-Auth-User": "ada"}).is_empty


def test_different_credentials_have_different_keys() -> None:
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


def test_each_role_has_its_rights_and_those_of_implied_roles() -> None:
    assert set(RIGHTS) == set(IMPLIED) == set(Role)
    assert set(RIGHTS.values()) == set(Right) - {Right.NOTHING}
    for role, implied in IMPLIED.items():
        for one in implied:
            assert set(IMPLIED[one]) <= set(implied), role
    assert with_implied(["approver", "dba", "approver"]) == ("approver", "reader", "dba")
    assert rights_of(["dba"]) == {Right.NOTHING}


def token_request(**more: object) -> TokenRequest:
    values: dict[str, object] = {
        "id": UUID(int=1), "project": "p", "name": "ci", "roles": ["author"], "by": "root",
        "random_bytes": b"r" * 32,
    }  # fmt: skip
    return TokenRequest(**(values | more))  # type: ignore[arg-type]


def test_issued_credentials_are_stored_as_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_COST", 2**4)
    stored, token = issue(token_request(expires_in="90d"))
    assert token is not None and secrets.is_token(token, stored.hash)
    assert stored.lasts is not None and stored.lasts.days == 90
    stored, token = issue(token_request(password="long enough it is"))
    assert token is None and secrets.is_password("long enough it is", stored.hash)
    assert "long enough" not in repr(token_request(password="long enough it is"))


def test_a_password_of_the_form_of_a_token_is_refused() -> None:
    with pytest.raises(Invalid, match="has the form of a token"):
        issue(token_request(password=secrets.write_token(UUID(int=1), b"r" * 32)))


def test_all_errors_of_a_token_request_are_reported_at_once() -> None:
    with pytest.raises(Invalid) as refused:
        issue(token_request(name="", roles=["boss"], expires_in="x", password="short"))
    places = [one.place for one in refused.value.findings]
    assert places == ["name", "roles", "expires_in", "password"]
    assert "short" not in str(refused.value)
