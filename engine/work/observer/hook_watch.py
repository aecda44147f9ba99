"""Watches hooks: makes the observations of what they show due, and replaces hooks whose resource
has changed, as `engine.hooks.hook_watch` decides."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from uuid import UUID

from engine.bounded_wait import wait_at_most
from engine.hooks.hook_watch import RENEWED, ObservedObject, new_digest, renew
from engine.hooks.reminders import first_wait
from engine.loop_guard import Supervisor
from engine.store.database import Database
from engine.store.fault_points import reach
from engine.store.hooks.locked_hooks import LockedHook, lock_hooks, record_events
from engine.store.hooks.watched_hooks import (
    HookReplacement,
    WatchedHook,
    mark_due,
    read_watched,
    record_watched_digests,
    replace_hooks,
)
from engine.store.observer.observation_schedule import report_resources
from engine.words import Json, ObservedState
from engine.work.claim_loop import POLL
from engine.work.hook_decisions import hook_event
from engine.work.observer.drift_hooks import OBSERVER, drift_hook_digest

#: How often what a hook shows is observed, if the settings do not say otherwise.
EVERY = timedelta(minutes=1)
#: Hooks that are made due at once.
BATCH = 500


class HookWatch:
    """One loop. every: how often what a hook shows is observed. new_id: of hooks."""

    def __init__(
        self,
        database: Database,
        new_id: Callable[[], UUID],
        *,
        every: timedelta = EVERY,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._new_id = new_id
        self._every = every
        self._pause = min(POLL, every).total_seconds()
        self._guard = (supervisor or Supervisor()).guard("hook watch", max_pause=self._pause)

    async def run(self, stop: asyncio.Event) -> None:
        async def turn() -> None:
            if await self.make_due() < BATCH:
                await wait_at_most(stop, self._pause)

        await self._guard.run(turn, stop)

    async def make_due(self) -> int:
        """Make the observations of what hooks show due; return how many hooks there were."""
        async with self._database.transaction() as conn:
            hooks, due = await mark_due(conn, self._every, BATCH)
            if due:
                await report_resources(conn, due)
                reach("due.before")
        if due:
            reach("due.after")
        return hooks

    async def renew(self, stack_ids: Sequence[UUID]) -> None:
        """Replace the hooks of observed stacks whose resource has changed since they opened."""
        async with self._database.connection() as conn:
            watched = await read_watched(conn, stack_ids)
        changed = [one for one in watched if _renewal_of(one) or _new_digest_of(one)]
        for stack_id in dict.fromkeys(one.stack_id for one in changed):
            await self._guard.attempt(self._renew(stack_id), stack_id=str(stack_id))

    async def _renew(self, stack_id: UUID) -> None:
        """In one transaction. It reads the hooks again under the lock of the stack, so that two
        observers replace a hook once, and an answer decides it before or not at all."""
        async with self._database.connection() as conn:
            keys = [(one.stack_id, one.id) for one in await read_watched(conn, [stack_id])]
        if not keys:
            return
        async with self._database.transaction("renew") as conn:
            locked = {one.id: one for one in await lock_hooks(conn, keys)}
            found = await read_watched(conn, [stack_id])
            found = [one for one in found if one.id in locked]
            digests = [(one, digest) for one in found if (digest := _new_digest_of(one))]
            if digests:
                await record_watched_digests(conn, digests)
            new = [
                (locked[one.id], self._replacement(locked[one.id], notification, one))
                for one in found
                if (notification := _renewal_of(one)) is not None
            ]
            if not new:
                return
            await replace_hooks(conn, [one for _, one in new], OBSERVER)
            await record_events(conn, [event for pair in new for event in _events(*pair)])

    def _replacement(
        self, hook: LockedHook, notification: Json, watched: WatchedHook
    ) -> HookReplacement:
        return HookReplacement(
            hook.stack_id,
            self._new_id(),
            watched.resource_id,
            hook.id,
            notification,
            drift_hook_digest(notification, watched.found_digest),
            watched.found_digest,
            notification[RENEWED]["reason"],
            first_wait(hook.rule),
        )


def _renewal_of(one: WatchedHook) -> dict[str, Json] | None:
    return renew(one.notification, _observed_object(one), str(one.id), one.drift_digest)


def _new_digest_of(one: WatchedHook) -> str | None:
    return new_digest(one.notification, one.drift_digest, _observed_object(one))


def _observed_object(one: WatchedHook) -> ObservedObject:
    if one.state is None:
        return ObservedObject(ObservedState.PRESENT)
    since = one.since.isoformat() if one.since else ""
    return ObservedObject(
        ObservedState(one.state), one.differences, one.reason or "", since, one.found_digest
    )


def _events(hook: LockedHook, new: HookReplacement) -> list[Json]:
    closed = f"Hook {hook.point} was closed: {new.reason}"
    opened = f"Hook {hook.point} waits for a new answer: {new.reason}"
    waiting = hook_event(hook, "headgate.hook.waiting", opened, {})
    waiting["data"] |= {"hook_id": new.id}
    return [hook_event(hook, "headgate.hook.superseded", closed, {}), waiting]
