"""What people see of a project as a whole. Nothing is changed."""

from engine.store.audit import Decided, TrailFilter, trail_of_project
from engine.store.database import Database
from engine.store.overview import Overview, OverviewFilter, read_overview


class Overviews:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def stacks(self, project: str, wanted: OverviewFilter) -> Overview:
        """The outermost stacks, newest change first."""
        async with self._database.transaction(replan=True) as conn:
            return await read_overview(conn, project, wanted)

    async def decisions(self, project: str, wanted: TrailFilter) -> list[Decided]:
        """Who decided what in all of its stacks, newest first."""
        async with self._database.transaction(replan=True) as conn:
            return await trail_of_project(conn, project, wanted)
