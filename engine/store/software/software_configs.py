"""Software configs and their deployments to servers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import Row, decrypt_row, display_row
from engine.store.encryption.secret_values import Scope, Secret
from engine.types.software.software_store import NewConfig
from engine.words import Json

INSERT_CONFIG = """
insert into software_config (id, project, name, "group", config, inputs, outputs, options)
values ($1, $2, $3, $4, $5, $6, $7, $8)
returning *
"""
INSERT_CONFIG_ONCE = """
insert into software_config (id, project, name, "group", config, inputs, outputs, options)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (id) do nothing
"""
FIND_CONFIG = "select * from software_config where id = $1 and project = $2"
LIST_CONFIGS = """
select * from software_config
 where ($1::text is null or project = $1)
   and ($2::uuid is null
        or (created_at, id) < (select created_at, id from software_config where id = $2))
 order by created_at desc, id desc limit $3
"""
#: Until the end of the transaction, other transactions cannot delete the config (LOCK_FOR_USE), or
#: cannot use it in a new deployment (LOCK_FOR_DELETION).
LOCK_FOR_USE = "select id from software_config where id = $1 and project = $2 for key share"
LOCK_FOR_DELETION = "select id from software_config where id = $1 and project = $2 for update"
DELETE_UNUSED = """
delete from software_config
 where id = $1 and not exists (select from software_deployment where config_id = $1)
returning id
"""
INSERT_DEPLOYMENT = """
insert into software_deployment (id, project, config_id, server_id, input_values, output_values,
                                 action, status, status_reason)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
returning *
"""
FIND_DEPLOYMENT = "select * from software_deployment where id = $1 and project = $2"
LIST_DEPLOYMENTS = """
select * from software_deployment
 where project = $1 and ($2::text is null or server_id = $2)
 order by created_at, id
"""
CHANGE_DEPLOYMENT = """
update software_deployment
   set config_id = coalesce($3, config_id), input_values = coalesce($4, input_values),
       output_values = coalesce($5, output_values), action = coalesce($6, action),
       status = coalesce($7, status), status_reason = coalesce($8, status_reason),
       updated_at = clock_timestamp()
 where id = $1 and project = $2
returning *
"""
DELETE_DEPLOYMENT = """
delete from software_deployment where id = $1 and project = $2 returning server_id
"""
CONFIGS_OF_SERVER = """
select c.*, d.input_values, d.id as deployment_id
  from software_deployment d join software_config c on c.id = d.config_id
 where d.project = $1 and d.server_id = $2
 order by c.name, d.created_at, d.id
