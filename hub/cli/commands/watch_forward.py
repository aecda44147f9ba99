"""headgate watch --forward: forwards events to a program that the server cannot reach.

It reads the event stream and posts each event to the URL. An answer in the response to a hook
notification is sent to the server, with the credentials of the user of the command.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import aiohttp
import orjson

from headgate import signatures
from headgate.connection import StreamedEvent, url_path
from headgate.errors import RequestError
from headgate.listener.notification import WAITING
from hub.cli.commands.watch import RECONNECT_SECONDS, print_line
from hub.cli.connection.client import ApiClient, find_stack
from hub.cli.connection.outage import Outage
from hub.cli.exit_codes import ExitCode
from hub.cli.messages import stop
from hub.cli.printing import output

Json = Any
CONTENT_TYPE = "application/cloudevents+json"
#: Seconds for a response; the number of attempts for each event.
TIMEOUT, MAX_ATTEMPTS = 60.0, 3
#: Seconds between these.
ATTEMPT_SECONDS = 1.0


def check_target(target: str, secret: str) -> None:
    """End the command if the URL or the signing secret is invalid."""
    if not target.startswith(("http://", "https://")):
        stop(
            f'"{target}" is not a URL to forward events to; write, for example, http://127.0.0.1:9000/',
            ExitCode.USAGE,
        )
    if secret and not signatures.is_secret(secret):
        stop(
            'invalid secret: it must be "whsec_" followed by base64 of at least 24 bytes',
            ExitCode.USAGE,
        )


async def forward(client: ApiClient, target: str, name: str | None, secret: str) -> None:
    """Forward new events, one after the other, until interrupted. name: of a stack; None: all.
    secret: signs the requests, if there is one."""
    query = {"stack": (await find_stack(client, name))["id"]} if name else {}
    client.continuation = "later events are not forwarded"
    timeout = aiohttp.ClientTimeout(total=TIMEOUT)
    last, outage = "", Outage()
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            try:
                async with client.stream(query=query, last=last) as events:
                    outage.end()
                    print_line(f"forwarding events to {target}")
                    try:
                        async for event in events:
                            await _forward_event(client, session, target, secret, event)
                    finally:
                        last = events.last
            except RequestError as error:
                await outage.endure(error)
            else:
                await asyncio.sleep(RECONNECT_SECONDS)


async def _forward_event(
    client: ApiClient,
    session: aiohttp.ClientSession,
    target: str,
    secret: str,
    event: StreamedEvent,
) -> None:
    line = output.event_line(event.document)
    result = ""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            status, body = await _post(session, target, secret, event.document)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            result = f"not delivered: {type(error).__name__}"
        else:
            result = str(status)
            if status < 300:
                await _answer(client, event.document, body)
                break
        if attempt < MAX_ATTEMPTS:
            await asyncio.sleep(ATTEMPT_SECONDS)
    print_line(f"{line}  -> {result}")


async def _post(
    session: aiohttp.ClientSession, target: str, secret: str, document: Json
) -> tuple[int, bytes]:
    body = orjson.dumps(document)
    headers: Mapping[str, str] = {"content-type": CONTENT_TYPE}
    if secret:
        headers = {**headers, **signatures.sign(document["id"], datetime.now(UTC), body, (secret,))}
    async with session.post(target, data=body, headers=headers, allow_redirects=False) as response:
        return response.status, await response.read()


async def _answer(client: ApiClient, document: Json, body: bytes) -> None:
    """Send the answer in a response to the server, if the event is a hook notification."""
    if document["type"] != WAITING:
        return
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return
    if not isinstance(answer, dict) or "decision" not in answer:
        return
    hook = document["data"]["hook"]
    try:
        await client.call("POST", url_path("hooks", hook["id"], "signal"), body=answer)
        result = str(answer["decision"])
    except RequestError as error:
        result = f"refused: {error}"
    print_line(f"{output.label(hook['path'])} {hook['point']}: {result}")
