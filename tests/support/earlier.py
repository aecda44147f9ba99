"""A database as an earlier version left it: its schema, and of rows what it had columns for."""

import importlib.resources
from pathlib import Path
from typing import Any
from uuid import UUID

from engine.store.connection import Connection, connect
from engine.store.database import open_database
from engine.store.encrypted_columns import TABLES as ENCRYPTED
from engine.store.encryption import Scope, SealedDocument, members, reveal
from engine.store.schema_upgrade import migrate, shipped
from tests.support.keys import A_SEALER

Json = Any
#: Table -> its rows.
Rows = dict[str, list[Json]]

TABLES = """
select c.relname as name from pg_class c
 where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
   and c.relname not in ('migration', 'routines') order by c.relname
"""
READ = "select coalesce(jsonb_agg(to_jsonb(t)), '[]') from {} t"
#: What the table has no column for is left out.
WRITE = (
    "insert into {0} overriding system value select * from jsonb_populate_recordset(null::{0}, $1)"
)
COUNT_ON = """
select setval(pg_get_serial_sequence('outbox', 'id'), (select coalesce(max(id), 1) from outbox))
"""


async def _tables(conn: Connection) -> list[str]:
    return [row["name"] for row in await conn.fetch(TABLES)]


async def rows_of(url: str) -> Rows:
    """Everything that a database holds; what is sealed in it, as it was before."""
    database = await open_database(url, size=1, sealer=A_SEALER)
    try:
        async with database.connection() as conn:
            rows = {one: await conn.fetchval(READ.format(one)) for one in await _tables(conn)}
            return {table: [_plain(table, row, rows) for row in members(found)]
                    for table, found in rows.items()}  # fmt: skip
    finally:
        await database.close()


def _plain(table: str, row: Json, rows: Rows) -> Json:
    known = next((one for one in ENCRYPTED if one.name == table), None)
    if known is None or not isinstance(row, SealedDocument):
        return reveal(row, Scope("", UUID(int=0), ""))
    columns = members(row)
    nowhere = Scope("", UUID(int=0), "")
    owner = reveal(columns[known.keys[0].name], nowhere)
    of = members(rows["stack"]) if known.of_stack else [row]
    ((project,),) = [
        {reveal(members(one)["project"], nowhere)}
        for one in of
        if reveal(members(one)["id"], nowhere) == owner
    ]
    return {
        name: reveal(value, Scope(project, UUID(owner), f"{table}.{name}"))
        for name, value in columns.items()
    }


async def become_earlier(url: str, folder: Path, migrations: int, rows: Rows) -> None:
    """Give an empty database the schema after so many migrations, and the rows of a later one."""
    files = importlib.resources.files("engine.store") / "migrations"
    folder.mkdir()
    for one in shipped()[:migrations]:
        (folder / one.name).write_text((files / one.name).read_text())
    await migrate(url, folder)
    conn = await connect(url)
    try:
        for table in await _tables(conn):
            await conn.execute(f"delete from {table}")
            await conn.execute(WRITE.format(table), rows[table])
        await conn.execute(COUNT_ON)
    finally:
        await conn.close(timeout=5)
