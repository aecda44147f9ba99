"""The HTTP client: requests, redirects and error messages."""

import socket

import pytest
from aiohttp import web

from headgate.connection import StreamedEvent, url_path
from headgate.errors import RequestError
from hub.cli.connection.client import ApiClient
from tests.unit.hub.cli.stub import Json, respond_with, running_stub


async def test_redirects_of_short_paths_keep_method_body_and_path() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path == "/v1/p/stacks/web":
            # with another name, as a server behind a proxy may have
            location = "https://inner.test/v1/p/stacks/web/1?x=1"
            return web.json_response({}, status=302, headers={"Location": location})
        return web.json_response({"ok": True})

    async with running_stub(handler) as stub, ApiClient(stub.url + "/", "p") as client:
        assert await client.call("PATCH", "/stacks/web", body={"a": 1}) == {"ok": True}
    first, second = stub.seen
    assert (first.method, second.method) == ("PATCH", "PATCH")
    assert second.path == "/v1/p/stacks/web/1?x=1"
    assert first.body == second.body == b'{"a":1}'


async def test_names_are_quoted_as_one_path_segment() -> None:
    async with running_stub(respond_with({})) as stub, ApiClient(stub.url, "a/b") as client:
        await client.call("GET", url_path("stacks", "x/../y?z#ä"), query=[("s", "1"), ("s", "2")])
    assert stub.seen[0].path == "/v1/a%2Fb/stacks/x%2F..%2Fy%3Fz%23%C3%A4?s=1&s=2"


@pytest.mark.parametrize(
    ("document", "message"),
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
        ({"fault": 1}, "the server responded with 409 and no error message"),
        ("text", "the server responded with 409 and no error message"),
    ],
)  # fmt: skip
async def test_errors_are_shown_with_place_reason_and_remedy(document: Json, message: str) -> None:
    async with (
        running_stub(respond_with(document, 409)) as stub,
        ApiClient(stub.url, "p") as client,
    ):
        with pytest.raises(RequestError) as caught:
            await client.call("GET", "/x")
    assert caught.value.status == 409 and str(caught.value).startswith(message)


async def test_another_program_at_the_address_is_reported() -> None:
    async def page(_: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>hello</html>", content_type="text/html")

    async with running_stub(page) as stub, ApiClient(stub.url, "p") as client:
        with pytest.raises(RequestError, match=r"the server at http://.* is not a Headgate server"):
            await client.call("GET", "/x")


async def test_a_missing_server_is_reported_with_its_address_and_how_to_start_one() -> None:
    with (
        socket.socket() as taken
    ):  # bound but not listening: it refuses, and no other process gets the port
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with ApiClient(url, "p") as client:
            with pytest.raises(RequestError) as caught:
                await client.call("GET", "/x")
            assert caught.value.status == 0
            assert url in str(caught.value) and "headgate serve" in str(caught.value)
            with pytest.raises(RequestError, match="headgate serve"):
                async with client.stream():
                    pass


async def test_an_empty_response_is_none() -> None:
    async def respond_empty(_: web.Request) -> web.StreamResponse:
        return web.Response(status=204)

    async with running_stub(respond_empty) as stub, ApiClient(stub.url, "p") as client:
        assert await client.call("DELETE", "/x") is None


async def test_a_stream_is_read_and_resumed_from_an_id() -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": connected\n\nid: 5-1\nevent: x\ndata: {")
        await response.write(b'"type": "x"}\n\n')
        return response

    async with (
        running_stub(stream) as stub,
        ApiClient(stub.url, "p") as client,
        client.stream(query={"stack": "web"}, last="4-9") as events,
    ):
        found = [event async for event in events]
    assert found == [StreamedEvent("5-1", {"type": "x"})]
    assert stub.seen[0].headers["last-event-id"] == "4-9"
    assert stub.seen[0].path == "/v1/p/events/stream?stack=web"


async def test_a_refused_stream_has_the_reason() -> None:
    refusal = respond_with({"error": {"message": "unknown stack"}}, 404)
    async with running_stub(refusal) as stub, ApiClient(stub.url, "p") as client:
        with pytest.raises(RequestError, match="unknown stack"):
            async with client.stream(query={"stack": "x"}):
                pass
