"""The region of a stack: where it comes from, who gets it, and that it stays."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType
from engine.types.custom_constraints import CustomConstraint, ValidationContext
from engine.types.live_object import LiveObject
from engine.types.observation import PRESENT, Observation
from engine.types.regions import REGION_CONSTRAINT
from engine.words import Json, ResourceId
from tests.support import forks
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
            "fails": Property(Kind.BOOLEAN, default=False),
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
        if call.properties["fails"]:
            return Failed("no")
        return Done(call.own_name, {"region": call.region})

    def update(self, call: Call) -> Outcome:
        self.calls["update", call.region] += 1
        return Done(call.physical_id, call.attributes)

    def delete(self, call: Call) -> Outcome:
        self.calls["delete", call.region] += 1
        return Done(None)

    async def read_live(self, call: Call, imported: Collection[str]) -> LiveObject:
        self.calls["read", call.region] += 1
        return LiveObject("found", {})

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
    path = f"/stacks/s/{(await run.stack('s'))['id']}/preview"
    other = {"template": template(resources), "environment": region("RegionOne")}
    for method in ("PUT", "PATCH"):
        found = await refused(run, method, **other)
        assert found["place"] == "context.region_name"
        assert found["reason"] == (
            "The stack has resources in the region RegionTwo, so its region cannot become"
            " the region RegionOne."
        )
        assert found["remedy"].startswith("Write context: {region_name: RegionTwo} in")
        status, answer = await run.call(method, path, other)
        assert status == 400 and answer["error"]["findings"][0]["reason"] == found["reason"]
    sent = {"template": template(resources), "environment": region("Three")}
    status, answer = await run.call("PUT", path, sent)
    assert status == 400 and 'there is no region "Three"' in str(answer)
    again = {"template": template(resources), "environment": region("RegionTwo")}
    assert await changed(run, "PUT", **again) == "UPDATE_COMPLETE"
    assert await changed(run, template=template({})) == "UPDATE_COMPLETE"
    # Without resources, it changes if the update names another one.
    assert await changed(run, "PUT", template=template(resources)) == "UPDATE_COMPLETE"
    assert placed.calls["create", "RegionTwo"] == 2
    assert await changed(run, template=template({})) == "UPDATE_COMPLETE"
    assert await changed(run, "PUT", **other) == "UPDATE_COMPLETE"
    assert placed.calls["create", CONFIGURED] == 1


async def shown_context(run: Program, name: str = "s") -> Json:
    return (await run.stack_request("GET", name, "/environment")).get("context")


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("PUT", {}),
        ("PUT", {"environment": {"parameters": {}}}),
        ("PUT", {"environment": {"context": {}}}),
        ("PUT", {"environment": "parameters: {}", "keep_hidden": True}),
        ("PUT", {"environment_files": ["e"], "files": {"e": "parameters: {}"}}),
        ("PATCH", {}),
        ("PATCH", {"environment": {"parameters": {}}}),
        ("PATCH", {"converge": True}),
    ],
    ids=["put", "put-sections", "put-empty", "put-hidden", "put-files", "patch", "patch-sections",
         "converge"],
)  # fmt: skip
async def test_an_update_that_names_no_region_keeps_it(
    run: Program, placed: Placed, method: str, body: Json
) -> None:
    """In its nested stacks too, whose resources do not change."""
    nested = json.dumps(template({"inner": one()}))
    files = {"n.yaml": nested}
    resources = {"a": one(), "nested": {"type": "n.yaml"}}
    await created(run, resources, environment=region("RegionTwo"), files=files)
    sent = {**body, "files": {**files, **body.get("files", {})}}
    sent["template"] = template({**resources, "b": one()})
    path = f"/stacks/s/{(await run.stack('s'))['id']}/preview"
    status, plan = await run.call(method, path, sent)
    assert status == 200, plan
    changes = plan["resource_changes"]
    assert [one["resource_name"] for one in changes["added"]] == ["b"]
    assert not changes["updated"] and not changes["replaced"] and not changes["deleted"]
    sent["plan_digest"] = plan["plan_digest"]
    assert await changed(run, method, **sent) == "UPDATE_COMPLETE"
    assert placed.calls == {("create", "RegionTwo"): 3}
    assert await shown_context(run) == {"region_name": "RegionTwo"}


async def test_a_nested_stack_that_becomes_a_root_stack_keeps_its_region(
    run: Program, placed: Placed
) -> None:
    files = {"n.yaml": json.dumps(template({"inner": one()}))}
    nested = {"type": "n.yaml", "deletion_policy": "Retain"}
    await created(run, {"a": one(), "nested": nested}, environment=region("RegionTwo"), files=files)
    assert await changed(run, "PUT", template=template({"a": one()})) == "UPDATE_COMPLETE"
    _, listed = await run.call("GET", "/stacks")
    [name] = [each["stack_name"] for each in listed["stacks"] if each["stack_name"] != "s"]
    assert await shown_context(run, name) == {"region_name": "RegionTwo"}
    found = await refused(
        run, "PUT", name, template=template({"inner": one()}), environment=region(CONFIGURED)
    )
    assert found["place"] == "context.region_name"
    await run.stack_request("POST", name, "/snapshots", {"name": "kept"})
    assert await run.until_ended(name) == "SNAPSHOT_COMPLETE"
    two = template({"inner": one(), "b": one()})
    assert await changed(run, "PATCH", name, template=two) == "UPDATE_COMPLETE"
    assert await changed(run, "PUT", name, template=template({"inner": one(size=2)})) == (
        "UPDATE_COMPLETE"
    )
    wrong = template({"inner": one(size=2), "c": one(fails=True)})
    state = await changed(run, "PUT", name, template=wrong, disable_rollback=False)
    assert state == "ROLLBACK_COMPLETE"
    [snapshot] = (await run.stack_request("GET", name, "/snapshots"))["snapshots"]
    await run.stack_request("POST", name, f"/snapshots/{snapshot['id']}/restore")
    assert await run.until_ended(name) == "RESTORE_COMPLETE"
    assert {where for _, where in placed.calls} == {"RegionTwo"}
    exported = await run.stack_request("GET", name, "/export")
    assert exported["environment"]["context"] == {"region_name": "RegionTwo"}


async def test_an_adopted_stack_keeps_the_region_of_the_export(
    run: Program, placed: Placed
) -> None:
    await created(run, {"a": one()}, environment=region("RegionTwo"))
    exported = await run.stack_request("DELETE", "s", "/abandon")
    sent = {"stack_name": "s", "adopt_stack_data": json.dumps(exported),
            "environment": {"parameter_defaults": {"p": "x"}}}  # fmt: skip
    status, answer = await run.call("POST", "/stacks", sent)
    assert status == 201, answer
    assert await run.until_ended("s") == "ADOPT_COMPLETE"
    assert await shown_context(run) == {"region_name": "RegionTwo"}
    assert await changed(run, template=template({"a": one(size=2)})) == "UPDATE_COMPLETE"
    assert placed.calls == {("create", "RegionTwo"): 1, ("update", "RegionTwo"): 1}
    exported = await run.stack_request("DELETE", "s", "/abandon")
    sent |= {"adopt_stack_data": json.dumps(exported), "environment": region(CONFIGURED)}
    status, answer = await run.call("POST", "/stacks", sent)
    assert status == 201, answer
    assert await run.until_ended("s") == "ADOPT_COMPLETE"
    assert await shown_context(run) == {"region_name": CONFIGURED}


async def test_a_restore_into_another_region_is_refused(run: Program, placed: Placed) -> None:
    await created(run, {"a": one()})
    await run.stack_request("POST", "s", "/snapshots", {"name": "kept"})
    assert await run.until_ended("s") == "SNAPSHOT_COMPLETE"
    assert await changed(run, template=template({})) == "UPDATE_COMPLETE"
    there = {"template": template({"b": one()}), "environment": region("RegionTwo")}
    assert await changed(run, **there) == "UPDATE_COMPLETE"
    [snapshot] = (await run.stack_request("GET", "s", "/snapshots"))["snapshots"]
    path = f"/stacks/s/{(await run.stack('s'))['id']}/snapshots/{snapshot['id']}/restore"
    status, answer = await run.call("POST", path)
    assert status == 400 and "has resources in the region RegionTwo" in str(answer), answer
    assert await changed(run, template=template({})) == "UPDATE_COMPLETE"
    status, answer = await run.call("POST", path)
    assert status == 202, answer
    assert await run.until_ended("s") == "RESTORE_COMPLETE"
    assert placed.calls["create", ""] == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, region("RegionTwo")), (region("RegionTwo"), region(CONFIGURED))],
    ids=["to-a-region", "to-the-configured-one"],
)
async def test_a_rollback_brings_the_region_back(
    run: Program, placed: Placed, before: Json, after: Json
) -> None:
    """What the failed update has created is deleted in the region of that update."""
    await created(run, {}, environment=before)
    wrong = {"a": one(), "b": {**one(fails=True), "depends_on": "a"}}
    sent = {"template": template(wrong), "environment": after, "disable_rollback": False}
    assert await changed(run, "PUT", **sent) == "ROLLBACK_COMPLETE"
    there = after["context"]["region_name"]
    assert placed.calls == {("create", there): 2, ("delete", there): 2}
    assert await shown_context(run) == before.get("context")
    placed.calls.clear()
    assert await changed(run, template=template({"a": one()})) == "UPDATE_COMPLETE"
    here = before.get("context", {}).get("region_name", "")
    assert placed.calls == {("create", here): 1}


async def test_a_rollback_before_any_resource_brings_the_region_back(
    run: Program, placed: Placed
) -> None:
    await created(run, {}, disable_rollback=False)
    hooks = {"hooks": [{"on": "pre-stack-update"}]}
    sent = {"template": template({"a": one()}), "environment": {**region("RegionTwo"), **hooks}}
    await run.update("s", "PUT", **sent)
    await run.waiting_hooks("s")
    await run.act("s", "cancel_update")
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE"
    assert await changed(run, template=template({"a": one()})) == "UPDATE_COMPLETE"
    assert placed.calls == {("create", ""): 1}


async def test_a_failed_create_keeps_the_region_that_it_named(run: Program, placed: Placed) -> None:
    await run.create(
        "s", {"a": one(fails=True)}, environment=region("RegionTwo"), disable_rollback=False
    )
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE"
    assert await changed(run, template=template({"b": one()})) == "UPDATE_COMPLETE"
    assert placed.calls["create", "RegionTwo"] == 2


async def test_a_rollback_does_not_create_in_one_region_and_delete_in_another(
    run: Program, placed: Placed
) -> None:
    """The last complete version has resources in another region than the failed update."""
    await created(run, {"a": one()})
    gate = {"hooks": [{"on": "post-stack-update"}]}
    await run.update("s", "PUT", template=template({}), environment=gate)
    await run.waiting_hooks("s")
    await run.act("s", "cancel_without_rollback")
    assert await run.until_ended("s") == "UPDATE_FAILED"
    sent = {"template": template({"b": one(fails=True)}), "environment": region("RegionTwo")}
    assert await changed(run, "PUT", disable_rollback=False, **sent) == "UPDATE_FAILED"
    reasons = [each["resource_status_reason"] for each in await run.events("s")]
    [reason] = [each for each in reasons if each.startswith("cannot roll back")]
    assert "The stack has resources in the region RegionTwo" in reason
    assert placed.calls == {("create", ""): 1, ("delete", ""): 1, ("create", "RegionTwo"): 1}
    # The stored environment names no region of its own, and the stack keeps that of its resources.
    assert await changed(run, template=template({"b": one()})) == "UPDATE_COMPLETE"
    assert placed.calls["create", "RegionTwo"] == 2


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
        ("four", region("RegionTwo"), region(CONFIGURED)),
    ):
        await created(run, {}, name, environment=before)
        move = {"from": {"stack": "one", "resource": "a"}, "to": "a"}
        sent = {"template": template({"a": one()}), "environment": after, "moved": [move]}
        if after != region(CONFIGURED):
            found = await refused(run, "PUT", name, **sent)
            assert found["place"] == "moved[0].from"
        else:
            assert await changed(run, "PUT", name, **sent) == "UPDATE_COMPLETE"
    moved = (await run.resources("four"))["a"]
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


async def headgate(run: Program, *arguments: str) -> tuple[int, str, str]:
    command = (*arguments, "--url", run.url, "--project", run.project)
    done = await asyncio.to_thread(forks.run, command, {**os.environ, "HEADGATE_ROLES": ""})
    return done.returncode, done.stdout, done.stderr


async def test_an_import_reads_in_the_region_that_it_names(run: Program, placed: Placed) -> None:
    wanted = {"resources": [{"type": "Test::Placed", "id": "x"}]}
    status, answer = await run.call("POST", "/import", wanted)
    assert (status, answer["findings"]) == (200, [])
    status, answer = await run.call("POST", "/import", {**wanted, **region("RegionTwo")})
    assert (status, answer["findings"]) == (200, [])
    assert placed.calls == {("read", ""): 1, ("read", "RegionTwo"): 1}
    for context, place, text in (
        ({"region_name": "three"}, "context.region_name", 'there is no region "three"'),
        ({"region_name": ""}, "context.region_name", "must be the ID of a region"),
        ({"region": "RegionTwo"}, "context.region", "not a key of context"),
    ):
        status, answer = await run.call("POST", "/import", {**wanted, "context": context})
        assert status == 400, answer
        [found] = answer["error"]["findings"]
        assert found["place"] == place and text in found["reason"]
    assert placed.known.validated == ["RegionTwo", "three"]


async def test_a_stack_of_existing_resources_is_in_the_region_of_the_command(
    run: Program, placed: Placed
) -> None:
    which = ("Test::Placed", "x", "--region")
    code, printed, _ = await headgate(run, "import", *which, "RegionTwo")
    assert code == 0 and "Test::Placed" in printed
    code, _, message = await headgate(run, "import", *which, "three")
    assert code == 1 and 'there is no region "three"' in message
    code, _, message = await headgate(
        run, "stack", "from-resources", "s", *which, "RegionTwo", "--yes", "--wait"
    )
    assert code == 0, message
    assert await shown_context(run) == {"region_name": "RegionTwo"}
    assert placed.calls == {("read", "RegionTwo"): 3}
    await headgate(run, "stack", "delete", "s", "--yes", "--wait")
    assert placed.calls["delete", "RegionTwo"] == 1


@pytest.mark.parametrize("path", ["/validate", "/stacks/preview"])
async def test_values_are_validated_in_the_region_of_the_environment_that_is_sent(
    run: Program, path: str
) -> None:
    """Also those of members and nested stacks."""
    here = one(here="RegionTwo")
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": here}}
    body = {
        "stack_name": "s",
        "template": template({"a": here, "group": group, "nested": {"type": "n.yaml"}}),
        "files": {"n.yaml": json.dumps(template({"inner": here}))},
    }
    status, answer = await run.call("POST", path, {**body, "environment": region("RegionTwo")})
    assert status == 200, answer
    status, answer = await run.call("POST", path, body)
    assert status == 400
    places = {each["place"].partition(".properties")[0] for each in answer["error"]["findings"]}
    assert len(places) == 3, places
