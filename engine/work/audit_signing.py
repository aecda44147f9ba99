"""Signs the heads of the audit log, periodically and on demand, in one process at a time."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from structlog.typing import FilteringBoundLogger

from engine.bounded_wait import wait_at_most
from engine.hooks.checkpoint import Checkpoint, Head, Signer, sign
from engine.loop_guard import Supervisor
from engine.store.audit.checkpoints import (
    LOCK_KEY,
    Chain,
    checkpoints_to_export,
    lock_chains,
    mark_exported,
    store_checkpoints,
    unsigned_heads,
)
from engine.store.connection import Connection, try_lock
from engine.store.database import Database, savepoint

log: FilteringBoundLogger = structlog.get_logger()

#: Heads in one checkpoint, so that its event stays small (some 60 kB).
HEADS = 500
#: Checkpoints written to the file at once.
EXPORTED = 100

#: Writes checkpoints to the append-only file, durably. Raises OSError.
Export = Callable[[Sequence[Checkpoint]], None]


async def sign_heads(conn: Connection, signer: Signer) -> int:
    """Sign logs with new entries since their last checkpoint; return the number of checkpoints."""
    async with savepoint(conn):
        if not await try_lock(conn, LOCK_KEY):
            return 0
        heads = await unsigned_heads(conn)
        found, now = await lock_chains(conn, sorted(heads))
        checkpoints = list(_sign_heads(heads, found, now, signer)) if now else []
        await store_checkpoints(conn, checkpoints)
    return len(checkpoints)


def _sign_heads(
    heads: Mapping[str, Sequence[Head]], chains: Mapping[str, Chain], now: datetime, signer: Signer
) -> Iterator[Checkpoint]:
    for project, of_project in heads.items():
        number, previous = chains[project]
        for start in range(0, len(of_project), HEADS):
            number += 1
            part = of_project[start : start + HEADS]
            one = sign(Checkpoint(project, number, now, previous, part), signer)
            previous = one.digest
            yield one


async def export_checkpoints(conn: Connection, export: Export) -> None:
    """Append new checkpoints to the file. After a crash, one may be in it twice."""
    while waiting := await checkpoints_to_export(conn, EXPORTED):
        await asyncio.to_thread(export, waiting)
        await mark_exported(conn, waiting)


class AuditSigning:
    """One loop. every: how often it signs."""

    def __init__(
        self,
        database: Database,
        signer: Signer,
        export: Export,
        *,
        every: timedelta,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._signer = signer
        self._export = export
        self._every = every.total_seconds()
        self._guard = (supervisor or Supervisor()).guard("audit_signing", max_pause=self._every)

    async def run(self, stop: asyncio.Event) -> None:
        async def turn() -> None:
            await self.sign()
            await wait_at_most(stop, self._every)

        await self._guard.run(turn, stop)

    async def sign(self) -> None:
        async with self._database.connection() as conn:
            count = await sign_heads(conn, self._signer)
            await export_checkpoints(conn, self._export)
        if count:
            log.info("audit_signing.signed", checkpoints=count, key_id=self._signer.key_id)
