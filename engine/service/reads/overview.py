"""Reads for a whole project: the stack overview and the audit log."""

from engine.store.audit_log import Decided, TrailFilter, trail_of_project
from engine.store.database import Database
from engine.store.stack_overview import Overview, OverviewFilter, read_overview


class Overviews:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def stacks(self, project: str, wanted: OverviewFilter) -> Overview:
        """The root stacks, newest change first."""
        async with self._database.transaction(replan=True) as conn:
            return await read_overview(conn, project, wanted)

    async def audit_log(self, project: str, wanted: TrailFilter) -> list[Decided]:
        """The audit log entries of all stacks, newest first."""
        async with self._database.transaction(replan=True) as conn:
            return await trail_of_project(conn, project, wanted)
