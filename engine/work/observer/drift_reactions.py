"""What follows an observation: drift is reported, opens hooks and is repaired, as policies say."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from engine.loop_guard import Guard
from engine.plan.convergence import ConvergencePolicy
from engine.plan.drift import REPAIRED_AS
from engine.store.database import Database
from engine.store.hooks.drift_hooks import ApprovedRepair, read_approved_repairs
from engine.store.observer import drift_rows
from engine.store.observer.drift_rows import RepairableStack
from engine.store.observer.found_drift import FoundDrift
from engine.store.observer.observation_schedule import ClaimedStack
from engine.store.stacks.stack_locks import lock_stacks
from engine.words import OnDrift
from engine.work.observer.drift_hooks import DriftHooks, holds
from engine.work.observer.hook_watch import HookWatch
from engine.work.observer.stack_observation import StackObservation

#: `Repairs.start`.
RepairStart = Callable[[str, RepairableStack, ConvergencePolicy], Awaitable[None]]
#: `Repairs.start_approved`.
ApprovedRepairStart = Callable[[str, UUID, ApprovedRepair], Awaitable[None]]

#: Why drift of a resource with `external_id`, or of data, is not repaired.
EXTERNAL = "the stack does not own the physical resource"


def repairs(policy: ConvergencePolicy | None) -> bool:
    return policy is not None and policy.on_drift is OnDrift.REPAIR


def found_drift(one: StackObservation) -> FoundDrift:
    return FoundDrift(one.stack.stack_id, sorted(one.differing), one.stack.claimed_at)


class DriftReactions:
    """repair: starts repairs. approved: starts those that answers to hooks have approved. What
    fails is done after the next observation."""

    def __init__(
        self,
        database: Database,
        drift_hooks: DriftHooks,
        hook_watch: HookWatch,
        guard: Guard,
        repair: RepairStart | None,
        approved: ApprovedRepairStart | None,
    ) -> None:
        self._database = database
        self._drift_hooks = drift_hooks
        self._hook_watch = hook_watch
        self._guard = guard
        self._repair = repair
        self._approved = approved

    async def react(self, ended: Sequence[StackObservation]) -> None:
        """Report drift, open hooks about it, and repair it. ended: of one project, with claims that
        held until the end. Only drift that they have found is repaired: what was known before may
        have ended since."""
        if not ended:
            return
        await self._report_drift(ended)
        renewal = self._hook_watch.renew([one.stack.stack_id for one in ended])
        await self._guard.attempt(renewal)
        policies = {one.stack.stack_id: one.policy for one in ended if not one.deferred}
        if policies:
            await self.hold([one.stack for one in ended if not one.deferred], policies)
        project = ended[0].stack.project
        found = [one for one in ended if one.differing and one.stack.root_id]
        if held := [one for one in found if holds(one.policy)]:
            await self._start_approved(project, held)
        if repaired := [one for one in found if repairs(one.policy)]:
            await self._start_repairs(project, repaired)

    async def _report_drift(self, ended: Sequence[StackObservation]) -> None:
        policies = {
            one.stack.stack_id: one.policy
            for one in ended
            if one.policy is not None and one.policy.on_drift is not OnDrift.IGNORE
        }
        if not policies:
            return
        async with self._database.connection() as conn:
            tolerated = {stack_id: policy.tolerate for stack_id, policy in policies.items()}
            unreported = await drift_rows.read_unreported(conn, tolerated)
        for stack_id in unreported:
            await self._guard.attempt(
                self._report(stack_id, policies[stack_id]), stack_id=str(stack_id)
            )

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

    async def _start_approved(self, project: str, held: Sequence[StackObservation]) -> None:
        """Start the repairs that answers to hooks have approved."""
        if self._approved is None:
            return
        roots = {one.stack.root_id for one in held if one.stack.root_id}
        async with self._database.connection() as conn:
            approved = await read_approved_repairs(
                conn, [*roots], [*REPAIRED_AS], [found_drift(one) for one in held]
            )
        for root_id, repair in approved.items():
            if repair.names:
                start = self._approved(project, root_id, repair)
                await self._guard.attempt(start, stack_id=str(root_id))
            if repair.external:
                recorded = self._record_external(root_id, repair.external)
                await self._guard.attempt(recorded, stack_id=str(root_id))

    async def _start_repairs(self, project: str, repaired: Sequence[StackObservation]) -> None:
        """Start the repairs of policies whose window is open now."""
        if self._repair is None:
            return
        policies = {
            one.stack.root_id: one.policy for one in repaired if one.stack.root_id and one.policy
        }
        tolerated = {root_id: policy.tolerate for root_id, policy in policies.items()}
        async with self._database.connection() as conn:
            repairable = await drift_rows.read_repairable(
                conn, tolerated, [*REPAIRED_AS], [found_drift(one) for one in repaired]
            )
        for one in repairable:
            policy = policies[one.root_id]
            if policy.repairs_in(one.now) != timedelta(0):
                continue
            if one.names:
                start = self._repair(project, one, policy)
                await self._guard.attempt(start, stack_id=str(one.root_id))
            if one.external:
                recorded = self._record_external(one.root_id, one.external)
                await self._guard.attempt(recorded, stack_id=str(one.root_id))

    async def _record_external(self, root_id: UUID, resources: Sequence[UUID]) -> None:
        async with self._database.transaction("unrepaired") as conn:
            stacks = await drift_rows.read_tree(conn, root_id)
            await lock_stacks(conn, stacks)
            await drift_rows.record_unrepaired(conn, stacks, EXTERNAL, resources, external=True)

    async def _report(self, stack_id: UUID, policy: ConvergencePolicy) -> None:
        async with self._database.transaction("report") as conn:
            await lock_stacks(conn, [stack_id])
            await drift_rows.report(conn, stack_id, policy.tolerate)
