"""The validation of what an OpenID provider and a browser send."""

import hmac
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from engine.errors import Forbidden, HeadgateError, Unavailable
from engine.hooks.derived_tokens import base64_text
from hub.auth.oidc import (
    RANDOM_BYTES,
    OidcRules,
    OidcUser,
    PendingSignIn,
    Provider,
    RoleGrant,
    UnknownKey,
    authorization_code,
    authorization_url,
    begin_sign_in,
    grant_roles,
    is_complete,
    read_cookie,
    read_id_token,
    read_provider,
    read_user,
    with_userinfo,
    write_cookie,
)
from hub.auth.roles import with_implied

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
ISSUER, CLIENT, NONCE = "https://login.example.org/realms/ops", "headgate", "n-1"
RULES = OidcRules(ISSUER, CLIENT, ["openid"], "preferred_username", "groups", 60, [])
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
KEYS = KeySet.import_key_set({"keys": [key.as_dict(private=False) for key in (RSA, EC)]})
DOCUMENT = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/auth",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/keys",
}


def seconds(after: timedelta) -> int:
    return int((NOW + after).timestamp())


def claims(**changed: Any) -> dict[str, Any]:
    """Those of a valid ID token. None removes one."""
    values = {
        "iss": ISSUER,
        "aud": CLIENT,
        "sub": "id-of-ann",
        "nonce": NONCE,
        "iat": seconds(timedelta(seconds=-5)),
        "exp": seconds(timedelta(minutes=5)),
        "preferred_username": "ann",
        "groups": ["builders"],
        **changed,
    }
    return {name: value for name, value in values.items() if value is not None}


def sign(content: Mapping[str, Any], *, alg: str = "RS256", key: Any = RSA, kid: str = "") -> str:
    header = {"alg": alg, "kid": kid or key.kid}
    return jwt.encode(header, dict(content), key, algorithms=[alg])


def read(token: str, rules: OidcRules = RULES) -> OidcUser:
    return read_user(read_id_token(token, KEYS, rules, NONCE, NOW), rules)


@pytest.mark.parametrize(("alg", "key"), [("RS256", RSA), ("PS384", RSA), ("ES256", EC)])
def test_a_valid_token_names_its_user(alg: str, key: Any) -> None:
    user = read(sign(claims(), alg=alg, key=key))
    assert user == OidcUser("id-of-ann", "ann", ["builders"])


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://evil.example.org"},
        {"iss": f"{ISSUER}/"},
        {"aud": "another"},
        {"aud": ["another"]},
        {"aud": [CLIENT, "another"]},
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"azp": "another"},
        {"nonce": "n-2"},
        {"exp": seconds(timedelta(seconds=-61))},
        {"exp": "tomorrow"},
        {"nbf": seconds(timedelta(seconds=61))},
        {"iat": seconds(timedelta(seconds=61))},
        {"sub": ""},
        {"sub": 7},
        {"sub": "x" * 256},
        {"sub": "a\0"},
        {"sub": "é"},
        *({name: None} for name in ("iss", "aud", "sub", "nonce", "exp", "iat")),
    ],
    ids=str,
)
def test_a_token_with_another_claim_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(HeadgateError) as raised:
        read(sign(claims(**changed)))
    assert raised.value.code == "Unauthorized"
    assert raised.value.finding.remedy


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": [CLIENT]},
        {"aud": [CLIENT, "another"], "azp": CLIENT},
        {"azp": CLIENT},
        {"exp": seconds(timedelta(seconds=-59))},
    ],
    ids=str,
)
def test_these_claims_are_accepted(changed: dict[str, Any]) -> None:
    assert read(sign(claims(**changed))).name == "ann"


def encode(header: Mapping[str, str]) -> str:
    return base64_text(json.dumps(header).encode())


