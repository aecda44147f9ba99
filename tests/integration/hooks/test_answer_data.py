"""The validation of answer data takes limited time, and does not delay the stack's lock or other
requests.
"""

import asyncio

import pytest

from engine.words import Json
from tests.support.changes import thing
from tests.support.program import Program, eventually, resource, template
from tests.support.receiver import Receiver
from tests.unit.hooks.test_schema_cost import doubling

STORE_ASK = (
    "update hook set rule = jsonb_set(rule, '{ask}', to_jsonb($2::text)) where id = $1::uuid"
)
#: The most CPU time that a validation may take, with a margin for a busy machine.
MAX_SECONDS = 10.0


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def hooks_with_schema(schema: Json) -> Json:
    return {"hooks": [{"at": "a", "on": "pre-create", "ask": {"schema": schema}}]}


@pytest.mark.parametrize(
    "schema",
    [doubling(26), {"$ref": "#"}, {"pattern": "((([a-z]{1,100}){1,100}){1,100})"}],
    ids=["doubling", "itself", "pattern"],
)
async def test_a_schema_that_costs_hours_is_refused(run: Program, schema: Json) -> None:
    body = {"template": template({"a": thing()}), "environment": hooks_with_schema(schema)}
    async with asyncio.timeout(MAX_SECONDS):
        status, response = await run.call("POST", "/stacks", {"stack_name": "s", **body})
    assert status == 400 and "ask.schema" in response["error"]["message"]


async def test_a_costly_schema_stored_by_an_earlier_version_delays_nothing(run: Program) -> None:
    await run.create("s", {"a": thing()}, environment=hooks_with_schema({"type": "object"}))
    (hook,) = await run.waiting_hooks("s")
    stored = '{"$ref":"#/$defs/s0","$defs":{' + ",".join(
        f'"s{level}":{{"allOf":[{{"$ref":"#/$defs/s{level + 1}"}},{{"$ref":"#/$defs/s{level + 1}"}}]}}'
        for level in range(30)
    ) + ',"s30":{"type":"string"}}}'  # fmt: skip
    async with run.database.connection() as conn:
        await conn.execute(STORE_ASK, hook["id"], stored)
    async with asyncio.timeout(MAX_SECONDS):
        status, response = await run.signal(hook, data="x")
        assert (status, response["error"]["type"]) == (400, "DataRefused")
        assert (await run.signal(hook, "reject"))[0] == 200


@pytest.mark.parametrize("decision", ["continue", "reject"])
async def test_the_size_of_answer_data_is_limited_with_and_without_a_schema(
    run: Program, decision: str
) -> None:
    await run.create("s", {"a": thing()}, environment={"hooks": [{"at": "a", "on": "pre-create"}]})
    (hook,) = await run.waiting_hooks("s")
    status, response = await run.signal(hook, decision, data="x" * 70_000)
    assert (status, response["error"]["type"]) == (400, "DataRefused")
    assert "65536 bytes" in response["error"]["message"]
    assert (await run.signal(hook, decision, data="x" * 60_000))[0] == 200


async def test_data_is_validated_before_the_stack_is_locked(run: Program) -> None:
    unique = {"type": "array", "uniqueItems": True}
    await run.create("s", {"a": thing()}, environment=hooks_with_schema(unique))
    (hook,) = await run.waiting_hooks("s")
    stack = await run.stack("s")
    async with run.database.transaction("test") as conn:
        await conn.execute("select from stack where id = $1::uuid for update", stack["id"])
        async with asyncio.timeout(MAX_SECONDS):
            status, response = await run.signal(hook, data=list(range(10_000)))
    assert status == 400 and "too large for the schema" in response["error"]["message"]
    assert (await run.signal(hook, data=[1, 1]))[0] == 400
    assert (await run.signal(hook, data=[1, 2]))[0] == 200


async def test_a_nul_character_in_the_response_of_a_receiver_is_refused(
    running: Program, receiver: Receiver
) -> None:
    receiver.respond_with({"decision": "continue", "data": {"a": "\0"}})
    body = {"target": receiver.url, "events": ["headgate.hook.waiting"]}
    status, subscription = await running.call("POST", "/subscriptions", body)
    assert status == 201
    await running.create("s", {"a": resource()}, hooks={"add": ["a:pre-create"]})

    async def noted() -> str:
        path = f"/subscriptions/{subscription['id']}/deliveries"
        _, response = await running.call("GET", path)
        return next((one["error"] for one in response["deliveries"] if one["error"]), "")

    reason = "the answer was refused: data.a: text with a NUL character cannot be stored"
    assert (await eventually(noted)).startswith(reason)
    assert len(await running.waiting_hooks("s")) == 1
