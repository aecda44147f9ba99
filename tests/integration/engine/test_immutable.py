"""Immutable parameters and properties: a change is refused, at once or when the value is known."""

import json
from collections.abc import Sequence

import pytest

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.words import Json
from tests.support.program import Program, resource, template


class Disk(ResourceType):
    schema = TypeSchema(
        "Acme::Disk",
        properties={
            "size": Property(Kind.ANY, update_allowed=True),
            "zone": Property(Kind.ANY, immutable=True),
        },
    )

    def create(self, call: Call) -> Outcome:
        return Done("disk")

    def update(self, call: Call) -> Outcome:
        return Done("disk")

    def delete(self, call: Call) -> Outcome:
        return Done(None)


@pytest.fixture(scope="module")
def shared_types() -> Sequence[ResourceType]:
    return [Disk()]


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


def disk(**properties: Json) -> Json:
    return {"d": {"type": "Acme::Disk", "properties": properties}, "a": resource("there")}


async def test_a_change_of_an_immutable_property_is_refused_and_shown_in_a_dry_run(
    run: Program,
) -> None:
    await run.create("s", disk(size=1, zone="x"))
    await run.until_ended("s")
    wanted = {"template": template(disk(size=2, zone="y"))}
    (change,) = (await run.stack_request("PUT", "s", "/preview", wanted))["resource_changes"][
        "updated"
    ]
    message = "Update to properties zone of d (Acme::Disk) is not supported."
    assert change["denied"] == message
    await run.update("s", "PUT", **wanted)
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert message in (await run.stack("s"))["stack_status_reason"]
    assert (await run.resources("s"))["d"]["resource_status"] == "CREATE_COMPLETE"
    # A value that is unknown before run time is not refused; other changes continue.
    late = {"template": template(disk(size=2, zone={"get_attr": ["a", "output"]}))}
    late["template"]["resources"]["a"] = resource("other")
    (_, change) = (await run.stack_request("PUT", "s", "/preview", late))["resource_changes"][
        "updated"
    ]
    assert change["resource_name"] == "d" and change["denied"] is None
    await run.update("s", "PUT", template=template(disk(size=2, zone="x")))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


IMMUTABLE_PARAMETER = {"type": "string", "immutable": True, "default": "x"}


def with_parameter(**more: Json) -> Json:
    read = resource({"get_param": "p"})
    return template({"a": read}, parameters={"p": IMMUTABLE_PARAMETER | more})


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"p": "y"}},
        {"environment": {"parameters": {"p": "y"}}},
        {"environment": {"parameter_defaults": {"p": "y"}}},
        {"template": with_parameter(default="y")},
    ],
)
async def test_a_change_of_an_immutable_parameter_is_refused(run: Program, change: Json) -> None:
    stack = await run.create("s", {}, template=with_parameter())
    await run.until_ended("s")
    for path in (f"/stacks/s/{stack}", f"/stacks/s/{stack}/preview"):
        status, response = await run.call("PUT", path, {"template": with_parameter()} | change)
        assert status == 400 and response["error"]["type"] == "ImmutableParameterModified"
        assert "may not be updated: p" in response["error"]["message"]
    await run.update("s", "PUT", template=with_parameter(default="y"), parameters={"p": "x"})


async def test_a_new_immutable_parameter_may_have_any_value(run: Program) -> None:
    await run.create("s", {"a": resource()})
    await run.until_ended("s")
    await run.update("s", "PUT", template=with_parameter(), parameters={"p": "y"})


async def test_an_immutable_parameter_of_a_nested_template_keeps_its_value(run: Program) -> None:
    def outer_template(value: str) -> Json:
        web = {"web": {"type": "in.yaml", "properties": {"p": value}}}
        return {"template": template(web), "files": {"in.yaml": json.dumps(with_parameter())}}

    await run.create("s", {}, **outer_template("x"))
    await run.until_ended("s")
    await run.update("s", "PUT", **outer_template("y"))
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert "may not be updated: p" in (await run.stack("s"))["stack_status_reason"]
    await run.update("s", "PUT", **outer_template("x"))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
