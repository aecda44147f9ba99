"""What people say of a resource, to be heeded by the next change, and of stacks."""

from uuid import UUID

from engine.errors import Conflict, NotFound
from engine.store import marks, retention
from engine.store.accept import lock_stack
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.nested import lock_lineage, mark_stale_around


class Marks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def mark_health(
        self, project: str, stack_id: UUID, name: str, *, unhealthy: bool, reason: str
    ) -> None:
        """Unhealthy: CHECK_FAILED, and the next update replaces it. Else: CHECK_COMPLETE, if it
        was marked. name: or the physical id. Conflict (ActionInProgress) while it is worked on."""
        async with self._database.transaction("accept") as conn:
            await lock_lineage(conn, stack_id)
            found = await self._found(conn, project, stack_id, name)
            if found.busy:
                raise Conflict(
                    f"Resource {found.name} is being worked on.",
                    remedy="Mark it when its operation has ended.",
                    code="ActionInProgress",
                )
            is_marked = (found.action, found.status) == ("CHECK", "FAILED")
            if unhealthy or is_marked:
                await marks.mark_health(
                    conn, stack_id, found.id, unhealthy=unhealthy, reason=reason
                )
                await mark_stale_around(conn, stack_id)

    async def protect(
        self, project: str, stack_id: UUID, name: str, *, protected: bool, by: str
    ) -> None:
        """Protected: neither deleted nor replaced, by anybody, until this is lifted by name."""
        async with self._database.transaction("accept") as conn:
            found = await self._found(conn, project, stack_id, name)
            said = "protected" if protected else "protection lifted"
            await marks.protect(
                conn, stack_id, found.id, protected=protected, reason=f"{said} by {by}"
            )

    async def pin(self, project: str, stack_id: UUID, *, by: str, reason: str | None) -> None:
        """Keep a stack from being purged, whether it is deleted or not. reason: None lets it go."""
        async with self._database.transaction("accept") as conn:
            pinned = reason is not None
            await retention.pin(conn, project, stack_id, pinned=pinned, by=by, reason=reason or "")

    async def _found(
        self, conn: Connection, project: str, stack_id: UUID, name: str
    ) -> marks.Marked:
        locked = await lock_stack(conn, project, stack_id)
        found = None if locked is None else await marks.marked(conn, stack_id, name)
        if found is None:
            reason = f"The Resource ({name}) could not be found in Stack {stack_id}."
            raise NotFound(reason, code="ResourceNotFound")
        return found
