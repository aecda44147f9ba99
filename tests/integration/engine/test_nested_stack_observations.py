"""Observations of resources that own nested stacks: they are missing if their nested stack is gone,
and what differs inside is drift of the resources inside."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from engine.service.repair_credentials import RepairCredentials
from engine.store.observer.nested_states import READ_STATES, read_states
from engine.types.contract import Failed
from engine.types.observation import Difference, Observation
from engine.words import ObservedState
from engine.work.observer.observer import Observer
from tests.integration.engine.test_drift_hooks import (
    HOLD,
    created,
    drift_of,
    hook,
    hooks,
    observe,
    traversals,
)
from tests.support.changes import LONG_WAIT, put, thing, until_started
from tests.support.paused_observers import paused_observer
from tests.support.program import Json, Program, eventually
from tests.support.scripted_type import World

INNER = """
heat_template_version: 2018-08-31
parameters:
  size: {type: number, default: 1}
resources:
  one: {type: Test::Thing, properties: {size: {get_param: size}}}
outputs:
  size: {value: {get_attr: [one, size]}}
"""
OUTER = """
heat_template_version: 2018-08-31
resources:
  inner: {type: inner.yaml, properties: {size: 2}}
outputs:
  size: {value: {get_attr: [inner, size]}}
"""
PAIR = """
heat_template_version: 2018-08-31
resources:
  first: {type: Test::Thing}
  second: {type: Test::Thing}
"""
FILES = {"inner.yaml": INNER, "outer.yaml": OUTER}
WEB: Json = {"type": "inner.yaml"}
REPAIR: Json = {"observe": {"every": "10m"}, "on_drift": "repair"}
MISSING = Observation(ObservedState.MISSING)
CHANGED = Observation(ObservedState.CHANGED, [Difference("size", 1, 7)])
UNKNOWN = Observation.unknown("no answer", "no answer")


@pytest.fixture(scope="module")
def things_settings(paused_observers: None) -> Mapping[str, Any]:
    return {"server.delete_nested_stacks": True}


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def group(type_: str = "inner.yaml", count: int = 3) -> Json:
    definition = {"type": type_}
    return {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": count, "resource_def": definition},
    }


def scaled(type_: str = "inner.yaml", **more: Json) -> Json:
    properties = {"min_size": 1, "max_size": 5, "resource": {"type": type_}, **more}
    return {"type": "OS::Heat::AutoScalingGroup", "properties": properties}


async def child_of(run: Program, *path: str) -> str:
    name = "s"
    for one in path:
        name = (await run.resources(name))[one]["physical_resource_id"]
    return name


async def delete_nested(run: Program, *path: str) -> str:
    """Delete a nested stack by itself, as the operator allows."""
    stack_id = await child_of(run, *path)
    stack = await run.stack(stack_id)
    status, response = await run.call("DELETE", f"/stacks/{stack['stack_name']}/{stack_id}")
    assert status == 204, response

    async def deleted() -> bool:
        code, shown = await run.call("GET", f"/stacks/{stack_id}")
        return code == 404 or shown["stack"]["stack_status"] == "DELETE_COMPLETE"

    await eventually(deleted)
    return stack_id


async def states(run: Program) -> dict[str, str]:
    return {one["path"]: one["state"] for one in await drift_of(run)}


async def inside(run: Program) -> dict[str, tuple[str, str]]:
    """State and reason of resources in whose nested stacks something differs, by path."""
    nested = (await run.stack_request("GET", "s", "/drift"))["nested"]
    return {one["path"]: (one["state"], one["reason"]) for one in nested}


async def inspected(run: Program, *path: str) -> Json:
    *stacks, name = path
    stack_id = await child_of(run, *stacks) if stacks else "s"
    return (await run.stack_request("GET", stack_id, f"/resources/{name}/inspect"))["observed"]


async def planned(run: Program) -> dict[str, list[str]]:
    """The paths of a converge's plan, by kind of change."""
    changes = (await run.stack_request("GET", "s", "/drift/plan"))["resource_changes"]
    return {kind: [one["path"] for one in found] for kind, found in changes.items() if found}


