"""What follows an observation: drift is reported, opens hooks and is repaired, as policies say."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from engine.loop_guard import Guard
from engine.plan.convergence import ConvergencePolicy
from engine.store.observer.observation_schedule import ClaimedStack
from engine.work.observer.drift_hooks import DriftHooks
from engine.work.observer.drift_reports import DriftReports
from engine.work.observer.hook_watch import HookWatch
from engine.work.observer.repair_reactions import RepairReactions
from engine.work.observer.stack_observation import StackObservation


class DriftReactions:
    """What fails is done after the next observation."""

    def __init__(
        self,
        reports: DriftReports,
        drift_hooks: DriftHooks,
        hook_watch: HookWatch,
        guard: Guard,
        repairs: RepairReactions,
    ) -> None:
        self._reports = reports
        self._drift_hooks = drift_hooks
        self._hook_watch = hook_watch
        self._guard = guard
        self._repairs = repairs

    async def react(self, ended: Sequence[StackObservation]) -> None:
        """Report drift, open hooks about it, and repair it. ended: of one project, with claims that
        held until the end."""
        if not ended:
            return
        await self._reports.report({one.stack.stack_id: one.policy for one in ended})
        renewal = self._hook_watch.renew([one.stack.stack_id for one in ended])
        await self._guard.attempt(renewal)
        policies = {one.stack.stack_id: one.policy for one in ended if not one.deferred}
        if policies:
            await self.hold([one.stack for one in ended if not one.deferred], policies)
        await self._repairs.react(ended)

    async def hold(
        self,
        stacks: Sequence[ClaimedStack],
        policies: Mapping[UUID, ConvergencePolicy | None],
    ) -> None:
        """Open and close hooks about drift."""
        due = await self._drift_hooks.read_due(policies)
        for one in stacks:
            if one.stack_id in due:
                update = self._drift_hooks.update(one, policies[one.stack_id])
                await self._guard.attempt(update, stack_id=str(one.stack_id))
