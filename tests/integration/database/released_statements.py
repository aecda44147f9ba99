"""The SQL statements of the previous release, whose processes use the schema and routines of this
program during an upgrade.

`make released-statements` records those of this program in its place, when it is released.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.store.connection import Connection, connect
from engine.store.schema.upgrade import own_program
from tests.integration.database.test_statements import FOUND
from tests.support.postgres import TEMPLATE, running_server

RELEASED = Path(__file__).parents[1] / "data" / "released_statements.json"

#: Attributes of composite types, in their order.
COMPOSITES = """
select c.relname as name, array_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
                                    order by a.attnum) as attributes
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
 where c.relnamespace = 'public'::regnamespace and c.relkind = 'c'
 group by c.relname
"""


@dataclass(frozen=True)
class StatementInterface:
    """parameters: their types. columns: names and types. A composite type is spelled out."""

    parameters: list[str]
    columns: list[str]


async def read_composites(connection: Connection) -> dict[str, str]:
    """Name of a composite type -> its name and attributes."""
    rows = await connection.fetch(COMPOSITES)
    return {row["name"]: f"{row['name']}({', '.join(row['attributes'])})" for row in rows}


async def describe(
    connection: Connection, composites: Mapping[str, str], text: str
) -> StatementInterface:
    """Raises PostgresError if the statement is not valid."""

    def spell(name: str) -> str:
        plain = name.removesuffix("[]")
        return name.replace(plain, composites.get(plain, plain))

    prepared = await connection.prepare(text)
    return StatementInterface(
        [spell(one.name) for one in prepared.get_parameters()],
        [f"{one.name} {spell(one.type.name)}" for one in prepared.get_attributes()],
    )


async def record() -> None:
    async with running_server() as server:
        connection = await connect(server.url_of(TEMPLATE))
        try:
            composites = await read_composites(connection)
            statements = {
                name: {"text": text, **asdict(await describe(connection, composites, text))}
                for name, text in sorted(FOUND.items())
            }
        finally:
            await connection.close()
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in statements.items()]
    migration, body = json.dumps(own_program("").migration), ",\n".join(lines)
    RELEASED.write_text(f'{{"migration": {migration}, "statements": {{\n{body}\n}}}}\n')
    print(f"{RELEASED.name}: {len(statements)} statements recorded")


if __name__ == "__main__":
    asyncio.run(record())
