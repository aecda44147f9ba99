"""Software configs and their deployments to servers: those of the API, and those of resources
(`ConfigStore`), in the same tables.

A change of a deployment wakes the operation of its resource, if that waits for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC
from typing import Final
from uuid import UUID

import orjson
import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Finding, Invalid, NotFound, Unavailable
from engine.missing_objects import no_config, no_deployment
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.hooks.locked_hooks import record_events
from engine.store.read_database import ReadDatabase
from engine.store.resources.resource_signals import SignalTarget, find_target, wake_operation
from engine.store.software import deployment_resources
from engine.store.software import software_configs as store
from engine.store.software.deployment_resources import (
    DeploymentResource,
    RunningOperation,
    ServerRecord,
    find_server,
    lock_deployment_resource,
)
from engine.store.software.server_resources import find_server_resources
from engine.store.software.software_configs import ConfigRecord, DeploymentChange, DeploymentRecord
from engine.types.http_client import ServiceError
from engine.types.software.deployed_server import OS_COLLECT_CONFIG
from engine.types.software.metadata_objects import MetadataServices, objects_of
from engine.types.software.software_store import (
    Deployment,
    DeploymentResult,
    NewConfig,
    Publication,
)
from engine.words import Json, Status

log: FilteringBoundLogger = structlog.get_logger()
#: How often the metadata of a server are written again because they have changed meanwhile.
MAX_WRITES: Final = 10


class Software:
    """All methods raise NotFound (NotFound) for an id that does not exist or is another
    project's."""

    def __init__(
        self,
        database: Database,
        *,
        new_id: Callable[[], UUID],
        lists: ReadDatabase | None = None,
        services: MetadataServices | None = None,
    ) -> None:
        """lists: serves lists; None: the database does. services: that can have the metadata of
        servers; None: there are none."""
        self._database = database
        self.services = services
        self._lists = lists or ReadDatabase(database)
        self._new_id = new_id

    async def create_config(self, project: str, new: NewConfig) -> ConfigRecord:
        async with self._database.connection() as conn:
            return await store.insert_config(conn, self._new_id(), project, new)

    async def config(self, project: str, config_id: UUID) -> ConfigRecord:
        async with self._database.connection() as conn:
            found = await store.find_config(conn, project, config_id)
        if found is None:
            raise no_config(config_id)
        return found

    async def configs(
        self, project: str | None, marker: UUID | None, limit: int | None
    ) -> list[ConfigRecord]:
        """Configs, newest first. project: None for all projects. marker: the last ID of the
        previous page."""
        return await self._lists.page(lambda conn: store.list_configs(conn, project, marker, limit))

    async def delete_config(self, project: str, config_id: UUID) -> None:
        """Delete a config. Raises Invalid (InvalidRestrictedAction) while a deployment uses it."""
        async with self._database.transaction() as conn:
            if not await store.lock_config_for_deletion(conn, project, config_id):
                raise no_config(config_id)
            if not await store.delete_locked_config(conn, config_id):
                raise _in_use(config_id)

    async def deploy(self, project: str, server_id: str, new: DeploymentChange) -> DeploymentRecord:
        """Create a deployment. new: all fields except output_values. Raises Unavailable if the
        server cannot be told of it."""
        async with self._database.transaction() as conn:
            await _lock_config(conn, project, new.config_id)
            made = await store.insert_deployment(conn, self._new_id(), project, server_id, new)
        try:
            await self.push(project, server_id)
        except ServiceError as error:
            async with self._database.transaction() as conn:
                await store.delete_deployment(conn, project, made.id)
            raise _not_written(error) from None
        return made

    async def deployment(self, project: str, deployment_id: UUID) -> DeploymentRecord:
        async with self._database.connection() as conn:
            found = await store.find_deployment(conn, project, deployment_id)
        if found is None:
            raise no_deployment(deployment_id)
        return found

    async def deployments(self, project: str, server_id: str | None) -> list[DeploymentRecord]:
        """Deployments, oldest first. server_id: None for all servers."""
        async with self._database.transaction(replan=True) as conn:
            return await store.list_deployments(conn, project, server_id)

    async def change_deployment(
        self, project: str, deployment_id: UUID, change: DeploymentChange
    ) -> DeploymentRecord:
        """Update a deployment, and wake the operation that waits for it."""
        async with self._database.transaction() as conn:
            waiting = await lock_deployment_resource(conn, project, deployment_id)
            await _lock_config(conn, project, change.config_id)
            found = await store.change_deployment(conn, project, deployment_id, change)
            await notify_changed(conn, waiting, change)
        if found is None:
            raise no_deployment(deployment_id)
        if change.config_id is not None or change.input_values is not None:
            try:
                await self.push(project, found.server_id)
            except ServiceError as error:
                raise _not_written(error) from None
        return found

    async def delete_deployment(self, project: str, deployment_id: UUID) -> None:
        """Delete a deployment, and wake the operation that waits for it. If the metadata of its
        server cannot be written, the next change of them does."""
        async with self._database.transaction() as conn:
            waiting = await lock_deployment_resource(conn, project, deployment_id)
            server_id = await store.delete_deployment(conn, project, deployment_id)
            if server_id is None:
                raise no_deployment(deployment_id)
            await notify_deleted(conn, waiting)
        try:
            await self.push(project, server_id)
        except ServiceError as error:
            log.warning("server_metadata.not_written", server=server_id, reason=error.public)

    async def configs_of_server(self, project: str, server_id: str) -> list[ConfigRecord]:
        """A copy of each deployed config, by name, with the deployment's values in its inputs."""
        async with self._database.connection() as conn:
            found = await store.configs_of_server(conn, project, server_id)
        return [replace(one, inputs=_with_values(values, one.inputs)) for one, values in found]

    async def server_document(
        self, project: str, server_id: str, metadata: Mapping[str, Json], settings: Json
    ) -> bytes:
        """As `SoftwareStore.server_document`."""
        configs = await self.configs_of_server(project, server_id) if server_id else []
        fields = [agent_config(one) for one in configs]
        return orjson.dumps(agent_metadata(metadata, settings, fields))

    async def push(self, project: str, server_id: str) -> bool:
        """As `SoftwareStore.push`. Of several writers, the one that writes last has read last: each
        reads again after it has written, until nothing has changed."""
        services, sent, written = self.services, list[bytes](), True
        if services is None:
            return True
        for _ in range(MAX_WRITES):
            async with self._database.connection() as conn:
                servers = await find_server_resources(conn, project, server_id)
            servers = [one for one in servers if objects_of(one.data)]
            documents = [
                await self.server_document(
                    project, server_id, one.metadata, one.attributes.get(OS_COLLECT_CONFIG) or {}
                )
                for one in servers
            ]
            if documents == sent:
                break
            written = True
            for one, document in zip(servers, documents, strict=True):
                for target in objects_of(one.data):
                    written = await services.write(target, document) and written
            sent = documents
        return written

    async def server(self, stack_id: UUID, resource_id: UUID) -> ServerRecord | None:
        """A server resource of any project; the caller has authenticated with the resource's
        key."""
        async with self._database.connection() as conn:
            return await find_server(conn, stack_id, resource_id)


