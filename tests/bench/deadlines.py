"""How long many hooks take to expire that are due in one second, and what that delays."""

import asyncio
import time

from engine.store.database import Database
from tests.support.postgres import TestServer
from tests.support.program import Program, program, resource

#: Hooks of one stack.
STACK = 100
RULE = {"at": "*", "on": "pre-create", "timeout": "1h", "on_timeout": "continue"}
ROOM = {"quotas.waiting_hooks_per_project": 0, "engine.poll": "1s"}
# Copies of one stack that waits, whose hooks are all due at once.
MAKE = (
    "create temporary table copy as select gen_random_uuid() as id, n from generate_series(1, $1) n"
)
COPY = """
insert into {table}
select r.* from copy c, {table} o
 cross join lateral jsonb_populate_record(null::{table}, to_jsonb(o) || {changed}) r
 where o.{key} = $1
"""
OF_STACK = "jsonb_build_object('stack_id', c.id)"
CHANGED = {
    "stack": "jsonb_build_object('id', c.id, 'name', 'copy' || c.n)",
    "template": OF_STACK,
    "traversal": OF_STACK,
    "node": OF_STACK,
    "resource": OF_STACK,
    "hook": "jsonb_build_object('stack_id', c.id, 'id', gen_random_uuid(),"
    " 'deadline', clock_timestamp())",
}
LEFT = "select count(*) from hook where state = 'waiting' and project = $1"


async def expiry(postgres: TestServer) -> None:
    print("hooks due at once          expired after   another project's after")
    for count in (1_000, 10_000, 100_000):
        async with postgres.new_database() as url, program(url, ROOM) as running:
            took, other = await _measured(running, count)
            print(f"  {count:>9,}{took:>21.1f} s{other:>23.1f} s", flush=True)
    print()


async def _measured(running: Program, count: int) -> tuple[float, float]:
    """Another project's hook falls due when the first of these have expired."""
    resources = {f"r{n}": resource() for n in range(STACK)}
    stack_id = await running.create("one", resources, environment={"hooks": [RULE]})
    await running.waiting_count("one", STACK)
    async with running.database.transaction() as conn:
        await conn.execute("set local statement_timeout = 0")
        await conn.execute(MAKE, count // STACK)
        for table, changed in CHANGED.items():
            key = "id" if table == "stack" else "stack_id"
            text = COPY.format(table=table, changed=changed, key=key)
            await conn.execute(text, stack_id, timeout=600)
        await conn.execute("drop table copy")
        await conn.execute("notify headgate_hook")
    began = time.perf_counter()
    mine = running.project
    await _until(running.database, mine, STACK + count * 9 // 10)
    running.project = "other"
    quick = RULE | {"timeout": "1s"}
    await running.create("quick", {"a": resource()}, environment={"hooks": [quick]})
    asked = time.perf_counter()
    await _until(running.database, "other", 0)
    other = time.perf_counter() - asked - 1.0
    await _until(running.database, mine, STACK)
    running.project = mine
    return time.perf_counter() - began, max(0.0, other)


async def _until(database: Database, project: str, left: int) -> None:
    async with asyncio.timeout(900), database.connection() as conn:
        while await conn.fetchval(LEFT, project) > left:
            await asyncio.sleep(0.1)
