"""The authenticator of the mode that the settings name."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_never
from uuid import uuid4

from engine.store.access.password_lockout import AttemptLimits
from engine.store.access.tokens import CHANNEL
from engine.store.database import Database
from engine.store.encryption.secret_values import Keyring
from hub.auth.identity import Anonymous, Authenticator
from hub.auth.keystone import Keystone, KeystoneRules
from hub.auth.keystone_client import KeystoneAccess, KeystoneClient
from hub.auth.observation_credentials import ObservationCredentials
from hub.auth.oidc import OidcRules, RoleGrant
from hub.auth.oidc_client import OidcClient
from hub.auth.password_attempts import PasswordAttempts
from hub.auth.passwords import PasswordChecker, PasswordHasher
from hub.auth.token_authenticator import Tokens
from hub.auth.trusts import Trusts
from hub.settings.access import Auth


@asynccontextmanager
async def open_authenticator(
    auth: Auth,
    database: Database,
    hasher: PasswordHasher,
    keyring: Keyring | None,
    others: Callable[[], Sequence[Database]] = tuple,
    changed: Callable[[], None] = lambda: None,
) -> AsyncIterator[Authenticator]:
    """keyring: encrypts trusts; None: changes act by tokens. others: the databases of other cells
    that respond. changed: called when tokens of this database have changed. Raises Unavailable."""
    remember = auth.cache_ttl.total_seconds()
    match auth.mode:
        case "none":
            yield Anonymous()
        case "tokens":
            limits = AttemptLimits(auth.failures, auth.lockout)
            attempts = PasswordAttempts(database, limits, others)
            passwords = PasswordChecker(database, hasher.queue, attempts, remember=remember)
            tokens = Tokens(database, passwords, remember=remember, issuer=auth.oidc.issuer)

            def notice() -> None:
                tokens.forget()
                changed()

            async with database.listen(CHANNEL, notice):
                yield tokens
        case "keystone":
            async with KeystoneClient(keystone_access(auth)) as client:
                trusts = credentials = None
                if keyring is not None:  # also those of a time when changes acted by trusts
                    trusts = Trusts(client, database, keyring, lambda: datetime.now(UTC))
                    credentials = ObservationCredentials(client, database, keyring, uuid4)
                yield Keystone(
                    client,
                    _rules(auth),
                    challenge=f'Keystone uri="{keystone_access(auth).url}"',
                    trusts=trusts,
                    ca_pem=_read(auth.keystone.ca_file),
                    observation_credentials=credentials,
                )
        case _:
            assert_never(auth.mode)


def keystone_access(auth: Auth) -> KeystoneAccess:
    section = auth.keystone
    return KeystoneAccess(
        url=section.url.removesuffix("/v3"),
        username=section.username,
        password=section.password.get_secret_value(),
        project=section.project,
        user_domain=section.user_domain,
        project_domain=section.project_domain,
        ca_file=section.ca_file,
        timeout=section.timeout.total_seconds(),
    )


def make_oidc_client(auth: Auth) -> OidcClient | None:
    """None: [auth.oidc] names no issuer. An async context manager."""
    section = auth.oidc
    if not section.issuer:
        return None
    rules = OidcRules(
        issuer=section.issuer,
        client_id=section.client_id,
        scopes=section.scopes,
        user_claim=section.user_claim,
        groups_claim=section.groups_claim,
        clock_skew=int(section.clock_skew.total_seconds()),
        grants=[RoleGrant(one.group, one.project, one.roles) for one in section.grants],
    )
    return OidcClient(
        rules,
        client_secret=section.client_secret.get_secret_value(),
        ca_file=section.ca_file,
        timeout=section.timeout.total_seconds(),
        now=lambda: datetime.now(UTC),
    )


def _read(ca_file: str) -> str:
    """The certificates in a file that `KeystoneClient` has read already."""
    return Path(ca_file).read_text(encoding="utf-8") if ca_file else ""


def _rules(auth: Auth) -> KeystoneRules:
    section = auth.keystone
    return KeystoneRules(
        roles=section.roles,
        operator_project=section.operator_project,
        default_domain=section.default_domain,
        trusts=section.trusts,
        remember=auth.cache_ttl.total_seconds(),
    )
