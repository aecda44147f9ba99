"""Observations of a stack that commands wait for."""

from shlex import quote
from typing import Any

from hub.cli import libraries
from hub.cli.commands.stack_change import POLLS, reading_after_timeout
from hub.cli.connection.client import ApiClient, stack_path

Json = Any


async def read_drift(client: ApiClient, stack: Json) -> Json:
    return await client.call("GET", stack_path(stack, "drift"))


async def request_observation(client: ApiClient, stack: Json) -> None:
    await client.call("POST", stack_path(stack, "actions"), body={"observe": None})


async def wait_until_observed(client: ApiClient, stack: Json, seconds: float) -> Json:
    """The drift when no requested observation is under way, or after that time."""
    client.continuation = (
        "the observation continues on the server. `headgate stack drift"
        f" {quote(stack['stack_name'])}` shows its result"
    )
    try:
        async with libraries.asyncio.timeout(seconds), client.waiting():
            drift = await _poll(client, stack)
    except TimeoutError:
        with reading_after_timeout(client):
            drift = await read_drift(client, stack)
    client.continuation = ""
    return drift


async def _poll(client: ApiClient, stack: Json) -> Json:
    polls = 0
    while (drift := await read_drift(client, stack))["observing"]:
        polls += 1
        await libraries.asyncio.sleep(POLLS.ceiling(polls))
    return drift
