"""The schema in which the rows of a project can be read while it moves to another cell (ADR 16).

It has the tables, views and functions of the database, so every statement that reads works in it.
No engine knows it, so none acts on its rows. Tables whose rows do not move are views of those of
the database.
"""

import asyncpg

from engine import errors
from engine.store.connection import Connection
from engine.store.database import Database, open_pool
from engine.store.database_errors import connection_errors
from engine.store.encryption.secret_values import Keyring
from engine.store.maintenance.project_moves import MOVED, SET_FORMAT, fill_tables
from engine.store.schema.routine_versions import routines
from engine.store.schema.upgrade import read_migrations
from engine.store.server_connector import ServerConnector

#: Begins the names of these schemas.
PREFIX = "headgate_moving_"
#: Tables with rows of the project: those that move, and what triggers derive from them.
OWN = frozenset({*MOVED, "stack_tag"})
#: Tables that no read needs.
UNUSED = frozenset({"moving_row", "moving_schema", "move_outcome"})

READ_NAME = "select name from moving_schema where project = $1"
READ_CURRENT = "select current_schema()"
ADD = "insert into moving_schema (project, name) values ($1, $2)"
DELETE = "delete from moving_schema where project = $1"
SET_FILLED = "update moving_schema set filled = true where project = $1"
#: The name, and those of the schemas of the connection: the tables of the database follow.
SET_PATH_BEFORE = """
select set_config('search_path', $1 || ', ' || current_setting('search_path'), true)
"""
SET_PATH = "select set_config('search_path', $1, true)"
#: Of a connection that only reads.
SET_READER = """
select set_config('search_path', $1, false),
       set_config('default_transaction_read_only', 'on', false)
"""
LIST_TABLES = """
select c.relname as name from pg_class c
 where c.relnamespace = $1::regnamespace and c.relkind = 'r' order by 1
"""
#: Connections of one process to each schema.
POOL = 4


async def create_schema(conn: Connection, project: str, suffix: str) -> None:
    """Create the schema of a project, without rows, in place of one that an earlier move has left:
    it may have rows of that time, and lack what migrations have added since. suffix: of its name;
    letters and digits. Raises Conflict without the right to create a schema."""
    await drop_schema(conn, project)
    name = f"{PREFIX}{suffix}"
    current = await conn.fetchval(READ_CURRENT)
    try:
        async with conn.transaction():
            await conn.execute(SET_FORMAT)
            await conn.execute(ADD, project, name)
            await conn.execute(f"create schema {name}")
            await conn.execute(SET_PATH, name)
            for migration in read_migrations():
                await conn.execute(migration.text)
            await conn.execute("drop function refuse_moved_project cascade")
            for row in await conn.fetch(LIST_TABLES, name):
                if (table := row["name"]) not in OWN:
                    await conn.execute(f'drop table "{table}" cascade')
                    if table not in UNUSED:
                        await conn.execute(
                            f'create view "{table}" as select * from "{current}"."{table}"'  # noqa: S608 - of the catalog
                        )
            for routine in routines():
                await conn.execute(routine.text)
    except asyncpg.InsufficientPrivilegeError as error:
        raise errors.Conflict(
            f"the account of the database cannot create a schema: {error}",
            place="move-project",
            remedy="Grant it the right: `grant create on database NAME to ACCOUNT`. Rows of the"
            " project are read in this schema while they move",
            code="NoRightToMove",
        ) from error


async def has_schema(conn: Connection, project: str) -> bool:
    """Whether a move of the project has left a schema, or is under way."""
    return await conn.fetchval(READ_NAME, project) is not None


async def fill_schema(conn: Connection, project: str) -> None:
    """Copy the rows of a project from `moving_row` to its schema, in place of those that it has.
    Call it in the transaction that takes them."""
    name = await conn.fetchval(READ_NAME, project)
    if name is None:  # an earlier version began the move
        return
    await conn.execute(SET_FILLED, project)
    before = await conn.fetchval("select current_setting('search_path')")
    await conn.execute(SET_PATH_BEFORE, name)
    await fill_tables(conn, project)
    await conn.execute(SET_PATH, before)


async def drop_schema(conn: Connection, project: str) -> None:
    """Delete the rows that can be read, with their schema. Reads that still use it fail."""
    name = await conn.fetchval(READ_NAME, project)
    if name is None:
        return
    async with conn.transaction():
        await conn.execute(SET_FORMAT)
        await conn.execute(DELETE, project)
        await conn.execute(f"drop schema if exists {name} cascade")


async def open_schema(connector: ServerConnector, name: str, keyring: Keyring) -> Database:
    """Connections that read the rows of a project that moves. Raises Unavailable."""

    async def prepare(connection: Connection) -> None:
        await connection.execute(SET_READER, name)

    with connection_errors():
        return await open_pool(connector, size=POOL, keyring=keyring, min_size=1, prepare=prepare)
