"""Reports drift that observations have found, as convergence policies say: by events."""

from collections.abc import Mapping
from uuid import UUID

from engine.loop_guard import Guard
from engine.plan.convergence import ConvergencePolicy
from engine.store.database import Database
from engine.store.observer import drift_rows
from engine.store.stacks.stack_locks import lock_stacks
from engine.words import OnDrift


class DriftReports:
    """What fails is reported after the next observation."""

    def __init__(self, database: Database, guard: Guard) -> None:
        self._database = database
        self._guard = guard

    async def report(self, policies: Mapping[UUID, ConvergencePolicy | None]) -> None:
        """Record events of new, changed and resolved drift of stacks. policies: by stack. Raises
        Unavailable."""
        reported = {
            stack_id: policy
            for stack_id, policy in policies.items()
            if policy is not None and policy.on_drift is not OnDrift.IGNORE
        }
        if not reported:
            return
        tolerated = {stack_id: policy.tolerate for stack_id, policy in reported.items()}
        async with self._database.connection() as conn:
            unreported = await drift_rows.read_unreported(conn, tolerated)
        for stack_id in unreported:
            recorded = self._record(stack_id, reported[stack_id])
            await self._guard.attempt(recorded, stack_id=str(stack_id))

    async def _record(self, stack_id: UUID, policy: ConvergencePolicy) -> None:
        async with self._database.transaction("report") as conn:
            await lock_stacks(conn, [stack_id])
            await drift_rows.report(conn, stack_id, policy.tolerate)