def test_tokens_with_other_signatures_are_refused() -> None:
    other = RSAKey.generate_key(2048, {"kid": "rsa"})
    head, body, _ = sign(claims()).split(".")
    by_public_key = f"{encode({'alg': 'HS256', 'kid': 'rsa'})}.{body}"
    mac = hmac.digest(RSA.as_pem(private=False), by_public_key.encode(), "sha256")
    forged = [
        f"{encode({'alg': 'none', 'kid': 'rsa'})}.{body}.",
        f"{by_public_key}.{base64_text(mac)}",
        sign(claims(), key=other),
        f"{head}.{body}.",
        f"{head}.{body}",
        "",
        "x.y.z",
        sign(claims(), alg="ES256", key=EC, kid="rsa"),
    ]
    for token in forged:
        with pytest.raises(HeadgateError) as raised:
            read(token)
        assert raised.value.code == "Unauthorized", token


def test_an_unknown_key_is_read_again() -> None:
    with pytest.raises(UnknownKey):
        read(sign(claims(), kid="next"))


def test_the_name_comes_from_the_claim_of_the_settings() -> None:
    rules = replace(RULES, user_claim="email")
    content = claims(email="ann@example.org", email_verified=True)
    assert read(sign(content), rules).name == "ann@example.org"
    for unverified in (False, None, "true"):
        with pytest.raises(HeadgateError, match="has not verified"):
            read(sign(claims(email="ann@example.org", email_verified=unverified)), rules)
    for unprintable in ("b\u200bob", "x" * 256):
        with pytest.raises(HeadgateError, match="cannot be printed"):
            read(sign(claims(preferred_username=unprintable)))
    with pytest.raises(HeadgateError, match='no claim "preferred_username"'):
        read(sign(claims(preferred_username=" ")))


def test_groups_of_other_forms() -> None:
    forms = {"one": ["one"], "": [""]}
    for text, groups in forms.items():
        assert read(sign(claims(groups=text))).groups == groups
    assert read(sign(claims(groups={"a": 1}))).groups == []
    assert read(sign(claims(groups=["a", 7, None]))).groups == ["a"]


def test_the_userinfo_endpoint_completes_the_claims_of_the_same_user() -> None:
    token = {"sub": "id-of-ann", "preferred_username": "ann"}
    assert not is_complete(token, RULES)
    complete = with_userinfo(
        token, {"sub": "id-of-ann", "groups": ["a"], "preferred_username": "other"}
    )
    assert complete == {"sub": "id-of-ann", "groups": ["a"], "preferred_username": "ann"}
    assert is_complete(complete, RULES)
    address = {"sub": "id-of-ann", "email": "ann@example.org"}
    verified = {"sub": "id-of-ann", "email": "other@example.org", "email_verified": True}
    assert "email_verified" not in with_userinfo(address, verified)
    assert with_userinfo(token, verified)["email_verified"] is True
    others: list[Any] = [{"sub": "id-of-bob"}, {}, [], None]
    for document in others:
        with pytest.raises(HeadgateError, match="another user"):
            with_userinfo(token, document)


def test_the_provider_is_read_from_its_discovery_document() -> None:
    assert read_provider(DOCUMENT, ISSUER) == Provider(
        f"{ISSUER}/auth", f"{ISSUER}/token", f"{ISSUER}/keys", "", sends_issuer=False, basic=True
    )
    for nonsense in (5, "client_secret_basic", None):
        document = DOCUMENT | {"token_endpoint_auth_methods_supported": nonsense}
        assert not read_provider(document, ISSUER).basic
    more = {
        "userinfo_endpoint": f"{ISSUER}/me",
        "authorization_response_iss_parameter_supported": True,
        "token_endpoint_auth_methods_supported": ["client_secret_post"],
    }
    found = read_provider(DOCUMENT | more, ISSUER)
    assert (found.userinfo_endpoint, found.sends_issuer, found.basic) == (
        f"{ISSUER}/me", True, False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "names the issuer null"),
        ({**DOCUMENT, "issuer": "https://evil.example.org"}, "names the issuer"),
        ({**DOCUMENT, "jwks_uri": None}, "no valid jwks_uri"),
        ({**DOCUMENT, "token_endpoint": "http://login.example.org/token"}, "token_endpoint"),
        ({**DOCUMENT, "authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint"),
        ({**DOCUMENT, "jwks_uri": "https://[1"}, "jwks_uri"),
    ],
)
def test_a_discovery_document_that_is_not_valid(document: Any, reason: str) -> None:
    with pytest.raises(Unavailable, match=reason):
        read_provider(document, ISSUER)


