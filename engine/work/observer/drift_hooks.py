"""Opens, replaces and closes hooks about drift, as `engine.hooks.drift_hooks` decides."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from engine.hooks.drift_hooks import NO_DEADLINE, DriftStep, drift_rule, drift_step
from engine.hooks.reminders import first_wait
from engine.hooks.rule import Rule, encode_rule
from engine.plan.convergence import HOLD, ON_DRIFT, ConvergencePolicy
from engine.principal import internal
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.hooks.drift_hooks import (
    DriftHookRow,
    close_drift_hooks,
    open_drift_hooks,
    read_dependents,
    read_drift_hooks,
    read_version,
    record_digests,
)
from engine.store.hooks.locked_hooks import record_events
from engine.store.observer.observation_schedule import ClaimedStack
from engine.store.stacks.stack_locks import LockedStack, lock_stack
from engine.store.stacks.templates import read_requesters
from engine.words import DRIFT, UNDER_WAY, HookState, Json, OnDrift, OnTimeout
from engine.work.nodes.hook_opening import digest_of

#: Opens drift hooks, and requests automatic repairs.
OBSERVER = internal("observer")
OPERATION = "drift"


def holds(policy: ConvergencePolicy | None) -> bool:
    return policy is not None and policy.on_drift is OnDrift.HOLD


def _tolerated_duration(policy: ConvergencePolicy | None) -> timedelta | None:
    """How long drift must last; None: the policy does not hold it."""
    return policy.tolerate if policy is not None and holds(policy) else None


class DriftHooks:
    """The hooks about the drift of observed stacks."""

    def __init__(self, database: Database, new_id: Callable[[], UUID]) -> None:
        self._database = database
        self._new_id = new_id

    async def read_due(self, policies: Mapping[UUID, ConvergencePolicy | None]) -> list[UUID]:
        """The stacks with hooks to open or to close. policies: by stack."""
        held = {stack_id: _tolerated_duration(policy) for stack_id, policy in policies.items()}
        async with self._database.connection() as conn:
            found = await read_drift_hooks(conn, held)
        return [
            stack_id
            for stack_id, rows in found.items()
            if any(_changes(_step(one, policies[stack_id])) or _new_digest(one) for one in rows)
        ]

    async def update(self, one: ClaimedStack, policy: ConvergencePolicy | None) -> None:
        """Open and close the hooks of a stack, in one transaction. It reads the drift again under
        the stack's lock, so that two observers open one hook."""
        async with self._database.transaction("drift") as conn:
            locked = await lock_stack(conn, None, one.stack_id)
            if locked is None or locked.deleted:
                return
            found = await read_drift_hooks(conn, {locked.id: _tolerated_duration(policy)})
            steps = [
                (row, _step(row, policy, changing=locked.state in UNDER_WAY))
                for row in found.get(locked.id, [])
            ]
            ended = [
                row.resource_id
                for row, step in steps
                if step is DriftStep.CLOSE or (step is DriftStep.OPEN and row.asked is not None)
            ]
            if ended:
                why = "the drift has changed or ended"
                await close_drift_hooks(conn, locked.id, ended, OBSERVER, why)
            recorded = {
                row.hook_id: digest
                for row, step in steps
                if not _changes(step) and row.hook_id and (digest := _new_digest(row))
            }
            if recorded:
                await record_digests(conn, locked.id, recorded)
            opened = [row for row, step in steps if step is DriftStep.OPEN]
            if opened and policy is not None:
                await self._open(conn, locked, one.root_id or locked.id, policy, opened)

    async def _open(
        self,
        conn: Connection,
        locked: LockedStack,
        root_id: UUID,
        policy: ConvergencePolicy,
        rows: Sequence[DriftHookRow],
    ) -> None:
        by_operator = bool({ON_DRIFT, HOLD} & policy.by_operator)
        rule = drift_rule(policy.hold, by_operator=by_operator)
        if rule.exclude:
            excluded = await _requesters(conn, root_id)
            rule = drift_rule(policy.hold, by_operator=by_operator, excluded=excluded)
        dependents = await read_dependents(conn, locked.id, [one.resource_id for one in rows])
        hooks = [_hook(one, rule, self._new_id(), dependents[one.resource_id]) for one in rows]
        await open_drift_hooks(conn, locked.id, hooks, NO_DEADLINE, OBSERVER)
        events = [_waiting_event(one, hook) for one, hook in zip(rows, hooks, strict=True)]
        await record_events(conn, events)


async def _requesters(conn: Connection, root_id: UUID) -> list[str]:
    """The keys of the principals who requested what a repair of the root stack applies."""
    version = await read_version(conn, root_id)
    return [] if version is None else await read_requesters(conn, root_id, version, scales=False)


def _changes(step: DriftStep) -> bool:
    return step in (DriftStep.OPEN, DriftStep.CLOSE)


def _step(
    row: DriftHookRow, policy: ConvergencePolicy | None, *, changing: bool = False
) -> DriftStep:
    return drift_step(row.found, row.asked, row.now, holds=holds(policy), changing=changing)


def _new_digest(row: DriftHookRow) -> str | None:
    """The digest to record with the hook of a resource; None: it has one, or its drift has
    changed."""
    return None if row.asked is None else row.found.new_digest(row.asked.drift)


def _hook(row: DriftHookRow, rule: Rule, hook_id: UUID, dependents: Sequence[str]) -> Json:
    """The row of a new hook, as `open_drift_hooks` takes it."""
    differences = [dict(one) for one in row.found.differences]
    notification: dict[str, Json] = {
        "type": row.type,
        "operation": OPERATION,
        "physical_id": row.physical_id,
        "action": row.action,
        "status": row.status,
        "properties": {},
        # What a repair changes.
        "changes": {
            one["path"]: {"from": one["observed"], "to": one["desired"]} for one in differences
        },
        "dependents": list(dependents),
        "drift": {
            "state": row.found.state,
            "differences": differences,
            "reason": row.reason or "",
            "since": row.since.isoformat() if row.since else None,
        },
    }
    first = first_wait(rule)
    return {
        "id": hook_id,
        "resource_id": row.resource_id,
        "resource_name": row.name,
        "point": DRIFT,
        "mode": rule.mode,
        "state": HookState.WAITING,
        "on_timeout": OnTimeout.REJECT,
        "rule": encode_rule(rule),
        "notification": notification,
        "digest": drift_hook_digest(notification, row.found.digest),
        "wake_after": None if first is None else first.total_seconds(),
        "found": row.found.state,
        "differences": differences,
        "drift_digest": row.found.digest,
        "recorded_at": row.found.recorded_at,
    }


def drift_hook_digest(notification: Json, drift_digest: str | None) -> str:
    """The digest that an answer names, of a hook that shows drift. It differs if the drift does,
    also if all that is shown is the same."""
    whole = notification if drift_digest is None else [notification, drift_digest]
    return digest_of(whole)


def _waiting_event(row: DriftHookRow, hook: Json) -> Json:
    """The event of an opened hook, as `record_events` takes it."""
    return {
        "stack_id": row.stack_id,
        "type": "headgate.hook.waiting",
        "resource_name": row.name,
        "resource_type": row.type,
        "physical_id": row.physical_id,
        "action": row.action,
        "status": row.status,
        "reason": f"Hook {DRIFT} waits: the resource is {row.found.state}",
        "data": {"hook_id": hook["id"], "point": DRIFT, "mode": hook["mode"]},
    }
