"""Marks set by users: the health and protection of a resource, and the pin of a stack."""

from uuid import UUID

from engine.errors import Conflict
from engine.missing_objects import no_resource
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.maintenance import retention
from engine.store.resources import resource_rows
from engine.store.stacks.stack_locks import lock_stack, lock_with_ancestors
from engine.store.traversals.nested_stacks import reset_ancestor_digests


class ResourceHealth:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def mark_health(
        self, project: str, stack_id: UUID, name: str, *, unhealthy: bool, reason: str
    ) -> None:
        """Set the health of a resource. unhealthy: it becomes CHECK_FAILED, and the next update
        replaces it; False: it becomes CHECK_COMPLETE if it was CHECK_FAILED. name: of the resource,
        or its physical id.

        Raises NotFound; Conflict (ActionInProgress) while an operation of it runs.
        """
        async with self._database.transaction("accept") as conn:
            await lock_with_ancestors(conn, stack_id)
            found = await self._lock_resource(conn, project, stack_id, name)
            if found.busy:
                raise Conflict(
                    f"Resource {found.name} has an operation in progress.",
                    place="resource",
                    remedy="Mark it after the operation has ended.",
                    code="ActionInProgress",
                )
            is_marked = (found.action, found.status) == ("CHECK", "FAILED")
            if unhealthy or is_marked:
                await resource_rows.mark_health(
                    conn, stack_id, found.id, unhealthy=unhealthy, reason=reason
                )
                await reset_ancestor_digests(conn, stack_id)

    async def protect(
        self, project: str, stack_id: UUID, name: str, *, protected: bool, by: str
    ) -> None:
        """Set or lift the protection of a resource: while set, every delete or replacement of it
        fails.

        Raises NotFound.
        """
        async with self._database.transaction("accept") as conn:
            found = await self._lock_resource(conn, project, stack_id, name)
            change = "protected" if protected else "protection lifted"
            await resource_rows.protect(
                conn, stack_id, found.id, protected=protected, reason=f"{change} by {by}"
            )

    async def pin(self, project: str, stack_id: UUID, *, by: str, reason: str | None) -> None:
        """Exempt a stack from purging, whether it is deleted or not. reason: None removes the
        pin."""
        async with self._database.transaction("accept") as conn:
            pinned = reason is not None
            await retention.pin(conn, project, stack_id, pinned=pinned, by=by, reason=reason or "")

    async def _lock_resource(
        self, conn: Connection, project: str, stack_id: UUID, name: str
    ) -> resource_rows.ResourceRow:
        locked = await lock_stack(conn, project, stack_id)
        found = (
            None
            if locked is None
            else await resource_rows.find_resource(conn, stack_id, name, by_physical_id=True)
        )
        if found is None:
            raise no_resource(name, locked.name if locked else stack_id)
        return found
