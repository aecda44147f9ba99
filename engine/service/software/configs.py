"""Software configs, and their deployments to servers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from engine.errors import Finding, Invalid, NotFound
from engine.service.software.deployment_callbacks import notify_changed, notify_deleted
from engine.store import software_configs as store
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.deployment_resources import ServerRecord, find_server, lock_waiting
from engine.store.software_configs import ConfigRecord, DeploymentChange, DeploymentRecord
from engine.types.software.software_store import NewConfig
from engine.words import Json


class Software:
    """All methods raise NotFound (NotFound) for an id that does not exist or is another
    project's."""

    def __init__(self, database: Database, *, new_id: Callable[[], UUID]) -> None:
        self._database = database
        self._new_id = new_id

    async def create_config(self, project: str, new: NewConfig) -> ConfigRecord:
        async with self._database.connection() as conn:
            return await store.insert_config(conn, self._new_id(), project, new)

    async def config(self, project: str, config_id: UUID) -> ConfigRecord:
        async with self._database.connection() as conn:
            found = await store.find_config(conn, project, config_id)
        if found is None:
            raise _no_config(config_id)
        return found

    async def configs(
        self, project: str | None, marker: UUID | None, limit: int | None
    ) -> list[ConfigRecord]:
        """Configs, newest first. project: None for all projects. marker: the last id of the page
        before."""
        async with self._database.connection() as conn:
            return await store.list_configs(conn, project, marker, limit)

    async def delete_config(self, project: str, config_id: UUID) -> None:
        """Delete a config. Raises Invalid (InvalidRestrictedAction) while a deployment uses it."""
        async with self._database.transaction() as conn:
            if not await store.lock_config(conn, project, config_id):
                raise _no_config(config_id)
            if not await store.delete_unused_config(conn, config_id):
                raise _in_use(config_id)

    async def deploy(self, project: str, server_id: str, new: DeploymentChange) -> DeploymentRecord:
        """Create a deployment. new: all fields except output_values."""
        async with self._database.transaction() as conn:
            await _lock_config(conn, project, new.config_id)
            return await store.insert_deployment(conn, self._new_id(), project, server_id, new)

    async def deployment(self, project: str, deployment_id: UUID) -> DeploymentRecord:
        async with self._database.connection() as conn:
            found = await store.find_deployment(conn, project, deployment_id)
        if found is None:
            raise _no_deployment(deployment_id)
        return found

    async def deployments(self, project: str, server_id: str | None) -> list[DeploymentRecord]:
        """Deployments, oldest first. server_id: None for all servers."""
        async with self._database.connection() as conn:
            return await store.list_deployments(conn, project, server_id)

    async def change_deployment(
        self, project: str, deployment_id: UUID, change: DeploymentChange
    ) -> DeploymentRecord:
        """Update a deployment, and wake the operation that waits for it."""
        async with self._database.transaction() as conn:
            waiting = await lock_waiting(conn, project, deployment_id)
            await _lock_config(conn, project, change.config_id)
            found = await store.change_deployment(conn, project, deployment_id, change)
            await notify_changed(conn, waiting, change)
        if found is None:
            raise _no_deployment(deployment_id)
        return found

    async def delete_deployment(self, project: str, deployment_id: UUID) -> None:
        """Delete a deployment, and wake the operation that waits for it."""
        async with self._database.transaction() as conn:
            waiting = await lock_waiting(conn, project, deployment_id)
            if not await store.delete_deployment(conn, project, deployment_id):
                raise _no_deployment(deployment_id)
            await notify_deleted(conn, waiting)

    async def configs_of_server(self, project: str, server_id: str) -> list[ConfigRecord]:
        """A copy of each deployed config, by name, with the deployment's values in its inputs."""
        async with self._database.connection() as conn:
            found = await store.configs_of_server(conn, project, server_id)
        return [replace(one, inputs=_with(values, one.inputs)) for one, values in found]

    async def server(self, stack_id: UUID, resource_id: UUID) -> ServerRecord | None:
        """A server resource of any project; the caller has authenticated with the resource's
        key."""
        async with self._database.connection() as conn:
            return await find_server(conn, stack_id, resource_id)


def _with(values: Mapping[str, Json], inputs: Sequence[Json]) -> list[Json]:
    """The inputs with their deployed values."""
    return [
        one | {"value": values[one["name"]]} if one["name"] in values else one for one in inputs
    ]


async def _lock_config(conn: Connection, project: str, config_id: UUID | None) -> None:
    """Lock a config against deletion. Raises NotFound."""
    if config_id is not None and not await store.hold_config(conn, project, config_id):
        raise _no_config(config_id)


def _in_use(config_id: UUID) -> Invalid:
    reason = f"Software config with id {config_id} can not be deleted as it is referenced"
    remedy = "Delete its deployments first."
    return Invalid([Finding("", reason, remedy, "InvalidRestrictedAction")])


def _no_config(config_id: UUID) -> NotFound:
    return NotFound(f"Software config with id {config_id} not found", code="NotFound")


def _no_deployment(deployment_id: UUID) -> NotFound:
    return NotFound(f"Deployment with id {deployment_id} not found", code="NotFound")
