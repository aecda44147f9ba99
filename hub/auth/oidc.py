"""Sign-in with OpenID Connect: the authorization code flow with PKCE. Pure.

https://openid.net/specs/openid-connect-core-1_0.html, RFC 7636 (PKCE), RFC 9207 (issuer of a
response). Headgate uses the ID token only, once, and keeps no token of the provider.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from engine.errors import Forbidden, HeadgateError, Unavailable, quote_value
from engine.hooks.derived_tokens import base64_text
from engine.store.access.tokens import EVERYWHERE
from hub.auth.identity import sanitize_name
from hub.auth.roles import with_implied
from hub.auth.token_authenticator import unauthorized_error

Json = Any

#: Signature algorithms of ID tokens: asymmetric ones only, so that no public key can sign.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512",
              "EdDSA")  # fmt: skip
#: Bytes of randomness in state, nonce and verifier.
RANDOM_BYTES = 32
#: Seconds between the redirect to the provider and the return from it.
SIGN_IN_TIME = 600
#: Maximum characters of a subject.
MAX_SUBJECT = 255
VERIFIED = "email_verified"
#: How a client authenticates at the token endpoint, unless the provider names other methods.
BASIC = "client_secret_basic"
#: A page of the dashboard, as the fragment of its address.
_PAGE = re.compile(r"#/[\x21-\x7e]{0,1000}")
_SETTING = "[auth.oidc]"


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """The roles in a project (``*``: all) of the users in a group."""

    group: str
    project: str
    roles: Sequence[str]


@dataclass(frozen=True, slots=True)
class OidcRules:
    """user_claim, groups_claim: the claims with the name of the user and the list of groups.
    clock_skew: seconds."""

    issuer: str
    client_id: str
    scopes: Sequence[str]
    user_claim: str
    groups_claim: str
    clock_skew: int
    grants: Sequence[RoleGrant]


@dataclass(frozen=True, slots=True)
class Provider:
    """The endpoints of a provider. userinfo_endpoint: "" if there is none. sends_issuer: each
    authorization response has `iss`. basic: the token endpoint accepts HTTP basic authentication.
    """

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str
    sends_issuer: bool
    basic: bool


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A sign-in between the redirect to the provider and the return, kept in a cookie of the
    browser that began it. page: of the dashboard, to which the browser returns."""

    project: str
    page: str
    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class OidcUser:
    """subject: unique and permanent at the issuer."""

    subject: str
    name: str
    groups: Sequence[str]


class UnknownKey(Exception):
    """An ID token names a key that is not among the known ones: read them again."""


def begin_sign_in(project: str, page: str, random_bytes: bytes) -> PendingSignIn:
    """random_bytes: 3 * RANDOM_BYTES. An invalid page is replaced by the first one."""
    texts = [
        base64_text(random_bytes[at : at + RANDOM_BYTES])
        for at in range(0, 3 * RANDOM_BYTES, RANDOM_BYTES)
    ]
    return PendingSignIn(project, _checked_page(page), *texts)


def _checked_page(page: str) -> str:
    """Without an address that leads anywhere else."""
    return page if _PAGE.fullmatch(page) else ""


def write_cookie(pending: PendingSignIn) -> str:
    return base64_text(orjson.dumps(asdict(pending)))


def read_cookie(text: str) -> PendingSignIn:
    """Raises HeadgateError if it is missing or invalid."""
    try:
        document = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        pending = PendingSignIn(**document)
        if all(isinstance(value, str) for value in document.values()):
            return replace(pending, page=_checked_page(pending.page))
    except (binascii.Error, ValueError, TypeError):
        pass
    raise unauthorized_error(
        "this browser has no sign-in under way: it expired or has already ended",
        "Sign in again, in one window, with cookies allowed.",
    )


def read_provider(document: Json, issuer: str) -> Provider:
    """The endpoints in a discovery document. Raises Unavailable."""
    if not isinstance(document, Mapping) or document.get("issuer") != issuer:
        found = document.get("issuer") if isinstance(document, Mapping) else None
        other = f"{quote_value(found)}, not {quote_value(issuer)}"
        raise unavailable(f"its discovery document names the issuer {other}")
    names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
    missing = [name for name in names if not _is_endpoint(document.get(name), issuer)]
    if missing:
        raise unavailable(f"its discovery document has no valid {', '.join(missing)}")
    userinfo = document.get("userinfo_endpoint")
    methods = document.get("token_endpoint_auth_methods_supported", [BASIC])
    return Provider(
        authorization_endpoint=document["authorization_endpoint"],
        token_endpoint=document["token_endpoint"],
        jwks_uri=document["jwks_uri"],
        userinfo_endpoint=str(userinfo) if _is_endpoint(userinfo, issuer) else "",
        sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
        basic=isinstance(methods, list) and BASIC in methods,
    )


def _is_endpoint(url: Json, issuer: str) -> bool:
    """An issuer with TLS has endpoints with TLS."""
    if not isinstance(url, str):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    schemes = ("https",) if issuer.startswith("https:") else ("https", "http")
    return parts.scheme in schemes and bool(parts.hostname)


