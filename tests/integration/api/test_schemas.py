"""GET /schemas/{type}."""

import pytest

from channels.schemas.event_schemas import SCHEMAS
from tests.support.program import Program


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


async def test_each_event_type_has_a_schema(running: Program) -> None:
    for kind in SCHEMAS:
        status, schema = await running.call("GET", f"//schemas/{kind}")
        assert (status, schema["$id"]) == (200, f"urn:headgate:schema:{kind}:1")


async def test_an_unknown_event_type_suggests_the_nearest(running: Program) -> None:
    status, response = await running.call("GET", "//schemas/headgate.hook.waitin")
    assert (status, response["error"]["type"]) == (404, "EventTypeNotFound")
    assert 'Did you mean "headgate.hook.waiting"?' in str(response)
