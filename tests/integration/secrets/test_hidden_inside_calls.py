"""Properties with hidden parts that only a call gives, when the resources that it reads exist."""

import json
from collections.abc import AsyncIterator

import pytest

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from tests.support.program import Json, Program, program, template
from tests.support.scripted_type import Thing, World

FIRST, SECOND = "first-password", "second-password"
USER = Property(
    Kind.MAP,
    fields={"name": Property(Kind.STRING), "password": Property(Kind.STRING, hidden=True)},
)


class Users(Thing):
    schema = TypeSchema(
        "Test::Users",
        properties={
            "size": Property(Kind.INTEGER, update_allowed=True),
            "users": Property(Kind.LIST, items=USER, update_allowed=True),
        },
        attributes=Thing.schema.attributes,
    )


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, types=[Users(World())]) as run:
        yield run


def one_property(users: Json) -> Json:
    return {"users": {"list_concat": [users, {"get_attr": ["later", "value", "list"]}]}}


def all_properties(users: Json) -> Json:
    return {"map_merge": [{"users": users}, {"get_attr": ["later", "value", "map"]}]}


@pytest.mark.parametrize("properties", [one_property, all_properties])
async def test_a_hidden_part_is_shown_nowhere(run: Program, properties: Json) -> None:
    def wanted(password: str) -> Json:
        later = {"type": "json", "value": {"list": [], "map": {"size": 3}}}
        given = properties([{"name": "ann", "password": password}])
        return template(
            {
                "later": {"type": "OS::Heat::Value", "properties": later},
                "a": {"type": "Test::Users", "properties": given},
            }
        )

    environment = {"hooks": [{"at": "a", "on": ["pre-create", "pre-update"]}]}
    await run.create("s", {}, template=wanted(FIRST), environment=environment)
    shown: list[Json] = []

    async def answer() -> None:
        (hook,) = await run.waiting_hooks("s")
        shown.extend([hook, await run.call("GET", f"/hooks/{hook['id']}")])
        await run.signal(hook)

    await answer()
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    changed = {"template": wanted(SECOND), "environment": environment}
    plan = await run.stack_request("PUT", "s", "/preview", changed)
    (one,) = plan["resource_changes"]["updated"]
    assert one["resource_name"] == "a" and "users" in one["changes"]
    shown.append(plan)
    await run.update("s", "PUT", **changed)
    await answer()
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    shown.append(await run.stack_request("GET", "s", "/resources/a"))
    events = [one for one in await run.events("s") if one["resource_name"] == "a"]
    for event in events:
        shown.append(await run.stack_request("GET", "s", f"/resources/a/events/{event['id']}"))
    assert "ann" in json.dumps(changed) and len(events) >= 4
    assert FIRST not in json.dumps(shown) and SECOND not in json.dumps(shown)
