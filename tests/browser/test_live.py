"""The event stream as pages read it: in pieces, broken, resumed, and where it cannot be resumed."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Request, Route, expect

from tests.browser.conftest import Visit, Visitor
from tests.support.program import Http, resource
from tests.support.relay import Relay, running_relay

STREAM = "/events/stream"

HOOKS = {"hooks": [{"at": "*", "on": ["pre-create"], "timeout": "10h"}]}
TEXT = ': connected\n\nid: 1-1\nevent: x\ndata: {"a": "\u00e9"}\n\n: heartbeat\n\nid: 1-2\nevent: y\ndata: {}\n\n'
PURGED = '{"error": {"type": "EventsGone", "message": "events after this one have been deleted"}}'


async def test_messages_are_the_same_for_any_chunks(visitor: Visitor) -> None:
    cut_everywhere = """(m, text) => [...Array(text.length + 1).keys()].map((at) => {
        const first = m.parseChunk("", text.slice(0, at));
        const second = m.parseChunk(first.left, text.slice(at));
        return JSON.stringify([...first.messages, ...second.messages]) + second.left;
    })"""
    found = await visitor.module("api/event_parser.js", cut_everywhere, TEXT)
    assert set(found) == {
        '[{"id":"1-1","data":"{\\"a\\": \\"\u00e9\\"}"},{"id":"1-2","data":"{}"}]'
    }


@pytest_asyncio.fixture(loop_scope="session")
async def relay(http: Http) -> AsyncIterator[Relay]:
    async with running_relay(http.url) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def visitor_behind_relay(relay: Relay, visit: Visit, http: Http) -> Visitor:
    """A visitor on a live inbox with one hook, connected through a relay."""
    distant = await visit(Http(http.session, relay.url, http.project))
    await distant.open("inbox")
    await expect(distant.page.get_by_text("live", exact=True)).to_be_visible()
    await http.create("one", {"a": resource()}, environment=HOOKS)
    await expect(distant.page.get_by_role("link", name="Inbox")).to_have_text("Inbox1 waiting")
    return distant


async def create_during_outage(distant: Visitor, relay: Relay, http: Http) -> None:
    """Cut the connection, which the page reports; another stack waits before it is restored."""
    broken = distant.page.get_by_role("alert")
    relay.cut()
    await expect(broken).to_contain_text("The event stream disconnected")
    await http.create("two", {"a": resource()}, environment=HOOKS)
    await http.waiting_hooks("two")
    relay.restore()
    await expect(distant.page.get_by_role("link", name="Inbox")).to_have_text("Inbox2 waiting")
    await expect(broken).to_have_count(0)


async def test_a_broken_stream_is_reported_and_resumed(
    visitor_behind_relay: Visitor, relay: Relay, http: Http
) -> None:
    last_ids: list[str | None] = []

    def note(request: Request) -> None:
        if STREAM in request.url:
            last_ids.append(request.headers.get("last-event-id"))

    visitor_behind_relay.page.on("request", note)
    await create_during_outage(visitor_behind_relay, relay, http)
    assert last_ids and all(last_ids)


async def test_a_stream_that_cannot_be_resumed_starts_again(
    visitor_behind_relay: Visitor, relay: Relay, http: Http
) -> None:
    async def refuse_resume(route: Route) -> None:
        """The server refuses to resume: the events are purged."""
        if route.request.headers.get("last-event-id"):
            await route.fulfill(status=410, body=PURGED, content_type="application/json")
        else:
            await route.continue_()

    await visitor_behind_relay.page.route(f"**{STREAM}", refuse_resume)
    await create_during_outage(visitor_behind_relay, relay, http)
