"""What people see of a project as a whole. Nothing is changed."""

from engine.store.database import Database
from engine.store.overview import Overview, OverviewFilter, read_overview


class Overviews:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def stacks(self, project: str, wanted: OverviewFilter) -> Overview:
        """The outermost stacks, newest change first."""
        async with self._database.transaction(replan=True) as conn:
            return await read_overview(conn, project, wanted)
