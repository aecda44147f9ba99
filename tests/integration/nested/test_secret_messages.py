"""Messages about nested stacks contain no secrets, quoted or derived."""

import json

import pytest

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType
from tests.support.program import Json, Program, program, resource, template

SECRET = "pa\\ss\"wo'rd-7Q9z"
#: A part that every notation, and upper and lower case, have in common.
PART = "7q9z"


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "OS::Heat::TestResource", "properties": {"wait_secs": {"get_param": "x"}}},
        {"type": "OS::Heat::RandomString", "properties": {"length": {"get_param": "x"}}},
        {
            "type": "OS::Heat::RandomString",
            "properties": {
                "length": {
                    "yaql": {"expression": "$.data.p.toLower()", "data": {"p": {"get_param": "x"}}}
                }
            },
        },
        {"type": "OS::Heat::RandomString", "properties": {"sequence": {"get_param": "x"}}},
    ],
    ids=["converted", "wrong kind", "derived", "not allowed"],
)
async def test_a_wrong_value_inside_is_not_repeated(running: Program, inner: Json) -> None:
    await fails_without_a_word(running, inner, SECRET)


class Cuts(ResourceType):
    """Fails with the beginning of what it was given, as a service's answer is cut."""

    schema = TypeSchema("Test::Cuts", properties={"value": Property(Kind.STRING)})

    def create(self, call: Call) -> Outcome:
        return Failed(f"cannot use {call.properties['value'][:300]}")

    def delete(self, _: Call) -> Outcome:
        return Done(None)


async def test_a_long_secret_is_not_repeated_in_part(database_url: str) -> None:
    async with program(database_url, types=[Cuts()]) as running:
        inner = {"type": "Test::Cuts", "properties": {"value": {"get_param": "x"}}}
        await fails_without_a_word(running, inner, SECRET * 60)


async def fails_without_a_word(running: Program, inner: Json, secret: str) -> None:
    nested = template({"r": inner}) | {"parameters": {"x": {"type": "string"}}}
    outer = template(
        {
            "a": resource({"get_param": "p"}),
            "n": {"type": "in.yaml", "properties": {"x": {"get_attr": ["a", "output"]}}},
        }
    ) | {"parameters": {"p": {"type": "string", "hidden": True}}}
    sent = {
        "stack_name": "s",
        "template": outer,
        "files": {"in.yaml": json.dumps(nested)},
        "parameters": {"p": secret},
    }
    status, made = await running.call("POST", "/stacks", sent)
    assert status == 201, made
    assert await running.until_ended("s") == "CREATE_FAILED"
    said = [await running.stack("s"), await running.events("s")]
    assert PART not in json.dumps(said).lower()
