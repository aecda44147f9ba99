"""The resources of a stack are read by key: as many rows for each resource in a large stack as in a
small one, and no rows of other stacks, also without table statistics."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from engine.store.connection import Connection
from engine.store.database import open_database
from engine.store.hooks.drift_hooks import read_dependents
from engine.store.resources.resource_reads import (
    READ_RESOURCES,
    read_names,
    read_resource_rules,
    read_resources,
)
from engine.store.resources.resource_rows import REMOVE_REQUIREMENTS
from tests.support.keys import KEYRING
from tests.support.postgres import TestServer
from tests.support.rows_read import rows_read_by, without_statistics

#: A stack with $2 resources, on each of which an operation runs. The first has a nested stack with
#: one resource.
FILL = """
with s as (
    insert into stack (id, project, name, owner, version, traversal, parent_id, parent_resource)
    select gen_random_uuid(), 'p', $1, 'o', 1, 1, null::uuid, null::uuid
    returning id
), r as (
    insert into resource (stack_id, id, name, type, action, status, reason, attributes, data,
                          metadata, digest, requires)
    select s.id, gen_random_uuid(), 'r' || n, 'TestResource', 'INIT', 'COMPLETE', '', '{}', '{}',
           '{}', 'd', '{}'
      from s, generate_series(1, $2) n
    returning stack_id, id, name
), n as (
    insert into node (stack_id, traversal, id, resource_id, name, type, operation, direction, state,
                      phase, pending_dependencies, dependents, reads, breakpoints_hit, claim,
                      started_at)
    select stack_id, 1, substr(name, 2)::integer, id, name, 'TestResource', 'create', 'forward',
           'running', 'execute', 0, '{}', '{}', '{}', 1, now()
      from r
), c as (
    insert into stack (id, project, name, owner, version, traversal, parent_id, parent_resource)
    select gen_random_uuid(), 'p', $1 || '-r1', 'o', 1, 1, stack_id, id from r where name = 'r1'
    returning id
)
insert into resource (stack_id, id, name, type, action, status, reason, attributes, data,
                      metadata, digest, requires)
select id, gen_random_uuid(), 'x', 'TestResource', 'CREATE', 'COMPLETE', '', '{}', '{}', '{}', 'd',
       '{}' from c
"""
#: Each resource requires the one before; the first one requires none.
REQUIRE = """
update resource r set requires = array[q.id]
  from resource q
 where q.stack_id = r.stack_id and r.name = 'r' || substr(q.name, 2)::integer + 1
   and q.name like 'r%'
"""
DEPTH = 1


async def read_all(conn: Connection, stack: UUID, resources: int) -> None:
    found = await read_resources(conn, stack, depth=DEPTH)
    assert len(found) == resources + 1
    shown = {(one.action, one.status) for one in found}
    assert shown == {("CREATE", "IN_PROGRESS"), ("CREATE", "COMPLETE")}


async def read_without_values(conn: Connection, stack: UUID, resources: int) -> None:
    """A list needs no attributes, which may be large: those of a group have all of its members."""
    await conn.execute("""update resource set attributes = '{"a": 1}', metadata = '{"m": 1}'""")
    for one in await read_resources(conn, stack, with_values=False):
        assert (one.properties, one.masked_properties, one.attributes, one.metadata) == (None,) * 4
    for one in await read_resources(conn, stack):
        assert (one.attributes, one.metadata) == ({"a": 1}, {"m": 1})


async def find_one(conn: Connection, stack: UUID, resources: int) -> None:
    """Six times, because PostgreSQL then plans for any value."""
    wanted = f"r{resources}"
    for _ in range(6):
        assert await read_names(conn, stack, [wanted, "missing"]) == {wanted}
        assert len(await conn.fetch(READ_RESOURCES, stack, wanted, 0, True)) == 1


async def find_dependents(conn: Connection, stack: UUID, resources: int) -> None:
    """Six times, because PostgreSQL then plans for any value."""
    find = "select id from resource where stack_id = $1 and name = 'r10'"
    for _ in range(6):
        assert (await read_resource_rules(conn, stack, "r10")).required_by == ["r11"]
        one = await conn.fetchval(find, stack)
        assert await read_dependents(conn, stack, [one]) == {one: ["r11"]}


async def remove_requirements(conn: Connection, stack: UUID, resources: int) -> None:
    one = await conn.fetchval("select id from resource where stack_id = $1 and name = 'r10'", stack)
    assert await conn.execute(REMOVE_REQUIREMENTS, stack, one) == "UPDATE 1"


async def rows_read(
    postgres: TestServer,
    resources: int,
    others: int,
    read: Callable[[Connection, UUID, int], Awaitable[None]] = read_all,
    *,
    analysed: bool,
) -> int:
    """others: stacks of ten resources in the same project."""
    async with postgres.new_database() as url:
        database = await open_database(url, keyring=KEYRING)
        try:
            async with database.connection() as conn:
                await without_statistics(conn)
                await conn.executemany(FILL, [(f"s{n}", 10) for n in range(others)])
                await conn.execute(FILL, "large", resources)
                await conn.execute(REQUIRE)
                if analysed:
                    await conn.execute("analyze")
                stack: UUID = await conn.fetchval("select id from stack where name = 'large'")
                return await rows_read_by(conn, lambda conn: read(conn, stack, resources))
        finally:
            await database.close()


@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
async def test_a_resource_costs_the_same_in_a_large_stack(
    postgres: TestServer, *, analysed: bool
) -> None:
    few = await rows_read(postgres, 20, 20, analysed=analysed)
    many = await rows_read(postgres, 400, 20, analysed=analysed)
    assert many <= 20 * few


async def test_values_of_resources_are_read_when_they_are_needed(postgres: TestServer) -> None:
    await rows_read(postgres, 20, 0, read_without_values, analysed=False)


@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
async def test_no_rows_of_other_stacks_are_read(postgres: TestServer, *, analysed: bool) -> None:
    alone = await rows_read(postgres, 50, 5, analysed=analysed)
    among_many = await rows_read(postgres, 50, 200, analysed=analysed)
    assert among_many <= alone + 20


@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
async def test_a_resource_is_found_by_its_name_in_any_stack(
    postgres: TestServer, *, analysed: bool
) -> None:
    small = await rows_read(postgres, 20, 20, find_one, analysed=analysed)
    large = await rows_read(postgres, 400, 20, find_one, analysed=analysed)
    assert large <= small + 20


@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
@pytest.mark.parametrize("read", [find_dependents, remove_requirements])
async def test_dependents_are_found_by_key_in_any_stack(
    postgres: TestServer,
    read: Callable[[Connection, UUID, int], Awaitable[None]],
    *,
    analysed: bool,
) -> None:
    small = await rows_read(postgres, 20, 40, read, analysed=analysed)
    large = await rows_read(postgres, 400, 40, read, analysed=analysed)
    assert large == small
