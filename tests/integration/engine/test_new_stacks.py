"""How a new stack is stored: in one statement if nothing else must be read or written with it, else
in a transaction. Both store the same rows."""

import asyncio
import random
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from engine.errors import Conflict, LimitReached, Unavailable
from engine.principal import principal_of_name
from engine.service import Engine, StackRequest
from engine.service.requests.blueprint import node_inputs
from engine.service.requests.quotas import Quotas, StackCounts
from engine.service.traversals import start
from engine.service.traversals.start import Traversals
from engine.store.connection import Connection
from engine.store.database import Database, open_database
from engine.store.encryption.secret_values import EncryptedDocument
from engine.store.projects import quotas as store
from engine.store.traversals.start import OutboxRange
from engine.tracing import TRACE
from engine.types.registry import built_in
from hub.program.wiring import make_limits
from hub.settings.settings import Settings
from tests.support.idle_engine import idle_engine
from tests.support.keys import KEYRING
from tests.support.program import Json, resource, template
from tests.support.statement_log import StatementLog, statement_log

TRACE_PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TABLES = ("stack", "template", "traversal", "node", "resource", "event", "outbox", "stack_tag")
#: Values that differ between two stacks.
OWN = {
    "id", "stack_id", "root_id", "resource_id", "name", "time", "wake_at", "created_at",
    "changed_at", "updated_at", "started_at", "working_since", "digest", "physical_id", "requires",
}  # fmt: skip


#: With a hidden parameter.
ENCRYPTED = dict.fromkeys(
    ("files", "key_order", "outputs", "parameters", "stack_outputs"), EncryptedDocument
)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[StatementLog]:
    with statement_log(monkeypatch) as statements:
        yield statements


@pytest.fixture
async def database(database_url: str, log: StatementLog) -> Any:
    database = await open_database(database_url, keyring=KEYRING)
    yield database
    await database.close()


def request(name: str, *, text: Json = None, **more: Any) -> StackRequest:
    return StackRequest(name=name, template=text or template({"r": resource()}), **more)


def full_request(name: str) -> StackRequest:
    """With a value for each column that a request can set."""
    text = template(
        {"a": resource({"get_param": "p"}), "b": resource({"get_attr": ["a", "output"]})}
    )
    text["description"] = "Two values"
    text["parameters"] = {"p": {"type": "string", "hidden": True}}
    text["outputs"] = {"o": {"value": {"get_attr": ["b", "output"]}}}
    return StackRequest(
        name=name,
        template=text,
        parameters={"p": "hunter2"},
        tags=["x", "y"],
        timeout_mins=7,
        disable_rollback=False,
        requested_by=principal_of_name("ann"),
    )


async def stored(conn: Connection, name: str) -> dict[str, list[Json]]:
    key = {"stack": "id"}
    return {
        table: [
            {column: value for column, value in row.items() if column not in OWN}
            for row in await conn.fetch(
                f"select t.* from {table} t join stack s on s.id = t.{key.get(table, 'stack_id')}"
                " where s.name = $1 order by t::text",
                name,
            )
        ]
        for table in TABLES
    }


async def transactions(log: StatementLog) -> list[str]:
    await asyncio.sleep(0)  # asyncpg calls loggers soon, not at once
    return [text for text in log.texts() if text.startswith("BEGIN")]


async def number_of_rows(conn: Connection) -> dict[str, int]:
    return {table: await conn.fetchval(f"select count(*) from {table}") for table in TABLES}


