"""The authenticator of the mode that the settings name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import assert_never

from engine.store.database import Database
from engine.store.tokens import CHANNEL
from hub import setting_access
from hub.auth.identity import Authenticator
from hub.auth.keystone import Keystone, KeystoneSettings
from hub.auth.nobody import Nobody
from hub.auth.tokens import Tokens
from hub.setting_access import Auth


@asynccontextmanager
async def authenticator(auth: Auth, database: Database) -> AsyncIterator[Authenticator]:
    """Raises Unavailable."""
    remember = auth.remembered.total_seconds()
    match auth.mode:
        case "none":
            yield Nobody()
        case "tokens":
            tokens = Tokens(database, remember=remember)
            async with database.listen(CHANNEL, tokens.forget):
                yield tokens
        case "keystone":
            async with Keystone(_settings(auth.keystone), remember=remember) as keystone:
                yield keystone
        case _:
            assert_never(auth.mode)


def _settings(said: setting_access.Keystone) -> KeystoneSettings:
    return KeystoneSettings(
        url=said.url,
        username=said.username,
        password=said.password.get_secret_value(),
        project=said.project,
        user_domain=said.user_domain,
        project_domain=said.project_domain,
        ca_file=said.ca_file,
        timeout=said.timeout.total_seconds(),
        roles=said.roles,
        operator_project=said.operator_project,
    )