"""


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    id: UUID
    project: str
    name: str
    group: str
    config: Json = field(repr=False)
    inputs: Json = field(repr=False)
    outputs: Json = field(repr=False)
    options: Json = field(repr=False)
    created_at: datetime


@dataclass(frozen=True, slots=True)
class DeploymentChange:
    """The new values of a deployment; None: unchanged."""

    config_id: UUID | None
    input_values: Mapping[str, Json] | None = field(repr=False)
    output_values: Mapping[str, Json] | None = field(repr=False)
    action: str | None
    status: str | None
    status_reason: str | None


@dataclass(frozen=True, slots=True)
class DeploymentRecord:
    """stack_id .. operation_key: of its resource; None: it is not a resource of a stack."""

    id: UUID
    project: str
    config_id: UUID
    server_id: str
    input_values: Json = field(repr=False)
    output_values: Json = field(repr=False)
    action: str
    status: str
    status_reason: str
    created_at: datetime
    updated_at: datetime | None
    stack_id: UUID | None
    resource_id: UUID | None
    operation_key: UUID | None


async def insert_config(
    conn: Connection, config_id: UUID, project: str, new: NewConfig
) -> ConfigRecord:
    (row,) = await conn.fetch(INSERT_CONFIG, *_columns(config_id, project, new))
    return decrypt_config(row)


def decrypt_config(row: Row) -> ConfigRecord:
    """Raises DecryptionFailed."""
    return ConfigRecord(**decrypt_row(row, row["project"], row["id"], "software_config"))


def _decrypt_deployment(row: Row) -> DeploymentRecord:
    return DeploymentRecord(**decrypt_row(row, row["project"], row["id"], "software_deployment"))


async def insert_config_once(
    conn: Connection, config_id: UUID, project: str, new: NewConfig
) -> None:
    """Insert a config, unless one with this ID exists."""
    await conn.execute(INSERT_CONFIG_ONCE, *_columns(config_id, project, new))


def _columns(config_id: UUID, project: str, new: NewConfig) -> tuple[Json, ...]:
    return (
        config_id, project, new.name, new.group,
        _secret(new.config, Scope(project, config_id, "software_config.config")),
        _secret(list(new.inputs), Scope(project, config_id, "software_config.inputs")),
        _secret(list(new.outputs), Scope(project, config_id, "software_config.outputs")),
        _secret(new.options, Scope(project, config_id, "software_config.options")),
    )  # fmt: skip


async def find_config(conn: Connection, project: str, config_id: UUID) -> ConfigRecord | None:
    row = await conn.fetchrow(FIND_CONFIG, config_id, project)
    return decrypt_config(row) if row else None


async def list_configs(
    conn: Connection, project: str | None, marker: UUID | None, limit: int | None
) -> list[ConfigRecord]:
    """Newest first. project: None: all projects. Call it in `ReadDatabase.page`."""
    rows = await conn.fetch(LIST_CONFIGS, project, marker, limit)
    return [
        ConfigRecord(**display_row(row, row["project"], row["id"], "software_config"))
        for row in rows
    ]


async def lock_config_for_use(conn: Connection, project: str, config_id: UUID) -> bool:
    """Prevent other transactions from deleting the config; False: it does not exist."""
    return await conn.fetchval(LOCK_FOR_USE, config_id, project) is not None


async def lock_config_for_deletion(conn: Connection, project: str, config_id: UUID) -> bool:
    """Prevent new deployments of the config; False: it does not exist."""
    return await conn.fetchval(LOCK_FOR_DELETION, config_id, project) is not None


async def delete_locked_config(conn: Connection, config_id: UUID) -> bool:
    """Delete a config that `lock_config_for_deletion` has locked. False: a deployment uses it."""
    return await conn.fetchval(DELETE_UNUSED, config_id) is not None


async def delete_unused_config(conn: Connection, project: str, config_id: UUID) -> None:
    """Delete a config, unless a deployment uses it."""
    if await lock_config_for_deletion(conn, project, config_id):
        await delete_locked_config(conn, config_id)


async def insert_deployment(
    conn: Connection, deployment_id: UUID, project: str, server_id: str, new: DeploymentChange
) -> DeploymentRecord:
    """new has all fields except output_values. The caller has locked the config."""
    (row,) = await conn.fetch(
        INSERT_DEPLOYMENT, deployment_id, project, new.config_id, server_id,
        *_secret_values(project, deployment_id, new), new.action, new.status,
        new.status_reason,
    )  # fmt: skip
    return _decrypt_deployment(row)


async def find_deployment(
    conn: Connection, project: str, deployment_id: UUID
) -> DeploymentRecord | None:
    row = await conn.fetchrow(FIND_DEPLOYMENT, deployment_id, project)
    return _decrypt_deployment(row) if row else None


async def list_deployments(
    conn: Connection, project: str, server_id: str | None
) -> list[DeploymentRecord]:
    """Oldest first. Call it in a transaction with `replan`."""
    rows = await conn.fetch(LIST_DEPLOYMENTS, project, server_id)
    return [
        DeploymentRecord(**display_row(row, row["project"], row["id"], "software_deployment"))
        for row in rows
    ]


async def change_deployment(
    conn: Connection, project: str, deployment_id: UUID, change: DeploymentChange
) -> DeploymentRecord | None:
    row = await conn.fetchrow(
        CHANGE_DEPLOYMENT, deployment_id, project, change.config_id,
        *_secret_values(project, deployment_id, change), change.action,
        change.status, change.status_reason,
    )  # fmt: skip
    return _decrypt_deployment(row) if row else None


async def delete_deployment(conn: Connection, project: str, deployment_id: UUID) -> str | None:
    """Return the ID of its server; None: there is no such deployment."""
    found: str | None = await conn.fetchval(DELETE_DEPLOYMENT, deployment_id, project)
    return found


async def configs_of_server(
    conn: Connection, project: str, server_id: str
) -> list[tuple[ConfigRecord, dict[str, Json]]]:
    """The deployments of a server: config and input values of each, sorted by the config's name."""
    found = []
    for row in await conn.fetch(CONFIGS_OF_SERVER, project, server_id):
        deployment_id, columns = row["deployment_id"], ("input_values",)
        config = decrypt_row(row, project, deployment_id, "software_deployment", columns)
        del config["deployment_id"]
        values = config.pop("input_values")
        found.append((decrypt_config(config), values))
    return found


def _secret(value: Json, scope: Scope) -> Json:
    """Encrypt scripts and values, because they may contain secrets."""
    return None if value is None else Secret(value, scope)


def _secret_values(project: str, deployment_id: UUID, change: DeploymentChange) -> list[Json]:
    """The input and output values, encrypted."""
    return [
        _secret(value, Scope(project, deployment_id, f"software_deployment.{column}"))
        for column, value in (
            ("input_values", change.input_values), ("output_values", change.output_values)
        )
    ]  # fmt: skip