async def drift_events(run: Program) -> list[tuple[str, str]]:
    history = await run.stack_request("GET", "s", "/history?nested=true")
    prefix = "headgate.resource.drift."
    return [
        (one["type"].removeprefix(prefix), one["subject"])
        for one in history["events"]
        if one["type"].startswith(prefix)
    ]


async def test_a_nested_stack_that_is_gone_is_missing_and_created_again(
    run: Program, world: World
) -> None:
    reader = thing({"get_resource": "web"})
    await created(run, {"web": WEB, "reader": reader, "other": thing()}, files=FILES)
    await observe(run)
    assert await drift_of(run) == []
    assert (await inspected(run, "web"))["state"] == "present"
    before = await delete_nested(run, "web")
    await observe(run)
    (drift,) = await drift_of(run)
    assert (drift["path"], drift["state"], drift["reason"]) == (
        "web", "missing", "its nested stack does not exist"
    )  # fmt: skip
    assert await inside(run) == {}
    shown = await inspected(run, "web")
    assert (shown["state"], shown["source"]) == ("missing", "poll")
    found = await hook(run)
    assert (found["path"], found["resource"]["dependents"]) == ("web", ["reader"])
    assert await planned(run) == {
        "updated": ["reader", "web"], "added": ["web/one"], "unchanged": ["other"]
    }  # fmt: skip
    why = await run.stack_request("GET", "s", "/why")
    assert [one["path"] for one in why["drift"]] == ["web"]

    assert (await run.signal(found, "repair"))[0] == 200
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    again = await child_of(run, "web")
    assert again != before
    (referred,) = [one.properties["size"] for one in world.calls if one.resource_name == "reader"][
        -1:
    ]
    assert again in referred
    assert world.operations("other") == ["create"]
    assert len(await traversals(run)) == 2
    await observe(run)
    assert (await drift_of(run), await hooks(run)) == ([], [])
    assert await drift_events(run) == [("detected", "web"), ("resolved", "web")]


async def repaired(run: Program) -> None:
    """Observe the stack, whose policy repairs it, until nothing differs."""
    before = len(await traversals(run))
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert len(await traversals(run)) == before + 1
    await observe(run)
    assert (await drift_of(run), await inside(run)) == ([], {})
    assert len(await traversals(run)) == before + 1


async def test_a_converge_applies_the_plan_that_was_shown(run: Program) -> None:
    """The digest of its plan also covers the nested stack that it creates."""
    resources = {"web": {"type": "outer.yaml"}, "reader": thing({"get_resource": "web"})}
    await created(run, resources, files=FILES)
    before = await delete_nested(run, "web")
    await observe_only(run)
    plans = [await run.stack_request("GET", "s", "/drift/plan") for _ in range(2)]
    assert plans[0]["plan_digest"] == plans[1]["plan_digest"]
    body = {"converge": True, "plan_digest": plans[0]["plan_digest"]}
    async with asyncio.TaskGroup() as tasks:
        update = tasks.create_task(run.update("s", "PATCH", **body))

        async def observed() -> bool:
            await observe_only(run)
            return update.done()

        await eventually(observed)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert await child_of(run, "web") != before
    await observe_only(run)
    assert await drift_of(run) == []


async def test_a_nested_stack_in_a_nested_stack_is_asked_and_repaired_once(
    run: Program, world: World
) -> None:
    resources = {"deep": {"type": "outer.yaml"}, "reader": thing({"get_attr": ["deep", "size"]})}
    await created(run, resources, files=FILES)
    deep = await child_of(run, "deep")
    before = await delete_nested(run, "deep", "inner")
    for _ in range(2):
        await observe(run)
    assert await states(run) == {"deep/inner": "missing"}
    assert await inside(run) == {"deep": ("degraded", "1 of 1 member differs: inner (missing)")}
    shown = await inspected(run, "deep")
    assert (shown["state"], shown["reason"], shown["differences"]) == (
        "degraded", "1 of 1 member differs: inner (missing)", []
    )  # fmt: skip
    assert (await inspected(run, "deep", "inner"))["state"] == "missing"
    # Only the resource inside is reported and held.
    (found,) = await all_hooks(run)
    assert found["path"] == "deep/inner"
    assert await drift_events(run) == [("detected", "deep/inner")]
    plan = await planned(run)
    assert plan["added"] == ["deep/inner/one"] and "replaced" not in plan
    assert {"deep", "deep/inner"} <= {*plan["updated"]}

    assert (await run.signal(found, "repair"))[0] == 200
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert await child_of(run, "deep") == deep
    assert await child_of(run, "deep", "inner") != before
    assert len(await traversals(run)) == 2
    await observe(run)
    assert (await drift_of(run), await inside(run), await all_hooks(run)) == ([], {}, [])
    assert (await inspected(run, "deep"))["state"] == "present"


