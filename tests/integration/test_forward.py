"""headgate watch --forward, against a server and a program on this machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from standardwebhooks import Webhook

from channels.webhook.sign import secret_of
from hub.cli.client import Client, Who
from hub.cli.forward import forward
from tests.support.program import Json, Program, free_port, resource
from tests.support.receiver import Received, Receiver, receiving, until

ASKS = {"hooks": [{"at": "a", "on": "pre-create"}]}


@asynccontextmanager
async def bringing(
    run: Program, target: str, capsys: pytest.CaptureFixture[str], *, stack: str = "",
    secret: str = "",
) -> AsyncIterator[list[str]]:  # fmt: skip
    """While it runs; the lines that it prints are in the list at the end."""
    said: list[str] = []
    async with Client(run.url, "p", Who(user="ann")) as client:
        task = asyncio.create_task(forward(client, target, stack or None, secret))

        def heard(text: str) -> bool:
            said.extend(capsys.readouterr().out.splitlines())
            return any(text in line for line in said)

        try:
            await until(lambda: heard("forwarding events to"))
            yield said
            heard("")
        finally:
            task.cancel()
            await asyncio.wait({task})


async def test_events_are_brought_signed_and_answers_are_taken_back(
    running: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = secret_of(bytes(range(24)))
    async with receiving() as receiver:

        async def judge(received: Received) -> web.StreamResponse:
            Webhook(secret).verify(received.body, received.headers)
            if received.event["type"] != "headgate.hook.waiting":
                return web.Response(text="not json")
            return web.json_response({"decision": "continue", "reason": "looked at here"})

        receiver.handle = judge
        async with bringing(running, receiver.url, capsys, secret=secret) as said:
            await running.create("s", {"a": resource()}, environment=ASKS)
            assert await running.until_ended("s") == "CREATE_COMPLETE"
            await until(lambda: "headgate.stack.create.completed" in kinds(receiver))
        _, found = await running.call("GET", "/hooks?stack=s")
    (hook,) = found["hooks"]
    assert (hook["decided_by"], hook["reason"]) == ("ann", "looked at here")
    assert [event["sequence"] for event in receiver.events] == list(
        range(1, len(receiver.events) + 1)
    )
    assert any("a pre-create: continue" in line for line in said)


def kinds(receiver: Receiver) -> list[str]:
    return [event["type"] for event in receiver.events]


async def test_only_the_stack_that_was_named(
    running: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("s", "t"):
        await running.create(name, {"a": resource()})
        await running.until_ended(name)
    async with receiving() as receiver, bringing(running, receiver.url, capsys, stack="s"):
        await running.update("t", tags="x")
        await running.until_ended("t")
        await running.update("s", tags="x")
        await until(lambda: "headgate.stack.update.completed" in kinds(receiver))
    assert {event["data"]["stack"]["name"] for event in receiver.events} == {"s"}


@pytest.mark.parametrize("answer", [{"decision": "maybe"}, {"colour": "red"}, []])
async def test_what_is_no_answer_decides_nothing(
    running: Program, capsys: pytest.CaptureFixture[str], answer: Json
) -> None:
    async with receiving() as receiver:
        receiver.says(answer)
        async with bringing(running, receiver.url, capsys) as said:
            await running.create("s", {"a": resource()}, environment=ASKS)
            await running.waiting("s")
            await until(lambda: "headgate.hook.waiting" in kinds(receiver))
            await running.create("later", {"a": resource()})
            await until(lambda: kinds(receiver).count("headgate.stack.create.started") == 2)
        (hook,) = await running.waiting("s")
    assert hook["state"] == "waiting"
    refused = [line for line in said if "a pre-create: refused" in line]
    assert len(refused) == (answer == {"decision": "maybe"})


async def test_a_program_that_is_away_is_told_of_and_the_next_event_comes(
    running: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    async with bringing(running, f"http://127.0.0.1:{free_port()}/", capsys) as said:
        await running.create("s", {"a": resource()})

        def both() -> bool:
            said.extend(capsys.readouterr().out.splitlines())
            return sum("not delivered: ClientConnectorError" in line for line in said) >= 2

        await until(both)
