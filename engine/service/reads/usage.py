"""What a project has used, by day."""

from collections.abc import Sequence
from datetime import date, timedelta

from engine.errors import Finding, Invalid
from engine.store.database import Database
from engine.store.observer.provider_endpoints import (
    PausedEndpoint,
    RequestedEndpoint,
    read_paused_endpoints,
    read_requested_endpoints,
)
from engine.store.projects import usage
from engine.store.projects.usage import DayUsage
from engine.work.observer.drift_hooks import OBSERVER

#: Days of one request.
MAX_DAYS = 366
_DAY = timedelta(days=1)


class Usage:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, project: str, first: date, last: date) -> Sequence[DayUsage]:
        """The usage on each day, oldest first; today's so far. Days without any are left out.
        Raises Invalid."""
        if last < first:
            raise _invalid("to", f"{last} is before {first}", "Send a later day, or none.")
        if (last - first).days >= MAX_DAYS:
            remedy = f"Ask for at most {MAX_DAYS} days."
            raise _invalid("from", f"{first} to {last} is more than {MAX_DAYS} days", remedy)
        async with self._database.snapshot() as conn:
            rolled_up = (await usage.read_days(conn, timedelta(0))).rolled_up
            found = await usage.read(conn, project, first, last)
            if last <= rolled_up:
                return found
            start = max(first, rolled_up + _DAY)
            return [*found, *await usage.compute(conn, project, start, last, OBSERVER)]

    async def paused_endpoints(self, project: str) -> Sequence[PausedEndpoint]:
        """The endpoints to which the observers send no more requests of the project now."""
        async with self._database.connection() as conn:
            return await read_paused_endpoints(conn, project)

    async def requested_endpoints(self, project: str) -> Sequence[RequestedEndpoint]:
        """The endpoints to which the observers have sent requests of the project today."""
        async with self._database.connection() as conn:
            return await read_requested_endpoints(conn, project)


def _invalid(place: str, reason: str, remedy: str) -> Invalid:
    return Invalid([Finding(place, reason, remedy, "Invalid")])
