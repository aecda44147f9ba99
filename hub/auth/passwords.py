"""Judges passwords: each attempt is counted before it is judged, and waits for its turn."""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from time import monotonic

from engine.store import sign_in_attempts
from engine.store import tokens as store
from engine.store.database import Database
from engine.store.sign_in_attempts import AttemptLimits
from engine.store.tokens import TokenRecord
from engine.ttl_cache import TtlCache
from hub.auth import secrets
from hub.auth.credentials import RequestCredentials, cache_key
from hub.auth.fair_queue import FairQueue, QueueFull
from hub.auth.hasher import queue_full
from hub.auth.throttle import TooMany


class PasswordChecker:
    """remember: seconds that a right password is not judged again, from the same address block.

    Attempts are counted by address block, and by name; from where a name has signed in before, by
    name and address block, so that strangers do not lock it out there.
    """

    def __init__(
        self, database: Database, queue: FairQueue, limits: AttemptLimits, *, remember: float
    ) -> None:
        self._database = database
        self._queue = queue
        self._limits = limits
        self._remember = remember
        self._known: TtlCache[str, TokenRecord] = TtlCache()
        #: Until when an address block is locked out, as far as this process has learnt.
        self._locked: TtlCache[str, float] = TtlCache()
        self._tasks: dict[str, asyncio.Task[TokenRecord | None]] = {}
        self.forget = self._known.clear

    async def check(self, presented: RequestCredentials, project: str) -> TokenRecord | None:
        """The password's record; None: it is wrong. Raises TooMany.

        Equal attempts at the same time are one.
        """
        key = cache_key(presented, project)
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.create_task(self._check(presented, project, key))
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._done(key, done))
        return await asyncio.shield(task)

    def _done(self, key: str, task: asyncio.Task[TokenRecord | None]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            task.exception()  # the caller may be gone

    async def _check(
        self, presented: RequestCredentials, project: str, key: str
    ) -> TokenRecord | None:
        self._refuse_locked(presented.block)
        try:
            async with self._queue.turn(presented.block):
                self._refuse_locked(presented.block)
                found = self._known.get(key, monotonic())
                if found is None and (found := await self._judge(presented, project)):
                    left = self._remember if found.seconds_left is None else found.seconds_left
                    self._known.keep(key, found, monotonic() + min(left, self._remember))
                return found
        except QueueFull:
            raise queue_full() from None

    def _refuse_locked(self, block: str) -> None:
        """Raises TooMany."""
        until = self._locked.get(block, monotonic())
        if until is not None:
            raise _locked_out(until - monotonic())

    async def _judge(self, presented: RequestCredentials, project: str) -> TokenRecord | None:
        """Raises TooMany."""
        address = _digest("address", presented.block)
        place = _digest("place", presented.user, presented.block)
        async with self._database.connection() as conn:
            known = await sign_in_attempts.is_known(conn, place, self._limits)
            found = await store.passwords(conn, presented.user, project)
        keys = [address, place if known else _digest("name", presented.user)]
        locked = await sign_in_attempts.reserve(self._database, keys, self._limits)
        if locked:
            if address in locked:
                until = monotonic() + locked[address]
                self._locked.keep(presented.block, until, until)
            raise _locked_out(max(locked.values()))
        right = await _compare(presented.password, found)
        if right is None:
            return None
        async with self._database.connection() as conn:
            await sign_in_attempts.give_back(conn, keys)
            if not known:
                await sign_in_attempts.remember(conn, place)
        return right if not secrets.is_weak(right.hash) else await self._rehash(presented, right)

    async def _rehash(self, presented: RequestCredentials, record: TokenRecord) -> TokenRecord:
        """With today's parameters, now that the password is known."""
        salt = os.urandom(secrets.SALT_BYTES)
        hashed = await asyncio.to_thread(secrets.hash_password, presented.password, salt)
        async with self._database.connection() as conn:
            await store.rehash(conn, record.id, record.hash, hashed)
        return record


async def _compare(password: str, found: Sequence[TokenRecord]) -> TokenRecord | None:
    """Takes at least one comparison at full cost, so that time does not tell what there is."""
    right = None
    for one in found:
        if await asyncio.to_thread(secrets.is_password, password, one.hash):
            right = right or one
    if all(secrets.is_weak(one.hash) for one in found):
        await asyncio.to_thread(secrets.is_password, password, secrets.NO_PASSWORD)
    return right


def _digest(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).digest()


def _locked_out(seconds: float) -> TooMany:
    return TooMany(
        "too many wrong passwords from this address or for this name",
        "Wait for the time in Retry-After, or use a token; the limits are [auth] failures"
        " and lockout.",
        seconds,
    )