async def all_hooks(run: Program) -> list[Json]:
    """Hooks about drift that wait, also in nested stacks."""
    _, found = await run.call("GET", "/hooks?state=waiting&point=drift")
    return list(found["hooks"])


@pytest.mark.parametrize("type_", ["resource", "scaling"])
async def test_a_lost_member_stack_of_a_group_is_created_again(
    run: Program, world: World, type_: str
) -> None:
    members = group() if type_ == "resource" else scaled(desired_capacity=3)
    resources = {"group": members, "reader": thing({"get_attr": ["group", "refs"]})}
    await created(run, resources, REPAIR, files=FILES)
    stack = await child_of(run, "group")
    names = sorted(await run.resources(stack))
    lost, *kept = names
    before = {name: await child_of(run, "group", name) for name in names}
    await delete_nested(run, "group", lost)
    await observe_only(run)
    assert await states(run) == {f"group/{lost}": "missing"}
    assert await inside(run) == {
        "group": ("degraded", f"1 of 3 members differs: {lost} (missing)")
    }  # fmt: skip
    assert (await inspected(run, "group"))["state"] == "degraded"
    await repaired(run)
    assert await child_of(run, "group") == stack
    after = {name: await child_of(run, "group", name) for name in await run.resources(stack)}
    assert len(after) == 3 and before[lost] not in after.values()
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert len(set(after.values())) == 3
    (referred,) = [one.properties["size"] for one in world.calls if one.resource_name == "reader"][
        -1:
    ]
    assert all(any(one in reference for reference in referred) for one in after.values())
    assert [path for kind, path in await drift_events(run) if kind == "detected"] == [
        f"group/{lost}"
    ]


async def observe_only(run: Program) -> None:
    """Observe, and repair nothing."""
    registry, policies = paused_observer(run)
    await run.database.pool.execute(
        "update observation_schedule set next_at = now() - interval '1s' where next_at is not null"
    )
    await Observer(run.database, registry, policies).observe_due()


@pytest.mark.parametrize("type_", ["resource", "scaling", "unsized", "chain"])
async def test_a_group_whose_nested_stack_is_gone_is_created_again(
    run: Program, world: World, type_: str
) -> None:
    groups = {
        "resource": group("Test::Thing"),
        "scaling": scaled("Test::Thing", desired_capacity=3),
        "unsized": scaled("Test::Thing", min_size=3),
        "chain": {
            "type": "OS::Heat::ResourceChain", "properties": {"resources": ["Test::Thing"] * 3}
        },
    }  # fmt: skip
    resources = {"group": groups[type_], "reader": thing({"get_resource": "group"})}
    await created(run, resources, REPAIR)
    before = await delete_nested(run, "group")
    await observe_only(run)
    assert await states(run) == {"group": "missing"}
    plan = await planned(run)
    assert plan["updated"] == ["group", "reader"] and len(plan["added"]) == 3
    await repaired(run)
    after = await child_of(run, "group")
    assert after != before and len(await run.resources(after)) == 3
    (referred,) = [one.properties["size"] for one in world.calls if one.resource_name == "reader"][
        -1:
    ]
    assert after in referred
    assert (await inspected(run, "group"))["state"] == "present"


