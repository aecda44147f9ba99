"""Templates at URLs, which the server fetches from allowed hosts."""

import json
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from engine.errors import Invalid
from hub.http.outbound import system_lookup
from hub.http.template_urls import TemplateFetcher
from hub.settings.settings import TemplateUrls
from tests.support.program import Json, Program, program, resource, template
from tests.support.receiver import Receiver

VALID = template({"a": resource()})
MAX_BYTES = 1000
LOOPBACK = "127.0.0.0/8"
#: Host names and their addresses; others do not resolve.
NAMES = {
    "templates.test": ["127.0.0.1"],
    "outside.test": ["93.184.216.34"],
    "both.test": ["127.0.0.1", "93.184.216.34"],
}


async def lookup(host: str, port: int) -> Sequence[str]:
    if host not in NAMES:
        raise OSError(f"{host} has no address")
    return NAMES[host]


def fetcher(*allow: str) -> TemplateFetcher:
    settings = TemplateUrls(allow=allow, timeout=timedelta(milliseconds=300))
    return TemplateFetcher(settings, lookup=lookup)


def url_at(receiver: Receiver, host: str) -> str:
    return str(URL(receiver.url).with_host(host) / "t.yaml")


async def refused(allow: Sequence[str], url: str) -> str:
    """The error message."""
    with pytest.raises(Invalid) as caught:
        await fetcher(*allow).fetch(url, MAX_BYTES)
    assert {one.place for one in caught.value.findings} == {"template_url"}
    return str(caught.value)


@pytest.mark.parametrize(
    ("allow", "host"),
    [
        ([LOOPBACK], "127.0.0.1"),
        ([LOOPBACK], "templates.test"),
        (["templates.test", LOOPBACK], "templates.test"),
        (["*.test", LOOPBACK], "templates.test"),
    ],
)
async def test_allowed_urls_are_fetched(receiver: Receiver, allow: list[str], host: str) -> None:
    receiver.respond_with(VALID)
    assert json.loads(await fetcher(*allow).fetch(url_at(receiver, host), MAX_BYTES)) == VALID
    (fetched,) = receiver.received
    assert fetched.path == "/t.yaml" and "cookie" not in {name.lower() for name in fetched.headers}


@pytest.mark.parametrize(
    ("allow", "host", "expected"),
    [
        ([], "templates.test", "this server fetches no templates"),
        (["templates.test"], "templates.test", "has an address that is not allowed"),
        (["other.test"], "templates.test", "neither a listed host nor in a listed network"),
        ([LOOPBACK], "outside.test", "neither a listed host nor in a listed network"),
        ([LOOPBACK], "both.test", "neither a listed host nor in a listed network"),
        ([LOOPBACK], "93.184.216.34", "neither a listed host nor in a listed network"),
        (["*.test"], "both.test", "has an address that is not allowed"),
        (["*"], "127.0.0.1", "is loopback"),
        (["*"], "169.254.169.254", "metadata service"),
        (["*"], "none.test", "no connection to none.test"),
    ],
)
async def test_other_urls_are_not_requested(
    receiver: Receiver, allow: list[str], host: str, expected: str
) -> None:
    message = await refused(allow, url_at(receiver, host))
    assert expected in message
    assert "[template_urls] allow" in message or "none.test" in message
    assert "[channels" not in message and receiver.received == []


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://templates.test/t", "http://ann:s3cret@templates.test/t", "t.yaml",
     "http://0x7f000001/t", "http://templates.test /t"],
)  # fmt: skip
async def test_invalid_urls_are_refused(url: str) -> None:
    message = await refused(["*", LOOPBACK], url)
    assert "s3cret" not in message


async def test_responses_are_limited_and_redirects_are_not_followed(receiver: Receiver) -> None:
    url = url_at(receiver, "127.0.0.1")
    receiver.respond_with_statuses(302, headers={"Location": receiver.url + "/elsewhere"})
    assert "it redirects" in await refused([LOOPBACK], url)
    assert [one.path for one in receiver.received] == ["/t.yaml"]
    receiver.respond_with_statuses(404)
    assert "it answered 404" in await refused([LOOPBACK], url)
    receiver.never_respond()
    assert "the template was not complete within 0.3 s" in await refused([LOOPBACK], url)
    receiver.handle = None

    async def respond_endlessly(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"#" * 1000)

    receiver.handle_raw = respond_endlessly
    assert f"larger than {MAX_BYTES} bytes" in await refused([LOOPBACK], url)

    async def respond_binary(_: web.Request) -> web.StreamResponse:
        return web.Response(body=b"\xff\xfe")

    receiver.handle_raw = respond_binary
    assert "not text" in await refused([LOOPBACK], url)


async def test_host_names_are_resolved_by_the_system() -> None:
    assert "127.0.0.1" in await system_lookup("localhost", 80)


@pytest.fixture
async def run_allowing(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, {"template_urls.allow": [LOOPBACK]}) as run:
        yield run


async def test_every_stack_request_accepts_a_template_url(
    run_allowing: Program, receiver: Receiver
) -> None:
    receiver.respond_with(VALID)
    named: dict[str, Any] = {"template_url": url_at(receiver, "127.0.0.1")}
    body: Json = {"stack_name": "s", **named}
    for path, status in (("/validate", 200), ("/stacks/preview", 200), ("/stacks", 201)):
        got, response = await run_allowing.call("POST", path, body)
        assert got == status, response
    await run_allowing.until_ended("s")
    receiver.respond_with(template({"b": resource()}))
    for method in ("PUT", "PATCH"):
        changes = await run_allowing.stack_request(method, "s", "/preview", named)
        assert [one["resource_name"] for one in changes["resource_changes"]["added"]] == ["b"]
    await run_allowing.update("s", "PUT", **named)
    await run_allowing.until_ended("s")
    assert (await run_allowing.resources("s")).keys() == {"b"}
    fetched = len(receiver.received)
    await run_allowing.update("s", "PATCH", template=VALID, **named)
    await run_allowing.until_ended("s")
    assert (await run_allowing.resources("s")).keys() == {"a"} and len(receiver.received) == fetched
    receiver.respond_with_statuses(404)
    status, response = await run_allowing.call("POST", "/stacks", {**body, "stack_name": "t"})
    assert status == 400 and "template_url: it answered 404" in response["error"]["message"]
    status, response = await run_allowing.call("POST", "/validate", {"template_url": 5})
    assert status == 400


async def test_nothing_is_fetched_without_the_setting(running: Program, receiver: Receiver) -> None:
    body = {"stack_name": "s", "template_url": url_at(receiver, "127.0.0.1")}
    status, response = await running.call("POST", "/stacks", body)
    assert (status, response["error"]["type"]) == (400, "NotSupported")
    assert "[template_urls] allow" in response["error"]["message"] and receiver.received == []
