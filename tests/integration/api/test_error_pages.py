"""GET /errors/{type}: the page to which `help` in an error response leads."""

import asyncio
import re
from html import unescape

import orjson
import pytest
from yarl import URL

from hub.error_types.catalog import ERROR_TYPES
from tests.support.program import PATIENCE, Program


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def text_of(page: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", page))


#: Requests in Heat's format and in Headgate's, and the types of their errors.
REFUSED = (
    ("GET", "/stacks/none", "EntityNotFound"),
    ("GET", "/hooks?state=nope", "Invalid"),
    ("POST", "/overview", "MethodNotAllowed"),
    ("PUT", "/stacks", "MethodNotAllowed"),
)


async def test_help_leads_to_the_page_of_the_type(running: Program) -> None:
    for method, path, name in REFUSED:
        _, response = await running.call(method, path)
        assert response["error"]["help"] == f"{running.url}/errors/{name}"
        status, page = await running.call("GET", f"//errors/{name}")
        assert status == 200 and f"<h1>{name}</h1>" in page


@pytest.mark.parametrize(
    ("host", "status"),
    [(b"\xff", 400), (b'evil "<x>/@', 400), (b"evil.example", 403)],
    ids=["not UTF-8", "not a host", "another host"],
)
async def test_no_link_leads_to_a_host_that_is_not_this_server(
    running: Program, host: bytes, status: int
) -> None:
    address = URL(running.url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(b"GET /v1/p/stacks HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host)
    async with asyncio.timeout(PATIENCE):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert "help" not in orjson.loads(body)["error"]


async def test_each_type_has_a_page_with_meaning_remedy_and_example(running: Program) -> None:
    _, contents = await running.call("GET", "//errors")
    for name, kind in ERROR_TYPES.items():
        assert f'href="errors/{name}"' in contents
        status, page = await running.call("GET", f"//errors/{name}")
        assert status == 200
        text = text_of(page)
        assert re.sub(r"\W+", " ", kind.meaning.split("[")[0]) in re.sub(r"\W+", " ", text)
        assert "What to do" in text and kind.example.finding.reason.split('"')[0] in text


async def test_a_type_with_heats_name_leads_to_the_page(running: Program) -> None:
    status, page = await running.call("GET", "//errors/HTTPBadRequest")
    assert status == 200 and "<h1>Invalid</h1>" in page


async def test_an_unknown_type_suggests_the_nearest(running: Program) -> None:
    status, response = await running.call("GET", "//errors/StackExist")
    assert (status, response["error"]["type"]) == (404, "NotFound")
    assert response["error"]["remedy"] == 'Did you mean "StackExists"?'