@pytest.mark.parametrize("wanted", ["min_size", "desired_capacity"])
async def test_a_scaling_group_keeps_its_size_if_a_member_is_repaired(
    run: Program, world: World, wanted: str
) -> None:
    """Also without a size in the template."""
    await created(run, {"group": scaled("Test::Thing", **{wanted: 3})}, REPAIR)
    if wanted == "min_size":
        environment = {"convergence": REPAIR}
        smaller = {"group": scaled("Test::Thing", min_size=1)}
        await put(run, "s", smaller, environment=environment)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
    stack = await child_of(run, "group")
    first, *others = await run.resources(stack)
    world.observed[first] = MISSING
    await observe_only(run)
    assert await states(run) == {f"group/{first}": "missing"}
    assert await inside(run) == {
        "group": ("degraded", f"1 of 3 members differs: {first} (missing)")
    }  # fmt: skip
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    after = await run.resources(stack)
    assert len(after) == 3 and {*others} <= {*after}


async def test_members_that_differ_are_named_by_the_group_and_asked_once(
    run: Program, world: World
) -> None:
    """At two levels: the group's nested stack has members, which have nested stacks."""
    files = FILES | {"pair.yaml": PAIR}
    await created(run, {"group": group("pair.yaml", 2)}, files=files)
    world.observed = {"first": CHANGED, "second": UNKNOWN}
    await observe(run)
    members = [f"group/{number}/{one}" for number in (0, 1) for one in ("first", "second")]
    assert await states(run) == dict(zip(members, ["changed", "unknown"] * 2, strict=True))
    reason = "1 of 2 members differs: first (changed); 1 of 2 members has no known state: second"
    assert await inside(run) == {
        "group": ("degraded", "2 of 2 members differ: 0 (degraded), 1 (degraded)"),
        "group/0": ("degraded", f"{reason} (unknown)"),
        "group/1": ("degraded", f"{reason} (unknown)"),
    }
    firsts = ["group/0/first", "group/1/first"]
    assert sorted(one["path"] for one in await all_hooks(run)) == firsts
    assert sorted(path for _, path in await drift_events(run)) == firsts
    world.observed = {"first": UNKNOWN, "second": UNKNOWN}
    await observe(run)
    state, reason = (await inside(run))["group"]
    assert (state, reason) == (
        "unknown", "2 of 2 members have no known state: 0 (unknown), 1 (unknown)"
    )  # fmt: skip
    shown = await inspected(run, "group")
    assert (shown["state"], shown["last_known"]) == ("unknown", None)
    world.observed = {}
    await observe(run)
    assert (await states(run), await inside(run), await all_hooks(run)) == ({}, {}, [])


async def test_a_group_without_some_of_its_members_is_degraded_and_repaired(
    run: Program, world: World
) -> None:
    """As after a delete of its nested stack that did not complete and was not recorded."""
    await created(run, {"group": group("Test::Thing")}, REPAIR)
    stack = await child_of(run, "group")
    await run.database.pool.execute(
        "delete from resource where stack_id = $1 and name = '1'", UUID(stack)
    )
    await observe_only(run)
    (drift,) = await drift_of(run)
    assert (drift["path"], drift["state"], drift["reason"]) == (
        "group", "degraded", "it has 2 members, and its definition says 3"
    )  # fmt: skip
    assert (await planned(run))["added"] == ["group/1"]
    await repaired(run)
    assert await child_of(run, "group") == stack
    assert sorted(await run.resources(stack)) == ["0", "1", "2"]
    assert [world.operations(name).count("create") for name in "012"] == [1, 2, 1]


async def test_a_nested_stack_that_is_partly_deleted_is_degraded_and_repaired(
    run: Program, world: World
) -> None:
    await created(run, {"web": {"type": "pair.yaml"}}, REPAIR, files={"pair.yaml": PAIR})
    stack_id = await child_of(run, "web")
    world.script("delete", "first", Failed("it is in use"))
    name = (await run.stack(stack_id))["stack_name"]
    assert (await run.call("DELETE", f"/stacks/{name}/{stack_id}"))[0] == 204
    assert await run.until_ended(stack_id) == "DELETE_FAILED"
    await observe_only(run)
    found = {one["path"]: (one["state"], one["reason"]) for one in await drift_of(run)}
    assert found["web"] == ("degraded", "the delete of its nested stack did not complete")
    await repaired(run)
    assert await child_of(run, "web") == stack_id
    assert (await run.stack(stack_id))["stack_status"] == "UPDATE_COMPLETE"
    assert sorted(await run.resources(stack_id)) == ["first", "second"]
    assert len([one for one in world.things if one.startswith("second")]) == 1


