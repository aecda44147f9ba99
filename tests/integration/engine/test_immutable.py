"""What no update may change: parameters, refused at once; properties, when it comes to it."""

import json
from collections.abc import AsyncIterator

import pytest

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.words import Json
from tests.support.program import Program, program, resource, template


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


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, types=[Disk()]) as made:
        yield made


def disk(**properties: Json) -> Json:
    return {"d": {"type": "Acme::Disk", "properties": properties}, "a": resource("there")}


async def test_it_is_refused_and_the_preview_says_so(run: Program) -> None:
    await run.create("s", disk(size=1, zone="x"))
    await run.until_ended("s")
    wanted = {"template": template(disk(size=2, zone="y"))}
    (told,) = (await run.at("PUT", "s", "/preview", wanted))["resource_changes"]["updated"]
    said = "Update to properties zone of d (Acme::Disk) is not supported."
    assert told["denied"] == said
    await run.update("s", "PUT", **wanted)
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert said in (await run.stack("s"))["stack_status_reason"]
    assert (await run.resources("s"))["d"]["resource_status"] == "CREATE_COMPLETE"
    # What nobody knows yet is not held against it; and the rest goes on.
    late = {"template": template(disk(size=2, zone={"get_attr": ["a", "output"]}))}
    late["template"]["resources"]["a"] = resource("other")
    (_, told) = (await run.at("PUT", "s", "/preview", late))["resource_changes"]["updated"]
    assert told["resource_name"] == "d" and told["denied"] is None
    await run.update("s", "PUT", template=template(disk(size=2, zone="x")))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


FIXED = {"type": "string", "immutable": True, "default": "x"}


def with_parameter(**more: Json) -> Json:
    read = resource({"get_param": "p"})
    return template({"a": read}, parameters={"p": FIXED | more})


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"p": "y"}},
        {"environment": {"parameters": {"p": "y"}}},
        {"environment": {"parameter_defaults": {"p": "y"}}},
        {"template": with_parameter(default="y")},
    ],
)
async def test_whoever_gives_an_immutable_parameter_another_value_is_refused(
    run: Program, change: Json
) -> None:
    stack = await run.create("s", {}, template=with_parameter())
    await run.until_ended("s")
    for path in (f"/stacks/s/{stack}", f"/stacks/s/{stack}/preview"):
        status, said = await run.call("PUT", path, {"template": with_parameter()} | change)
        assert status == 400 and said["error"]["type"] == "ImmutableParameterModified"
        assert "may not be updated: p" in said["error"]["message"]
    await run.update("s", "PUT", template=with_parameter(default="y"), parameters={"p": "x"})


async def test_one_that_is_new_may_have_any_value(run: Program) -> None:
    await run.create("s", {"a": resource()})
    await run.until_ended("s")
    await run.update("s", "PUT", template=with_parameter(), parameters={"p": "y"})


async def test_that_of_a_template_inside_keeps_its_value_too(run: Program) -> None:
    def around(value: str) -> Json:
        web = {"web": {"type": "in.yaml", "properties": {"p": value}}}
        return {"template": template(web), "files": {"in.yaml": json.dumps(with_parameter())}}

    await run.create("s", {}, **around("x"))
    await run.until_ended("s")
    await run.update("s", "PUT", **around("y"))
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert "may not be updated: p" in (await run.stack("s"))["stack_status_reason"]
    await run.update("s", "PUT", **around("x"))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
