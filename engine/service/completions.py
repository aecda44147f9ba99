"""Operations that the observer completes: how they begin to wait, and how events are passed on."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from engine.errors import Unavailable
from engine.store.database import Database
from engine.store.gathered_reads import GatheredReads
from engine.store.observer import completions
from engine.types.completion import AcceptedOperation
from engine.words import Json
from engine.work.observer.completion_observer import FIRST

#: Until the first request for an operation, and between two requests because of events.
FIRST_PAUSE = timedelta(seconds=FIRST)


class StoredCompletions:
    """Implements `Completions`. Operations that begin to wait at the same time are written
    together."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._gathered: GatheredReads[AcceptedOperation, Json] = GatheredReads(self._add_each)

    async def wait(self, accepted: AcceptedOperation) -> Json | None:
        found = await self._gathered.get(accepted)
        if isinstance(found, Exception):
            raise found
        return found

    async def make_due(self, project: str | None, object_ids: Sequence[str]) -> set[str]:
        """Make the requests due that read these objects of a project (None: of all), because an
        event says that they have changed. Returns the objects for which operations wait. An event
        never completes an operation: the observer reads the objects."""
        async with self._database.connection() as conn:
            return await completions.request(conn, project, object_ids, FIRST_PAUSE)

    async def _add_each(
        self, accepted: Sequence[AcceptedOperation]
    ) -> Mapping[AcceptedOperation, Json]:
        """The complete objects, and the errors of operations that cannot be stored."""
        try:
            return await self._add(accepted)
        except Unavailable:
            raise
        except Exception:
            if len(accepted) == 1:
                raise
        found: dict[AcceptedOperation, Json] = {}
        for one in accepted:
            try:
                found |= await self._add([one])
            except Unavailable:
                raise
            except Exception as error:
                found[one] = error
        return found

    async def _add(self, accepted: Sequence[AcceptedOperation]) -> dict[AcceptedOperation, Json]:
        async with self._database.transaction("wait") as conn:
            found = await completions.add(conn, accepted, FIRST_PAUSE)
        return {one: found[one.operation_key] for one in accepted if one.operation_key in found}
