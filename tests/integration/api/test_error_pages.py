"""GET /errors/{type}: the page to which `help` in an error response leads."""

import re
from html import unescape

from hub.error_types.catalog import ERROR_TYPES
from tests.support.program import Program


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
