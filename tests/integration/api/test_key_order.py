"""Templates and environments have their keys in the order in which they were sent."""

import json

import pytest

from engine.store.key_order import in_order, order_of
from tests.support.program import Json, Program

TEMPLATE: Json = {
    "heat_template_version": "2018-08-31",
    "description": "d",
    "parameters": {"zz": {"type": "string", "default": "a", "description": "x"}, "b": {
        "type": "json", "default": {"second": 1, "a": [{"z": 1, "yy": 2, "x": 3}]}}},
    "conditions": {},
    "resources": {
        "later": {"type": "OS::Heat::TestResource", "properties": {"value": "v", "fail": False}},
        "a": {"type": "OS::Heat::TestResource", "metadata": {"x2": 1, "x10": 2, "x": 3}},
    },
    "outputs": {},
}  # fmt: skip
ENVIRONMENT: Json = {
    "resource_registry": {"My::Type": "OS::Heat::None", "A": "OS::Heat::None", "resources": {}},
    "parameters": {"zz": "1", "b": {"second": 1, "a": 2}},
    "parameter_defaults": {},
    "event_sinks": [],
}
HIDDEN: Json = {
    "hidden_one": {"type": "json", "hidden": True},
    "a": {"type": "string", "default": ""},
}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def text(document: Json) -> str:
    return json.dumps(document)


async def stored(run: Program, what: str) -> str:
    return text(await run.stack_request("GET", "s", f"/{what}"))


@pytest.mark.parametrize("as_text", [False, True], ids=["object", "text"])
async def test_the_order_of_keys_and_empty_sections_are_kept(
    running: Program, as_text: bool
) -> None:
    template = text(TEMPLATE) if as_text else TEMPLATE
    environment = text(ENVIRONMENT) if as_text else ENVIRONMENT
    body = {"stack_name": "s", "template": template, "environment": environment}
    status, response = await running.call("POST", "/stacks", body)
    assert status == 201, response
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    for _ in range(2):
        assert await stored(running, "template") == text(TEMPLATE)
        assert await stored(running, "environment") == text(ENVIRONMENT)
        exported = await running.stack_request("GET", "s", "/export")
        assert text(exported["template"]) == text(TEMPLATE)
        await running.update("s", "PATCH", tags="x")
        assert await running.until_ended("s") == "UPDATE_COMPLETE"


async def test_keys_in_hidden_values_are_encrypted(running: Program) -> None:
    template = {"heat_template_version": "2018-08-31", "parameters": HIDDEN}
    body = {"stack_name": "s", "template": template,
            "parameters": {"hidden_one": {"secret_key": 1, "b": 2}, "a": "x"}}  # fmt: skip
    assert (await running.call("POST", "/stacks", body))[0] == 201
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    shown = await running.stack_request("GET", "s", "/environment")
    assert text(shown["parameters"]) == '{"hidden_one": "******", "a": "x"}'
    async with running.database.connection() as conn:
        row = await conn.fetchrow("select key_order::text, parameters::text from template")
    assert row is not None and "secret_key" not in "".join(row.values())


def test_an_order_is_stored_only_where_it_differs() -> None:
    assert order_of({"a": 1, "b": {"c": [1, {"d": 1}]}, "aa": 2}) is None
    assert order_of({"b": 1, "a": [{"x": 1}, {"z": 1, "y": 2}]}) == [
        ["b", "a"], {"a": [None, {"1": [["z", "y"], {}]}]},
    ]  # fmt: skip
    members: Json = {str(number): {} for number in range(1000)}
    assert order_of(members) is None
    changed = in_order({"a": 1, "new": 2, "b": 3}, [["b", "gone", "a"], {"a": [["x"], {}]}])
    assert text(changed) == '{"b": 3, "a": 1, "new": 2}'
