"""Delays in stacks, and validation of delays and access policies."""

from tests.support.changes import until_deleted, until_status
from tests.support.program import Json, Program, template

ALL = ["CREATE", "DELETE", "SUSPEND", "RESUME"]


def delay_resource(seconds: float, **more: Json) -> Json:
    return {"type": "OS::Heat::Delay", "properties": {"min_wait": seconds, **more}}


def access_policy(*names: str) -> Json:
    return {"type": "OS::Heat::AccessPolicy", "properties": {"AllowedResources": list(names)}}


async def times(run: Program, name: str) -> dict[str, float]:
    """The seconds of each recorded operation on the resource."""
    async with run.database.connection() as conn:
        rows = await conn.fetch(
            "select operation, extract(epoch from ended_at - started_at)::float as took"
            " from node where name = $1 and ended_at is not null", name
        )  # fmt: skip
    return {one["operation"]: one["took"] for one in rows}


async def test_a_delay_waits_in_each_operation(run: Program) -> None:
    await run.create("s", {"d": delay_resource(0.2, actions=ALL), "p": access_policy("d", "p")})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    took = await times(run, "d")
    for action in ("suspend", "resume"):
        await run.act("s", action)
        await until_status(run, "s", f"{action.upper()}_COMPLETE")
        took |= await times(run, "d")
    assert took.keys() == {"create", "suspend", "resume"}
    assert all(seconds >= 0.2 for seconds in took.values())
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")


async def test_a_long_delay_does_not_block_the_deletion_of_the_stack(run: Program) -> None:
    await run.create("s", {"d": delay_resource(3600)})
    await run.until_parked("s", 1)
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")


async def test_invalid_properties_are_refused_before_anything_is_created(run: Program) -> None:
    resources = {"d": delay_resource(120), "p": access_policy("d", "dd")}
    sent = {"stack_name": "s", "template": template(resources), "timeout_mins": 1}
    status, response = await run.call("POST", "/stacks", sent)
    found = {one["place"]: one for one in response["error"]["findings"]}
    assert status == 400 and found.keys() == {
        "resources.d.properties", "resources.p.properties.AllowedResources",
    }  # fmt: skip
    assert "may take 120 s, which exceeds" in found["resources.d.properties"]["reason"]
    named = found["resources.p.properties.AllowedResources"]
    assert 'no resource "dd"' in named["reason"] and 'Did you mean "d"?' in named["remedy"]
    assert (await run.call("GET", "/stacks"))[1]["stacks"] == []