def agent_config(config: ConfigRecord) -> dict[str, Json]:
    """A config as agents read it."""
    return {
        "id": str(config.id),
        "name": config.name,
        "group": config.group,
        "creation_time": f"{config.created_at.astimezone(UTC).isoformat()[:19]}Z",
        "config": config.config,
        "inputs": config.inputs,
        "outputs": config.outputs,
        "options": config.options,
    }


def agent_metadata(
    of_template: Mapping[str, Json], settings: Mapping[str, Json], configs: Sequence[Json]
) -> dict[str, Json]:
    """The metadata of a server as its agent reads them. settings: of the agent."""
    return {
        **of_template,
        "deployments": configs,
        "os-collect-config": {**(of_template.get("os-collect-config") or {}), **settings},
    }


def _not_written(error: ServiceError) -> Unavailable:
    reason = f"The metadata of the server could not be written: {error.public or error}"
    return Unavailable(reason, place="server_id", remedy="Send the request again.")


def _with_values(values: Mapping[str, Json], inputs: Sequence[Json]) -> list[Json]:
    """The inputs with their deployed values."""
    return [
        one | {"value": values[one["name"]]} if one["name"] in values else one for one in inputs
    ]


async def _lock_config(conn: Connection, project: str, config_id: UUID | None) -> None:
    """Lock a config against deletion. Raises NotFound."""
    if config_id is not None and not await store.lock_config_for_use(conn, project, config_id):
        raise no_config(config_id)


