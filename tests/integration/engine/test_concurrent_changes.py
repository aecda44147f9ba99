"""Changes of one stack that arrive at the same time: each is accepted or refused for what the stack
is when its turn comes."""

import asyncio
from uuid import UUID

import asyncpg

from engine.store.database import Database
from engine.store.stacks.stack_locks import lock_stack
from engine.words import UNDER_WAY
from tests.support.program import Program, program, resource, template

#: Waiting changes of a stack.
CHANGES = 8
BLOCKED = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock'
"""


async def until_blocked(database: Database, count: int) -> None:
    async with asyncio.timeout(20):
        while True:
            async with database.connection() as conn:
                if await conn.fetchval(BLOCKED) >= count:
                    return
            await asyncio.sleep(0.02)


async def id_of(run: Program) -> str:
    return str((await run.stack("s"))["id"])


async def test_updates_at_the_same_time_are_all_accepted(database_url: str) -> None:
    async with program(database_url) as run:
        await run.create("s", {"a": resource()})
        await run.until_ended("s")
        path = f"/stacks/s/{await id_of(run)}"

        async def update(number: int) -> int:
            resources = {"a": resource(), f"b{number}": resource()}
            return (await run.call("PUT", path, {"template": template(resources)}))[0]

        assert await asyncio.gather(*map(update, range(CHANGES))) == [202] * CHANGES
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        _, listed = await run.call("GET", f"{path}/resources")
        names = sorted(one["resource_name"] for one in listed["resources"])
        assert len(names) == 2 and names[0] == "a"  # of the update that came last


async def test_a_waiting_change_sees_the_traversal_that_was_accepted_meanwhile(
    database_url: str,
) -> None:
    async with program(database_url) as run:
        await run.create("s", {"a": resource()})
        await run.until_ended("s")
        stack_id = UUID(await id_of(run))
        async with run.database.transaction() as first:
            before = await lock_stack(first, "p", stack_id)
            assert before is not None and before.state not in UNDER_WAY

            async def lock() -> tuple[int, str]:
                async with run.database.transaction() as second:
                    found = await lock_stack(second, "p", stack_id)
                    assert found is not None
                    return found.traversal, found.state

            waiting = asyncio.create_task(lock())
            await until_blocked(run.database, 1)
            await first.execute(
                "insert into traversal select (jsonb_populate_record(t, $2)).* from traversal t"
                " where stack_id = $1 and number = $3",
                stack_id, {"number": before.traversal + 1, "state": "running"}, before.traversal,
            )  # fmt: skip
            await first.execute(
                "update stack set traversal = traversal + 1 where id = $1", stack_id
            )
        assert await waiting == (before.traversal + 1, "running")


async def test_a_waiting_change_sees_the_end_of_the_traversal(database_url: str) -> None:
    async with program(database_url) as run:
        await run.create("s", {"a": resource()})
        await run.until_ended("s")
        stack_id = UUID(await id_of(run))
        async with run.database.transaction() as first:
            before = await lock_stack(first, "p", stack_id)
            assert before is not None

            async def lock() -> str:
                async with run.database.transaction() as second:
                    found = await lock_stack(second, None, stack_id)
                    assert found is not None
                    return found.state

            waiting = asyncio.create_task(lock())
            await until_blocked(run.database, 1)
            ended = "update traversal set state = 'stopped' where stack_id = $1 and number = $2"
            await first.execute(ended, stack_id, before.traversal)
        assert await waiting == "stopped"


async def test_requests_that_wait_for_one_stack_leave_connections_to_others(
    database_url: str,
) -> None:
    """More of them than the pool has connections, each by another user."""
    async with program(database_url, {"database.pool": 4}) as run:
        await run.create("s", {"a": resource()})
        await run.until_ended("s")
        path = f"/stacks/s/{await id_of(run)}"
        requests = [
            ("POST", f"{path}/actions", {"suspend": None}),
            ("PATCH", f"{path}/resources/a", {"mark_unhealthy": True}),
            ("POST", f"{path}/resources/a/signal", {}),
            ("POST", f"{path}/snapshots", {"name": "one"}),
            ("PUT", f"{path}/pin", {"reason": "an audit"}),
            ("POST", f"{path}/run-to", {"resource": "a"}),
            # The same ID in another spelling.
            (
                "PATCH",
                f"{path.upper().replace('/STACKS/S', '/stacks/s')}/resources/a",
                {"protect": True},
            ),
            ("POST", f"{path.replace('-', '')}/actions", {"suspend": None}),
        ]

        async def request(number: int) -> int:
            method, at, body = requests[number % len(requests)]
            headers = {"X-Auth-User": f"user{number}"}
            return (await run.call(method, at, body, headers=headers))[0]

        conn = await asyncpg.connect(database_url)
        try:
            async with conn.transaction():
                await conn.execute("select from stack for no key update")
                waiting = [asyncio.create_task(request(number)) for number in range(18)]
                await until_blocked(run.database, 2)
                async with asyncio.timeout(10):  # of a statement that waits for a lock: 15
                    assert (await run.call("GET", "/stacks?limit=1"))[0] == 200
                    await run.create("other", {"a": resource()})
                    assert await run.until_ended("other") == "CREATE_COMPLETE"
                assert not any(one.done() for one in waiting)
        finally:
            await conn.close()
        statuses = await asyncio.gather(*waiting)
        assert all(status < 500 for status in statuses), statuses
