"""Stores the software configs and deployments of resources in the tables of the API's."""

from collections.abc import Mapping
from uuid import UUID

from engine.errors import NotFound
from engine.service.software.configs import Software
from engine.store import deployment_resources
from engine.store import software_configs as store
from engine.store.database import Database
from engine.store.software_configs import ConfigRecord, DeploymentChange
from engine.types.software.software_store import Deployment, Ended, NewConfig, Publication
from engine.words import Json, Status


class ConfigStore:
    """Stores for resource types: implements engine/types/software/software_store.py."""

    def __init__(self, database: Database, software: Software) -> None:
        self._database = database
        self._software = software

    async def store_config(self, project: str, config_id: UUID, new: NewConfig) -> None:
        async with self._database.connection() as conn:
            await store.keep_config(conn, config_id, project, new)

    async def config(self, project: str, config_id: str) -> NewConfig | None:
        try:
            return _as_new(await self._software.config(project, UUID(config_id)))
        except (NotFound, ValueError):
            return None

    async def delete_config(self, project: str, config_id: str) -> None:
        try:
            await self._software.delete_config(project, UUID(config_id))
        except (NotFound, ValueError):
            return

    async def publish(self, project: str, published: Publication) -> None:
        async with self._database.transaction() as conn:
            await deployment_resources.publish(
                conn, project, UUID(published.deployment_id), published
            )

    async def deployment(self, project: str, deployment_id: str) -> Deployment | None:
        try:
            wanted = UUID(deployment_id)
        except ValueError:
            return None
        async with self._database.connection() as conn:
            found = await deployment_resources.find_published(conn, project, wanted)
        if found is None:
            return None
        values, config = found.output_values or {}, _as_new(found.config)
        return Deployment(found.status, found.status_reason, values, config)

    async def report_progress(self, project: str, deployment_id: str, reason: str) -> None:
        change = _change(Status.IN_PROGRESS, reason)
        await self._software.change_deployment(project, UUID(deployment_id), change)

    async def complete(self, project: str, deployment_id: str, ended: Ended) -> None:
        change = _change(ended.status, ended.reason, ended.output_values)
        async with self._database.connection() as conn:
            await store.change_deployment(conn, project, UUID(deployment_id), change)

    async def unpublish(self, project: str, deployment_id: str) -> None:
        async with self._database.transaction() as conn:
            await deployment_resources.withdraw(conn, project, UUID(deployment_id))


def _change(
    status: Status, reason: str, output_values: Mapping[str, Json] | None = None
) -> DeploymentChange:
    return DeploymentChange(None, None, output_values, None, status, reason)


def _as_new(one: ConfigRecord) -> NewConfig:
    return NewConfig(one.name, one.group, one.config, one.inputs, one.outputs, one.options)
