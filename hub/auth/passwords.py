"""Checks and hashes passwords: attempts are counted, and few hashes are computed at a time."""

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TypeVar

from engine.store.access import tokens as store
from engine.store.access.tokens import TokenRecord
from engine.store.database import Database
from engine.ttl_cache import TtlCache
from hub.auth import secrets
from hub.auth.password_attempts import PasswordAttempts
from hub.auth.request_credentials import RequestCredentials, cache_key
from hub.auth.shared_tasks import SharedTasks
from hub.auth.throttle import QueueFull, TooManyRequests, TurnQueue

Result = TypeVar("Result")
#: Hashes computed at a time, each with 128 MiB, by a server; and for one address block.
AT_ONCE, EACH = 2, 1
#: Maximum number of waiting attempts: of one address block, and in total.
WAITING, TOTAL = 32, 1024
#: Seconds in Retry-After when the queue is full.
RETRY_AFTER = 5.0


class PasswordHasher:
    """Computes hashes in threads, few at a time, in turn between address blocks. at_once: in this
    process."""

    def __init__(self, *, at_once: int = AT_ONCE) -> None:
        self.queue = TurnQueue(at_once=at_once, each=EACH, waiting=WAITING, total=TOTAL)
        self._tasks: set[asyncio.Task[object]] = set()

    async def run(self, block: str, work: Callable[[], Result]) -> Result:
        """Call a function that computes one hash, when it is this address block's turn.

        If the caller is cancelled, the turn lasts until the thread ends, so that the memory is
        limited. Raises TooManyRequests.
        """
        task = asyncio.create_task(self._run(block, work))
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)
        return await asyncio.shield(task)

    async def _run(self, block: str, work: Callable[[], Result]) -> Result:
        try:
            async with self.queue.turn(block):
                return await asyncio.to_thread(work)
        except QueueFull:
            raise queue_full() from None

    def _forget_task(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, because the caller may be cancelled


def queue_full() -> TooManyRequests:
    return TooManyRequests(
        "too many sign-ins from this address are being checked",
        "Wait for the time in Retry-After, or use a token.",
        RETRY_AFTER,
    )


class PasswordChecker:
    """remember: seconds for which a correct password is cached for the same address block.

    Attempts are counted by address block and by name. From an address block where the name has
    signed in before, they are counted by both together, so that others cannot lock it out there.
    """

    def __init__(
        self, database: Database, queue: TurnQueue, attempts: PasswordAttempts, *, remember: float
    ) -> None:
        self._database = database
        self._queue = queue
        self._attempts = attempts
        self._remember = remember
        self._known: TtlCache[str, TokenRecord] = TtlCache()
        #: The end of the lockout of each address block, as far as this process knows.
        self._locked: TtlCache[str, float] = TtlCache()
        self._checks: SharedTasks[TokenRecord | None] = SharedTasks()
        self.forget = self._known.clear

    async def check(self, credentials: RequestCredentials, project: str) -> TokenRecord | None:
        """The record of the password; None: it is wrong. Raises TooManyRequests.

        Concurrent equal attempts count as one, unless passwords were revoked between them.
        """
        key = cache_key(credentials, project)
        return await self._checks.run(
            f"{self._known.clears} {key}", lambda: self._check(credentials, project, key)
        )

    async def _check(
        self, credentials: RequestCredentials, project: str, key: str
    ) -> TokenRecord | None:
        self._refuse_locked(credentials.block)
        try:
            async with self._queue.turn(credentials.block):
                self._refuse_locked(credentials.block)
                found, clears = self._known.get(key, monotonic()), self._known.clears
                if found is not None:
                    return found
                found = await self._verify(credentials, project)
                # Otherwise, it can have been revoked after it was read.
                if found is not None and clears == self._known.clears:
                    left = self._remember if found.seconds_left is None else found.seconds_left
                    self._known.keep(key, found, monotonic() + min(left, self._remember))
                return found
        except QueueFull:
            raise queue_full() from None

    def _refuse_locked(self, block: str) -> None:
        """Raises TooManyRequests."""
        until = self._locked.get(block, monotonic())
        if until is not None:
            raise _locked_out(until - monotonic())

    async def _verify(self, credentials: RequestCredentials, project: str) -> TokenRecord | None:
        """Raises TooManyRequests."""
        address = _digest("address", credentials.block)
        place = _digest("place", credentials.user, credentials.block)
        async with self._database.connection() as conn:
            known = await self._attempts.is_known(conn, place)
            found = await store.passwords(conn, credentials.user, project)
        keys = [address, place if known else _digest("name", credentials.user)]
        locked = await self._attempts.reserve(keys)
        if locked:
            if address in locked:
                until = monotonic() + locked[address]
                self._locked.keep(credentials.block, until, until)
            raise _locked_out(max(locked.values()))
        right = await _compare(credentials.password, found)
        if right is None:
            return None
        await self._attempts.end(keys, None if known else place)
        return right if not secrets.is_weak(right.hash) else await self._rehash(credentials, right)

    async def _rehash(self, credentials: RequestCredentials, record: TokenRecord) -> TokenRecord:
        """Store a hash with the current parameters."""
        salt = os.urandom(secrets.SALT_BYTES)
        hashed = await asyncio.to_thread(secrets.hash_password, credentials.password, salt)
        async with self._database.connection() as conn:
            await store.rehash(conn, record.id, record.hash, hashed)
        return record


async def _compare(password: str, tokens: Sequence[TokenRecord]) -> TokenRecord | None:
    """The record with this password. Takes at least one comparison at full cost, so that the time
    does not reveal whether the name exists."""
    right = None
    for one in tokens:
        if await asyncio.to_thread(secrets.is_password, password, one.hash):
            right = right or one
    if all(secrets.is_weak(one.hash) for one in tokens):
        await asyncio.to_thread(secrets.is_password, password, secrets.NO_PASSWORD)
    return right


def _digest(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).digest()


def _locked_out(seconds: float) -> TooManyRequests:
    return TooManyRequests(
        "too many wrong passwords from this address or for this name",
        "Wait for the time in Retry-After, or use a token; the limits are [auth] failures"
        " and lockout.",
        seconds,
    )
