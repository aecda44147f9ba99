"""A page of each list reads a bounded number of rows among 20,000, the first one and one in the
middle. Rows that a filter removes count too, so pages are found by key. Planned for any values and
for given ones, with and without table statistics, on the oldest supported PostgreSQL and on the
embedded one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from channels.store import deliveries, subscriptions
from channels.store.stream import Bounds, history
from engine.store.audit.audit_log import LogFilter, LogPosition
from engine.store.connection import connect
from engine.store.database import Database, open_database
from engine.store.hooks.hook_lists import HookFilter
from engine.store.stacks.events import EventFilter
from engine.store.stacks.stack_lists import StackFilter
from engine.store.stacks.stack_overview import OverviewFilter, PagePosition
from tests.support.idle_engine import idle_engine
from tests.support.keys import KEYRING
from tests.support.large_project import (
    LARGE,
    PROJECT,
    ROWS,
    SMALL,
    SUBSCRIPTION,
    event_key,
    fill,
    key,
)
from tests.support.postgres import TestServer
from tests.support.rows_read import FLUSH, rows_read_so_far, without_statistics

pytestmark = pytest.mark.asyncio(loop_scope="module")
PAGE = 20
#: A listed stack is a row of three tables; five times as many are searched for tags.
BOUND = 12 * PAGE
#: The stacks of one of the tags are read to find out whether enough of them have the other one.
BOUNDS = {"stacks with two tags of many stacks": 2 * BOUND}
MIDDLE = ROWS // 2
#: Reads the page after a row (None: the first page).
Read = Callable[[Database, int | None], Awaitable[Sequence[Any]]]
MODES = ("generic", "custom")


def key_of(after: int | None) -> UUID | None:
    return None if after is None else key(after)


def stacks(**filters: Any) -> Read:
    async def read(database: Database, after: int | None) -> Sequence[Any]:
        wanted = StackFilter(limit=PAGE, marker=key_of(after), **filters)
        return (await idle_engine(database).reads.list_stacks(PROJECT, wanted)).stacks

    return read


def hooks(**filters: Any) -> Read:
    async def read(database: Database, after: int | None) -> Sequence[Any]:
        wanted = HookFilter(limit=PAGE, marker=key_of(after), **filters)
        return await idle_engine(database).reads.hooks(PROJECT, wanted)

    return read


def hooks_of_all_projects(**filters: Any) -> Read:
    async def read(database: Database, after: int | None) -> Sequence[Any]:
        reads = idle_engine(database).reads
        position = None if after is None else await reads.hook_position(key(after))
        return await reads.hooks(None, HookFilter(limit=PAGE, after=position, **filters))

    return read


def events(**filters: Any) -> Read:
    async def read(database: Database, after: int | None) -> Sequence[Any]:
        reads = idle_engine(database).reads
        stack = await reads.find_stack(PROJECT, f"s{LARGE.int:06}")
        marker = None if after is None else event_key(after)
        return await reads.events(stack, EventFilter(limit=PAGE, marker=marker, **filters))

    return read


def deliveries_in(state: str | None) -> Read:
    async def read(database: Database, after: int | None) -> Sequence[Any]:
        async with database.transaction(replan=True, by_index=True) as conn:
            return await deliveries.list_page(
                conn, SUBSCRIPTION, state=state, marker=key_of(after), limit=PAGE
            )

    return read


async def subscriptions_page(database: Database, after: int | None) -> Sequence[Any]:
    async with database.transaction(replan=True, by_index=True) as conn:
        return await subscriptions.list_page(conn, PROJECT, marker=key_of(after), limit=PAGE)


async def history_of_a_stack(database: Database, after: int | None) -> Sequence[Any]:
    async with database.transaction(replan=True, by_index=True) as conn:
        return await history(conn, LARGE, Bounds(), nested=False, after=after or 0, limit=PAGE)


async def configs(database: Database, after: int | None) -> Sequence[Any]:
    return await idle_engine(database).software.configs(PROJECT, key_of(after), PAGE)


async def deployments(database: Database, after: int | None) -> Sequence[Any]:
    return await idle_engine(database).software.deployments(PROJECT, "7")


async def resources(database: Database, after: int | None) -> Sequence[Any]:
    reads = idle_engine(database).reads
    return await reads.resources(await reads.find_stack(PROJECT, f"s{SMALL.int:06}"))


async def snapshots(database: Database, after: int | None) -> Sequence[Any]:
    engine = idle_engine(database)
    return await engine.snapshots.read_all(
        await engine.reads.find_stack(PROJECT, f"s{SMALL.int:06}")
    )


def audit_log(**filters: Any) -> Read:
    async def read(database: Database, after: int | None) -> Sequence[Any]:
        position = None if after is None else LogPosition(time_of(after), LARGE, after)
        wanted = LogFilter(after=position, limit=PAGE, **filters)
        return await idle_engine(database).reads.project_audit_log(PROJECT, wanted)

    return read


async def audit_log_of_a_stack(database: Database, after: int | None) -> Sequence[Any]:
    reads = idle_engine(database).reads
    stack = await reads.find_stack(PROJECT, f"s{LARGE.int:06}")
    return await reads.audit_log(stack, after=after or 0, limit=PAGE)


async def overview(database: Database, after: int | None) -> Sequence[Any]:
    position = None if after is None else PagePosition(time_of(after), key(after))
    wanted = OverviewFilter(after=position, limit=PAGE)
    return (await idle_engine(database).reads.overview(PROJECT, wanted)).stacks


def time_of(number: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)


LISTS: dict[str, Read] = {
    "stacks, newest first": stacks(),
    "stacks, oldest first": stacks(descending=False),
    "stacks by name": stacks(sort_keys=("stack_name",), descending=False),
    "stacks by name, descending": stacks(sort_keys=("stack_name",)),
    "stacks with names": stacks(names=[f"s{n:06}" for n in range(1, ROWS, ROWS // PAGE)]),
    "stacks with a common tag": stacks(tags=["common"]),
    "stacks with a rare tag": stacks(tags=["rare"]),
    "stacks with any of the tags": stacks(tags_any=["rare", "none"]),
    "stacks with a tag of many old stacks": stacks(tags=["old"]),
    "stacks with a tag of many old stacks, oldest first": stacks(tags=["old"], descending=False),
    "stacks with any of the tags of many stacks": stacks(tags_any=["old", "common"]),
    "stacks with two tags of many stacks": stacks(tags=["common", "old"]),
    "hooks": hooks(),
    "waiting hooks": hooks(state="waiting"),
    "hooks of a stack": hooks(stack_id=LARGE),
    "waiting hooks of a stack": hooks(stack_id=LARGE, state="waiting"),
    "hooks of a small stack": hooks(stack_id=key(MIDDLE + 1)),
    "hooks of all projects": hooks_of_all_projects(),
    "waiting hooks of all projects": hooks_of_all_projects(state="waiting"),
    "events": events(),
    "events, newest first": events(descending=True),
    "events of a resource": events(names=["r7"]),
    "events of a resource, newest first": events(names=["r8"], descending=True),
    "failed events of a resource": events(names=["r7"], statuses=["FAILED"]),
    "events of a resource by type": events(names=["r7"], by_type=True),
    "events of a resource with several possible names": events(names=["r-7", "r7"]),
    "history": history_of_a_stack,
    "deliveries": deliveries_in(None),
    "delivered deliveries": deliveries_in("delivered"),
    "dead deliveries": deliveries_in("dead"),
    "pending deliveries": deliveries_in("pending"),
    "subscriptions": subscriptions_page,
    "audit log": audit_log(),
    "audit log of a stack": audit_log_of_a_stack,
    "overview": overview,
    "software configs": configs,
    "software deployments of a server": deployments,
    "resources of a stack": resources,
    "snapshots of a stack": snapshots,
}


@pytest.fixture(scope="module", params=["oldest", "embedded"])
def server(
    request: pytest.FixtureRequest, postgres: TestServer, oldest_postgres: TestServer
) -> TestServer:
    return oldest_postgres if request.param == "oldest" else postgres


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def large_projects(server: TestServer) -> AsyncIterator[dict[str, Database]]:
    """Connected to two equal databases, one without statistics of its tables and an analysed one, in
    each of which statements are planned for any values or for given ones."""
    async with server.new_database() as never_analysed:
        conn = await connect(never_analysed)
        await without_statistics(conn)
        await fill(conn)
        await conn.close()
        name = never_analysed.partition("///")[2].partition("?")[0]
        async with server.new_database(template=name) as analysed:
            conn = await connect(analysed)
            await conn.execute("analyze")
            await conn.close()
            urls = {"never analysed": never_analysed, "analysed": analysed}
            found = {
                f"{statistics}, {mode}": await planned_in_mode(server, url, mode)
                for statistics, url in urls.items()
                for mode in MODES
            }
            try:
                yield found
            finally:
                for database in found.values():
                    await database.close()


async def planned_in_mode(server: TestServer, url: str, mode: str) -> Database:
    name = url.partition("///")[2].partition("?")[0]
    async with server.administer() as conn:
        await conn.execute(f"alter database {name} set plan_cache_mode = force_{mode}_plan")
    return await open_database(url, size=1, keyring=KEYRING)


async def rows_read(database: Database, read: Read, after: int | None) -> int:
    async with database.connection() as conn:
        await conn.execute(FLUSH)
        before = (await rows_read_so_far(conn)).total()
    assert len(await read(database, after)) <= PAGE
    async with database.connection() as conn:
        await conn.execute(FLUSH)
        return (await rows_read_so_far(conn)).total() - before


@pytest.mark.parametrize("after", [None, MIDDLE], ids=["first page", "in the middle"])
@pytest.mark.parametrize("name", LISTS)
async def test_a_page_reads_a_bounded_number_of_rows(
    large_projects: Mapping[str, Database], name: str, after: int | None
) -> None:
    found = {
        how: await rows_read(database, LISTS[name], after)
        for how, database in large_projects.items()
    }
    assert max(found.values()) <= BOUNDS.get(name, BOUND), found
