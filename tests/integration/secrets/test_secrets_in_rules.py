"""Secrets in parts of a resource other than its properties: conditions, lifecycle and
metadata. An error about one of them quotes no secret, also if no property is secret."""

import json

import pytest

from tests.support.program import Json, Program
from tests.support.secret_search import rows_of

SECRET = "pass-9Q7zKd"
LOOKED_UP: Json = {"lookup": [{"get_attr": ["known", "value"]}, {"get_param": "secret"}]}
JOINED: Json = {"list_join": ["", [{"get_attr": ["number", "value"]}, {"get_param": "secret"}]]}
#: Parts of a resource that fail when the operation begins or has ended.
PARTS: dict[str, Json] = {
    "precondition": {"preconditions": [{"assert": LOOKED_UP, "message": "no ${secret}"}]},
    "postcondition": {"postconditions": [{"assert": LOOKED_UP, "message": "no ${secret}"}]},
    "unequal": {"preconditions": [{
        "assert": {"equals": [JOINED, "x"]}, "message": "not ${secret}, ${number_of}"}]},
    "condition of another kind": {"preconditions": [{
        "assert": {"not": JOINED}, "message": "of ${secret}"}]},
    "replace_when": {"lifecycle": {"replace_when": [LOOKED_UP]}},
    "metadata": {"metadata": {"a": LOOKED_UP}},
    "from_json": {"preconditions": [{
        "assert": {"from_json": JOINED}, "message": "of ${secret}"}]},
    "arithmetic": {"lifecycle": {"replace_when": [
        {"modulo": [{"get_attr": ["number", "value"]}, {"length": JOINED}]},
        {"upper": {"lookup": [[1], {"get_attr": ["number", "value"]}]}},
        {"lookup": [{"from_json": {"get_attr": ["text", "value"]}}, {"get_param": "secret"}]},
    ]}},
}  # fmt: skip


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


def template(part: Json) -> Json:
    return {
        "heat_template_version": "2026-12-01",
        "parameters": {
            "secret": {"type": "string", "hidden": True},
            "number_of": {"type": "string", "default": "5"},
        },
        "resources": {
            "known": {"type": "OS::Heat::Value",
                      "properties": {"type": "json", "value": {"other": True}}},
            "number": {"type": "OS::Heat::Value", "properties": {"type": "number", "value": 3}},
            "text": {"type": "OS::Heat::Value", "properties": {"value": "{}"}},
            "it": {"type": "OS::Heat::TestResource", "properties": {"value": "public"}, **part},
        },
    }  # fmt: skip


async def _all_answers(run: Program, stack: Json) -> str:
    path = f"/stacks/s/{stack['id']}"
    texts = []
    paths = ("", "/resources", "/events", "/resources/it", "/history", "/resources/it/inspect")
    for rest in paths:
        status, found = await run.call("GET", path + rest)
        assert status == 200, rest
        texts.append(json.dumps(found))
    return "\n".join(texts)


@pytest.mark.parametrize("part", PARTS)
async def test_an_error_about_a_part_with_a_secret_quotes_nothing(run: Program, part: str) -> None:
    body = {"stack_name": "s", "template": template(PARTS[part]), "parameters": {"secret": SECRET}}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response
    assert await run.until_ended("s") == "CREATE_FAILED"
    stack = await run.stack("s")
    shown = await _all_answers(run, stack)
    assert '"CREATE_FAILED"' in shown
    assert SECRET not in shown
    for table, row in (await rows_of(run.database)).items():
        assert SECRET not in row, table


@pytest.mark.parametrize("part", PARTS)
async def test_a_preview_quotes_nothing(run: Program, part: str) -> None:
    created = {"stack_name": "s", "template": template({}), "parameters": {"secret": SECRET}}
    status, response = await run.call("POST", "/stacks", created)
    assert status == 201, response
    await run.until_ended("s")
    shown = await run.stack_request(
        "PATCH", "s", "/preview", {"template": template(PARTS[part]), "existing": True}
    )
    assert SECRET not in json.dumps(shown)
    status, errors = await run.call("POST", "/validate?show_nested=1", {
        "template": template(PARTS[part]), "parameters": {"secret": SECRET}})  # fmt: skip
    assert SECRET not in json.dumps(errors)