async def test_a_nested_stack_that_is_being_deleted_is_unknown(run: Program, world: World) -> None:
    await created(run, {"web": WEB}, files=FILES)
    stack_id = await child_of(run, "web")
    world.script("delete", "one", LONG_WAIT)
    name = (await run.stack(stack_id))["stack_name"]
    assert (await run.call("DELETE", f"/stacks/{name}/{stack_id}"))[0] == 204
    await until_started(world, "delete", "one")
    await observe(run)
    (drift,) = await drift_of(run)
    assert (drift["state"], drift["reason"]) == ("unknown", "its nested stack is being deleted")
    assert await all_hooks(run) == []


async def test_tolerated_drift_of_a_nested_stack_is_neither_reported_nor_held(
    run: Program,
) -> None:
    await created(run, {"web": WEB}, HOLD | {"tolerate": "1h"}, files=FILES)
    await delete_nested(run, "web")
    await observe(run)
    assert await states(run) == {"web": "missing"}
    assert (await all_hooks(run), await drift_events(run)) == ([], [])


async def test_an_observation_of_nested_stacks_costs_nothing_and_writes_no_row(
    run: Program, world: World
) -> None:
    """No request, no observation of the quota, and nothing but the schedule if nothing changed."""
    await created(run, {"web": WEB, "group": group("outer.yaml", 2)}, files=FILES)
    await observe(run)
    pool = run.database.pool
    used = "select sum(observations)::integer from observer_usage where project = $1"
    things = 3
    assert await pool.fetchval(used, run.project) == things
    await delete_nested(run, "web")
    unchanged = "select id, xmin::text, ctid::text from resource order by id"
    before = await pool.fetch(unchanged)
    await observe(run)
    rows = await pool.fetch("select xmin::text, ctid::text from observation")
    assert len(rows) == 1
    await observe(run)
    assert await pool.fetch("select xmin::text, ctid::text from observation") == rows
    assert await pool.fetch(unchanged) == before
    assert await pool.fetchval(used, run.project) == things + 2 * (things - 1)
    assert await pool.fetchval("select count(*) from provider_failure") == 0


async def test_the_counts_and_the_time_of_an_observation_include_nested_stacks(
    run: Program, world: World
) -> None:
    await created(run, {"web": WEB, "none": {"type": "OS::Heat::None"}}, files=FILES)
    await observe(run)
    drift = await run.stack_request("GET", "s", "/drift")
    assert (drift["observable_resources"], drift["unobservable_resources"]) == (2, 1)
    assert drift["observed_at"] is not None


class HandedOver:
    """The credential of the project."""

    async def find_for_repairs(self, project: str) -> str:
        return f"credential of {project}"


#: By name: the nested stack that is lost, and whether its resources act in a cloud.
LOST = {
    "thing": ("web", [], WEB, True),
    "thing in a nested stack": ("web", [], {"type": "outer.yaml"}, True),
    "thing in an inner stack": ("web", ["inner"], {"type": "outer.yaml"}, True),
    "group of things": ("web", [], group("Test::Thing"), True),
    "values": ("web", [], {"type": "values.yaml"}, False),
    "group of values": ("web", [], group("OS::Heat::RandomString"), False),
    "alias": ("web", [], {"type": "alias.yaml"}, True),
}
VALUES = """
heat_template_version: 2018-08-31
resources:
  one: {type: OS::Heat::RandomString}
"""


@pytest.mark.parametrize("case", LOST)
async def test_a_repair_of_a_lost_nested_stack_needs_the_credential_of_its_resources(
    run: Program, case: str
) -> None:
    """They have no rows any more, so that only the template says what the repair creates."""
    name, inner, resource, in_cloud = LOST[case]
    files = FILES | {"values.yaml": VALUES, "alias.yaml": VALUES.replace("OS::Heat::Ran", "My::")}
    registry = {"My::domString": "OS::Heat::RandomString"}
    environment = {"convergence": HOLD, "resource_registry": registry}
    stack_id = await run.create("s", {name: resource}, files=files, environment=environment)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    types = paused_observer(run)[0]
    source = RepairCredentials(run.database, types, HandedOver())
    await delete_nested(run, name, *inner)
    found = await source.find(run.project, UUID(stack_id), [name])
    assert found == (f"credential of {run.project}" if in_cloud else "")


