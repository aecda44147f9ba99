"""The fields of log lines: request, node and delivery."""

import asyncio
import gc
import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from uuid import UUID

import pytest
import structlog
from structlog.typing import FilteringBoundLogger

from engine.types.contract import Call, Done, Outcome
from hub.log import set_up_logging
from tests.integration.conftest import DatabaseOutage
from tests.support.changes import thing
from tests.support.program import Json, Program, eventually, program
from tests.support.receiver import Receiver
from tests.support.scripted_type import Thing, World

log: FilteringBoundLogger = structlog.get_logger()
TOKEN = "planted-secret-71"


class LoggingType(Thing):
    """Logs while it computes and while it waits."""

    def create(self, call: Call) -> Outcome:
        log.info("computing")
        return self._await(call)  # type: ignore[return-value]

    async def _await(self, call: Call) -> Outcome:
        await asyncio.sleep(0)
        log.info("waiting")
        return Done(call.resource_name)


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    output, configured = io.StringIO(), structlog.get_config()
    set_up_logging("json", stream=output)
    yield output
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.configure(**configured)


@pytest.fixture
async def run(database_url: str, stream: io.StringIO) -> AsyncIterator[Program]:
    async with program(database_url, types=[LoggingType(World())]) as run:
        yield run


def lines(stream: io.StringIO, event: str) -> list[Json]:
    entries = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [one for one in entries if one["event"] == event]


async def test_lines_of_work_name_the_node(run: Program, stream: io.StringIO) -> None:
    stack_ids = [await run.create(name, {"a": thing(), "b": thing()}) for name in ("s", "t")]
    for name in ("s", "t"):
        await run.until_ended(name)
    for event in ("computing", "waiting"):
        named = {
            (one["stack_id"], one["traversal"], one["resource"]) for one in lines(stream, event)
        }
        assert named == {(stack_id, 1, name) for stack_id in stack_ids for name in ("a", "b")}
    # Other lines do not have the fields of the node.
    assert all("resource" not in one for one in lines(stream, "request"))


async def test_lines_of_a_request_have_its_id_and_no_token(
    run: Program, stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        log.warning("within", note=f"Bearer {TOKEN}")
        raise ValueError("a bug")

    monkeypatch.setattr(run.engine.reads, "list_stacks", fail)
    url, headers = f"{run.url}/v1/p/stacks?secret={TOKEN}", {"X-Auth-Token": TOKEN}
    async with run.session.get(url, headers=headers) as answer:
        request_id = answer.headers["x-openstack-request-id"]
    assert answer.status == 500
    for event in ("within", "request.failed"):
        (line,) = lines(stream, event)
        assert line["request"] == request_id
    (line,) = lines(stream, "request")
    assert line["id"] == request_id
    assert TOKEN not in stream.getvalue()


async def test_a_signed_url_is_logged_without_its_token(run: Program, stream: io.StringIO) -> None:
    url = f"{run.url}/signals/{UUID(int=1)}/{UUID(int=2)}?token={TOKEN}"
    async with run.session.put(url) as answer:
        assert answer.status == 401
    assert lines(stream, "request")[-1]["path"].startswith("/signals/")
    assert TOKEN not in stream.getvalue()


async def test_lines_of_a_delivery_name_it(
    run: Program, stream: io.StringIO, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, response = await run.call(
        "POST", "/subscriptions", {"channel": "webhook", "target": receiver.url}
    )

    async def fail(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr("channels.webhook.client.WebhookChannel.deliver", fail)
    stack_id = await run.create("s", {"a": thing()})

    async def delivery_line() -> list[Json]:
        return [one for one in lines(stream, "delivery.failed") if one["stack_id"] == stack_id]

    first = (await eventually(delivery_line))[0]
    assert first["subscription"] == response["id"] and first["delivery"]


async def test_an_unavailable_database_is_logged_without_a_traceback(
    run: Program, stream: io.StringIO, database_outage: DatabaseOutage
) -> None:
    async with database_outage():

        async def is_logged() -> bool:
            gone = {one["event"] for one in map(json.loads, stream.getvalue().splitlines())}
            return {"database.reconnecting", "deadlines.unavailable"} <= gone

        await run.call("GET", "/stacks")
        await eventually(is_logged)
    await run.create("s", {"a": thing()})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    gc.collect()
    assert "Traceback" not in stream.getvalue()
