"""Templates that a request names by their URLs: fetched as far as the operator lets the server."""

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
from hub.settings.templates import TemplateUrls
from tests.support.program import Json, Program, program, resource, template
from tests.support.receiver import Receiver

GOOD = template({"a": resource()})
MOST = 1000
LOOPBACK = "127.0.0.0/8"
#: Names and where they lead; what is not here does not resolve.
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


def at(receiver: Receiver, host: str) -> str:
    return str(URL(receiver.url).with_host(host) / "t.yaml")


async def refused(allow: Sequence[str], url: str) -> str:
    """What is told."""
    with pytest.raises(Invalid) as caught:
        await fetcher(*allow).fetch(url, MOST)
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
async def test_what_is_allowed_is_fetched(receiver: Receiver, allow: list[str], host: str) -> None:
    receiver.says(GOOD)
    assert json.loads(await fetcher(*allow).fetch(at(receiver, host), MOST)) == GOOD
    (asked,) = receiver.received
    assert asked.path == "/t.yaml" and "cookie" not in {name.lower() for name in asked.headers}


@pytest.mark.parametrize(
    ("allow", "host", "told"),
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
async def test_what_is_not_allowed_is_not_reached(
    receiver: Receiver, allow: list[str], host: str, told: str
) -> None:
    said = await refused(allow, at(receiver, host))
    assert told in said
    assert "[template_urls] allow" in said or "none.test" in said
    assert "[channels" not in said and receiver.received == []


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://templates.test/t", "http://ann:s3cret@templates.test/t", "t.yaml",
     "http://0x7f000001/t", "http://templates.test /t"],
)  # fmt: skip
async def test_what_is_no_plain_address_is_refused(url: str) -> None:
    said = await refused(["*", LOOPBACK], url)
    assert "s3cret" not in said


async def test_what_comes_back_is_bounded_and_not_followed(receiver: Receiver) -> None:
    url = at(receiver, "127.0.0.1")
    receiver.answers(302, headers={"Location": receiver.url + "/elsewhere"})
    assert "it redirects" in await refused([LOOPBACK], url)
    assert [one.path for one in receiver.received] == ["/t.yaml"]
    receiver.answers(404)
    assert "it answered 404" in await refused([LOOPBACK], url)
    receiver.hangs()
    assert "no whole template within 0.3 s" in await refused([LOOPBACK], url)
    receiver.handle = None

    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"#" * 1000)

    receiver.handle_raw = endless
    assert f"larger than {MOST} bytes" in await refused([LOOPBACK], url)

    async def binary(_: web.Request) -> web.StreamResponse:
        return web.Response(body=b"\xff\xfe")

    receiver.handle_raw = binary
    assert "not text" in await refused([LOOPBACK], url)


async def test_the_system_is_asked_for_addresses() -> None:
    assert "127.0.0.1" in await system_lookup("localhost", 80)


@pytest.fixture
async def allowing(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, {"template_urls.allow": [LOOPBACK]}) as made:
        yield made


async def test_every_request_about_a_stack_takes_a_url(
    allowing: Program, receiver: Receiver
) -> None:
    receiver.says(GOOD)
    named: dict[str, Any] = {"template_url": at(receiver, "127.0.0.1")}
    made: Json = {"stack_name": "s", **named}
    for path, status in (("/validate", 200), ("/stacks/preview", 200), ("/stacks", 201)):
        got, said = await allowing.call("POST", path, made)
        assert got == status, said
    await allowing.until_ended("s")
    receiver.says(template({"b": resource()}))
    for method in ("PUT", "PATCH"):
        changes = await allowing.at(method, "s", "/preview", named)
        assert [one["resource_name"] for one in changes["resource_changes"]["added"]] == ["b"]
    await allowing.update("s", "PUT", **named)
    await allowing.until_ended("s")
    assert (await allowing.resources("s")).keys() == {"b"}
    fetched = len(receiver.received)
    await allowing.update("s", "PATCH", template=GOOD, **named)
    await allowing.until_ended("s")
    assert (await allowing.resources("s")).keys() == {"a"} and len(receiver.received) == fetched
    receiver.answers(404)
    status, said = await allowing.call("POST", "/stacks", {**made, "stack_name": "t"})
    assert status == 400 and "template_url: it answered 404" in said["error"]["message"]
    status, said = await allowing.call("POST", "/validate", {"template_url": 5})
    assert status == 400


async def test_without_the_operators_leave_nothing_is_fetched(
    running: Program, receiver: Receiver
) -> None:
    body = {"stack_name": "s", "template_url": at(receiver, "127.0.0.1")}
    status, said = await running.call("POST", "/stacks", body)
    assert (status, said["error"]["type"]) == (400, "NotSupported")
    assert "[template_urls] allow" in said["error"]["message"] and receiver.received == []
