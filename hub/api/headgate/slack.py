"""Clicks on buttons in Slack, which Slack reports in signed requests."""

import time

from aiohttp import web

from channels.chat.slack_interaction import is_current, is_signed, read_click
from channels.store.slack_requests import remember_request
from engine.errors import HeadgateError, LimitReached, NotFound
from hub.api.admission import count_wrong_tokens
from hub.api.app_context import context_of
from hub.api.cells import in_first_cell
from hub.api.client_limits import CLIENTS
from hub.api.request_validation import invalid
from hub.api.routes import Route
from hub.api.slack_answers import SlackAnswers
from hub.auth.throttle import block_of

TIMESTAMP, SIGNATURE = "X-Slack-Request-Timestamp", "X-Slack-Signature"
#: Bytes of a request, which contains the message. The largest messages of Headgate fit.
MAX_BODY = 262_144


async def interact(request: web.Request) -> web.Response:
    """Accept a click. Slack shows an error to the user unless it gets 200 within 3 seconds."""
    context = context_of(request)
    if context.slack is None:
        raise NotFound(
            "this server has no buttons in Slack",
            place="path",
            remedy="The operator sets [channels.slack] signing_secret_file.",
            code="NotFound",
        )
    body = await _verified_body(request, context.slack)
    try:
        click = read_click(body)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise invalid("payload", "is not an interaction of Slack") from None
    signature = bytes.fromhex(request.headers[SIGNATURE].partition("=")[2])
    async with context.database.connection() as conn:
        if not await remember_request(conn, signature):
            raise _refusal(SIGNATURE, "the request was received before", "Click again.")
    if click is not None:
        await context.slack.accept(click)
    return web.Response()


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
    Route("POST", "/slack/interactions", count_wrong_tokens(in_first_cell(interact)),
          "Receive clicks on buttons in Slack", "hooks", takes_body=True, content_type=""),
)  # fmt: skip
