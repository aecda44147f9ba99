"""The authenticator of the mode that the settings name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import assert_never

from engine.store.database import Database
from engine.store.sign_in_attempts import AttemptLimits
from engine.store.tokens import CHANNEL
from hub.auth.anonymous import Anonymous
from hub.auth.hasher import PasswordHasher
from hub.auth.identity import Authenticator
from hub.auth.keystone import Keystone, KeystoneRules
from hub.auth.keystone_client import KeystoneAccess, KeystoneClient
from hub.auth.passwords import PasswordChecker
from hub.auth.tokens import Tokens
from hub.settings.access import Auth


@asynccontextmanager
async def authenticating(
    auth: Auth, database: Database, hasher: PasswordHasher
) -> AsyncIterator[Authenticator]:
    """Raises Unavailable."""
    remember = auth.remembered.total_seconds()
    match auth.mode:
        case "none":
            yield Anonymous()
        case "tokens":
            limits = AttemptLimits(auth.failures, auth.lockout)
            passwords = PasswordChecker(database, hasher.queue, limits, remember=remember)
            tokens = Tokens(database, passwords, remember=remember)
            async with database.listen(CHANNEL, tokens.forget):
                yield tokens
        case "keystone":
            async with KeystoneClient(access_of(auth)) as client:
                yield Keystone(
                    client,
                    _rules(auth),
                    challenge=f'Keystone uri="{access_of(auth).url}"',
                    now=lambda: datetime.now(UTC),
                )
        case _:
            assert_never(auth.mode)


def access_of(auth: Auth) -> KeystoneAccess:
    said = auth.keystone
    return KeystoneAccess(
        url=said.url.removesuffix("/v3"),
        username=said.username,
        password=said.password.get_secret_value(),
        project=said.project,
        user_domain=said.user_domain,
        project_domain=said.project_domain,
        ca_file=said.ca_file,
        timeout=said.timeout.total_seconds(),
    )


def _rules(auth: Auth) -> KeystoneRules:
    said = auth.keystone
    return KeystoneRules(
        roles=said.roles,
        operator_project=said.operator_project,
        default_domain=said.default_domain,
        trusts=said.trusts,
        remember=auth.remembered.total_seconds(),
    )
