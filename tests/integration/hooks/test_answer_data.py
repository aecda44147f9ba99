"""Data of answers costs a bounded time, which neither the stack's lock nor other requests wait for."""

import asyncio

import pytest

from engine.words import Json
from tests.support.changes import thing
from tests.support.program import Program, template
from tests.unit.hooks.test_schema_cost import doubling

STORE_ASK = (
    "update hook set rule = jsonb_set(rule, '{ask}', to_jsonb($2::text)) where id = $1::uuid"
)
#: What an answer's validation may take of the processor at most, with room for a busy machine.
BOUNDED = 10.0


def asking(schema: Json) -> Json:
    return {"hooks": [{"at": "a", "on": "pre-create", "ask": {"schema": schema}}]}


@pytest.mark.parametrize(
    "schema",
    [doubling(26), {"$ref": "#"}, {"pattern": "((([a-z]{1,100}){1,100}){1,100})"}],
    ids=["doubling", "itself", "pattern"],
)
async def test_a_stack_is_refused_whose_rules_ask_for_hours(run: Program, schema: Json) -> None:
    body = {"template": template({"a": thing()}), "environment": asking(schema)}
    async with asyncio.timeout(BOUNDED):
        status, said = await run.call("POST", "/stacks", {"stack_name": "s", **body})
    assert status == 400 and "ask.schema" in said["error"]["message"]


async def test_a_schema_of_an_earlier_version_holds_nothing_up(run: Program) -> None:
    await run.create("s", {"a": thing()}, environment=asking({"type": "object"}))
    (hook,) = await run.waiting("s")
    stored = '{"$ref":"#/$defs/s0","$defs":{' + ",".join(
        f'"s{level}":{{"allOf":[{{"$ref":"#/$defs/s{level + 1}"}},{{"$ref":"#/$defs/s{level + 1}"}}]}}'
        for level in range(30)
    ) + ',"s30":{"type":"string"}}}'  # fmt: skip
    async with run.database.connection() as conn:
        await conn.execute(STORE_ASK, hook["id"], stored)
    async with asyncio.timeout(BOUNDED):
        status, said = await run.signal(hook, data="x")
        assert (status, said["error"]["type"]) == (400, "DataRefused")
        assert (await run.signal(hook, "reject"))[0] == 200


@pytest.mark.parametrize("decision", ["continue", "reject"])
async def test_data_is_bounded_whether_it_is_asked_for_or_not(run: Program, decision: str) -> None:
    await run.create("s", {"a": thing()}, environment={"hooks": [{"at": "a", "on": "pre-create"}]})
    (hook,) = await run.waiting("s")
    status, said = await run.signal(hook, decision, data="x" * 70_000)
    assert (status, said["error"]["type"]) == (400, "DataRefused")
    assert "65536 bytes" in said["error"]["message"]
    assert (await run.signal(hook, decision, data="x" * 60_000))[0] == 200


async def test_data_is_validated_before_the_stack_is_locked(run: Program) -> None:
    unique = {"type": "array", "uniqueItems": True}
    await run.create("s", {"a": thing()}, environment=asking(unique))
    (hook,) = await run.waiting("s")
    stack = await run.stack("s")
    async with run.database.transaction("test") as conn:
        await conn.execute("select from stack where id = $1::uuid for update", stack["id"])
        async with asyncio.timeout(BOUNDED):
            status, said = await run.signal(hook, data=list(range(10_000)))
    assert status == 400 and "too large for the schema" in said["error"]["message"]
    assert (await run.signal(hook, data=[1, 1]))[0] == 400
    assert (await run.signal(hook, data=[1, 2]))[0] == 200
