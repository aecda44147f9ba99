"""Software deployments that are resources of stacks: their publication, and the nodes that wait."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption import Hidden, Scope
from engine.store.secret_rows import reveal_row
from engine.store.software_configs import ConfigRecord, drop_config, keep_config, revealed_config
from engine.types.software.software_store import Publication
from engine.words import Json

LOCK_STACK = "select id from stack where id = $1 for no key update"
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
#: They were for an operation that has ended.
FORGET_SIGNALS = "delete from resource_signal where stack_id = $1 and resource_id = $2"
FIND_PUBLISHED = """
select c.*, d.status, d.status_reason, d.output_values
  from software_deployment d join software_config c on c.id = d.config_id
 where d.id = $1 and d.project = $2
"""
WITHDRAW = """
delete from software_deployment where id = $1 and project = $2 returning operation_key
"""
#: The stack is locked with it.
LOCK_WAITING = """
select d.stack_id, d.resource_id
  from software_deployment d join stack s on s.id = d.stack_id
 where d.id = $1 and d.project = $2 and s.deleted_at is null
   for no key update of s
"""
OPERATION = """
select traversal, id as node, operation from node
 where stack_id = $1 and phase = 'act' and state in ('parked', 'running')
   and $2 = case operation when 'replace' then replacement_id else resource_id end
"""
FIND_SERVER = """
select s.project, s.id as stack_id, s.name as stack_name, r.id, r.name, r.type, r.physical_id,
       r.shown_action as action, r.shown_status as status, r.reason, r.attributes, r.metadata,
       r.updated_at
  from current_resource r join stack s on s.id = r.stack_id
 where r.stack_id = $1 and r.id = $2
"""


@dataclass(frozen=True, slots=True)
class Published:
    """A deployment as its server reads it, and the result that the server reported."""

    config: ConfigRecord
    status: str
    status_reason: str
    output_values: Json


@dataclass(frozen=True, slots=True)
class Waiting:
    """The resource that a deployment is."""

    stack_id: UUID
    resource_id: UUID


async def publish(
    conn: Connection, project: str, deployment_id: UUID, published: Publication
) -> None:
    """Once for each operation: a second time changes nothing."""
    await conn.execute(LOCK_STACK, published.stack_id)
    before = await conn.fetchval(PUBLISHED_BY, deployment_id, project)
    if before == published.key:
        return
    await keep_config(conn, published.key, project, published.config)
    await conn.execute(
        PUBLISH, deployment_id, project, published.key, published.server_id,
        _hidden_inputs(project, deployment_id, published), published.action, published.status,
        published.reason,         published.stack_id, published.resource_id,
    )  # fmt: skip
    await conn.execute(FORGET_SIGNALS, published.stack_id, published.resource_id)
    if before is not None:
        await drop_config(conn, project, before)


async def find_published(conn: Connection, project: str, deployment_id: UUID) -> Published | None:
    row = await conn.fetchrow(FIND_PUBLISHED, deployment_id, project)
    if row is None:
        return None
    config = reveal_row(row, project, deployment_id, "software_deployment", ("output_values",))
    said = [config.pop(name) for name in ("status", "status_reason", "output_values")]
    return Published(revealed_config(config), *said)


def _hidden_inputs(project: str, deployment_id: UUID, published: Publication) -> Hidden:
    scope = Scope(project, deployment_id, "software_deployment.input_values")
    return Hidden(published.input_values, scope)


async def withdraw(conn: Connection, project: str, deployment_id: UUID) -> None:
    """Delete a deployment with its own config."""
    row = await conn.fetchrow(WITHDRAW, deployment_id, project)
    if row is not None and row["operation_key"] is not None:
        await drop_config(conn, project, row["operation_key"])


async def lock_waiting(conn: Connection, project: str, deployment_id: UUID) -> Waiting | None:
    """Lock the stack of a deployment; None if it belongs to no stack."""
    row = await conn.fetchrow(LOCK_WAITING, deployment_id, project)
    return Waiting(**row) if row else None


@dataclass(frozen=True, slots=True)
class UnderWay:
    """The operation that runs on a resource, with its node and traversal."""

    traversal: int
    node: int
    operation: str


async def operation_of(conn: Connection, waiting: Waiting) -> UnderWay | None:
    """The operation on the waiting resource; None if no operation runs."""
    row = await conn.fetchrow(OPERATION, waiting.stack_id, waiting.resource_id)
    return UnderWay(**row) if row else None


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """A resource that software can be deployed to, with its stack."""

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
    return ServerRecord(**reveal_row(row, row["project"], stack_id, "resource"))
