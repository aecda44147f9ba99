"""Observations of a stack that commands wait for."""

from shlex import quote
from typing import Any

from hub.cli import libraries
from hub.cli.commands.stack_change import POLLS
from hub.cli.connection.client import ApiClient, stack_path

Json = Any


async def read_drift(client: ApiClient, stack: Json) -> Json:
    return await client.call("GET", stack_path(stack, "drift"))


async def request_observation(client: ApiClient, stack: Json) -> None:
    await client.call("POST", stack_path(stack, "actions"), body={"observe": None})


async def wait_until_observed(client: ApiClient, stack: Json) -> Json:
    """The drift when no requested observation is under way. The caller limits the time."""
    client.continuation = (
        "the observation continues on the server. `headgate stack drift"
        f" {quote(stack['stack_name'])}` shows its result"
    )
    polls = 0
    async with client.waiting():
        while (drift := await read_drift(client, stack))["observing"]:
            polls += 1
            await libraries.asyncio.sleep(POLLS.ceiling(polls))
    client.continuation = ""
    return drift
