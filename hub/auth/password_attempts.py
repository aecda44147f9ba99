"""Counts attempts to sign in with a password: in all cells that respond.

A password can be valid in every project, so an attacker could send attempts to the projects of
each cell (ADR 18).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from engine.bounded_wait import wait_for_result
from engine.errors import Unavailable
from engine.store.access import password_lockout
from engine.store.access.password_lockout import AttemptLimits
from engine.store.connection import Connection
from engine.store.database import Database

T = TypeVar("T")

#: Seconds that other cells have to count an attempt.
OTHERS_TIMEOUT = 2.0


class PasswordAttempts:
    """database: of the project of the request. others: the databases of the other cells that
    respond; they are not waited for longer than `OTHERS_TIMEOUT`."""

    def __init__(
        self,
        database: Database,
        limits: AttemptLimits,
        others: Callable[[], Sequence[Database]] = tuple,
    ) -> None:
        self._database = database
        self._limits = limits
        self._others = others

    async def is_known(self, conn: Connection, place: bytes) -> bool:
        """Whether the name has signed in from there before."""
        return await password_lockout.is_known(conn, place, self._limits)

    async def reserve(self, keys: Sequence[bytes]) -> Mapping[bytes, float]:
        """Count one attempt for each key. Returns the keys that are locked out in one of the
        databases, with the seconds until the lockout ends; then the attempt is not counted."""
        if locked := await password_lockout.reserve(self._database, keys, self._limits):
            return locked
        others = self._others()
        counted = [self._database]
        results = await asyncio.gather(
            *(_in_time(password_lockout.reserve(one, keys, self._limits)) for one in others)
        )
        ends: dict[bytes, float] = {}
        for database, result in zip(others, results, strict=True):
            if result:
                ends |= {key: max(left, ends.get(key, 0.0)) for key, left in result.items()}
            elif result is not None:
                counted.append(database)
        if ends:
            await self._release(counted, keys, None)
        return ends

    async def end(self, keys: Sequence[bytes], place: bytes | None) -> None:
        """Take back an attempt with a correct password. place: to remember, if it is new."""
        await self._release([self._database, *self._others()], keys, place)

    async def _release(
        self, databases: Sequence[Database], keys: Sequence[bytes], place: bytes | None
    ) -> None:
        async def release(database: Database) -> None:
            async with database.connection() as conn:
                await password_lockout.release(conn, keys)
                if place is not None:
                    await password_lockout.remember(conn, place)

        own, *others = databases
        await release(own)
        await asyncio.gather(*(_in_time(release(one)) for one in others))


async def _in_time(answer: Awaitable[T]) -> T | None:
    """None: the cell does not respond."""
    try:
        return await wait_for_result(answer, OTHERS_TIMEOUT)
    except (Unavailable, TimeoutError):
        return None
