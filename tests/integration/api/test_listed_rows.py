"""A page of a list reads as many rows as it has, however many stacks and hooks the project has."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from engine.store.connection import Connection, connect
from engine.store.database import open_database
from engine.store.hooks.hook_lists import (
    HookFilter,
    find_hook_position,
    read_hooks,
    read_hooks_of_all,
)
from engine.store.stacks.stack_lists import StackFilter, list_stacks
from tests.support.keys import KEYRING
from tests.support.postgres import TestServer
from tests.support.rows_read import rows_read_by, without_statistics

pytestmark = pytest.mark.asyncio(loop_scope="module")
PAGE = 20
#: Stacks with a completed traversal, a template, and three hooks each; one of the three waits.
FILL = """
with k as (
    insert into stack (id, project, name, owner, version, traversal)
    select gen_random_uuid(), 'p', 's' || n, 'o', 1, 1 from generate_series(1, $1) n
    returning id
), t as (
    insert into traversal (stack_id, number, project, action, version, state, reason, digest,
                           active_nodes, requested_by)
    select id, 1, 'p', 'CREATE', 1, 'complete', '', 'd', 0, 'o' from k
), v as (
    insert into template (stack_id, version, description, template, environment, files,
                          parameters, masked_parameters, hidden_parameters, outputs, requested_by)
    select id, 1, '', '{}', '{}', '{}', '{}', '{}', '{}', '[]', 'o' from k
)
insert into hook (stack_id, id, project, traversal, node, resource_name, path, point, mode, state,
                  on_timeout, timeout, notification, digest, opened_at, deadline, rule, requested_by)
select k.id, gen_random_uuid(), 'p', 1, 0, 'r', 'r', 'pre-create', 'wait',
       case n when 1 then 'waiting' when 2 then 'answered' else 'superseded' end, 'stop',
       interval '1 hour', '{}', 'd', clock_timestamp(), clock_timestamp(), '{}', 'o'
  from k, generate_series(1, 3) n
"""
#: 49 of 50 stacks.
DELETE_OR_NEST = """
update stack set deleted_at = case when substr(name, 2)::integer % 2 = 0 then now() end,
                 parent_id = case when substr(name, 2)::integer % 2 = 1 then gen_random_uuid() end
 where substr(name, 2)::integer % 50 > 0
