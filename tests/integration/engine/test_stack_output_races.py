"""A stack reads outputs of another one that is deleted, or begins to read it, at the same time.

A lock of a table holds one request between its checks and its commit until the other one has come as
far as it can.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from engine.store.connection import Connection
from engine.store.database import Database
from tests.integration.engine.test_stack_outputs import READ, create, dependencies, headgate, net
from tests.support.changes import thing
from tests.support.program import Json, Program, eventually

#: Not of pg_stat_activity, which does not change during a transaction.
WAITING = """
select count(distinct l.pid) from pg_locks l join pg_database d on d.oid = l.database
 where d.datname = current_database() and not l.granted
"""
READER = headgate({"x": thing(READ)})


@asynccontextmanager
async def held(database: Database, table: str) -> AsyncIterator[Connection]:
    """Transactions that write this table wait at that statement."""
    async with database.transaction() as conn:
        await conn.execute(f"lock table {table} in share mode")
        yield conn


async def until_waiting(conn: Connection, count: int) -> None:
    """Wait until so many transactions wait for a lock."""

    async def reached() -> bool:
        return bool(await conn.fetchval(WAITING) >= count)

    await eventually(reached)


async def until_waiting_or_done(conn: Connection, count: int, task: asyncio.Task[Json]) -> None:
    async def reached() -> bool:
        return task.done() or bool(await conn.fetchval(WAITING) >= count)

    await eventually(reached)


async def delete_path(run: Program, name: str) -> str:
    return f"/stacks/{name}/{(await run.stack(name))['id']}"


async def test_a_source_is_not_deleted_while_a_reader_is_accepted(
    run: Program, database: Database
) -> None:
    await create(run, "net", net(3))
    path = await delete_path(run, "net")
    async with held(database, "template") as conn:
        creating = asyncio.create_task(
            run.call("POST", "/stacks", {"stack_name": "app", "template": READER})
        )
        await until_waiting(conn, 1)
        deleting = asyncio.create_task(run.call("DELETE", path))
        await until_waiting_or_done(conn, 2, deleting)
    status, response = await creating
    assert status == 201, response
    status, response = await deleting
    assert status == 409 and "its outputs are read by app" in response["error"]["message"]
    assert await run.until_ended("app") == "CREATE_COMPLETE"
    assert (await run.stack("net"))["stack_status"] == "CREATE_COMPLETE"
    (read,) = (await dependencies(run, "app"))["reads"]
    assert read["stack_name"] == "net" and read["changed"] is False


async def test_a_reader_is_refused_while_its_source_is_being_deleted(
    run: Program, database: Database
) -> None:
    await create(run, "net", net(3))
    path = await delete_path(run, "net")
    async with held(database, "traversal") as conn:
        deleting = asyncio.create_task(run.call("DELETE", path))
        await until_waiting(conn, 1)
        creating = asyncio.create_task(
            run.call("POST", "/stacks", {"stack_name": "app", "template": READER})
        )
        await until_waiting_or_done(conn, 2, creating)
    assert (await deleting)[0] == 204
    status, response = await creating
    assert status == 409 and response["error"]["type"] == "StackOutputGone", response
    status, _ = await run.call("GET", "/stacks/app")
    assert status == 404


@pytest.mark.parametrize("first", ["a", "b"])
async def test_two_stacks_do_not_begin_to_read_each_other(
    run: Program, database: Database, first: str
) -> None:
    for name in "ab":
        await create(run, name, net(3))
    reading = {
        name: headgate(
            {"a": thing({"stack_output": [other, "size"]})},
            outputs={"size": {"value": 1}},
        )
        for name, other in ("ab", "ba")
    }
    paths = {name: await delete_path(run, name) for name in "ab"}
    second = "b" if first == "a" else "a"
    async with held(database, "template") as conn:
        tasks = []
        for count, name in enumerate((first, second), 1):
            body = {"template": reading[name]}
            tasks.append(asyncio.create_task(run.call("PUT", paths[name], body)))
            await until_waiting(conn, count)
    (accepted, _), (refused, response) = await asyncio.gather(*tasks)
    assert (accepted, refused) == (202, 409), response
    assert response["error"]["type"] == "CircularDependencyException"
    assert await run.until_ended(first) == "UPDATE_COMPLETE"


async def test_a_source_may_change_meanwhile_and_the_dependency_says_so(
    run: Program, database: Database
) -> None:
    await create(run, "net", net(3))
    async with held(database, "template") as conn:
        creating = asyncio.create_task(
            run.call("POST", "/stacks", {"stack_name": "app", "template": READER})
        )
        await until_waiting(conn, 1)
        path = await delete_path(run, "net")
        updating = asyncio.create_task(run.call("PUT", path, {"template": net(4)}))
        await until_waiting(conn, 2)
    assert (await creating)[0] == 201 and (await updating)[0] == 202
    assert await run.until_ended("app") == "CREATE_COMPLETE"
    assert await run.until_ended("net") == "UPDATE_COMPLETE"
    (read,) = (await dependencies(run, "app"))["reads"]
    assert read["stack_name"] == "net" and read["changed"] is True
    (reader,) = (await dependencies(run, "net"))["read_by"]
    assert reader["stack_name"] == "app"
