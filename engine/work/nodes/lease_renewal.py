"""Renews the leases of the nodes of a worker."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Unavailable
from engine.store.database import Database
from engine.store.fault_points import reach
from engine.store.traversals.advance import renew
from engine.work.nodes.internal_error import report
from engine.work.nodes.node_runner import NodeRunner
from engine.work.nodes.step_queue import StepQueue

log: FilteringBoundLogger = structlog.get_logger()


class LeaseRenewal:
    """Renews the leases of running operations and waiting steps. Cancels operations that another
    worker has claimed, and interrupts those that are cancelled."""

    def __init__(
        self,
        database: Database,
        runner: NodeRunner,
        queue: StepQueue,
        *,
        lease: timedelta,
        new_id: Callable[[], UUID],
    ) -> None:
        self._database = database
        self._runner = runner
        self._queue = queue
        self._lease = lease
        self._new_id = new_id
        self._now = asyncio.Event()

    def check_now(self) -> None:
        self._now.set()

    async def run(self) -> None:
        """Renew three times in each lease, until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._lease.total_seconds() / 3):
                    await self._now.wait()
            self._now.clear()
            try:
                await self._renew()
            except Unavailable as error:
                log.warning("worker.unavailable", reason=str(error))
            except Exception as error:
                report(error, self._new_id(), "renew")

    async def _renew(self) -> None:
        """Not of steps that are being written: their rows are locked."""
        reach("worker.renew")
        claimed = self._runner.claims
        running = [claim for claim, task in claimed.items() if task is not None]
        claims = {*running, *(one.claim for one in self._queue)}
        async with self._database.connection() as conn:
            kept = await renew(conn, self._lease, sorted(claims))
        for claim in running:
            task = claimed.get(claim)
            if claim not in kept and task is not None:
                log.warning("lease.lost", stack_id=str(claim.stack_id), node=claim.node)
                task.cancel()
                del claimed[claim]
            elif kept.get(claim):
                self._runner.interrupt(claim)
