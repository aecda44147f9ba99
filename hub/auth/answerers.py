"""Who answers with a hook's token: the subscription that holds it, and its owner's rights."""

from dataclasses import replace
from uuid import UUID

from channels.store.subscriptions import automation_of
from engine.hooks.automation import Automation
from engine.hooks.tokens import TokenKey, holder_of, hook_token
from engine.store.database import Database
from engine.store.token_keys import accepts_hook
from hub.auth.identity import Authenticator
from hub.auth.roles import Right, rights_of, with_implied
from hub.keys.token_keys import StoredTokenKeys


class Answerers:
    """keys: what hook tokens derive from."""

    def __init__(
        self, database: Database, authenticator: Authenticator, keys: StoredTokenKeys
    ) -> None:
        self._database = database
        self._authenticator = authenticator
        self._keys = keys

    def token_for(self, hook_id: UUID, subscription_id: UUID) -> str:
        return hook_token(self._keys.keys.newest, hook_id, subscription_id)

    async def holder(self, hook_id: UUID, token: str) -> Automation | None:
        """The subscription that the token was given to, with its owner's rights now; None: it is
        not a token of this hook, or the subscription was deleted. Raises Unavailable."""

        def held() -> tuple[UUID, TokenKey] | None:
            for one in self._keys.keys:
                if (subscription_id := holder_of(one.key, hook_id, token)) is not None:
                    return subscription_id, one
            return None

        known = await self._keys.checked(held)
        if known is None:
            return None
        subscription_id, key = known
        async with self._database.connection() as conn:
            if not await accepts_hook(conn, hook_id, key):
                return None
            found = await automation_of(conn, subscription_id)
        return None if found is None else await self.entitled(found)

    async def entitled(self, one: Automation) -> Automation:
        """With whether its owner may answer hooks now. Raises Unavailable."""
        if one.configured:
            return replace(one, approves=True)
        roles = await self._authenticator.roles_of(one.owner)
        return replace(one, approves=Right.ANSWER in rights_of(with_implied(roles)))
