"""The number of statements of a change. If a number grows, the product is slower; if it shrinks,
record the new number here.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from engine.service import StackRequest
from engine.store.database import Database
from engine.store.traversals.advance import NEXT_DUE
from tests.support.idle_engine import idle_engine
from tests.support.program import Program, eventually, program, resource, template
from tests.support.statement_log import StatementLog, statement_log

HOOK = {"resource_registry": {"resources": {"*": {"hooks": "pre-create"}}}}


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[StatementLog]:
    with statement_log(monkeypatch) as statements:
        yield statements


@pytest.fixture
async def run(database_url: str, log: StatementLog) -> AsyncIterator[Program]:
    async with program(database_url) as run:
        await run.create("warm", {"a": resource()})
        await run.until_ended("warm")
        log.entries.clear()
        yield run


def shown(statements: list[str]) -> str:
    return "\n" + "\n".join(one[:70] for one in statements)


async def test_create(run: Program, log: StatementLog) -> None:
    await run.create("s", {"a": resource(), "b": resource()})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    accepted = [text for _, text in log.entries if "accept_change(" in text]
    assert len(accepted) == 1, shown(accepted)
    ended = [text for _, text in log.entries if "complete_traversals(" in text]
    assert len(ended) == 1, shown(ended)
    assert not [text for _, text in log.entries if "update traversal set state" in text]


async def test_update(run: Program, log: StatementLog) -> None:
    await run.create("s", {"a": resource(), "b": resource()})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    log.entries.clear()
    await run.update("s", "PUT", template=template({"a": resource("y"), "b": resource()}))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    accepted = log.transaction("accept_change(")
    assert len(accepted) == 6, shown(accepted)


async def test_answer(run: Program, log: StatementLog) -> None:
    await run.create("s", {"a": resource()}, environment=HOOK)
    (hook,) = await run.waiting_hooks("s")
    log.entries.clear()
    assert (await run.signal(hook))[0] == 200
    answered = log.transaction("insert into decision ")
    assert len(answered) == 7, shown(answered)


async def test_a_claim_that_finds_nothing_says_when_work_is_due(
    database_url: str, log: StatementLog
) -> None:
    """Only a lane whose claim has found work asks, before it sleeps."""
    async with program(database_url) as run:
        assert (await run.call("GET", "/stacks"))[0] == 200

        async def has_claimed() -> bool:
            return any("from advance(" in text for _, text in log.entries)

        await eventually(has_claimed)
        assert not [text for _, text in log.entries if text == " ".join(NEXT_DUE.split())]


async def test_accepting_notifies_the_workers_of_other_processes(database: Database) -> None:
    notified = asyncio.Event()
    async with database.listen("headgate_work", notified.set):
        request = StackRequest(name="s", template=template({"a": resource()}))
        await idle_engine(database).stacks.create("p", request)
        async with asyncio.timeout(30):
            await notified.wait()
