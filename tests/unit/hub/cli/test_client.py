"""What the client sends, and what it says of what comes back."""

import socket

import pytest
from aiohttp import web

from hub.cli.client import Client, Refused, StreamedEvent, place
from tests.unit.hub.cli.stub import Json, saying, serving


async def test_short_paths_are_followed_with_method_body_and_path_kept() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path == "/v1/p/stacks/web":
            # By another name, as a server behind a proxy may know itself.
            location = "https://inner.test/v1/p/stacks/web/1?x=1"
            return web.json_response({}, status=302, headers={"Location": location})
        return web.json_response({"ok": True})

    async with serving(handler) as stub, Client(stub.url + "/", "p") as client:
        assert await client.call("PATCH", "/stacks/web", body={"a": 1}) == {"ok": True}
    first, second = stub.seen
    assert (first.method, second.method) == ("PATCH", "PATCH")
    assert second.path == "/v1/p/stacks/web/1?x=1"
    assert first.body == second.body == b'{"a":1}'


async def test_names_stay_one_part_of_the_path() -> None:
    async with serving(saying({})) as stub, Client(stub.url, "a/b") as client:
        await client.call("GET", place("stacks", "x/../y?z#ä"), query=[("s", "1"), ("s", "2")])
    assert stub.seen[0].path == "/v1/a%2Fb/stacks/x%2F..%2Fy%3Fz%23%C3%A4?s=1&s=2"


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"error": {"type": "T", "message": "Heat's text"}}, "Heat's text"),
        (
            {"error": {"message": "is missing", "place": "resources.a", "remedy": "Add it."}},
            "resources.a: is missing. Add it.",
        ),
        (
            {"error": {"message": "m", "findings": [
                {"place": "a", "reason": "one.", "remedy": "R."}, {"place": "", "reason": "two"}]}},
            "a: one. R.\ntwo",
        ),
        ({"fault": 1}, "the server answered 409 without an error message"),
        ("text", "the server answered 409 without an error message"),
    ],
)  # fmt: skip
async def test_refusals_are_told_with_place_reason_and_remedy(document: Json, told: str) -> None:
    async with serving(saying(document, 409)) as stub, Client(stub.url, "p") as client:
        with pytest.raises(Refused) as caught:
            await client.call("GET", "/x")
    assert caught.value.status == 409 and str(caught.value).startswith(told)


async def test_something_else_at_the_address_is_told() -> None:
    async def page(_: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>hello</html>", content_type="text/html")

    async with serving(page) as stub, Client(stub.url, "p") as client:
        with pytest.raises(Refused, match=r"the server at http://.* is not a Headgate server"):
            await client.call("GET", "/x")


async def test_no_server_is_told_with_its_address_and_a_way_to_start_one() -> None:
    with socket.socket() as taken:  # bound, not listening: refuses, and nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with Client(url, "p") as client:
            with pytest.raises(Refused) as caught:
                await client.call("GET", "/x")
            assert caught.value.status == 0
            assert url in str(caught.value) and "headgate serve" in str(caught.value)
            with pytest.raises(Refused, match="headgate serve"):
                async with client.stream():
                    pass


async def test_an_empty_answer_is_none() -> None:
    async def nothing(_: web.Request) -> web.StreamResponse:
        return web.Response(status=204)

    async with serving(nothing) as stub, Client(stub.url, "p") as client:
        assert await client.call("DELETE", "/x") is None


async def test_a_stream_is_read_and_resumed_from_an_id() -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": connected\n\nid: 5-1\nevent: x\ndata: {")
        await response.write(b'"type": "x"}\n\n')
        return response

    async with (
        serving(stream) as stub,
        Client(stub.url, "p") as client,
        client.stream(stack="web", last="4-9") as events,
    ):
        found = [event async for event in events]
    assert found == [StreamedEvent("5-1", {"type": "x"})]
    assert stub.seen[0].headers["last-event-id"] == "4-9"
    assert stub.seen[0].path == "/v1/p/events/stream?stack=web"


async def test_a_refused_stream_says_why() -> None:
    refusal = saying({"error": {"message": "unknown stack"}}, 404)
    async with serving(refusal) as stub, Client(stub.url, "p") as client:
        with pytest.raises(Refused, match="unknown stack"):
            async with client.stream(stack="x"):
                pass
