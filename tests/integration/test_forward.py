"""headgate watch --forward, with a server and a receiver on this machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from standardwebhooks import Webhook

from channels.webhook.sign import secret_of
from headgate.connection import ClientCredentials
from hub.cli.commands.watch_forward import forward
from hub.cli.connection.client import ApiClient
from tests.support.ports import free_port
from tests.support.program import Json, Program, resource
from tests.support.receiver import Received, Receiver, running_receiver, until

RULE = {"hooks": [{"at": "a", "on": "pre-create"}]}


@asynccontextmanager
async def forwarding(
    run: Program, target: str, capsys: pytest.CaptureFixture[str], *, stack: str = "",
    secret: str = "",
) -> AsyncIterator[list[str]]:  # fmt: skip
    """While it runs, the list receives the lines that it prints."""
    lines: list[str] = []
    async with ApiClient(run.url, "p", ClientCredentials(user="ann")) as client:
        task = asyncio.create_task(forward(client, target, stack or None, secret))

        def printed(text: str) -> bool:
            lines.extend(capsys.readouterr().out.splitlines())
            return any(text in line for line in lines)

        try:
            await until(lambda: printed("forwarding events to"))
            yield lines
            printed("")
        finally:
            task.cancel()
            await asyncio.wait({task})


async def test_events_are_forwarded_with_a_signature_and_answers_are_sent(
    running: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = secret_of(bytes(range(24)))
    async with running_receiver() as receiver:

        async def decide(received: Received) -> web.StreamResponse:
            Webhook(secret).verify(received.body, received.headers)
            if received.event["type"] != "headgate.hook.waiting":
                return web.Response(text="not json")
            return web.json_response({"decision": "continue", "reason": "looked at here"})

        receiver.handle = decide
        async with forwarding(running, receiver.url, capsys, secret=secret) as lines:
            await running.create("s", {"a": resource()}, environment=RULE)
            assert await running.until_ended("s") == "CREATE_COMPLETE"
            await until(lambda: "headgate.stack.create.completed" in kinds(receiver))
        _, response = await running.call("GET", "/hooks?stack=s")
    (hook,) = response["hooks"]
    assert (hook["decided_by"], hook["reason"]) == ("ann", "looked at here")
    assert [event["sequence"] for event in receiver.events] == list(
        range(1, len(receiver.events) + 1)
    )
    assert any("a pre-create: continue" in line for line in lines)


def kinds(receiver: Receiver) -> list[str]:
    return [event["type"] for event in receiver.events]


async def test_only_events_of_the_given_stack_are_forwarded(
    running: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("s", "t"):
        await running.create(name, {"a": resource()})
        await running.until_ended(name)
    async with running_receiver() as receiver, forwarding(running, receiver.url, capsys, stack="s"):
        await running.update("t", tags="x")
        await running.until_ended("t")
        await running.update("s", tags="x")
        await until(lambda: "headgate.stack.update.completed" in kinds(receiver))
    assert {event["data"]["stack"]["name"] for event in receiver.events} == {"s"}


@pytest.mark.parametrize("answer", [{"decision": "maybe"}, {"colour": "red"}, []])
async def test_a_response_without_a_decision_is_ignored(
    running: Program, capsys: pytest.CaptureFixture[str], answer: Json
) -> None:
    async with running_receiver() as receiver:
        receiver.respond_with(answer)
        async with forwarding(running, receiver.url, capsys) as lines:
            await running.create("s", {"a": resource()}, environment=RULE)
            await running.waiting_hooks("s")
            await until(lambda: "headgate.hook.waiting" in kinds(receiver))
            await running.create("later", {"a": resource()})
            await until(lambda: kinds(receiver).count("headgate.stack.create.started") == 2)
        (hook,) = await running.waiting_hooks("s")
    assert hook["state"] == "waiting"
    refused = [line for line in lines if "a pre-create: refused" in line]
    assert len(refused) == (answer == {"decision": "maybe"})


async def test_an_unavailable_program_is_reported_and_the_next_event_is_forwarded(
    running: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    async with forwarding(running, f"http://127.0.0.1:{free_port()}/", capsys) as lines:
        await running.create("s", {"a": resource()})

        def both_received() -> bool:
            lines.extend(capsys.readouterr().out.splitlines())
            return sum("not delivered: ClientConnectorError" in line for line in lines) >= 2

        await until(both_received)
