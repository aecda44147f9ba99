"""Clicks on buttons in Slack, which Slack reports in signed requests."""

import asyncio
import time

from aiohttp import web

from channels.chat.slack_interaction import is_current, is_signed, read_click
from channels.store.slack_requests import remember_request
from engine.bounded_wait import wait_for_result
from engine.errors import HeadgateError, LimitReached, NotFound, Unavailable
from hub.api.admission import count_wrong_tokens
from hub.api.app_context import SERVER
from hub.api.cells import CELLS, Cell, Cells, first_reachable, unavailable
from hub.api.client_limits import CLIENTS
from hub.api.request_validation import invalid
from hub.api.routes import Route
from hub.api.slack_answers import SlackAnswers
from hub.auth.throttle import block_of

TIMESTAMP, SIGNATURE = "X-Slack-Request-Timestamp", "X-Slack-Signature"
#: Bytes of a request, which contains the message. The largest messages of Headgate fit.
MAX_BODY = 262_144
#: Seconds that each of several cells has to remember a request: Slack waits 3 for the response.
REMEMBER_TIMEOUT = 0.5


async def interact(request: web.Request) -> web.Response:
    """Accept a click. Slack shows an error to the user unless it gets 200 within 3 seconds."""
    slack = request.app[SERVER].slack
    if slack is None:
        raise NotFound(
            "this server has no buttons in Slack",
            place="path",
            remedy="The operator sets [channels.slack] signing_secret_file.",
            code="NotFound",
        )
    body = await _verified_body(request, slack)
    try:
        click = read_click(body)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise invalid("payload", "is not an interaction of Slack") from None
    signature = bytes.fromhex(request.headers[SIGNATURE].partition("=")[2])
    if not await _remember(request.app[CELLS], signature):
        raise _refusal(SIGNATURE, "the request was received before", "Click again.")
    if click is not None:
        await slack.accept(click)
    return web.Response()


async def _remember(cells: Cells, signature: bytes) -> bool:
    """False: one of the cells has received the request before. All of them remember it, because
    the hook of the click can be in each, and a cell can be away next time. Raises Unavailable if
    none responds."""

    async def remember(cell: Cell) -> bool:
        async with cell.context.database.connection() as conn:
            return await remember_request(conn, signature)

    async def remember_in_time(cell: Cell) -> bool | None:
        try:
            return await wait_for_result(remember(cell), REMEMBER_TIMEOUT)
        except (Unavailable, TimeoutError):
            return None

    first, *others = first_reachable(cells), *cells.reachable()[1:]
    if not others:
        return await remember(first)
    results = await asyncio.gather(*map(remember_in_time, (first, *others)))
    known = {one for one in results if one is not None}
    if not known:
        raise unavailable([one.name for one in (first, *others)])
    return False not in known


async def _verified_body(request: web.Request, slack: SlackAnswers) -> bytes:
    """Raises HeadgateError (Unauthorized), LimitReached, TooManyRequests."""
    timestamp = request.headers.get(TIMESTAMP, "")
    if not is_current(timestamp, time.time()):
        remedy = "Send the current time in seconds; check the clock of the server."
        raise _refusal(TIMESTAMP, "the time of the request is not within 5 minutes", remedy)
    with request.app[CLIENTS].bodies.hold(block_of(request.remote or "")):
        try:
            body = await request.clone(client_max_size=MAX_BODY).read()
        except web.HTTPRequestEntityTooLarge:
            raise LimitReached(
                "the request is too large",
                remedy=f"Send at most {MAX_BODY} bytes.",
                code="RequestTooLarge",
            ) from None
    signature = request.headers.get(SIGNATURE, "")
    if not is_signed(slack.rules.secret, timestamp, body, signature):
        remedy = (
            "Check that [channels.slack] signing_secret_file has the signing secret of the app."
        )
        raise _refusal(SIGNATURE, "this is not the signature of the request", remedy)
    return body


def _refusal(place: str, reason: str, remedy: str) -> HeadgateError:
    return HeadgateError(reason, place=place, remedy=remedy, code="Unauthorized")


ROUTES = (
    Route("POST", "/slack/interactions", count_wrong_tokens(interact),
          "Receive clicks on buttons in Slack", "hooks", takes_body=True, content_type=""),
)  # fmt: skip
