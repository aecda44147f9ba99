"""Starts the repairs of drift that observations have just found.

A repair never supersedes a change, so what cannot be repaired now waits, and is observed again when
the change has ended.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from engine.bounded_wait import wait_at_most
from engine.loop_guard import Guard, Supervisor
from engine.plan.convergence import ConvergencePolicy
from engine.plan.drift import REPAIRED_AS
from engine.store.database import Database
from engine.store.fault_points import reach
from engine.store.hooks.drift_hooks import ApprovedRepair, read_approved_repairs
from engine.store.observer import drift_rows, waiting_repairs
from engine.store.observer.drift_rows import RepairableStack
from engine.store.observer.found_drift import FoundDrift
from engine.store.observer.observation_schedule import report_resources
from engine.store.stacks.stack_locks import lock_stacks
from engine.words import Json, OnDrift
from engine.work.claim_loop import POLL
from engine.work.observer.drift_hooks import holds
from engine.work.observer.drift_reports import DriftReports
from engine.work.observer.stack_observation import StackObservation

#: `Repairs.start`. Returns whether a change is under way, so that no repair can start before its
#: end.
RepairStart = Callable[[str, RepairableStack, ConvergencePolicy, Json], Awaitable[bool]]
#: `Repairs.start_approved`; returns the same.
ApprovedRepairStart = Callable[[str, UUID, ApprovedRepair], Awaitable[bool]]

#: Why drift of a resource with `external_id`, or of data, is not repaired.
EXTERNAL = "the stack does not own the physical resource"
#: How long found drift waits for the observation of other stacks of its tree; then it is observed
#: again.
MAX_WAIT = timedelta(minutes=5)
#: How long ago the observation may have begun that has found what is repaired together.
NEWEST = timedelta(minutes=1)
#: Stacks that had no budget of requests are waited for if they get it within this time.
SOON = timedelta(minutes=1)
#: Stacks that are made due at once.
BATCH = 500


class RepairReactions:
    """repair: starts repairs of policies; approved: those that answers to hooks have approved."""

    def __init__(
        self,
        database: Database,
        guard: Guard,
        reports: DriftReports,
        repair: RepairStart | None,
        approved: ApprovedRepairStart | None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._guard = guard
        self._reports = reports
        self._repair = repair
        self._approved = approved
        pause = POLL.total_seconds()
        self._loop = (supervisor or Supervisor()).guard("waiting repairs", max_pause=pause)

    async def run(self, stop: asyncio.Event) -> None:
        """Observe what waits again, as soon as it can be repaired."""

        async def turn() -> None:
            if await self.make_due() < BATCH:
                await wait_at_most(stop, POLL.total_seconds())

        await self._loop.run(turn, stop)

    async def make_due(self) -> int:
        """Make the observations of what waits due, if it can be repaired now; return how many
        stacks there were."""
        async with self._database.transaction() as conn:
            due = await waiting_repairs.take_due(conn, MAX_WAIT, BATCH)
            if due:
                await report_resources(conn, due)
                reach("due.before")
        if due:
            reach("due.after")
        return len(due)

    async def react(self, ended: Sequence[StackObservation]) -> None:
        """Repair the drift that these observations have found and recorded as waiting. What was
        known before may have ended since. Also one that finds nothing can be the last of its tree,
        for which repairs wait. What can or must not be repaired now waits no more, except what
        waits for the rest of its tree or for the end of a change, or an attempt that failed."""
        of_roots = [one for one in ended if one.stack.root_id]
        kept = set[UUID]()
        if held := [one for one in of_roots if one.differing and holds(one.policy)]:
            kept |= await self._start_approved(held)
        if repaired := [one for one in of_roots if _repairs(one.policy)]:
            kept |= await self._start_repairs(repaired)
        found = _found_drift(of_roots)
        await self._drop(_select(found, {key for one in found for key in one.resources} - kept))

    async def _start_approved(self, held: Sequence[StackObservation]) -> set[UUID]:
        """Returns the resources of these attempts."""
        kept = set[UUID]()
        if self._approved is None:
            return kept
        found, roots = _found_drift(held), _roots(held)
        async with self._database.connection() as conn:
            approved = await read_approved_repairs(conn, [*roots], [*REPAIRED_AS], found)
        for root_id, one in approved.items():
            if one.names:
                start = self._approved(held[0].stack.project, root_id, one)
                started = self._start(start, _select(found, one.resources))
                await self._guard.attempt(started, stack_id=str(root_id))
                kept.update(one.resources)
            if one.external:
                recorded = self._record_external(root_id, one.external)
                await self._guard.attempt(recorded, stack_id=str(root_id))
        return kept

    async def _start_repairs(self, repaired: Sequence[StackObservation]) -> set[UUID]:
        """Those of policies whose window is open now. They wait for the other stacks of the tree,
        so that one repair is started for all. Returns the resources that wait, and those of
        attempts."""
        kept = set[UUID]()
        if self._repair is None:
            return kept
        policies = _roots(repaired)
        sections = {one.stack.root_id: one.stack.section for one in repaired}
        tolerated = {root_id: policy.tolerate for root_id, policy in policies.items()}
        found = _found_drift([one for one in repaired if one.differing])
        reported = all(one.stack.resources is not None and not one.stack.rest for one in repaired)
        async with self._database.connection() as conn:
            before = [*found, *await waiting_repairs.read(conn, policies, NEWEST)]
            if not before:
                return kept
            roots = {one.root_id for one in before}
            # What waits is read again after this: an observation that has ended in between has
            # recorded what it has found.
            observed = await waiting_repairs.read_observed(
                conn, roots, reported=reported, soon=SOON
            )
            others = await waiting_repairs.read(conn, roots, NEWEST)
        await self._reports.report({one.stack_id: policies[one.root_id] for one in others})
        together = [*found, *others]
        async with self._database.connection() as conn:
            repairable = await drift_rows.read_repairable(conn, tolerated, [*REPAIRED_AS], together)
        for one in repairable:
            root_id = one.root_id
            if policies[root_id].repairs_in(one.now) != timedelta(0):
                continue
            if one.names and root_id in observed:
                kept.update(one.resources)
            elif one.names:
                project = repaired[0].stack.project
                start = self._repair(project, one, policies[root_id], sections[root_id])
                started = self._start(start, _select(together, one.resources))
                await self._guard.attempt(started, stack_id=str(root_id))
                kept.update(one.resources)
            if one.external:
                recorded = self._record_external(root_id, one.external)
                await self._guard.attempt(recorded, stack_id=str(root_id))
        return kept

    async def _start(self, start: Awaitable[bool], found: Sequence[FoundDrift]) -> None:
        """Start a repair; what it repairs waits no more, unless a change is under way."""
        if await start:
            async with self._database.connection() as conn:
                await waiting_repairs.keep(conn, found, again=True)
        else:
            await self._drop(found)

    async def _drop(self, found: Sequence[FoundDrift]) -> None:
        if found:
            async with self._database.connection() as conn:
                await waiting_repairs.drop(conn, found)

    async def _record_external(self, root_id: UUID, resources: Sequence[UUID]) -> None:
        async with self._database.transaction("unrepaired") as conn:
            stacks = await drift_rows.read_tree(conn, root_id)
            await lock_stacks(conn, stacks)
            await drift_rows.record_unrepaired(conn, stacks, EXTERNAL, resources, external=True)


def _repairs(policy: ConvergencePolicy | None) -> bool:
    return policy is not None and policy.on_drift is OnDrift.REPAIR


def _roots(observed: Sequence[StackObservation]) -> Mapping[UUID, ConvergencePolicy]:
    """The root stacks, and their policies."""
    return {one.stack.root_id: one.policy for one in observed if one.stack.root_id and one.policy}


def _found_drift(observed: Sequence[StackObservation]) -> list[FoundDrift]:
    return [one.found_drift for one in observed if one.found_drift]


def _select(found: Sequence[FoundDrift], resources: Collection[UUID]) -> list[FoundDrift]:
    """The drift of these resources."""
    chosen = {*resources}
    selected = [
        replace(one, resources=[key for key in one.resources if key in chosen]) for one in found
    ]
    return [one for one in selected if one.resources]
