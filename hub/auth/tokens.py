"""Mode ``tokens``: API tokens and passwords that this server itself gave out."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

from engine.errors import Forbidden, HeadgateError
from engine.store import tokens as store
from engine.store.database import Database
from engine.store.tokens import EVERYWHERE, TokenRecord
from hub.auth import secrets
from hub.auth.identity import Identity
from hub.auth.presented import Presented
from hub.auth.remembered import Remembered, key_of
from hub.auth.roles import rights_of, with_implied

#: Passwords compared at the same time: each costs 16 MB and a part of a core.
COMPARED_AT_ONCE = 2
#: Compared where there is no such name, so that time does not tell; no password has this hash.
NOBODYS = "scrypt$16384$8$1$bm9ib2R5$"


def unauthorized(reason: str, remedy: str) -> HeadgateError:
    return HeadgateError(reason, remedy=remedy, code="Unauthorized")


class Tokens:
    """remember: seconds that somebody who was let in is not asked for again. A revoked token is
    forgotten as soon as the database tells (`forget`), and after these seconds at the latest."""

    challenge = 'Basic realm="headgate", Bearer'

    def __init__(self, database: Database, *, remember: float) -> None:
        self._database = database
        self._remember = remember
        self._known: Remembered[TokenRecord] = Remembered()
        self._comparing = asyncio.Semaphore(COMPARED_AT_ONCE)
        self.forget: Callable[[], None] = self._known.forget

    def knows(self, presented: Presented, project: str) -> bool:
        return self._known.get(key_of(presented, project), monotonic()) is not None

    async def lasting(self, who: Identity) -> Identity:
        return who

    def exchange(self, credential: str) -> str:
        return credential

    async def identify(self, presented: Presented, project: str) -> Identity:
        if presented.nothing:
            raise unauthorized(
                "nobody is let in here without a token",
                "Send one as X-Auth-Token or `Authorization: Bearer`, or a name and a password by"
                " HTTP basic; an admin makes them with `headgate token create`.",
            )
        key = key_of(presented, project)
        found = self._known.get(key, monotonic())
        if found is None:
            found = await self._found(presented, project)
            left = self._remember if found.seconds_left is None else found.seconds_left
            self._known.keep(key, found, monotonic() + min(left, self._remember))
        return _identity(found, presented, project)

    async def _found(self, presented: Presented, project: str) -> TokenRecord:
        found = await self._by_token(_token_in(presented))
        if found is None and presented.password:
            found = await self._by_password(presented, project)
        if found is None:
            raise unauthorized(
                "what was sent lets nobody in: it is unknown, revoked or expired",
                "Ask an admin for a new one: `headgate token create`.",
            )
        return found

    async def _by_token(self, token: str) -> TokenRecord | None:
        token_id = secrets.id_in(token)
        if token_id is None:
            return None
        async with self._database.connection() as conn:
            found = await store.use(conn, token_id)
        return found if found and secrets.is_token(token, found.hash) else None

    async def _by_password(self, presented: Presented, project: str) -> TokenRecord | None:
        if len(presented.password) > secrets.LONGEST_PASSWORD:
            return None
        async with self._database.connection() as conn:
            found = await store.passwords(conn, presented.user, project)
        hashes = [one.hash for one in found] or [NOBODYS]
        async with self._comparing:
            right = [await _compare(presented.password, one) for one in hashes]
        return next((one for one, is_right in zip(found, right, strict=False) if is_right), None)


def _token_in(presented: Presented) -> str:
    """A token may be sent as a password, too, by clients that know only those."""
    return presented.password or presented.bearer or presented.token


def _compare(password: str, hashed: str) -> Awaitable[bool]:
    return asyncio.to_thread(secrets.is_password, password, hashed)


def _identity(token: TokenRecord, presented: Presented, project: str) -> Identity:
    """Raises Forbidden."""
    everywhere = token.project == EVERYWHERE
    if not everywhere and token.project != project:
        raise Forbidden(
            f"{token.name} is of another project",
            remedy="Ask for the project that the token was made for.",
            code="InvalidTenant",
        )
    roles = with_implied(token.roles)
    return Identity(
        token.name,
        project,
        roles,
        rights_of(roles),
        everywhere=everywhere,
        key=str(token.id),
        credential=presented.named or _for_the_cloud(presented),
    )


def _for_the_cloud(presented: Presented) -> str:
    """``X-Auth-Token``, where something else let them in: what lets in here opens no cloud."""
    return presented.token if presented.password or presented.bearer else ""
