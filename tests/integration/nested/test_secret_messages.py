"""Messages about nested stacks contain no secrets, quoted or derived."""

import json

import pytest

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType
from tests.support.program import Json, Program, program, resource, template

SECRET = "pa\\ss\"wo'rd-7Q9z"
#: A part of it that does not depend on notation or case.
PART = "7q9z"


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


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
async def test_an_invalid_nested_value_is_not_in_the_reason(running: Program, inner: Json) -> None:
    await check_failure_without_secret(running, inner, SECRET)


class Truncating(ResourceType):
    """Fails with the beginning of its value, as services truncate values in error messages."""

    schema = TypeSchema("Test::Truncating", properties={"value": Property(Kind.STRING)})

    def create(self, call: Call) -> Outcome:
        return Failed(f"cannot use {call.properties['value'][:300]}")

    def delete(self, _: Call) -> Outcome:
        return Done(None)


async def test_a_truncated_secret_is_not_in_the_reason(database_url: str) -> None:
    async with program(database_url, types=[Truncating()]) as running:
        inner = {"type": "Test::Truncating", "properties": {"value": {"get_param": "x"}}}
        await check_failure_without_secret(running, inner, SECRET * 60)


async def check_failure_without_secret(running: Program, inner: Json, secret: str) -> None:
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
    status, created = await running.call("POST", "/stacks", sent)
    assert status == 201, created
    assert await running.until_ended("s") == "CREATE_FAILED"
    response = [await running.stack("s"), await running.events("s")]
    assert PART not in json.dumps(response).lower()