def pending(page: str = "#/p/inbox") -> PendingSignIn:
    return begin_sign_in("p", page, bytes(range(3 * RANDOM_BYTES)))


def test_state_nonce_and_verifier_differ_and_the_verifier_is_not_sent() -> None:
    one = pending()
    assert len({one.state, one.nonce, one.verifier}) == 3
    provider = read_provider(DOCUMENT | {"authorization_endpoint": f"{ISSUER}/auth?x=1"}, ISSUER)
    url = authorization_url(provider, RULES, one, "https://hg.example.org/oidc/callback")
    assert url.startswith(f"{ISSUER}/auth?x=1&response_type=code&client_id=headgate&")
    assert one.state in url and one.nonce in url and one.verifier not in url
    assert "code_challenge_method=S256" in url
    assert one.verifier not in repr(one)


def test_a_response_must_belong_to_the_sign_in_and_the_provider() -> None:
    one, provider = pending(), read_provider(DOCUMENT, ISSUER)
    strict = replace(provider, sends_issuer=True)
    good = {"state": one.state, "code": "c"}
    assert authorization_code(good, one, provider, ISSUER) == "c"
    assert authorization_code(good | {"iss": ISSUER}, one, strict, ISSUER) == "c"
    for query, of, reason in (
        ({}, provider, "another sign-in"),
        ({"state": "x", "code": "c"}, provider, "another sign-in"),
        ({"state": "é", "code": "c"}, provider, "another sign-in"),
        (good | {"iss": "https://evil.example.org"}, provider, "another provider"),
        (good, strict, "another provider"),
        ({"state": one.state}, provider, "has no code"),
        ({"state": one.state, "error": "access_denied"}, provider, "access_denied"),
    ):
        with pytest.raises(HeadgateError, match=reason) as raised:
            authorization_code(query, one, of, ISSUER)
        assert raised.value.code == "Unauthorized"


@pytest.mark.parametrize(
    "page", ["https://evil.example.org", "//evil.example.org", "#//\n", "x", "#", "#/a b"]
)
def test_a_browser_returns_to_pages_of_the_dashboard_only(page: str) -> None:
    assert pending(page).page == ""
    assert read_cookie(write_cookie(replace(pending(), page=page))).page == ""


def test_a_cookie_is_read_as_it_was_written() -> None:
    assert read_cookie(write_cookie(pending())) == pending()


@given(st.one_of(st.text(), st.binary().map(lambda one: one.hex())))
def test_any_other_cookie_is_refused(text: str) -> None:
    with pytest.raises(HeadgateError, match="no sign-in under way"):
        read_cookie(text)


ROLES = st.sampled_from(["reader", "author", "approver", "operator", "admin", "dba"])
GRANTS = st.lists(
    st.builds(
        RoleGrant,
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["*", "p", "q"]),
        st.lists(ROLES, min_size=1).map(tuple),
    )
)


@given(GRANTS, st.sets(st.sampled_from(["a", "b", "c"])), st.sampled_from(["p", "q"]))
def test_roles_are_those_of_the_groups_in_the_project(
    grants: list[RoleGrant], groups: set[str], project: str
) -> None:
    user = OidcUser("s", "ann", sorted(groups))
    wanted = {
        role
        for one in grants
        if one.group in groups and one.project in ("*", project)
        for role in one.roles
    }
    if not wanted:
        with pytest.raises(Forbidden, match=f"ann has no role in the project {project}"):
            grant_roles(grants, user, project)
        return
    where, roles = grant_roles(grants, user, project)
    assert set(roles) == set(with_implied(wanted))
    everywhere = all(one.project == "*" for one in grants if one.group in groups)
    assert where == ("*" if everywhere else project)