async def test_one_statement_stores_what_a_transaction_stores(
    database: Database, log: StatementLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = idle_engine(database)
    await engine.stacks.create("p", request("counted"))
    token = TRACE.set(TRACE_PARENT)
    log.entries.clear()
    await engine.stacks.create("p", full_request("one"))
    assert not await transactions(log)
    monkeypatch.setattr(Traversals, "is_one_statement", lambda *_: False)
    log.entries.clear()
    await engine.stacks.create("p", full_request("other"))
    assert await transactions(log)
    TRACE.reset(token)
    async with database.connection() as conn:
        one, other = await stored(conn, "one"), await stored(conn, "other")
    assert {table: len(rows) for table, rows in one.items()} == {
        "stack": 1, "template": 1, "traversal": 1, "node": 2, "resource": 2, "event": 1,
        "outbox": 1, "stack_tag": 2,
    }  # fmt: skip
    assert one["stack"][0]["traceparent"] == TRACE_PARENT
    for both in (one, other):
        (version,) = both["template"]
        assert {name: type(version.pop(name)) for name in ENCRYPTED} == ENCRYPTED
        assert version.pop("masked_parameters")["p"] == "******"  # has the ID and the name
        assert "hunter2" not in str([node.pop("definition") for node in both["node"]])
    for table, rows in one.items():
        for row, same in zip(rows, other[table], strict=True):
            unlike = {key for key in row if row[key] != same[key]}
            assert unlike <= {"first", "last"} if table == "outbox" else not unlike, (table, unlike)


async def test_the_nodes_of_a_new_stack_are_prepared_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Preparing them is a large part of the cost of a new stack."""
    prepared: list[str] = []

    def record(*arguments: Any) -> Any:
        prepared.extend(arguments[2])
        return node_inputs(*arguments)

    monkeypatch.setattr(start, "node_inputs", record)
    engine = idle_engine(database)
    for name in ("first", "second"):
        await engine.stacks.create("p", request(name))
    assert prepared == ["r", "r"]


async def test_a_name_that_is_taken_stores_nothing(database: Database) -> None:
    engine = idle_engine(database)
    for name in ("counted", "s"):
        await engine.stacks.create("p", request(name))
    async with database.connection() as conn:
        before = await number_of_rows(conn)
        with pytest.raises(Conflict) as caught:
            await engine.stacks.create("p", request("s", tags=["t"]))
        assert caught.value.code == "StackExists"
        assert await number_of_rows(conn) == before
        await engine.stacks.create("q", request("s"))


async def test_a_create_counts_if_the_outbox_has_moved_on(
    database: Database, log: StatementLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The range was read before, and other processes have created stacks since."""
    engine = idle_engine(database)
    await engine.stacks.create("p", request("a"))
    monkeypatch.setattr(StackCounts, "range_below", lambda *_: OutboxRange(0, 0))
    log.entries.clear()
    await engine.stacks.create("p", request("b"))
    await asyncio.sleep(0)
    counted = " ".join(store.STACKS.split())
    assert [text for text in log.texts() if text == counted]
    async with database.connection() as conn:
        assert await conn.fetchval("select count(*) from stack where name = 'b'") == 1


@pytest.mark.parametrize(
    "more",
    [
        {"environment": {"hooks": [{"at": "r", "on": "pre-create", "mode": "notify"}]}},
        {"environment": {"hooks": [{"on": "pre-stack-create", "mode": "notify"}]}},
        {"environment": {"convergence": {"observe": {"every": "10m"}}}},
        {"idempotency_key": "k"},
    ],
    ids=["breakpoint", "breakpoint of the stack", "policy", "idempotency key"],
)
async def test_what_needs_more_statements_is_a_transaction(
    database: Database, log: StatementLog, more: Json
) -> None:
    engine = idle_engine(database)
    await engine.stacks.create("p", request("counted"))
    log.entries.clear()
    await engine.stacks.create("p", request("s", **more))
    await asyncio.sleep(0)  # asyncpg calls loggers soon, not at once
    assert len(log.transaction("accept_change(")) > 1


@pytest.mark.parametrize(
    ("quota", "first"), [("stacks_per_project", 2), ("resources_per_project", 2)]
)
async def test_quotas_hold_for_small_stacks(database: Database, quota: str, first: int) -> None:
    limits = make_limits(Settings.model_validate({"quotas": {quota: first}}))

    engine = Engine(database, built_in(random.Random(0)), limits, new_id=uuid4)
    for number in range(first):
        await engine.stacks.create("p", request(f"s{number}"))
    async with database.connection() as conn:
        before = await number_of_rows(conn)
        with pytest.raises(LimitReached):
            await engine.stacks.create("p", request("more"))
        assert await number_of_rows(conn) == before


def test_a_create_near_the_quota_has_no_range() -> None:
    counts = StackCounts(lambda: 0.0)
    assert counts.range_below("p", Quotas(stacks_per_project=10)) is None
    assert counts.range_below("p", Quotas(stacks_per_project=0)) is not None


@pytest.mark.parametrize("state", ["announced", "taken", "moved"])
async def test_a_project_that_has_left_the_cell_gets_no_stack(
    database: Database, state: str
) -> None:
    """From a process that has not noticed the move, which would delete the stack with the others."""
    engine = idle_engine(database)
    await engine.stacks.create("p", request("counted"))
    async with database.connection() as conn:
        await conn.execute(
            "insert into cell_project (project, moving_to, move_state) values ('p', 'b', $1)", state
        )
        before = await number_of_rows(conn)
        if state == "announced":  # its rows are not taken yet
            await engine.stacks.create("p", request("s"))
            return
        for more in ({}, {"idempotency_key": "k"}):
            with pytest.raises(Unavailable) as caught:
                await engine.stacks.create("p", request("s", **more))
            assert caught.value.code == "ProjectMoving"
        assert await number_of_rows(conn) == before
