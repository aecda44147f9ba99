"""The event stream as pages read it: in pieces, broken, resumed, and where it cannot be resumed."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Request, Route, expect

from tests.browser.conftest import Visit, Visitor
from tests.support.program import Http, resource
from tests.support.relay import Relay, relayed

STREAM = "/events/stream"

HELD = {"hooks": [{"at": "*", "on": ["pre-create"], "timeout": "10h"}]}
TEXT = ': connected\n\nid: 1-1\nevent: x\ndata: {"a": "\u00e9"}\n\n: heartbeat\n\nid: 1-2\nevent: y\ndata: {}\n\n'
GONE = '{"error": {"type": "EventsGone", "message": "events after this one have been deleted"}}'


async def test_messages_are_the_same_wherever_the_text_is_cut(visitor: Visitor) -> None:
    cut_everywhere = """(m, text) => [...Array(text.length + 1).keys()].map((at) => {
        const first = m.parseChunk("", text.slice(0, at));
        const second = m.parseChunk(first.left, text.slice(at));
        return JSON.stringify([...first.messages, ...second.messages]) + second.left;
    })"""
    said = await visitor.module("api/event_parser.js", cut_everywhere, TEXT)
    assert set(said) == {'[{"id":"1-1","data":"{\\"a\\": \\"\u00e9\\"}"},{"id":"1-2","data":"{}"}]'}


@pytest_asyncio.fixture(loop_scope="session")
async def relay(http: Http) -> AsyncIterator[Relay]:
    async with relayed(http.url) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def visitor_far_away(relay: Relay, visit: Visit, http: Http) -> Visitor:
    """In front of an inbox that is live and has one hook, over a line that may be cut."""
    away = await visit(Http(http.session, relay.url, http.project))
    await away.open("inbox")
    await expect(away.page.get_by_text("live", exact=True)).to_be_visible()
    await http.create("one", {"a": resource()}, environment=HELD)
    await expect(away.page.get_by_role("link", name="Inbox")).to_have_text("Inbox1 waiting")
    return away


async def one_more_meanwhile(away: Visitor, relay: Relay, http: Http) -> None:
    """The line is cut, which is told; another stack waits before it is mended."""
    broken = away.page.get_by_role("alert")
    relay.cut()
    await expect(broken).to_contain_text("The event stream disconnected")
    await http.create("two", {"a": resource()}, environment=HELD)
    await http.waiting("two")
    relay.mend()
    await expect(away.page.get_by_role("link", name="Inbox")).to_have_text("Inbox2 waiting")
    await expect(broken).to_have_count(0)


async def test_a_broken_stream_is_told_and_resumed(
    visitor_far_away: Visitor, relay: Relay, http: Http
) -> None:
    asked: list[str | None] = []

    def note(request: Request) -> None:
        if STREAM in request.url:
            asked.append(request.headers.get("last-event-id"))

    visitor_far_away.page.on("request", note)
    await one_more_meanwhile(visitor_far_away, relay, http)
    assert asked and all(asked)


async def test_what_cannot_be_resumed_is_fetched_anew(
    visitor_far_away: Visitor, relay: Relay, http: Http
) -> None:
    async def gone(route: Route) -> None:
        """Whoever comes back with an id has been away for too long."""
        if route.request.headers.get("last-event-id"):
            await route.fulfill(status=410, body=GONE, content_type="application/json")
        else:
            await route.continue_()

    await visitor_far_away.page.route(f"**{STREAM}", gone)
    await one_more_meanwhile(visitor_far_away, relay, http)
