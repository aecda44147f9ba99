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
from engine.loop_guard import Fault, Guard, Supervisor
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
#: How long it waits in all, until an observation finds it again: stacks of its tree may be due or
#: observed at every moment.
MAX_TOTAL_WAIT = timedelta(minutes=15)
#: How long ago the observation may have begun that has found what is repaired. What was found
#: before is observed again, alone; then it is repaired however long that has taken.
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
        waits for the rest of its tree or for the end of a change, what is observed again, and an
        attempt that failed."""
        of_roots = [one for one in ended if one.stack.root_id]
        kept = set[UUID]()
        for held in _by_age([one for one in of_roots if one.differing and holds(one.policy)]):
            kept |= await self._start_approved(held)
        if repaired := [one for one in of_roots if _repairs(one.policy)]:
            kept |= await self._start_repairs(repaired)
        found = _found_drift(of_roots)
        await self._drop(_select(found, {key for one in found for key in one.resources} - kept))

    async def _start_approved(self, held: Sequence[StackObservation]) -> set[UUID]:
        """held: all old, or none; see `_is_old`. Returns the resources that wait."""
        kept = set[UUID]()
        if self._approved is None or not held:
            return kept
        found, roots = _found_drift(held), _roots(held)
        async with self._database.connection() as conn:
            approved = await read_approved_repairs(conn, [*roots], [*REPAIRED_AS], found)
        for root_id, one in approved.items():
            if one.names and _is_old(held[0]):
                await self._observe_again(_select(found, one.resources))
                kept.update(one.resources)
            elif one.names:
                start = self._approved(held[0].stack.project, root_id, one)
                chosen = _select(found, one.resources)
                if await self._attempt(root_id, start, chosen, again=not _of_reports(held)):
                    kept.update(one.resources)
            await self._record_external(root_id, one.external)
        return kept

    async def _start_repairs(self, repaired: Sequence[StackObservation]) -> set[UUID]:
        """Those of policies whose window is open now. They wait for the other stacks of the tree,
        so that one repair is started for all. Returns the resources that wait."""
        kept = set[UUID]()
        if self._repair is None:
            return kept
        policies, project = _roots(repaired), repaired[0].stack.project
        sections = {one.stack.root_id: one.stack.section for one in repaired}
        fresh, old = _by_age([one for one in repaired if one.differing])
        found, found_before = _found_drift(fresh), _found_drift(old)
        reported = _of_reports(repaired)
        async with self._database.connection() as conn:
            before = [*found, *found_before, *await waiting_repairs.read(conn, policies, NEWEST)]
            if not before:
                return kept
            roots = {one.root_id for one in before}
            # What waits is read again after this: an observation that has ended in between has
            # recorded what it has found.
            observed = await waiting_repairs.read_observed(
                conn, roots, reported=reported, soon=SOON, longest=MAX_TOTAL_WAIT
            )
            others = await waiting_repairs.read(conn, roots, NEWEST)
        await self._reports.report({one.stack_id: policies[one.root_id] for one in others})
        for one in await self._read_repairable(policies, found_before):
            if one.names:
                await self._observe_again(_select(found_before, one.resources))
                kept.update(one.resources)
                observed.add(one.root_id)
            await self._record_external(one.root_id, one.external)
        earlier = {key for one in found_before for key in one.resources}
        together = [*found, *_leave_out(others, earlier)]
        for one in await self._read_repairable(policies, together):
            root_id = one.root_id
            if one.names and root_id in observed:
                kept.update(one.resources)
            elif one.names:
                start = self._repair(project, one, policies[root_id], sections[root_id])
                chosen = _select(together, one.resources)
                if await self._attempt(root_id, start, chosen, again=not reported):
                    kept.update(one.resources)
            await self._record_external(root_id, one.external)
        return kept

    async def _read_repairable(
        self, policies: Mapping[UUID, ConvergencePolicy], found: Sequence[FoundDrift]
    ) -> list[RepairableStack]:
        """Of policies whose window is open now."""
        if not found:
            return []
        tolerated = {root_id: policy.tolerate for root_id, policy in policies.items()}
        async with self._database.connection() as conn:
            repairable = await drift_rows.read_repairable(conn, tolerated, [*REPAIRED_AS], found)
        return [
            one for one in repairable if policies[one.root_id].repairs_in(one.now) == timedelta(0)
        ]

    async def _attempt(
        self,
        root_id: UUID,
        start: Awaitable[bool],
        found: Sequence[FoundDrift],
        *,
        again: bool,
    ) -> bool:
        """Start a repair. Returns whether what it repairs has been recorded, or waits for another
        attempt. again: there is one, after an internal error: else a repair that always fails would
        be attempted, and its resources observed, every few minutes for ever."""
        result = await self._guard.attempt(self._start(start, found), stack_id=str(root_id))
        return again or not isinstance(result, Fault)

    async def _start(self, start: Awaitable[bool], found: Sequence[FoundDrift]) -> None:
        """Start a repair; what it repairs waits no more, unless a change is under way."""
        if await start:
            await self._observe_again(found)
        else:
            await self._drop(found)

    async def _observe_again(self, found: Sequence[FoundDrift]) -> None:
        """Let these resources be observed again when no change is under way."""
        async with self._database.connection() as conn:
            await waiting_repairs.keep(conn, found, again=True)

    async def _drop(self, found: Sequence[FoundDrift]) -> None:
        if found:
            async with self._database.connection() as conn:
                await waiting_repairs.drop(conn, found)

    async def _record_external(self, root_id: UUID, resources: Sequence[UUID]) -> None:
        if resources:
            recorded = self._record(root_id, resources)
            await self._guard.attempt(recorded, stack_id=str(root_id))

    async def _record(self, root_id: UUID, resources: Sequence[UUID]) -> None:
        async with self._database.transaction("unrepaired") as conn:
            stacks = await drift_rows.read_tree(conn, root_id)
            await lock_stacks(conn, stacks)
            await drift_rows.record_unrepaired(conn, stacks, EXTERNAL, resources, external=True)


def _repairs(policy: ConvergencePolicy | None) -> bool:
    return policy is not None and policy.on_drift is OnDrift.REPAIR


def _of_reports(observed: Sequence[StackObservation]) -> bool:
    return all(one.is_of_reports for one in observed)


def _is_old(observed: StackObservation) -> bool:
    """Whether what an observation has found may have been repaired by hand before it ended."""
    return observed.duration > NEWEST and not observed.is_of_reports


def _by_age(
    observed: Sequence[StackObservation],
) -> tuple[list[StackObservation], list[StackObservation]]:
    """Those that are not old, and those that are."""
    return [one for one in observed if not _is_old(one)], [one for one in observed if _is_old(one)]


def _leave_out(found: Sequence[FoundDrift], resources: Collection[UUID]) -> list[FoundDrift]:
    """The drift of other resources."""
    return _select(found, {key for one in found for key in one.resources} - {*resources})


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
