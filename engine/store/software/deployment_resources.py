"""Software deployments that are resources of stacks: their publication and their operations."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import decrypt_row
from engine.store.encryption.secret_values import Scope, Secret
from engine.store.software.software_configs import (
    ConfigRecord,
    decrypt_config,
    delete_unused_config,
    insert_config_once,
)
from engine.store.stacks.stack_locks import lock_stacks
from engine.types.software.software_store import Publication
from engine.words import Json

PUBLISHED_BY = "select operation_key from software_deployment where id = $1 and project = $2"
PUBLISH = """
insert into software_deployment as d (id, project, config_id, server_id, input_values, action,
                                      status, status_reason, stack_id, resource_id, operation_key)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $3)
on conflict (id) do update
   set config_id = excluded.config_id, server_id = excluded.server_id,
       input_values = excluded.input_values, action = excluded.action, status = excluded.status,
       status_reason = excluded.status_reason, stack_id = excluded.stack_id,
       resource_id = excluded.resource_id, operation_key = excluded.operation_key,
       updated_at = clock_timestamp()
 where d.project = excluded.project
"""
#: Earlier signals were for an operation that has ended.
DELETE_SIGNALS = "delete from resource_signal where stack_id = $1 and resource_id = $2"
FIND_PUBLISHED = """
select c.*, d.status, d.status_reason, d.output_values
  from software_deployment d join software_config c on c.id = d.config_id
 where d.id = $1 and d.project = $2
"""
WITHDRAW = """
delete from software_deployment where id = $1 and project = $2 returning operation_key
"""
#: Also locks the stack.
LOCK_RESOURCE = """
select d.stack_id, d.resource_id
  from software_deployment d join stack s on s.id = d.stack_id
 where d.id = $1 and d.project = $2 and s.deleted_at is null
   for no key update of s
"""
OPERATION = """
select traversal, id as node, operation from node
 where stack_id = $1 and phase = 'execute' and state in ('parked', 'running')
   and $2 = case operation when 'replace' then replacement_id else resource_id end
"""
FIND_SERVER = """
select s.project, s.id as stack_id, s.name as stack_name, r.id, r.name, r.type, r.physical_id,
       r.current_action as action, r.current_status as status, r.reason, r.attributes, r.metadata,
       r.updated_at
  from current_resource r join stack s on s.id = r.stack_id
 where r.stack_id = $1 and r.id = $2
"""


@dataclass(frozen=True, slots=True)
class PublishedDeployment:
    """A deployment with the config that its server reads and the result that the server
    reported."""

    config: ConfigRecord
    status: str
    status_reason: str
    output_values: Json


@dataclass(frozen=True, slots=True)
class DeploymentResource:
    """The resource of a deployment that belongs to a stack."""

    stack_id: UUID
    resource_id: UUID


async def publish(
    conn: Connection, project: str, deployment_id: UUID, published: Publication
) -> None:
    """Publish a deployment. If the same operation has already published it, nothing changes."""
    await lock_stacks(conn, [published.stack_id])
    previous_key = await conn.fetchval(PUBLISHED_BY, deployment_id, project)
    if previous_key == published.key:
        return
    await insert_config_once(conn, published.key, project, published.config)
    await conn.execute(
        PUBLISH, deployment_id, project, published.key, published.server_id,
        _secret_inputs(project, deployment_id, published), published.action, published.status,
        published.reason, published.stack_id, published.resource_id,
    )  # fmt: skip
    await conn.execute(DELETE_SIGNALS, published.stack_id, published.resource_id)
    if previous_key is not None:
        await delete_unused_config(conn, project, previous_key)


async def find_published(
    conn: Connection, project: str, deployment_id: UUID
) -> PublishedDeployment | None:
    row = await conn.fetchrow(FIND_PUBLISHED, deployment_id, project)
    if row is None:
        return None
    config = decrypt_row(row, project, deployment_id, "software_deployment", ("output_values",))
    result = [config.pop(name) for name in ("status", "status_reason", "output_values")]
    return PublishedDeployment(decrypt_config(config), *result)


def _secret_inputs(project: str, deployment_id: UUID, published: Publication) -> Secret:
    scope = Scope(project, deployment_id, "software_deployment.input_values")
    return Secret(published.input_values, scope)


async def withdraw(conn: Connection, project: str, deployment_id: UUID) -> None:
    """Delete a deployment, and its config if no other deployment uses it."""
    row = await conn.fetchrow(WITHDRAW, deployment_id, project)
    if row is not None and row["operation_key"] is not None:
        await delete_unused_config(conn, project, row["operation_key"])


async def lock_deployment_resource(
    conn: Connection, project: str, deployment_id: UUID
) -> DeploymentResource | None:
    """Lock the stack of a deployment and return its resource; None: it belongs to no stack."""
    row = await conn.fetchrow(LOCK_RESOURCE, deployment_id, project)
    return DeploymentResource(**row) if row else None


@dataclass(frozen=True, slots=True)
class RunningOperation:
    """The operation that runs on a resource, with its node and traversal."""

    traversal: int
    node: int
    operation: str


async def find_running_operation(
    conn: Connection, resource: DeploymentResource
) -> RunningOperation | None:
    """The operation that runs on a resource, or None."""
    row = await conn.fetchrow(OPERATION, resource.stack_id, resource.resource_id)
    return RunningOperation(**row) if row else None


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """A resource to which software can be deployed, with its stack."""

    project: str
    stack_id: UUID
    stack_name: str
    id: UUID
    name: str
    type: str
    physical_id: str | None
    action: str
    status: str
    reason: str
    attributes: Json = field(repr=False)
    metadata: Json
    updated_at: datetime


async def find_server(conn: Connection, stack_id: UUID, resource_id: UUID) -> ServerRecord | None:
    """Find a server in any project."""
    row = await conn.fetchrow(FIND_SERVER, stack_id, resource_id)
    if row is None:
        return None
    return ServerRecord(**decrypt_row(row, row["project"], stack_id, "resource"))
