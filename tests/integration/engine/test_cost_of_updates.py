"""What the transaction that accepts an update of one resource costs: the same in a stack of any size,
except for the template, which is stored as a whole in one row.

If a number grows, the product is slower; if it shrinks, record the new number here.
"""

from collections import Counter
from uuid import UUID

import pytest

from engine.service import Engine, StackRequest
from engine.store.connection import Connection
from engine.store.database import Database, open_database
from tests.support.idle_engine import idle_engine
from tests.support.program import Json, program, resource, template
from tests.support.statement_log import statement_log

SIZES = (10, 100, 1_000)
STATEMENTS = 5
#: The first update queues the graph of the create, which has a node for each resource.
WRITTEN = Counter(
    stack=1, template=1, traversal=1, node=1, resource=1, event=1, outbox=1, archive_queue=1
)
TABLES = """
select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
"""


def wide(size: int, changed: str) -> Json:
    """Resources of which one has another value."""
    return {f"r{n}": resource(changed if n == 5 else "x") for n in range(size)}


async def complete_stacks(database_url: str) -> dict[int, UUID]:
    async with program(database_url) as run:
        stacks = {size: UUID(await run.create(f"s{size}", wide(size, "x"))) for size in SIZES}
        for size in SIZES:
            assert await run.until_ended(f"s{size}") == "CREATE_COMPLETE"
    return stacks


async def update_one(engine: Engine, stack: UUID, size: int, value: str) -> None:
    request = StackRequest(template=template(wide(size, value)))
    await engine.stacks.update("p", stack, request)


async def rows_written(conn: Connection, stack: UUID) -> Counter[str]:
    """Rows that the last accepting transaction inserted or updated, by table."""
    last = "select xmin from traversal where stack_id = $1 order by number desc limit 1"
    xmin = await conn.fetchval(last, stack)
    written: Counter[str] = Counter()
    for (table,) in await conn.fetch(TABLES):
        counted = f"select count(*) from {table} where xmin = $1"
        written[table] = await conn.fetchval(counted, xmin)
    return +written


async def accepted_statements(
    monkeypatch: pytest.MonkeyPatch, database_url: str, stacks: dict[int, UUID]
) -> dict[int, int]:
    """The statements of accepting an update of one resource, by size of the stack."""
    found = {}
    with statement_log(monkeypatch) as log:
        database = await open_database(database_url, size=1)
        try:
            for size, stack in stacks.items():
                log.entries.clear()
                await update_one(idle_engine(database), stack, size, "y")
                found[size] = len(log.transaction("accept_change("))
        finally:
            await database.close()
    return found


async def test_an_update_of_one_resource_writes_as_much_in_a_stack_of_any_size(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stacks = await complete_stacks(database_url)
    statements = await accepted_statements(monkeypatch, database_url, stacks)
    assert statements == dict.fromkeys(SIZES, STATEMENTS)
    async with database.connection() as conn:
        for size, stack in stacks.items():
            assert await rows_written(conn, stack) == WRITTEN, size
            kept = "select count(*) from node where stack_id = $1 and traversal = 1"
            assert await conn.fetchval(kept, stack) == size, "the old graph is archived later"
