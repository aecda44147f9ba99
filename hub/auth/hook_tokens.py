"""Hook tokens: which subscription has a token, and whether its owner may answer."""

from dataclasses import replace
from uuid import UUID

from channels.store.subscriptions import automation_of
from engine.hooks.answer_rights import Automation
from engine.hooks.derived_tokens import (
    TokenKey,
    button_token,
    holder_of,
    hook_token,
    is_button_token,
)
from engine.store.access.token_keys import accepts_hook
from engine.store.database import Database
from hub.auth.identity import Authenticator
from hub.auth.roles import Right, rights_of, with_implied
from hub.keys.token_keys import StoredTokenKeys


class HookTokens:
    """keys: from which hook tokens are derived."""

    def __init__(
        self, database: Database, authenticator: Authenticator, keys: StoredTokenKeys
    ) -> None:
        self._database = database
        self._authenticator = authenticator
        self._keys = keys

    def token_for(self, hook_id: UUID, subscription_id: UUID) -> str:
        return hook_token(self._keys.keys.newest, hook_id, subscription_id)

    async def holder(self, hook_id: UUID, token: str) -> Automation | None:
        """The subscription that has the token, with the current rights of its owner; None: it is
        not a token of this hook, or the subscription was deleted. Raises Unavailable."""

        def find() -> tuple[UUID, TokenKey] | None:
            for one in self._keys.keys:
                if (subscription_id := holder_of(one.key, hook_id, token)) is not None:
                    return subscription_id, one
            return None

        known = await self._keys.check_refreshed(find)
        if known is None:
            return None
        subscription_id, key = known
        async with self._database.connection() as conn:
            if not await accepts_hook(conn, hook_id, key):
                return None
            found = await automation_of(conn, subscription_id)
        return None if found is None else await self.update_right(found)

    def button_token_for(self, hook_id: UUID, subscription_id: UUID, digest: str) -> str:
        """Of a button in a message to the subscription."""
        return button_token(self._keys.keys.newest, hook_id, subscription_id, digest)

    async def made_button(self, hook_id: UUID, digest: str, token: str) -> bool:
        """Whether this server made the button that has the token. Raises Unavailable."""

        def check() -> TokenKey | None:
            keys = iter(self._keys.keys)
            return next((k for k in keys if is_button_token(k.key, hook_id, digest, token)), None)

        key = await self._keys.check_refreshed(check)
        if key is None:
            return False
        async with self._database.connection() as conn:
            return await accepts_hook(conn, hook_id, key)

    async def update_right(self, automation: Automation) -> Automation:
        """Set whether the owner may currently answer hooks. Raises Unavailable."""
        if automation.configured:
            return replace(automation, approves=True)
        roles = await self._authenticator.roles_of(automation.owner)
        return replace(automation, approves=Right.ANSWER in rights_of(with_implied(roles)))
