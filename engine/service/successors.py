"""Resources that have replaced others, for the operations of types."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from engine.store.database import Database
from engine.store.gathered_reads import GatheredReads
from engine.store.resources.successors import read_successors
from engine.types.successor import Successor
from engine.words import ResourceId, StackId


class StoredSuccessors:
    """Implements `Successors`. Those of operations that start at the same time are read
    together."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._gathered: GatheredReads[tuple[UUID, UUID], Successor] = GatheredReads(self._read)

    async def read(self, stack_id: StackId, resource_id: ResourceId) -> Successor | None:
        return await self._gathered.get((stack_id, resource_id))

    async def _read(
        self, keys: Sequence[tuple[UUID, UUID]]
    ) -> Mapping[tuple[UUID, UUID], Successor]:
        async with self._database.connection() as conn:
            return await read_successors(conn, keys)
