"""The region of a stack: where it comes from, who gets it, and that it stays."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.types.custom_constraints import CustomConstraint, ValidationContext
from engine.types.observation import PRESENT, Observation
from engine.types.regions import REGION_CONSTRAINT
from engine.words import Json, ResourceId
from tests.support.changes import observed
from tests.support.program import Program, template

CONFIGURED = "RegionOne"


class KnownRegion(CustomConstraint):
    """validated: the regions that were validated."""

    name = REGION_CONSTRAINT

    def __init__(self) -> None:
        self.validated: list[Json] = []

    def validate(self, value: Json, context: ValidationContext) -> str | None:
        self.validated.append(value)
        return None if value in ("RegionOne", "RegionTwo") else f'there is no region "{value}"'


class SameRegion(CustomConstraint):
    """The value is the region of the stack."""

    name = "placed.here"

    def validate(self, value: Json, context: ValidationContext) -> str | None:
        return None if value == (context.region or "none") else f"it is not {context.region}"


class Placed(ResourceType):
    """Its attribute `region` is that of its create. calls: the number of calls by operation and
    region. observed: the regions of the calls of each observation."""

    schema = TypeSchema(
        "Test::Placed",
        properties={
            "here": Property(
                Kind.STRING, constraints=(Constraint("custom_constraint", name="placed.here"),)
            ),
            "size": Property(Kind.INTEGER, default=1, update_allowed=True),
        },
        attributes={"region": Attribute(Kind.STRING)},
    )

    def __init__(self) -> None:
        self.known = KnownRegion()
        self.constraints = (self.known, SameRegion())
        self.calls: Counter[tuple[str, str]] = Counter()
        self.observed: list[set[str]] = []

    def create(self, call: Call) -> Outcome:
        self.calls["create", call.region] += 1
        return Done(call.own_name, {"region": call.region})

    def update(self, call: Call) -> Outcome:
        self.calls["update", call.region] += 1
        return Done(call.physical_id, call.attributes)

    def delete(self, call: Call) -> Outcome:
        self.calls["delete", call.region] += 1
        return Done(None)

    def observation_key(self, call: Call) -> str | None:
        return "all"

    def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        self.observed.append({call.region for call in calls})
        return {call.resource_id: PRESENT for call in calls}


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return {"resource_types.openstack.region": CONFIGURED}


@pytest.fixture(scope="module")
def shared_types() -> Sequence[Placed]:
    return [Placed()]


@pytest.fixture
def placed(shared_types: Sequence[Placed]) -> Placed:
    (only,) = shared_types
    only.calls.clear()
    only.observed.clear()
    only.known.validated.clear()
    return only


@pytest.fixture
def run(in_own_project: Program, placed: Placed) -> Program:
    return in_own_project


def one(**properties: Json) -> Json:
    return {"type": "Test::Placed", "properties": properties}


def region(name: str) -> Json:
    return {"context": {"region_name": name}}


async def created(run: Program, resources: Json, name: str = "s", **body: Json) -> None:
    await run.create(name, resources, **body)
    assert await run.until_ended(name) == "CREATE_COMPLETE", await run.events(name)


async def changed(run: Program, method: str = "PATCH", name: str = "s", **body: Json) -> str:
    await run.update(name, method, **body)
    return await run.until_ended(name)


async def refused(run: Program, method: str = "PUT", name: str = "s", **body: Json) -> Json:
    """The first finding of an update that is refused."""
    path = f"/stacks/{name}/{(await run.stack(name))['id']}"
    status, answer = await run.call(method, path, body)
    assert status == 400, answer
    return answer["error"]["findings"][0]


async def test_all_operations_of_a_stack_and_its_nested_stacks_get_the_region(
    run: Program, placed: Placed
) -> None:
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 1, "resource_def": one(here="RegionTwo")},
    }
    resources = {"a": one(here="RegionTwo"), "group": group, "nested": {"type": "n.yaml"}}
    files = {"n.yaml": json.dumps(template({"inner": one(here="RegionTwo")}))}
    await created(run, resources, environment=region("RegionTwo"), files=files)
    assert placed.calls == {("create", "RegionTwo"): 3}
    # Not again for each nested stack: a short failure of Keystone would fail it.
    assert placed.known.validated == ["RegionTwo"]
    shown = await run.stack_request("GET", "s", "/environment")
    assert shown["context"] == {"region_name": "RegionTwo"}
    resources["a"] = one(here="RegionTwo", size=2)
    assert await changed(run, template=template(resources)) == "UPDATE_COMPLETE"
    assert placed.calls["update", "RegionTwo"] == 1
    stored = "select count(distinct region) from stack where name = 's' or root_id is not null"
    assert await run.database.pool.fetchval(stored) == 1


async def test_stacks_of_different_regions_are_observed_by_different_calls(
    run: Program, placed: Placed
) -> None:
    await created(run, {"a": one(), "b": one()}, "one")
    await created(run, {"a": one()}, "two", environment=region("RegionTwo"))
    assert placed.calls == {("create", ""): 2, ("create", "RegionTwo"): 1}
    for name in ("one", "two"):
        await observed(run, name)
    assert sorted(map(sorted, placed.observed)) == [[""], ["RegionTwo"]]


async def test_the_region_of_a_stack_with_resources_stays(run: Program, placed: Placed) -> None:
    resources = {"a": one()}
    await created(run, resources, environment=region("RegionTwo"))
    environments: list[Json] = [{}, region("RegionOne")]
    for environment in environments:
        body = {"template": template(resources), "environment": environment}
        found = await refused(run, **body)
        assert found["place"] == "context.region_name"
        assert found["reason"] == (
            "The stack has resources in the region RegionTwo, so its region cannot become"
            " the region RegionOne."
        )
        assert found["remedy"].startswith("Write context: {region_name: RegionTwo} in")
    path = f"/stacks/s/{(await run.stack('s'))['id']}/preview"
    status, answer = await run.call("PUT", path, {"template": template(resources)})
    assert status == 400 and "context.region_name" in str(answer)
    sent = {"template": template(resources), "environment": region("Three")}
    status, answer = await run.call("PUT", path, sent)
    assert status == 400 and 'there is no region "Three"' in str(answer)
    again = {"template": template(resources), "environment": region("RegionTwo")}
    assert await changed(run, "PUT", **again) == "UPDATE_COMPLETE"
    assert await changed(run, template=template({})) == "UPDATE_COMPLETE"
    assert await changed(run, "PUT", template=template(resources)) == "UPDATE_COMPLETE"
    assert placed.calls["create", ""] == 1


async def test_the_configured_region_can_be_named_later(run: Program, placed: Placed) -> None:
    await created(run, {"a": one()})
    both = template({"a": one(), "b": one()})
    body = {"template": both, "environment": region(CONFIGURED)}
    assert await changed(run, "PUT", **body) == "UPDATE_COMPLETE"
    assert placed.calls == {("create", ""): 1, ("create", CONFIGURED): 1}
    found = await refused(run, template=both, environment=region("RegionTwo"))
    assert "RegionOne" in found["reason"]


async def test_resources_move_within_a_region_only(run: Program) -> None:
    await created(run, {"a": one(), "b": one()}, "one")
    await created(run, {"c": one()}, "two", environment=region("RegionTwo"))
    move = {"from": {"stack": "one", "resource": "a"}, "to": "d"}
    wanted = template({"c": one(), "d": one()})
    environment = region("RegionTwo")
    found = await refused(run, "PUT", "two", template=wanted, environment=environment, moved=[move])
    assert found["place"] == "moved[0].from"
    assert found["reason"] == (
        "the other stack is in the region RegionOne, and this one in the region RegionTwo"
    )


async def test_a_move_into_an_empty_stack_is_into_its_region_after_the_update(run: Program) -> None:
    await created(run, {"a": one(), "b": one()}, "one")
    for name, before, after in (
        ("two", {}, region("RegionTwo")),
        ("three", region("RegionTwo"), {}),
    ):
        await created(run, {}, name, environment=before)
        move = {"from": {"stack": "one", "resource": "a"}, "to": "a"}
        sent = {"template": template({"a": one()}), "environment": after, "moved": [move]}
        if after:
            found = await refused(run, "PUT", name, **sent)
            assert found["place"] == "moved[0].from"
        else:
            assert await changed(run, "PUT", name, **sent) == "UPDATE_COMPLETE"
    moved = (await run.resources("three"))["a"]
    assert moved["physical_resource_id"].startswith("one-a-")


@pytest.mark.parametrize("path", ["/stacks", "/validate", "/stacks/preview"])
async def test_an_unknown_region_is_refused_before_values_are_validated_there(
    run: Program, path: str
) -> None:
    body = {"stack_name": "s", "template": template({"a": one(here="x")}),
            "environment": region("three")}  # fmt: skip
    status, answer = await run.call("POST", path, body)
    assert status == 400
    (found,) = answer["error"]["findings"]
    assert found["place"] == "context.region_name"
    assert 'there is no region "three"' in found["reason"]
