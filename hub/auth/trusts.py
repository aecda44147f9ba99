"""Trusts: users give them to this server, so that changes outlive the users' tokens.

A trust is handed out for a short time after its creation, and deleted in Keystone when no stored
credential is the trust: its changes have ended or wait for answers, which bring credentials of
their own.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Final
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Forbidden, Unavailable
from engine.store.access import trusts
from engine.store.access.trusts import TRUST, StoredTrust
from engine.store.database import Database
from engine.store.encryption.secret_values import DecryptionFailed, Keyring
from engine.ttl_cache import TtlCache
from hub.auth.keystone_client import KeystoneClient, TokenScope
from hub.auth.request_credentials import RequestCredentials, cache_key
from hub.auth.shared_tasks import SharedTasks

log: FilteringBoundLogger = structlog.get_logger()

#: The lifetime of a trust.
TRUST_LASTS: Final = timedelta(days=7)
#: How long after its creation a trust is given to requests.
REUSED: Final = timedelta(minutes=10)
#: How long after its creation a trust is kept at least: the last request that got it has stored it
#: with its change by then.
KEPT: Final = timedelta(minutes=25)


class Trusts:
    """now: the time, for the expiry of trusts."""

    def __init__(
        self,
        client: KeystoneClient,
        database: Database,
        keyring: Keyring,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._database = database
        self._keyring = keyring
        self._now = now
        self._known: TtlCache[str, str] = TtlCache()
        self._place_of: TtlCache[str, str] = TtlCache()
        #: Concurrent requests of a user share a trust.
        self._creations: SharedTasks[str | None] = SharedTasks()

    async def get(self, token: str, of: TokenScope) -> str | None:
        """A credential for the user, project and roles of a token; None: Keystone refuses a trust.

        Raises Unavailable.
        """
        place = cache_key(
            RequestCredentials(token=of.user_id, user=",".join(sorted(of.roles))), of.project_id
        )
        found = self._known.get(place, monotonic())
        if found is not None:
            return found
        return await self._creations.run(place, lambda: self._create(token, of, place))

    async def _create(self, token: str, of: TokenScope, place: str) -> str | None:
        until = (self._now() + TRUST_LASTS).astimezone(UTC)
        expires_at = until.isoformat(timespec="microseconds").replace("+00:00", "Z")
        made = await self._client.make_trust(token, of, expires_at)
        if made is None:
            return None
        credential = TRUST + made
        id_ = trusts.row_id(credential)
        encrypted = self._keyring.encrypt(trusts.scope(of.project_id, id_), credential)
        try:
            async with self._database.connection() as conn:
                await trusts.store(conn, StoredTrust(id_, of.project_id, encrypted), KEPT)
        except Unavailable:
            await self._client.delete_trust(made, token)
            raise
        keep_until = monotonic() + REUSED.total_seconds()
        self._known.keep(place, credential, keep_until)
        self._place_of.keep(credential, place, keep_until)
        return credential

    def drop(self, credential: str) -> None:
        """Give a trust to no more requests, because Keystone has refused it."""
        place = self._place_of.get(credential, monotonic())
        if place is not None and self._known.get(place, monotonic()) == credential:
            self._known.drop(place)

    async def delete_unused(self) -> int:
        """Delete some trusts that no change uses, in Keystone and here, and return their number.

        Those that fail are tried again later. Raises Unavailable if Keystone has deleted none.
        """
        async with self._database.connection() as conn:
            taken = await trusts.take_unused(conn)
        deleted: list[UUID] = []
        failure: Unavailable | None = None
        try:
            for one in taken:
                try:
                    if await self._delete(one):
                        deleted.append(one.id)
                except Unavailable as error:
                    failure = error
        finally:
            if deleted:
                async with self._database.connection() as conn:
                    await trusts.delete(conn, deleted)
                log.info("keystone.trusts_deleted", count=len(deleted))
        if failure is not None:
            if not deleted:
                raise failure
            log.warning("keystone.trust_not_deleted", reason=str(failure))
        return len(deleted)

    async def _delete(self, stored: StoredTrust) -> bool:
        """Delete a trust in Keystone. One that Keystone does not let this server delete expires.
        False: this process lacks the encryption key of the trust.

        Raises Unavailable.
        """
        of = trusts.scope(stored.project, stored.id)
        try:
            trust = self._keyring.decrypt(of, stored.encrypted).removeprefix(TRUST)
        except DecryptionFailed as error:
            log.warning("credential.undecryptable", reason=str(error))
            return False
        try:
            token = await self._client.token_by_trust(trust)
        except Forbidden:  # its user is disabled or has lost a role, or it is deleted already
            token = None
        await self._client.delete_trust(trust, token)
        return True
