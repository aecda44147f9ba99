"""Software configs and deployments of resources, kept where the API's are."""

from uuid import UUID

from engine.errors import NotFound
from engine.service.software import Software
from engine.store import software as store
from engine.store.database import Database
from engine.types.software.keeper import NewConfig


class Keeper:
    """The types' door to the store (engine/types/software/keeper.py)."""

    def __init__(self, database: Database, software: Software) -> None:
        self._database = database
        self._software = software

    async def keep_config(self, project: str, config_id: UUID, new: NewConfig) -> None:
        async with self._database.connection() as conn:
            await store.keep_config(conn, config_id, project, new)

    async def config(self, project: str, config_id: str) -> NewConfig | None:
        try:
            found = await self._software.config(project, UUID(config_id))
        except (NotFound, ValueError):
            return None
        return NewConfig(
            found.name, found.group, found.config, found.inputs, found.outputs, found.options
        )

    async def drop_config(self, project: str, config_id: str) -> None:
        try:
            await self._software.delete_config(project, UUID(config_id))
        except (NotFound, ValueError):
            return
