"""Continues converges with several rounds: after the update of a round, it has the stack observed,
and starts the next round if the stack still differs.

All that it needs is in the database, so another process continues after a crash. Each step is one
transaction under the lock of the stack.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from uuid import UUID

from engine.bounded_wait import wait_at_most
from engine.loop_guard import Supervisor
from engine.plan.drift import REPAIRED_AS, describe_resources
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.observer import converge_requests, drift_rows, observation_schedule
from engine.store.observer.converge_requests import PendingConverge
from engine.store.observer.drift_rows import DriftedResource
from engine.store.stacks.stack_locks import LockedStack, lock_stack, split_path
from engine.store.stacks.stack_rows import record_stack_event
from engine.words import UNDER_WAY, ConvergeState, ObservedState, TraversalState
from engine.work.claim_loop import POLL

#: Seconds between two looks while a converge is under way.
PAUSE = 0.5
#: Converges that are read at once.
BATCH = 100
#: A converge ends if the stack is not observed so soon after an update, for example because the
#: project has used up its observations: it keeps the credential of the request, and repairs of
#: policies wait for it.
OBSERVED_MINUTES = 30
OBSERVED_WITHIN = timedelta(minutes=OBSERVED_MINUTES)
#: Characters of a reason.
MAX_REASON = 1_000
#: Before every ID.
FIRST = UUID(int=0)
EVENTS = {ConvergeState.COMPLETE: "completed", ConvergeState.INCOMPLETE: "failed"}

#: `ConvergeStart`: starts the next round; returns why it is refused, or "".
RoundStart = Callable[[PendingConverge], Awaitable[str]]


class ConvergeRounds:
    """One loop."""

    def __init__(
        self, database: Database, start: RoundStart, *, supervisor: Supervisor | None = None
    ) -> None:
        self._database = database
        self._start = start
        self._wake = asyncio.Event()
        self._guard = (supervisor or Supervisor()).guard(
            "converge rounds", max_pause=POLL.total_seconds()
        )

    def wake(self) -> None:
        """Look for work: a converge has begun."""
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set and `wake` is called."""

        async def turn() -> None:
            self._wake.clear()
            if await self.continue_all():
                await wait_at_most(stop, PAUSE)
            elif not stop.is_set():
                await wait_at_most(self._wake, POLL.total_seconds())

        await self._guard.run(turn, stop)

    async def continue_all(self) -> int:
        """Continue the converges that can be continued; return how many have not ended before."""
        count, after = 0, FIRST
        while True:
            async with self._database.connection() as conn:
                found = await converge_requests.read_pending(conn, after, BATCH)
            for one in found:
                if not one.current or one.traversal_state not in UNDER_WAY:
                    await self._guard.attempt(self._continue(one), stack_id=str(one.stack_id))
            count += len(found)
            if len(found) < BATCH:
                return count
            after = found[-1].stack_id

    async def _continue(self, one: PendingConverge) -> None:
        async with self._database.transaction("round") as conn:
            locked = await lock_stack(conn, None, one.stack_id)
            pending = await converge_requests.lock_pending(conn, one.stack_id)
            if locked is None or pending is None or not await self._needs_round(
                conn, locked, pending
            ):  # fmt: skip
                return
        refused = await self._start(pending)
        if refused:
            await self._end_refused(pending, refused)

    async def _needs_round(
        self, conn: Connection, locked: LockedStack, pending: PendingConverge
    ) -> bool:
        """Whether the next round starts. Otherwise, records what has happened since."""
        stack_id = pending.stack_id
        if not pending.current:
            reason = "Another change of the stack has begun"
            await converge_requests.end(conn, stack_id, ConvergeState.ENDED, reason)
            return False
        if pending.traversal_state in UNDER_WAY:
            return False
        if pending.traversal_state != TraversalState.COMPLETE:
            reason = f"The update of {pending.number} is {pending.traversal_state}"
            await converge_requests.end(conn, stack_id, ConvergeState.ENDED, reason)
            return False
        if pending.state is ConvergeState.RUNNING:
            await observation_schedule.request(conn, stack_id)
            await converge_requests.mark_observing(conn, stack_id)
            return False
        if (await observation_schedule.read_status(conn, stack_id)).requested:
            updated_at = pending.traversal_ended_at
            if updated_at is not None and locked.now - updated_at > OBSERVED_WITHIN:
                result = f"the stack was not observed within {OBSERVED_MINUTES} minutes"
                await _end(conn, locked, pending, ConvergeState.INCOMPLETE, result)
            return False
        return await self._judge(conn, locked, pending)

    async def _judge(self, conn: Connection, locked: LockedStack, pending: PendingConverge) -> bool:
        """Whether what was observed after a round needs another one."""
        drifted = await drift_rows.read_drift(conn, pending.stack_id)
        marks = await drift_rows.read_marks(
            conn, pending.stack_id, REPAIRED_AS, pending.selected
        )  # fmt: skip
        if not marks.actions:
            unknown = [one for one in drifted if _is_unknown(one, pending.selected)]
            state = ConvergeState.INCOMPLETE if unknown else ConvergeState.COMPLETE
            result = _describe(unknown, "has no known state", "have no known state")
            await _end(conn, locked, pending, state, result or "nothing differs")
            return False
        if not pending.number.is_last:
            return True
        left = [one for one in drifted if one.resource_id in marks.actions]
        what = _describe(left, "still differs", "still differ")
        result = f"{what}. Find out what changes the stack"
        await _end(conn, locked, pending, ConvergeState.INCOMPLETE, result)
        return False

    async def _end_refused(self, one: PendingConverge, reason: str) -> None:
        async with self._database.transaction("round") as conn:
            locked = await lock_stack(conn, None, one.stack_id)
            pending = await converge_requests.lock_pending(conn, one.stack_id)
            if locked is None or pending is None or pending.number != one.number:
                return
            result = f"the next round was refused: {reason}"
            await _end(conn, locked, pending, ConvergeState.INCOMPLETE, result)


def _is_unknown(one: DriftedResource, selected: Sequence[str] | None) -> bool:
    top = [*split_path(one.path), one.name][0]
    return one.state == ObservedState.UNKNOWN and (selected is None or top in selected)


def _describe(found: Sequence[DriftedResource], *what: str) -> str:
    paths = [("/".join((*split_path(one.path), one.name)), str(one.state)) for one in found]
    return describe_resources(paths, (what[0], what[1])) if paths else ""


async def _end(
    conn: Connection,
    locked: LockedStack,
    pending: PendingConverge,
    state: ConvergeState,
    result: str,
) -> None:
    """End a converge, and record its event."""
    reason = f"After {pending.number}, {result}"[:MAX_REASON]
    await converge_requests.end(conn, pending.stack_id, state, reason)
    await record_stack_event(
        conn,
        stack_id=pending.stack_id,
        kind=f"headgate.stack.converge.{EVENTS[state]}",
        action="CONVERGE",
        status="COMPLETE" if state is ConvergeState.COMPLETE else "FAILED",
        reason=reason,
        data={
            "traversal": pending.traversal,
            "version": locked.version,
            "converge": pending.number.as_json(),
        },
    )
