"""headgate watch --forward: events brought to a program on this machine, which no webhook reaches.

It reads the event stream, so nobody has to reach this machine. What the program answers to the
notice of a waiting hook is sent on, as whoever runs the command.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import aiohttp
import orjson

from channels.envelope import CONTENT_TYPE
from channels.selection import WAITING
from channels.webhook import sign
from hub.cli import show
from hub.cli.client import Client, Refused, StreamedEvent, place
from hub.cli.context import stop
from hub.cli.exit_codes import Exit
from hub.cli.outcomes import find
from hub.cli.watch import AGAIN, TIMES, print_line

Json = Any
#: Seconds for the program's answer; how often an event is brought before the next one is.
LONGEST, TRIES = 60.0, 3


def check(target: str, secret: str) -> None:
    """Ends the command where nothing can be brought there, or signed with it."""
    if not target.startswith(("http://", "https://")):
        stop(
            f'"{target}" is not a URL to forward events to; write, for example, http://127.0.0.1:9000/',
            Exit.USAGE,
        )
    if secret and not sign.is_secret(secret):
        stop(
            'invalid secret: it must be "whsec_" followed by base64 of at least 24 bytes',
            Exit.USAGE,
        )


async def forward(client: Client, target: str, name: str | None, secret: str) -> None:
    """Bring events from now on, one after the other, until interrupted. secret: to sign with."""
    stack = (await find(client, name))["id"] if name else None
    timeout = aiohttp.ClientTimeout(total=LONGEST)
    last, failures = "", 0
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            try:
                async with client.stream(stack=stack, last=last) as events:
                    failures = 0
                    print_line(f"forwarding events to {target}")
                    async for event in events:
                        await _bring(client, session, target, secret, event)
                        last = event.id
            except Refused as error:
                if error.status or failures >= TIMES:
                    raise
                failures += 1
            await asyncio.sleep(AGAIN)


async def _bring(
    client: Client, session: aiohttp.ClientSession, target: str, secret: str, event: StreamedEvent
) -> None:
    line = show.event_line(event.document)
    said = "not brought"
    for attempt in range(1, TRIES + 1):
        try:
            status, body = await _post(session, target, secret, event.document)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            said = f"not delivered: {type(error).__name__}"
        else:
            said = str(status)
            if status < 300:
                await _answer(client, event.document, body)
                break
        if attempt < TRIES:
            await asyncio.sleep(AGAIN)
    print_line(f"{line}  -> {said}")


async def _post(
    session: aiohttp.ClientSession, target: str, secret: str, document: Json
) -> tuple[int, bytes]:
    body = orjson.dumps(document)
    headers: Mapping[str, str] = {"content-type": CONTENT_TYPE}
    if secret:
        headers = {**headers, **sign.headers(document["id"], datetime.now(UTC), body, (secret,))}
    async with session.post(target, data=body, headers=headers, allow_redirects=False) as answer:
        return answer.status, await answer.read()


async def _answer(client: Client, document: Json, body: bytes) -> None:
    """Send on what the program decided, if it is about a hook that waits and decides anything."""
    if document["type"] != WAITING:
        return
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return
    if not isinstance(said, dict) or "decision" not in said:
        return
    hook = document["data"]["hook"]
    try:
        await client.call("POST", place("hooks", hook["id"], "signal"), body=said)
        told = str(said["decision"])
    except Refused as error:
        told = f"refused: {error}"
    print_line(f"{show.named(hook['path'])} {hook['point']}: {told}")
