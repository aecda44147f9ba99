"""The schemas of events, one by one."""

from channels.schemas.events import SCHEMAS
from tests.support.program import Program


async def test_each_name_leads_to_its_schema(running: Program) -> None:
    for kind in SCHEMAS:
        status, schema = await running.call("GET", f"//schemas/{kind}")
        assert (status, schema["$id"]) == (200, f"urn:headgate:schema:{kind}:1")


async def test_an_unknown_one_is_told_with_the_nearest(running: Program) -> None:
    status, said = await running.call("GET", "//schemas/headgate.hook.waitin")
    assert (status, said["error"]["type"]) == (404, "EventTypeNotFound")
    assert 'Did you mean "headgate.hook.waiting"?' in str(said)
