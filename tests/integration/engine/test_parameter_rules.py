"""Rules over parameters and schemas of parameters, in requests, nested stacks and previews."""

from tests.support.changes import expect_error, thing, until_complete, until_status
from tests.support.program import Json, Program
from tests.support.scripted_type import World

PARAMETERS: Json = {
    "tier": {"type": "string", "default": "test"},
    "size": {"type": "number", "default": 1},
    "mail": {
        "type": "json",
        "default": {"host": "a"},
        "schema": {"type": "object", "required": ["host"]},
    },
}
RULE = {
    "when": {"equals": [{"get_param": "tier"}, "prod"]},
    "assert": {"not": {"equals": [{"get_param": "size"}, 1]}},
    "message": "tier ${tier} needs more than ${size}",
}
FAILED = "rules[0]: rule failed: tier prod needs more than 1"


def template(**resources: Json) -> Json:
    return {
        "heat_template_version": "headgate",
        "parameters": PARAMETERS,
        "rules": [RULE],
        "resources": resources or {"a": thing("${size}"), "b": thing()},
    }


async def create(run: Program, **parameters: Json) -> None:
    body = {"stack_name": "s", "template": template(), "parameters": parameters}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_requests_and_previews_are_refused(run: Program, world: World) -> None:
    await create(run, tier="prod", size=2)
    # Only what the update gives differs: the stored values count, too.
    small = {"existing": True, "parameters": {"size": 1}}
    for method, rest, body in (
        ("PATCH", "", small),
        ("PATCH", "/preview", small),
        ("PATCH", "", small | {"only": ["b"]}),
        ("PUT", "", {"template": template(), "parameters": {"tier": "prod"}}),
    ):
        status, error = await expect_error(run, method, "s", rest, body)
        assert status == 400 and FAILED in error["message"], (method, rest, error)
    assert world.operations("a") == ["create"]
    new = {"stack_name": "t", "template": template(), "parameters": {"tier": "prod"}}
    for path in ("/stacks", "/stacks/preview", "/validate"):
        status, response = await run.call("POST", path, new)
        assert status == 400 and FAILED in response["error"]["message"], path


async def test_a_schema_is_checked_and_shown(run: Program) -> None:
    new = {"stack_name": "t", "template": template(), "parameters": {"mail": {"port": 1}}}
    status, response = await run.call("POST", "/stacks", new)
    assert status == 400
    assert '"host" is a required property' in response["error"]["message"]
    status, shown = await run.call("POST", "/validate", {"template": template()})
    assert status == 200
    assert shown["Parameters"]["mail"]["Schema"] == PARAMETERS["mail"]["schema"]


INNER = """
heat_template_version: headgate
parameters:
  size: {type: number}
  settings: {type: json, default: {}, schema: {properties: {size: {maximum: 3}}}}
rules: [{assert: {not: {equals: [{get_param: size}, 2]}}, message: "size ${size}"}]
resources: {x: {type: "Test::Thing", properties: {size: "${size}"}}}
"""


def with_nested(properties: Json, size: int) -> Json:
    nested = {"type": "inner.yaml", "properties": properties}
    return {"heat_template_version": "headgate", "resources": {"b": thing(size), "n": nested}}


async def test_a_nested_stack_is_refused_when_its_parameters_are_known(run: Program) -> None:
    size = {"get_attr": ["b", "size"]}
    files = {"inner.yaml": INNER}
    body = {"stack_name": "s", "template": with_nested({"size": size}, 2), "files": files}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.resources("s"))["n"]["resource_status_reason"]
    assert "rules[0]: rule failed: size 2" in reason
    await run.update("s", "PUT", template=with_nested({"size": size}, 1), files=files)
    await until_complete(run, "s")
    large = {"size": size, "settings": {"size": size}}
    await run.update("s", "PUT", template=with_nested(large, 9), files=files)
    await until_status(run, "s", "UPDATE_FAILED")
    reason = (await run.resources("s"))["n"]["resource_status_reason"]
    assert "size: 9 is greater than the maximum of 3" in reason
