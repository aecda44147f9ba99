"""Snapshots: a template version together with the snapshot data of each resource."""

from collections.abc import Callable
from uuid import UUID

from engine.errors import Finding, Invalid, LimitReached
from engine.missing_objects import no_snapshot, no_stack
from engine.plan.draft import Options
from engine.principal import Principal
from engine.service.requests.desired_state import DesiredState, read_current_state
from engine.service.requests.requests import StackRequest
from engine.service.requests.stack_region import change_region
from engine.service.traversals.start import (
    Traversals,
    action_in_progress,
)
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.encryption.secret_values import DecryptionFailed
from engine.store.records import StackRecord
from engine.store.resources.overrides import read_overrides
from engine.store.stacks import snapshots
from engine.store.stacks.snapshots import SavedResource, SnapshotRecord
from engine.store.stacks.stack_lists import find_stack
from engine.store.stacks.stack_locks import LockedStack
from engine.store.stacks.templates import read_requesters, read_template
from engine.words import UNDER_WAY, Action, Operation


class Snapshots:
    def __init__(
        self, database: Database, traversals: Traversals, wake: Callable[[], None]
    ) -> None:
        self._database = database
        self._traversals = traversals
        self._wake = wake

    async def create(
        self, project: str, stack_id: UUID, name: str, by: Principal, *, credential: str = ""
    ) -> SnapshotRecord:
        """Start a snapshot. name: "" for a generated one. credential: for calls to the cloud.

        Each nested stack gets a snapshot that belongs to it. Raises NotFound; Invalid
        (NotSupported) for a nested stack; Conflict (ActionInProgress) while a traversal is under
        way; LimitReached.
        """
        snapshot_id = self._traversals.new_id()
        async with self._database.transaction("accept") as conn:
            locked = await self._lock_idle(conn, project, stack_id, "snapshotted")
            limit = self._traversals.limits.for_project(project).snapshots
            if await snapshots.count_snapshots(conn, stack_id) >= limit:
                raise LimitReached(
                    f"the stack already has {limit} snapshots",
                    remedy="Delete one; the limit is in [quotas] snapshots_per_stack.",
                    code="RequestLimitExceeded",
                )
            await snapshots.insert_snapshot(
                conn, stack_id, snapshot_id, name or f"{locked.name}-{snapshot_id.hex[:8]}",
                locked.traversal + 1, locked.version,
            )  # fmt: skip
            await self._traversals.start_action(
                conn, locked, Action.SNAPSHOT, Operation.SNAPSHOT, by
            )
            await self._traversals.keep_credential(conn, stack_id, locked.traversal + 1, credential)
            snapshot = await self._one(conn, stack_id, snapshot_id)
        self._wake()
        return snapshot

    async def read_all(self, stack: StackRecord) -> list[SnapshotRecord]:
        """The snapshots of a stack. Raises NotFound if it has been deleted since it was read."""
        async with self._database.connection() as conn:
            found = await snapshots.read_snapshots(conn, stack.id)
            if not found and stack.deleted_at is None:
                now = await find_stack(conn, stack.project, stack.id, "")
                if now is None or now.deleted_at is not None:
                    raise no_stack(stack.id)
        return found

    async def read(self, stack: StackRecord, snapshot_id: UUID) -> SnapshotRecord:
        """One snapshot. Raises NotFound (SnapshotNotFound)."""
        async with self._database.connection() as conn:
            return await self._one(conn, stack.id, snapshot_id)

    async def read_saved_resources(self, stack: StackRecord) -> list[SavedResource]:
        """The snapshots of deleted resources with `deletion_policy: Snapshot`."""
        async with self._database.connection() as conn:
            return await snapshots.read_saved_resources(conn, stack.id)

    async def delete(self, project: str, stack_id: UUID, snapshot_id: UUID) -> None:
        """Delete a snapshot. Raises NotFound; Invalid (NotSupported) while it is in progress."""
        async with self._database.transaction("accept") as conn:
            await self._traversals.lock(conn, project, stack_id)
            found = await self._one(conn, stack_id, snapshot_id)
            if found.status == "IN_PROGRESS":
                raise _not_supported("Deleting in-progress snapshot is not supported")
            await snapshots.delete_snapshot(conn, stack_id, snapshot_id)

    async def restore(
        self,
        project: str,
        stack_id: UUID,
        snapshot_id: UUID,
        by: Principal,
        *,
        credential: str = "",
    ) -> None:
        """Start a traversal toward the template version and the data of a snapshot.

        credential: for calls to the cloud. Raises NotFound; Invalid (NotSupported) if the snapshot
        is not complete; Conflict (ActionInProgress); DecryptionFailed (Undecryptable) if its data
        cannot be decrypted.
        """
        async with self._database.transaction("accept") as conn:
            locked = await self._lock_idle(conn, project, stack_id, "restored")
            found = await self._one(conn, stack_id, snapshot_id)
            _check_decryptable(found)
            if found.status != "COMPLETE":
                raise _not_supported(f"Snapshot is {found.status}, it cannot be restored")
            stored = await read_template(conn, stack_id, found.version)
            request = StackRequest(existing=True, requested_by=by)
            blueprint = await self._traversals.blueprints.build_for(
                locked, request, stored, conn=conn, known=stored.read_outputs(),
                keeps_region=False,
            )  # fmt: skip
            configured = self._traversals.limits.region
            await change_region(conn, locked, blueprint.region, configured)
            names = blueprint.definition.resources
            kept = found.saved_data(names)
            overrides = found.restored_overrides(names, await read_overrides(conn, stack_id))
            restored = {*kept, *overrides}
            desired = DesiredState(
                stack_id=stack_id,
                action=Action.RESTORE,
                number=locked.traversal + 1,
                version=locked.newest + 1,
                blueprint=blueprint,
                current=await read_current_state(conn, stack_id, blueprint, restored),
                requested_by=by,
                options=Options(restored=frozenset(restored)),
                kept=kept,
                overrides=overrides,
                excluded=await read_requesters(conn, stack_id, found.version, scales=False),
                credential=credential,
            )
            await self._traversals.start_update(conn, desired)
        self._wake()

    async def _lock_idle(
        self, conn: Connection, project: str, stack_id: UUID, done: str
    ) -> LockedStack:
        """Lock a root stack that has no traversal under way. done: a key of `REMEDIES`."""
        locked = await self._traversals.lock_root(conn, project, stack_id, done)
        if locked.state in UNDER_WAY:
            raise action_in_progress(locked, "Wait until it ends, or stop it.")
        return locked

    async def _one(self, conn: Connection, stack_id: UUID, snapshot_id: UUID) -> SnapshotRecord:
        found = await snapshots.read_snapshots(conn, stack_id, snapshot_id)
        if not found:
            raise no_snapshot(snapshot_id)
        return found[0]


def _check_decryptable(found: SnapshotRecord) -> None:
    if found.undecryptable:
        raise DecryptionFailed(found.undecryptable, place="snapshot", code="Undecryptable")


def _not_supported(reason: str) -> Invalid:
    return Invalid(
        [Finding("", reason, "Wait until it is complete, or use another snapshot.", "NotSupported")]
    )
