"""How long many hooks take to expire that are due in one second, and what that delays."""

import asyncio
import time

import asyncpg

from tests.bench.client import Client
from tests.bench.run import Run
from tests.bench.shapes import wide

#: Hooks of one stack.
STACK = 100
RULE = {"at": "*", "on": "pre-create", "timeout": "1h", "on_timeout": "continue"}
SETTINGS = {"engine": {"poll": "1s"}}
# Copies of one stack that waits, whose hooks are all due at once.
CREATE_COPIES = (
    "create temporary table copy as select gen_random_uuid() as id, n from generate_series(1, {}) n"
)
COPY_ROWS = """
insert into {table}
select r.* from copy c, {table} o
 cross join lateral jsonb_populate_record(null::{table}, to_jsonb(o) || {changed}) r
 where o.{key} = $1
"""
STACK_ID = "jsonb_build_object('stack_id', c.id)"
CHANGED_COLUMNS = {
    "stack": "jsonb_build_object('id', c.id, 'name', 'copy' || c.n)",
    "template": STACK_ID,
    "traversal": STACK_ID,
    "node": STACK_ID,
    "resource": STACK_ID,
    "hook": "jsonb_build_object('stack_id', c.id, 'id', gen_random_uuid(),"
    " 'deadline', clock_timestamp())",
}
COUNT_WAITING = "select count(*) from hook where state = 'waiting' and project = $1"


async def deadlines(run: Run) -> None:
    for count in (*run.sizes, *([run.largest] if run.largest else [])):
        async with run.server(settings=SETTINGS) as (server, client):
            async with run.postgres.connection(server.database_url) as conn:
                await create_due_hooks(conn, client, count)
                used, started = server.usage(), time.perf_counter()
                async with Client.open(server.url, "other") as other:
                    delay = await delay_of_other_project(conn, other, count)
                await wait_for_waiting_hooks(conn, "p", STACK)
                elapsed, used = time.perf_counter() - started, server.usage() - used
            run.add("deadline", "expire", count, rate=count / elapsed, **used.each(count))
            run.add("deadline", "another project's hook", count, median=delay * 1000)


async def create_due_hooks(conn: asyncpg.Connection, client: Client, count: int) -> None:
    stack = await client.create("one", wide(STACK), environment={"hooks": [RULE]})
    await client.until_waiting(stack, STACK)
    async with conn.transaction():
        await conn.execute(CREATE_COPIES.format(count // STACK))
        for table, changed in CHANGED_COLUMNS.items():
            key = "id" if table == "stack" else "stack_id"
            text = COPY_ROWS.format(table=table, changed=changed, key=key)
            await conn.execute(text, stack.rpartition("/")[2])
        await conn.execute("drop table copy")
        await conn.execute("notify headgate_hook")


async def delay_of_other_project(conn: asyncpg.Connection, other: Client, count: int) -> float:
    """Seconds by which the hook of another project expires late. It falls due when the first hooks
    have expired."""
    await wait_for_waiting_hooks(conn, "p", STACK + count * 9 // 10)
    rule = RULE | {"timeout": "1s"}
    await other.create("quick", wide(1), environment={"hooks": [rule]})
    started = time.perf_counter()
    await wait_for_waiting_hooks(conn, "other", 0)
    return max(0.0, time.perf_counter() - started - 1.0)


async def wait_for_waiting_hooks(conn: asyncpg.Connection, project: str, count: int) -> None:
    async with asyncio.timeout(900):
        while await conn.fetchval(COUNT_WAITING, project) > count:
            await asyncio.sleep(0.1)