"""
LISTS: dict[str, HookFilter | StackFilter] = {
    "hooks of a stack": HookFilter(limit=PAGE),
    "waiting hooks of a stack": HookFilter(state="waiting", limit=PAGE),
    "hooks of a project": HookFilter(limit=PAGE),
    "waiting hooks of a project": HookFilter(state="waiting", limit=PAGE),
    "hooks of all projects": HookFilter(limit=PAGE),
    "waiting hooks of all projects": HookFilter(state="waiting", limit=PAGE),
    "hooks that a user can answer": HookFilter(
        state="waiting", mine=["user:ada"], me=["account:p/ada"], limit=PAGE
    ),
    "stacks by name": StackFilter(sort_keys=("stack_name",), descending=False, limit=PAGE),
    "stacks by name, descending": StackFilter(sort_keys=("stack_name",), limit=PAGE),
    "stacks by age": StackFilter(limit=PAGE),
}


#: Creates a database with so many stacks, once for the module; returns its URL.
Fill = Callable[[int, bool, str], Awaitable[str]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fill(postgres: TestServer) -> AsyncIterator[Fill]:
    """Tests only read the databases."""
    filled: dict[tuple[int, bool, str], str] = {}
    async with AsyncExitStack() as stack:

        async def create(stacks: int, analysed: bool, then: str) -> str:
            key = (stacks, analysed, then)
            if key not in filled:
                filled[key] = await stack.enter_async_context(postgres.new_database())
                conn = await connect(filled[key])
                await without_statistics(conn)
                await conn.execute(FILL, stacks)
                if then:
                    await conn.execute(then)
                if analysed:
                    await conn.execute("analyze")
                await conn.close()
            return filled[key]

        yield create


async def rows_read(fill: Fill, stacks: int, name: str, *, analysed: bool, then: str = "") -> int:
    """By two successive pages of a new connection. then: a further statement that prepares the
    stacks."""
    database = await open_database(await fill(stacks, analysed, then), size=1, keyring=KEYRING)
    try:
        async with database.connection() as conn:
            first: UUID = await conn.fetchval("select id from stack where name = 's1'")
            return await rows_read_by(conn, lambda conn: two_pages(conn, name, first))
    finally:
        await database.close()


async def two_pages(conn: Connection, name: str, stack_id: UUID) -> None:
    marker = None
    for _ in range(2):
        found = await page(conn, name, stack_id, marker)
        assert found
        marker = found[-1]
        if name.endswith("of a stack"):
            assert len(found) == (1 if "waiting" in name else 3)
            break
        assert len(found) == PAGE


async def page(conn: Connection, name: str, stack_id: UUID, marker: UUID | None) -> list[UUID]:
    wanted = LISTS[name]
    if isinstance(wanted, StackFilter):
        listed = await list_stacks(conn, "p", replace(wanted, marker=marker))
        return [one.id for one in listed.stacks]
    if name.endswith("of all projects"):
        after = None if marker is None else await find_hook_position(conn, marker)
        return [one.id for one in await read_hooks_of_all(conn, replace(wanted, after=after))]
    of = stack_id if name.endswith("of a stack") else None
    return [
        one.id for one in await read_hooks(conn, "p", replace(wanted, marker=marker, stack_id=of))
    ]


@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
@pytest.mark.parametrize("name", LISTS)
async def test_a_page_reads_no_more_in_a_large_project(
    fill: Fill, name: str, analysed: bool
) -> None:
    few = await rows_read(fill, 200, name, analysed=analysed)
    many = await rows_read(fill, 2_000, name, analysed=analysed)
    assert many <= few + 2 * PAGE


@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
@pytest.mark.parametrize("order", [{"descending": True}, {"descending": False}], ids=str)
@pytest.mark.parametrize("more", [{}, {"owners": ["o"]}], ids=str)
async def test_a_page_reads_no_deleted_and_nested_stacks(
    fill: Fill,
    order: dict[str, Any],
    more: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    *,
    analysed: bool,
) -> None:
    monkeypatch.setitem(LISTS, "stacks", StackFilter(limit=PAGE, **order, **more))
    few = await rows_read(fill, 200, "stacks", analysed=analysed)
    many = await rows_read(fill, 2_000, "stacks", analysed=analysed, then=DELETE_OR_NEST)
    assert many <= few + 2 * PAGE


#: Each selects by another condition.
FILTERS: dict[str, Any] = {
    "hidden": {"not_tags_any": ["hidden"]},
    "named": {"names": ["s4", "s5", "s6"]},
    "status": {"statuses": ["COMPLETE"], "not_tags_any": ["hidden"]},
    "deleted": {"show_deleted": True, "not_tags_any": ["hidden"]},
    "nested": {"show_nested": True},
    "nothing": {},
}


@pytest.mark.parametrize("name", FILTERS)
async def test_pages_of_all_orders_have_the_same_stacks(postgres: TestServer, name: str) -> None:
    """As `stack_matches` selects them. Two pages of each."""
    async with postgres.new_database() as url:
        database = await open_database(url, keyring=KEYRING)
        try:
            async with database.connection() as conn:
                await conn.execute(FILL, 30)
                await conn.execute(DELETE_OR_NEST)
                await conn.execute(
                    "update stack set deleted_at = null, parent_id = null"
                    " where name in ('s4', 's5', 's6', 's7')"
                )
                await conn.execute("update stack set tags = '{hidden}' where name in ('s5', 's10')")
                for by_name in (True, False):
                    if by_name and name == "deleted":
                        continue
                    expected = sorted(await matching(conn, name))
                    for descending in (True, False):
                        listed = await two_pages_of(conn, name, by_name, descending)
                        in_order = sorted(listed, reverse=descending) if by_name else listed
                        assert listed == in_order
                        assert sorted(listed) == expected
        finally:
            await database.close()


async def matching(conn: Connection, name: str) -> list[str]:
    wanted = StackFilter(**FILTERS[name]).as_document()
    rows = await conn.fetch("select name from current_stack s where stack_matches(s, $1)", wanted)
    return [row["name"] for row in rows]


async def two_pages_of(conn: Connection, name: str, by_name: bool, descending: bool) -> list[str]:
    keys = ("stack_name",) if by_name else ("creation_time",)
    wanted = StackFilter(**FILTERS[name], sort_keys=keys, descending=descending, limit=3)
    first = (await list_stacks(conn, "p", wanted)).stacks
    rest = replace(wanted, limit=None, marker=first[-1].id)
    return [one.name for one in (*first, *(await list_stacks(conn, "p", rest)).stacks)]


#: Moves the stacks of FILL to so many projects. $1: how many.
SPREAD = "update stack set project = 'p' || (substr(name, 2)::integer % $1)"
#: Their times of creation do not follow their names. Each tenth is deleted, each seventh is tagged.
SCATTER = """
update stack set created_at = created_at - interval '1 s' * (substr(name, 2)::integer * 37 % 101),
                 tags = case when substr(name, 2)::integer % 7 = 0 then array['hidden'] else '{}' end,
                 deleted_at = case when substr(name, 2)::integer % 10 = 0 then now() end
"""


async def test_a_page_of_all_projects_reads_a_page_of_few_of_them(postgres: TestServer) -> None:
    """A page of each of 150 would be 3,000 stacks, each with rows of three tables."""
    projects = 150
    async with postgres.new_database() as url:
        database = await open_database(url, size=1, keyring=KEYRING)
        try:
            async with database.connection() as conn:
                await conn.execute(FILL, projects * PAGE)
                await conn.execute(SPREAD, projects)
                await conn.execute(SCATTER)
                await conn.execute("vacuum analyze")

                async def read(conn: Connection) -> None:
                    found = await list_stacks(conn, None, StackFilter(limit=PAGE))
                    assert len(found.stacks) == PAGE

                assert await rows_read_by(conn, read) < projects * PAGE
        finally:
            await database.close()


@pytest.mark.parametrize("descending", [True, False])
async def test_pages_of_all_projects_have_all_stacks_in_order(
    postgres: TestServer, descending: bool
) -> None:
    async with postgres.new_database() as url:
        database = await open_database(url, keyring=KEYRING)
        try:
            async with database.connection() as conn:
                await conn.execute(FILL, 200)
                await conn.execute(SPREAD, 23)
                await conn.execute(SCATTER)
                rows = await conn.fetch(
                    "select id, created_at from stack where deleted_at is null and tags = '{}'"
                )
                expected = sorted(
                    rows, key=lambda row: (row["created_at"], row["id"]), reverse=descending
                )
                wanted = StackFilter(limit=7, descending=descending, not_tags_any=["hidden"])
                found: list[UUID] = []
                while listed := (await list_stacks(conn, None, wanted)).stacks:
                    found += [one.id for one in listed]
                    wanted = replace(wanted, marker=found[-1])
                assert found == [row["id"] for row in expected]
        finally:
            await database.close()
