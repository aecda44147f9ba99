"""One change is one trace, over all processes that work on it."""

import asyncio
import builtins
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from channels.amqp.publisher import message_of
from channels.contract import EventMessage
from engine.errors import Unavailable
from engine.tracing import read_traceparent
from hub.program.tracing import tracing
from hub.settings.settings import Tracing
from tests.support.program import Http, Program, ServerProcess, resource
from tests.support.receiver import Receiver, until
from tests.support.span_collector import ReceivedSpan, running_collector

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs/how-to/trace-a-change.md"
REQUEST_HEADERS = {"traceparent": PARENT}


async def create(run: Http, name: str, headers: dict[str, str], **body: Any) -> None:
    sent = {
        "stack_name": name,
        "template": {"heat_template_version": "2018-08-31", "resources": {"a": resource()}},
    }
    status, response = await run.call("POST", "/stacks", sent | body, headers=headers)
    assert status == 201, response
    assert await run.until_ended(name) == "CREATE_COMPLETE"


def traces(receiver: Receiver, name: str) -> list[str | None]:
    mine = [one for one in receiver.events if one["data"].get("stack", {}).get("name") == name]
    return [one.get("traceparent") for one in mine]


async def test_without_the_sdk_the_trace_context_of_a_request_is_in_events_and_deliveries(
    running: Program, receiver: Receiver
) -> None:
    await running.call("POST", "/subscriptions", {"channel": "webhook", "target": receiver.url})
    await create(running, "s", REQUEST_HEADERS)
    await create(running, "none", {})
    await create(running, "wrong", {"traceparent": "00-0-0-00"})
    await until(lambda: [len(traces(receiver, name)) for name in ("s", "none", "wrong")] == [4] * 3)
    assert set(traces(receiver, "s")) == {PARENT}
    assert set(traces(receiver, "none")) == set(traces(receiver, "wrong")) == {None}
    headers = {one.headers.get("traceparent") for one in receiver.received}
    assert headers == {PARENT, None}
    # the next change has another trace, or none
    await running.update("s", tags="x")
    await running.until_ended("s")
    await until(lambda: len(traces(receiver, "s")) >= 6)
    assert set(traces(receiver, "s")[4:]) == {None}


async def test_automatic_changes_belong_to_the_trace_of_their_cause(
    running: Program, receiver: Receiver
) -> None:
    await running.call("POST", "/subscriptions", {"channel": "webhook", "target": receiver.url})
    fails = {"a": {"type": "OS::Heat::TestResource", "properties": {"value": "x", "fail": True}}}
    sent = {
        "stack_name": "s",
        "template": {"heat_template_version": "2018-08-31", "resources": fails},
        "disable_rollback": False,
    }
    assert (await running.call("POST", "/stacks", sent, headers=REQUEST_HEADERS))[0] == 201
    ended = "headgate.stack.rollback.completed"
    await until(lambda: ended in [one["type"] for one in receiver.events])
    assert set(traces(receiver, "s")) == {PARENT}


def test_amqp_messages_have_the_trace_context_in_a_header() -> None:
    message = EventMessage("1", "t", {"data": {}}, datetime(2026, 1, 1, tzinfo=UTC))
    assert "traceparent" not in message_of(message, "q").headers
    assert message_of(replace(message, traceparent=PARENT), "q").headers["traceparent"] == PARENT


async def test_spans_of_api_engine_and_dispatcher_are_one_trace(
    database_url: str, receiver: Receiver, tmp_path: Path
) -> None:
    async with running_collector() as collector:
        servers = [
            ServerProcess(
                tmp_path, roles=[role], database_url=database_url,
                settings=f'[tracing]\nendpoint = "{collector.url}"\nservice = "{role}"\nevery = "1s"\n',
            )
            for role in ("api", "engine", "dispatch")
        ]  # fmt: skip
        try:
            for server in servers:
                await asyncio.to_thread(server.start)
            async with aiohttp.ClientSession() as session:
                run = Http(session, servers[0].url)
                await run.call(
                    "POST",
                    "/subscriptions",
                    {"channel": "webhook", "target": receiver.url, "events": ["headgate.stack.*"]},
                )
                await create(run, "s", REQUEST_HEADERS)
            await until(lambda: len(traces(receiver, "s")) == 2)
        finally:
            for server in servers:
                assert await asyncio.to_thread(server.stop) == 0
        spans = [one for one in collector.spans if one.trace == TRACE]
    by_name = {one.name: one for one in spans}
    services = {one.name: one.service for one in spans}
    assert services == {
        "POST /v1/{project}/stacks": "api",
        "create OS::Heat::TestResource": "engine",
        "traversal create": "engine",
        "deliver webhook": "dispatch",
    }
    assert len(spans) == 5  # two deliveries
    top: ReceivedSpan = by_name["POST /v1/{project}/stacks"]
    assert top.parent == PARENT.split("-")[2]
    assert {one.parent for one in spans if one is not top} == {top.id}
    assert by_name["create OS::Heat::TestResource"].attributes["headgate.outcome"] == "done"
    assert by_name["traversal create"].attributes["headgate.state"] == "complete"
    # the receiver gets the trace context of its delivery attempt
    sent = {one.headers["traceparent"].split("-")[2] for one in receiver.received}
    assert sent == {one.id for one in spans if one.name == "deliver webhook"}


async def test_a_missing_sdk_is_an_error_whose_remedy_is_the_documented_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def import_without_sdk(name: str, *args: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(f"No module named {name!r}")
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", import_without_sdk)
    with pytest.raises(Unavailable, match=r"^\[tracing\] endpoint: .* is not installed") as raised:
        async with tracing(Tracing(endpoint="http://127.0.0.1:1/v1/traces")):
            pass
    command = "pip install --require-hashes -r requirements/tracing.lock"
    assert command in str(raised.value)
    assert command in GUIDE.read_text()
    assert (ROOT / command.split()[-1]).is_file()


@pytest.mark.parametrize(
    "text",
    ["", "x", PARENT.upper(), f"ff-{TRACE}-00f067aa0ba902b7-01", f"00-{'0' * 32}-00f067aa0ba902b7-01",
     f"00-{TRACE}-{'0' * 16}-01", PARENT + "\n", PARENT + "-x"],
)  # fmt: skip
def test_an_invalid_trace_context_is_ignored(text: str) -> None:
    assert read_traceparent(text) == ""


def test_a_valid_trace_context_is_kept() -> None:
    assert read_traceparent(PARENT) == PARENT