def _in_use(config_id: UUID) -> Invalid:
    reason = f"Software config with id {config_id} can not be deleted as it is referenced"
    remedy = "Delete its deployments first."
    return Invalid([Finding("", reason, remedy, "InvalidRestrictedAction")])


async def notify_changed(
    conn: Connection, waiting: DeploymentResource | None, change: DeploymentChange
) -> None:
    """Wake the operation that waits for a deployment, and record its progress as an event. The
    caller has locked the stack. waiting: the resource of the deployment, or None."""
    if waiting is None or change.status is None:
        return
    await wake_operation(conn, waiting.stack_id, waiting.resource_id)
    if change.status != Status.IN_PROGRESS:
        return
    resource = await find_target(conn, waiting.stack_id, waiting.resource_id)
    operation = await deployment_resources.find_running_operation(conn, waiting)
    if resource is not None and operation is not None:
        await record_events(
            conn, [_progress(waiting, resource, operation, change.status_reason or "")]
        )


async def notify_deleted(conn: Connection, waiting: DeploymentResource | None) -> None:
    """Wake the operation that waits for a deleted deployment. The caller has locked the stack."""
    if waiting is not None:
        await wake_operation(conn, waiting.stack_id, waiting.resource_id)


def _progress(
    waiting: DeploymentResource, resource: SignalTarget, under_way: RunningOperation, reason: str
) -> Json:
    """The event of a deployment's progress."""
    operation = under_way.operation
    return {
        "stack_id": waiting.stack_id,
        "type": f"headgate.resource.{operation}.progress",
        "resource_name": resource.name,
        "resource_type": resource.type,
        "physical_id": resource.physical_id,
        "action": "UPDATE" if operation == "replace" else operation.upper(),
        "status": Status.IN_PROGRESS,
        "reason": reason,
        "data": asdict(under_way),
    }


class ConfigStore:
    """Stores for resource types: implements engine/types/software/software_store.py."""

    def __init__(self, database: Database, software: Software) -> None:
        self._database = database
        self._software = software

    def connect(self, services: MetadataServices | None) -> None:
        """services: that can have the metadata of servers, for `push`."""
        self._software.services = services

    async def store_config(self, project: str, config_id: UUID, new: NewConfig) -> None:
        async with self._database.connection() as conn:
            await store.insert_config_once(conn, config_id, project, new)

    async def config(self, project: str, config_id: str) -> NewConfig | None:
        try:
            return _new_config(await self._software.config(project, UUID(config_id)))
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
        values, config = found.output_values or {}, _new_config(found.config)
        return Deployment(found.status, found.status_reason, values, config)

    async def report_progress(self, project: str, deployment_id: str, reason: str) -> None:
        change = _change(Status.IN_PROGRESS, reason)
        await self._software.change_deployment(project, UUID(deployment_id), change)

    async def complete(self, project: str, deployment_id: str, ended: DeploymentResult) -> None:
        change = _change(ended.status, ended.reason, ended.output_values)
        async with self._database.connection() as conn:
            await store.change_deployment(conn, project, UUID(deployment_id), change)

    async def unpublish(self, project: str, deployment_id: str) -> None:
        async with self._database.transaction() as conn:
            await deployment_resources.withdraw(conn, project, UUID(deployment_id))

    async def server_document(
        self,
        project: str,
        server_id: str,
        metadata: Mapping[str, Json],
        settings: Mapping[str, Json],
    ) -> bytes:
        return await self._software.server_document(project, server_id, metadata, settings)

    async def push(self, project: str, server_id: str) -> bool:
        return await self._software.push(project, server_id)


def _change(
    status: Status, reason: str, output_values: Mapping[str, Json] | None = None
) -> DeploymentChange:
    return DeploymentChange(None, None, output_values, None, status, reason)


def _new_config(config: ConfigRecord) -> NewConfig:
    return NewConfig(
        config.name, config.group, config.config, config.inputs, config.outputs, config.options
    )
