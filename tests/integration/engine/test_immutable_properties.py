"""A property that no update may change: told by a preview, refused when it comes to it."""

from collections.abc import AsyncIterator

import pytest

from engine.hot.schema import Kind, Property, TypeSchema
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
