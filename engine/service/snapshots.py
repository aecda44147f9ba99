"""Snapshots: a version of the template, and what each resource kept of itself."""

from collections.abc import Callable
from uuid import UUID

from engine.errors import Conflict, Finding, Invalid, LimitReached, NotFound
from engine.plan.draft import Options
from engine.service.goals import Goal, find
from engine.service.outermost import check_nothing_inside, check_outermost
from engine.service.requests import StackRequest
from engine.service.traversals import UNDER_WAY, Traversals
from engine.store import snapshots
from engine.store.accept import Locked
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.nested import inside
from engine.store.read import read_template
from engine.store.records import StackRecord
from engine.store.snapshots import KeptRecord, SnapshotRecord
from engine.words import Action, Operation


class Snapshots:
    def __init__(
        self, database: Database, traversals: Traversals, wake: Callable[[], None]
    ) -> None:
        self._database = database
        self._traversals = traversals
        self._wake = wake

    async def create(self, project: str, stack_id: UUID, name: str, by: str) -> SnapshotRecord:
        """Conflict (ActionInProgress) while something is under way; LimitReached."""
        snapshot_id = self._traversals.new_id()
        async with self._database.transaction("accept") as conn:
            locked = await self._settled(conn, project, stack_id, "snapshotted")
            there = await inside(conn, stack_id)
            remedy = "Take snapshots of stacks that hold no others."
            check_nothing_inside(locked.name, there, "A snapshot", remedy)
            most = self._traversals.limits.of(project).snapshots
            if await snapshots.count_snapshots(conn, stack_id) >= most:
                raise LimitReached(
                    f"the stack has {most} snapshots already",
                    remedy="Delete one; the most is set in [quotas] snapshots_per_stack.",
                    code="RequestLimitExceeded",
                )
            await snapshots.insert_snapshot(
                conn, stack_id, snapshot_id, name or f"{locked.name}-{snapshot_id.hex[:8]}",
                locked.traversal + 1, locked.version,
            )  # fmt: skip
            await self._traversals.visit(conn, locked, Action.SNAPSHOT, Operation.SNAPSHOT, by)
            made = await self._one(conn, stack_id, snapshot_id)
        self._wake()
        return made

    async def all(self, stack: StackRecord) -> list[SnapshotRecord]:
        async with self._database.connection() as conn:
            return await snapshots.read_snapshots(conn, stack.id)

    async def one(self, stack: StackRecord, snapshot_id: UUID) -> SnapshotRecord:
        """NotFound (code SnapshotNotFound)."""
        async with self._database.connection() as conn:
            return await self._one(conn, stack.id, snapshot_id)

    async def kept(self, stack: StackRecord) -> list[KeptRecord]:
        """What resources kept before they were deleted."""
        async with self._database.connection() as conn:
            return await snapshots.read_kept(conn, stack.id)

    async def delete(self, project: str, stack_id: UUID, snapshot_id: UUID) -> None:
        """Invalid (NotSupported) while it is being made."""
        async with self._database.transaction("accept") as conn:
            await self._traversals.lock(conn, project, stack_id)
            found = await self._one(conn, stack_id, snapshot_id)
            if found.status == "IN_PROGRESS":
                raise _not_now("Deleting in-progress snapshot is not supported")
            await snapshots.delete_snapshot(conn, stack_id, snapshot_id)

    async def restore(self, project: str, stack_id: UUID, snapshot_id: UUID, by: str) -> None:
        """Begin a traversal toward what the snapshot holds. Invalid when it is not complete."""
        async with self._database.transaction("accept") as conn:
            locked = await self._settled(conn, project, stack_id, "restored")
            found = await self._one(conn, stack_id, snapshot_id)
            if found.status != "COMPLETE":
                raise _not_now(f"Snapshot is {found.status}, it cannot be restored")
            stored = await read_template(conn, stack_id, found.version)
            blueprint = await self._traversals.build(
                StackRequest(existing=True, requested_by=by),
                stored,
                project=project,
                stack_id=stack_id,
                name=locked.name,
            )
            kept = {
                name: one["resource_data"]
                for name, one in found.resources.items()
                if one["resource_data"] and name in blueprint.definition.resources
            }
            goal = Goal(
                stack_id=stack_id,
                action=Action.RESTORE,
                number=locked.traversal + 1,
                version=locked.newest + 1,
                blueprint=blueprint,
                found=await find(conn, stack_id, blueprint, kept),
                requested_by=by,
                options=Options(restored=frozenset(kept)),
                kept=kept,
            )
            await self._traversals.toward(conn, goal)
        self._wake()

    async def _settled(self, conn: Connection, project: str, stack_id: UUID, done: str) -> Locked:
        locked = await self._traversals.lock(conn, project, stack_id)
        check_outermost(locked, done)
        if locked.state in UNDER_WAY:
            raise Conflict(
                f"Stack {locked.name} already has an action ({locked.action}) in progress.",
                remedy="Wait for its end or cancel it.",
                code="ActionInProgress",
            )
        return locked

    async def _one(self, conn: Connection, stack_id: UUID, snapshot_id: UUID) -> SnapshotRecord:
        found = await snapshots.read_snapshots(conn, stack_id, snapshot_id)
        if not found:
            reason = f"Snapshot with id {snapshot_id} not found"
            raise NotFound(reason, code="SnapshotNotFound")
        return found[0]


def _not_now(reason: str) -> Invalid:
    return Invalid([Finding("", reason, "Wait for its end, or make another.", "NotSupported")])