def authorization_url(
    provider: Provider, rules: OidcRules, pending: PendingSignIn, redirect_uri: str
) -> str:
    """Where the browser signs in: Core 1.0, section 3.1.2.1."""
    challenge = base64_text(hashlib.sha256(pending.verifier.encode()).digest())
    query = {
        "response_type": "code",
        "client_id": rules.client_id,
        "redirect_uri": redirect_uri,
        "scope": " ".join(rules.scopes),
        "state": pending.state,
        "nonce": pending.nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    separator = "&" if "?" in provider.authorization_endpoint else "?"
    return f"{provider.authorization_endpoint}{separator}{urlencode(query)}"


def authorization_code(
    query: Mapping[str, str], pending: PendingSignIn, provider: Provider, issuer: str
) -> str:
    """The code in the response of the provider. Raises HeadgateError with the code Unauthorized."""
    state, iss = query.get("state", ""), query.get("iss")
    if not hmac.compare_digest(state.encode(), pending.state.encode()):
        raise unauthorized_error(
            "the response belongs to another sign-in", "Sign in again, in one window."
        )
    if iss != issuer and (iss is not None or provider.sends_issuer):
        raise unauthorized_error(
            "the response comes from another provider than the one that was requested",
            "Sign in again; if it happens again, tell the operator.",
        )
    if error := query.get("error"):
        reason = sanitize_name(query.get("error_description") or error)
        raise unauthorized_error(f"the provider refused the sign-in: {reason}", "Sign in again.")
    code = query.get("code", "")
    if not code:
        raise unauthorized_error("the response of the provider has no code", "Sign in again.")
    return code


def read_id_token(
    token: str, keys: KeySet, rules: OidcRules, nonce: str, now: datetime
) -> Mapping[str, Json]:
    """The claims of an ID token, which is validated: Core 1.0, section 3.1.3.7.

    Raises UnknownKey, and HeadgateError with the code Unauthorized.
    """
    try:
        claims = jwt.decode(token, keys, algorithms=ALGORITHMS).claims
        jwt.JWTClaimsRegistry(
            now=int(now.timestamp()),
            leeway=rules.clock_skew,
            iss={"essential": True, "value": rules.issuer},
            aud={"essential": True, "value": rules.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        ).validate(claims)
    except InvalidKeyIdError:
        raise UnknownKey from None
    except (JoseError, ValueError, TypeError) as error:
        raise _invalid_token(str(error) or type(error).__name__) from None
    audience, party = claims["aud"], claims.get("azp")
    several = isinstance(audience, list) and len(audience) > 1
    if party != rules.client_id and (several or party is not None):
        raise _invalid_token("it was issued to another client")
    return claims


def is_complete(claims: Mapping[str, Json], rules: OidcRules) -> bool:
    """Whether an ID token has the claims about the user; others are at the userinfo endpoint."""
    return rules.user_claim in claims and rules.groups_claim in claims


def with_userinfo(claims: Mapping[str, Json], document: Json) -> Mapping[str, Json]:
    """The claims of an ID token and of a response of the userinfo endpoint: Core 1.0, section 5.3.

    Raises HeadgateError with the code Unauthorized.
    """
    if not isinstance(document, Mapping) or document.get("sub") != claims["sub"]:
        raise _invalid_token("the userinfo endpoint describes another user")
    # Whether an address is verified belongs to the address of the same source.
    left_out = VERIFIED if "email" in claims else ""
    return {**{name: one for name, one in document.items() if name != left_out}, **claims}


def read_user(claims: Mapping[str, Json], rules: OidcRules) -> OidcUser:
    """Raises HeadgateError with the code Unauthorized."""
    subject, name = claims["sub"], claims.get(rules.user_claim)
    printable = isinstance(subject, str) and subject.isascii() and subject.isprintable()
    if not printable or not 0 < len(subject) <= MAX_SUBJECT:
        raise _invalid_token(f"its subject is not 1 to {MAX_SUBJECT} printable ASCII characters")
    if not isinstance(name, str) or not name.strip():
        raise unauthorized_error(
            f'the provider sends no claim "{rules.user_claim}" with the name of the user',
            f"The operator adds a scope to {_SETTING} scopes, or sets another user_claim.",
        )
    if sanitize_name(name) != name.strip():
        raise unauthorized_error(
            "the name of the user is too long, or has characters that cannot be printed",
            "Change it at the provider; or the operator sets another user_claim.",
        )
    if rules.user_claim == "email" and claims.get(VERIFIED) is not True:
        raise unauthorized_error(
            "the provider has not verified the e-mail address",
            "Verify it at the provider; or the operator sets another user_claim.",
        )
    groups = claims.get(rules.groups_claim, [])
    if isinstance(groups, str):
        groups = [groups]
    known = groups if isinstance(groups, list) else []
    return OidcUser(subject, sanitize_name(name), [one for one in known if isinstance(one, str)])


def grant_roles(
    grants: Sequence[RoleGrant], user: OidcUser, project: str
) -> tuple[str, tuple[str, ...]]:
    """The project and roles of a sign-in to a project. The project is ``*`` if all grants of the
    user's groups are for every project. Raises Forbidden."""
    own = [one for one in grants if one.group in user.groups]
    here = with_implied(
        role for one in own if one.project in (EVERYWHERE, project) for role in one.roles
    )
    if not here:
        raise Forbidden(
            f"{user.name} has no role in the project {project}",
            remedy=f"Choose another project, or ask the operator: {_SETTING} grants gives roles to"
            " the groups of the provider.",
            code="InvalidTenant",
        )
    is_everywhere = all(one.project == EVERYWHERE for one in own)
    return (EVERYWHERE if is_everywhere else project), here


def _invalid_token(reason: str) -> HeadgateError:
    return unauthorized_error(
        f"the ID token of the provider is not valid: {reason}",
        f"Sign in again. If it happens again, the operator compares {_SETTING} issuer and client_id"
        " with the provider, and the clocks of both.",
    )


def unavailable(reason: str) -> Unavailable:
    return Unavailable(
        f"the OpenID provider is unavailable: {reason}",
        place=f"{_SETTING} issuer",
        remedy="Try again later, or sign in with a token or password.",
        code="OidcUnavailable",
    )