async def test_a_nested_stack_does_not_stand_for_a_provider_that_is_paused(
    run: Program, world: World
) -> None:
    """The time of the observation is that of the last one that has asked the provider."""
    await created(
        run, {"a": thing(), "web": {"type": "values.yaml"}}, files={"values.yaml": VALUES}
    )
    world.observed["a"] = Observation.unknown("busy", "busy", retry_after=3600)
    await observe(run)
    asked = (await run.stack_request("GET", "s", "/drift"))["observed_at"]
    assert asked is not None
    await delete_nested(run, "web")
    await observe_only(run)
    assert await states(run) == {"a": "unknown", "web": "missing"}
    assert (await run.stack_request("GET", "s", "/drift"))["observed_at"] == asked


async def test_a_nested_stack_is_not_judged_while_an_operation_is_under_way(
    run: Program, world: World
) -> None:
    """Such as the delete of its resource, which deletes it. Nor are those of other resources that
    have changed since they were read."""
    await created(run, {"web": WEB, "other": WEB}, files=FILES)
    stack_id = UUID((await run.stack("s"))["id"])
    ids = {
        row["name"]: row["id"]
        for row in await run.database.pool.fetch(
            "select id, name from resource where stack_id = $1", stack_id
        )
    }
    world.script("delete", "one", LONG_WAIT)
    await put(run, "s", {"other": WEB}, files=FILES, environment={"convergence": HOLD})
    await until_started(world, "delete", "one")
    async with run.database.connection() as conn:
        found = await read_states(conn, [(stack_id, one) for one in ids.values()])
    assert found.keys() == {(stack_id, ids["other"])}
    state = found[stack_id, ids["other"]].nested
    assert state is not None and (state.action, state.members) == ("CREATE", 1)


#: $1: a stack with the resource 0. $2: how many like it.
ADD_MEMBERS = """
insert into resource select (jsonb_populate_record(r, jsonb_build_object(
    'id', gen_random_uuid(), 'name', 'm' || n, 'physical_id', gen_random_uuid()))).*
  from resource r, generate_series(1, $2::integer) n where stack_id = $1 and name = '0'
"""
#: $1: a stack. $2: how many definitions its template gets, of which each does not compress. The
#: first one is of an object that the stack does not own.
ADD_DEFINITIONS = """
update template set template = jsonb_build_object('resources', (
    select jsonb_object_agg('m' || n, jsonb_build_object('type', 'x', 'note', (
               select string_agg(md5(n || ' ' || part), '') from generate_series(1, 16) part))
               || case when n = 1 then '{"external_id": "theirs"}'::jsonb else '{}' end)
      from generate_series(1, $2::integer) n))
 where stack_id = $1
"""


async def read_blocks(run: Program, stack_id: UUID, members: int) -> tuple[int, list[str]]:
    """How many blocks of tables the states of the members of a group need, and the names of those
    that the stack does not own."""
    pool = run.database.pool
    await pool.execute(ADD_MEMBERS, stack_id, members)
    await pool.execute(ADD_DEFINITIONS, stack_id, members)
    await pool.execute("analyze resource")
    rows = await pool.fetch("select id, name from resource where stack_id = $1", stack_id)
    owners = [stack_id] * len(rows), [one["id"] for one in rows]
    async with run.database.connection() as conn:
        explain = f"explain (analyze, buffers, format json) {READ_STATES}"
        plan = await conn.fetchval(explain, *owners)
        found = await read_states(conn, list(zip(*owners, strict=True)))
    names = {one["id"]: one["name"] for one in rows}
    plan = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]
    blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    await pool.execute("delete from resource where stack_id = $1 and name <> '0'", stack_id)
    return blocks, [names[key] for (_, key), one in found.items() if one.external]


async def test_the_template_of_a_group_is_read_once_and_not_for_each_member(run: Program) -> None:
    await created(run, {"g": group(count=1)}, files=FILES)
    stack_id = UUID(await child_of(run, "g"))
    small, external = await read_blocks(run, stack_id, 100)
    assert external == ["m1"]
    large, _ = await read_blocks(run, stack_id, 400)
    assert large < 6 * small
