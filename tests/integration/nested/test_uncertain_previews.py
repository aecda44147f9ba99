"""What a dry run says about changes that unknown values, failed members or users that stay out of
date decide."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from engine.service.requests import nested_stack
from tests.integration.nested.test_dry_run import kinds
from tests.integration.nested.test_group_previews import (
    by_path,
    preview_create,
    preview_update,
    scaled,
)
from tests.support.program import Json, Program, program, resource, template

HAS_EXTRA: Json = {"equals": [{"get_param": "value"}, "x"]}
PASSED: Json = {"get_param": "value"}
NESTED = json.dumps({
    "heat_template_version": "2018-08-31",
    "parameters": {"value": {"type": "string"}},
    "resources": {"one": resource(), "extra": {**resource(), "condition": HAS_EXTRA}},
})  # fmt: skip
FILES = {"in.yaml": NESTED}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


@pytest.fixture
async def limited(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, {"quotas.resources_per_stack": 40}) as run:
        yield run


def nested(value: Json) -> Json:
    return {"type": "in.yaml", "properties": {"value": value}}


async def created(run: Program, resources: Json, **body: Json) -> None:
    await run.create("s", resources, **body)
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_resources_whose_condition_is_not_known_yet_are_listed(running: Program) -> None:
    before = {"a": resource("x"), "old": nested("x")}
    await created(running, before, files=FILES)
    late = {"get_attr": ["a", "output"]}
    wanted = {"a": resource("y"), "old": nested(late), "new": nested(late)}
    found = await preview_update(running, wanted, files=FILES)
    extra = {path: one["certain"] for path, one in by_path(found).items() if "extra" in path}
    assert extra == {"old/extra": False, "new/extra": False}
    shown = kinds(found)
    assert (shown["old/extra"], shown["new/extra"]) == ("deleted", "added")
    assert by_path(found)["new/one"]["certain"] and by_path(found)["old/one"]["certain"]


async def test_stops_at_resources_whose_condition_is_not_known_yet_are_uncertain(
    running: Program,
) -> None:
    before = {"a": resource("x"), "old": nested("x")}
    await created(running, before, files=FILES)
    late = {"get_attr": ["a", "output"]}
    changed = resource("x")
    changed["properties"]["client_name"] = "c"
    wanted = {"a": changed, "old": nested(late), "new": nested(late)}
    environment = {
        "hooks": [
            {"at": "new/extra", "on": "pre-create"},
            {"at": "new/extra", "on": "pre-update"},
            {"at": "old/extra", "on": "pre-update"},
            {"at": "old/extra", "on": "pre-delete"},
            {"at": "new/one", "on": "pre-create"},
        ],
    }
    found = await preview_update(running, wanted, files=FILES, environment=environment)
    stops = {f"{one['path']}:{one['point']}": one["certain"] for one in found["stops"]}
    assert stops == {
        "new/one:pre-create": True, "new/extra:pre-create": False,
        "old/extra:pre-update": False, "old/extra:pre-delete": False,
    }  # fmt: skip

    # The condition holds: the update waits at the stop that its plan called uncertain.
    environment = {"hooks": [{"at": "new/extra", "on": "pre-create"}]}
    await running.update("s", template=template(wanted), files=FILES, environment=environment)
    (hook,) = await running.waiting_hooks("s")
    assert (hook["path"], hook["point"]) == ("new/extra", "pre-create")


async def test_stops_inside_of_a_nested_stack_whose_condition_is_not_known_yet_are_uncertain(
    running: Program,
) -> None:
    """At every depth, also if the nested stack exists; errors inside count only if it holds."""
    deep = {"heat_template_version": "2018-08-31", "resources": {"leaf": resource()}}
    middle = {
        "heat_template_version": "2018-08-31",
        "parameters": {"value": {"type": "string", "default": "x"}},
        "resources": {
            "deep": {"type": "deep.yaml", "condition": HAS_EXTRA},
            "mid": resource({"get_param": "value"}),
        },
    }
    broken = {"heat_template_version": "2018-08-31", "resources": {"no": {"type": "Nope"}}}
    outer = {
        "heat_template_version": "2018-08-31",
        "parameters": {"value": {"type": "string"}},
        "resources": {
            "sub": {
                "type": "middle.yaml",
                "condition": HAS_EXTRA,
                "properties": {"value": {"get_param": "value"}},
            },
            "wrong": {"type": "broken.yaml", "condition": {"not": HAS_EXTRA}},
        },
    }
    files = {
        "outer.yaml": json.dumps(outer), "middle.yaml": json.dumps(middle),
        "deep.yaml": json.dumps(deep), "broken.yaml": json.dumps(broken),
    }  # fmt: skip

    def stack(value: Json) -> Json:
        return {"type": "outer.yaml", "properties": {"value": value}}

    places = ("mid", "deep/leaf")
    old = [{"at": f"old/sub/{one}", "on": ["pre-update", "pre-delete"]} for one in places]
    new = [{"at": f"new/sub/{one}", "on": "pre-create"} for one in places]
    before = {"a": resource("x"), "old": stack("x")}
    await created(running, before, files=files, environment={"hooks": old})
    late, changed = {"get_attr": ["a", "output"]}, resource("x")
    changed["properties"]["client_name"] = "c"
    wanted = {"a": changed, "old": stack(late), "new": stack(late)}
    environment = {"hooks": old + new}
    found = await preview_update(running, wanted, files=files, environment=environment)
    stops = {f"{one['path']}:{one['point']}": one["certain"] for one in found["stops"]}
    assert stops == dict.fromkeys(
        [
            "new/sub/mid:pre-create", "new/sub/deep/leaf:pre-create",
            "old/sub/mid:pre-update", "old/sub/mid:pre-delete",
            "old/sub/deep/leaf:pre-delete",
        ],
        False,
    )  # fmt: skip
    listed = {path: one["certain"] for path, one in by_path(found).items() if "/sub/" in path}
    assert listed == {
        "new/sub/mid": False, "new/sub/deep": False, "new/sub/deep/leaf": False,
        "old/sub/mid": False, "old/sub/deep": False, "old/sub/deep/leaf": False,
    }  # fmt: skip


async def test_nested_stacks_whose_condition_is_not_known_yet_are_listed_up_to_the_limit(
    database_url: str,
) -> None:
    """A file can own several stacks of itself under such conditions, at each depth."""
    own = {"type": "in.yaml", "condition": HAS_EXTRA, "properties": {"value": PASSED}}
    inside = {
        "heat_template_version": "2018-08-31",
        "parameters": {"value": {"type": "string"}},
        "resources": {"leaf": resource(), **{f"sub{number}": own for number in range(12)}},
    }
    group = {"type": "OS::Heat::ResourceGroup", "properties": {
        "count": 20, "resource_def": resource()}}  # fmt: skip
    wanted = {"a": resource("x"), "new": nested({"get_attr": ["a", "output"]}), "z": group}
    async with program(database_url, {"quotas.resources_per_stack": 40}) as run:
        found = await preview_create(run, wanted, files={"in.yaml": json.dumps(inside)})
    listed = by_path(found)
    leaves = [path for path in listed if path.endswith("/leaf")]
    assert leaves[:2] == ["new/leaf", "new/sub0/leaf"] and len(leaves) == 1 + 40 // 13
    assert all(not listed[path]["certain"] for path in leaves[1:])
    # What will be created is listed nevertheless.
    assert len([path for path in listed if path.startswith("z/")]) == 20


def group(member: Json, count: Json = 2) -> Json:
    properties = {"count": count, "resource_def": member}
    return {"type": "OS::Heat::ResourceGroup", "properties": properties}


CHAIN: Json = {"type": "OS::Heat::ResourceChain", "properties": {
    "resources": ["OS::Heat::TestResource"],
}}  # fmt: skip
SINGLE = json.dumps({"heat_template_version": "2018-08-31", "resources": {"leaf": resource()}})
LATE: Json = {"get_attr": ["a", "output"]}


def with_condition(groups: Json) -> dict[str, str]:
    """The file of a nested stack with groups whose condition is not known before `a` exists."""
    whole = {name: {**one, "condition": HAS_EXTRA} for name, one in groups.items()}
    written = {**json.loads(NESTED), "resources": {"one": resource(), **whole}}
    return {"in.yaml": json.dumps(written), "single.yaml": SINGLE}


async def test_members_of_groups_whose_condition_is_not_known_yet_are_listed(
    running: Program,
) -> None:
    """Those that exist too, and inside of members; without those of unknown or wrong groups."""
    groups = {
        "g": group(resource()),
        "scaled": scaled(1, "x"),
        "chain": CHAIN,
        "files": group({"type": "single.yaml"}, 1),
        "groups": group(group(resource(), 1), 1),
        "values": group(resource(PASSED), 1),
        "counted": group(resource(), {"str_split": [",", PASSED, 0]}),
        "wrong": group({"type": "Nope"}, 1),
    }
    files = with_condition(groups)
    working = with_condition({"g": groups["g"], "groups": groups["groups"]})
    await created(running, {"a": resource("x"), "old": nested("x")}, files=working)
    wanted = {"a": resource("y"), "old": nested(LATE), "new": nested(LATE)}
    hooks = [{"at": "new/g/1", "on": "pre-create"}, {"at": "new/groups/0/0", "on": "pre-create"}]
    found = await preview_update(running, wanted, files=files, environment={"hooks": hooks})
    listed = {path: one["certain"] for path, one in by_path(found).items() if path.count("/") > 1}
    new = ["g/0", "g/1", "chain/0", "files/0", "files/0/leaf", "groups/0", "groups/0/0", "values/0"]
    (member,) = [path for path in listed if path.startswith("new/scaled/")]
    assert {path for path in listed if path.startswith("new/")} == {
        member, *(f"new/{path}" for path in new)
    }  # fmt: skip
    assert not any(listed.values())
    shown = kinds(found)
    assert {shown[path] for path in listed if path.startswith("new/")} == {"added"}
    old = ["old/g/0", "old/g/1", "old/groups/0", "old/groups/0/0"]
    assert [shown[path] for path in old] == ["deleted"] * 4
    assert {f"{one['path']}:{one['point']}": one["certain"] for one in found["stops"]} == {
        "new/g/1:pre-create": False, "new/groups/0/0:pre-create": False,
    }  # fmt: skip


@pytest.mark.parametrize("depth", [1, 2], ids=["groups", "groups-in-groups"])
@pytest.mark.parametrize("count", [3, 12, 10**9])
async def test_members_under_unknown_conditions_are_listed_up_to_the_limit(
    limited: Program, depth: int, count: int
) -> None:
    """A file can own groups of itself under such conditions, at each depth."""
    member: Json = nested(PASSED)
    for _ in range(depth):
        member = group(member, count if member["type"] == "in.yaml" else 1)
    own = {**member, "condition": HAS_EXTRA}
    inside = {
        **json.loads(NESTED),
        "resources": {"leaf": resource(), **{f"sub{number}": own for number in range(3)}},
    }
    wanted = {"a": resource("x"), "new": nested(LATE), "z": group(resource(), 20)}
    found = await preview_create(limited, wanted, files={"in.yaml": json.dumps(inside)})
    listed = by_path(found)
    inner = [path for path in listed if path.startswith("new/sub") and path.count("/") > 1]
    assert len(inner) <= 40
    assert bool(inner) or count > 3  # the members alone are more than a stack may have
    assert not any(listed[path]["certain"] for path in inner)
    # What will be created is listed nevertheless.
    assert len([path for path in listed if path.startswith("z/")]) == 20


async def test_secrets_of_groups_whose_condition_is_not_known_yet_are_masked(
    running: Program,
) -> None:
    secret = {"get_param": "secret"}
    inside = {
        **json.loads(NESTED),
        "parameters": {
            "value": {"type": "string"},
            "secret": {"type": "string", "hidden": True, "default": "s3cr3t-word"},
        },
        "resources": {"g": {**group(resource(secret), 1), "condition": HAS_EXTRA}},
    }
    files = {"in.yaml": json.dumps(inside)}
    await created(running, {"a": resource("x"), "old": nested("x")}, files=files)
    inside["resources"]["g"] = {
        **group(resource({"list_join": ["-", [secret, secret]]}), 1), "condition": HAS_EXTRA,
    }  # fmt: skip
    wanted = {"a": resource("y"), "old": nested(LATE), "new": nested(LATE)}
    found = await preview_update(running, wanted, files={"in.yaml": json.dumps(inside)})
    assert "new/g/0" in by_path(found) and "s3cr3t" not in json.dumps(found)


async def test_a_replaced_nested_stack_that_others_use_stays(running: Program) -> None:
    user = resource({"get_resource": "t"})
    await created(running, {"t": nested("x"), "user": user}, files=FILES)
    chain: Json = {"type": "OS::Heat::ResourceChain", "properties": {
        "resources": ["OS::Heat::TestResource"],
    }}  # fmt: skip
    wanted = {"t": chain, "user": user}
    found = await preview_update(running, wanted, files=FILES)
    assert kinds(found)["t/one"] == "deleted"
    found = await preview_update(running, wanted, files=FILES, only=["t"])
    assert found["out_of_date"] == ["user"]
    assert kinds(found) == {
        "t": "replaced", "t/0": "added", "t/one": "unchanged", "t/extra": "unchanged",
        "user": "unchanged",
    }  # fmt: skip


async def test_unknown_values_decide_which_members_a_rolling_update_removes(
    running: Program,
) -> None:
    rolling = {"rolling_updates": {"min_in_service": 1, "max_batch_size": 1}}
    await created(running, {"a": resource("x"), "s": scaled(1, "x", **rolling)})
    late = {"get_attr": ["a", "output"]}
    wanted = {"a": resource("y"), "s": scaled(1, late, **rolling)}
    found = await preview_update(running, wanted)
    members = {path: one for path, one in by_path(found).items() if path.startswith("s/")}
    assert len(members) == 2 and not any(one["certain"] for one in members.values())
    # Without batches that the group grows for, the same members stay.
    wanted["s"] = scaled(2, late, rolling_updates={"max_batch_size": 2})
    found = await preview_update(running, wanted)
    assert by_path(found)["s/new-1"]["certain"]


async def test_a_failed_member_that_is_replaced_is_the_youngest(running: Program) -> None:
    rolling = {"rolling_updates": {"min_in_service": 2, "max_batch_size": 1}}
    await created(running, {"s": scaled(2, "x", **rolling)})
    rows = await running.stack_request("GET", "s", "/resources?nested_depth=1")
    members = [one for one in rows["resources"] if "parent_resource" in one]
    marked = min(members, key=lambda one: (one["creation_time"], one["resource_name"]))
    inside = next(link["href"] for link in marked["links"] if link["rel"] == "stack")
    url = f"/stacks/{'/'.join(inside.split('/')[-2:])}/resources/{marked['resource_name']}"
    status, _ = await running.call("PATCH", url, {"mark_unhealthy": True})
    assert status == 200
    wanted = {"s": scaled(2, "y", **rolling)}
    found = await preview_update(running, wanted)
    shown = {path: kind for path, kind in kinds(found).items() if path.startswith("s/")}
    await running.update("s", template=template(wanted))
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    rows = await running.stack_request("GET", "s", "/resources?nested_depth=1")
    left = {f"s/{one['resource_name']}" for one in rows["resources"] if "parent_resource" in one}
    deleted = {path for path, kind in shown.items() if kind == "deleted"}
    assert deleted == {f"s/{one['resource_name']}" for one in members} - left
    assert not any(one["certain"] for path, one in by_path(found).items() if path in shown)


async def test_a_replaced_resource_without_an_id_is_listed_until_it_is_deleted(
    running: Program,
) -> None:
    def things(*failing: str) -> Json:
        whole = {"a": resource("x"), "user": resource({"get_resource": "a"})}
        for name in failing:
            whole[name]["properties"]["fail"] = True
        return whole

    await running.create("s", things("a"))
    assert await running.until_ended("s") == "CREATE_FAILED"
    for failing in ("a", "user"):
        await running.update("s", template=template(things(failing)))
        assert await running.until_ended("s") == "UPDATE_FAILED"
    wanted = things()
    found = await preview_update(running, wanted)
    gone = [one["path"] for one in found["resource_changes"]["deleted"]]
    before = {one["id"] for one in await running.events("s")}
    await running.update("s", template=template(wanted))
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    events = [one for one in await running.events("s") if one["id"] not in before]
    deleted = {
        one["resource_name"] for one in events if one["resource_status"] == "DELETE_COMPLETE"
    }
    assert gone == ["a"] and "a" in deleted


@pytest.mark.parametrize(
    "member",
    [
        {"type": "OS::Heat::RandomString", "properties": {"length": "51%index%"}},
        {"type": "many.yaml"},
    ],
    ids=["wrong-members", "wrong-file"],
)
async def test_stacks_that_have_errors_count_towards_the_limit(
    limited: Program, member: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cost as much as those that are listed."""
    built: list[int] = []
    define: Any = getattr(nested_stack, "define_stack")  # noqa: B009

    def count(*args: Any, **options: Any) -> Any:
        built.append(len(options["template"].resources))
        return define(*args, **options)

    monkeypatch.setattr(nested_stack, "define_stack", count)
    groups = member["type"] != "many.yaml"
    wrong = group(member, 15) if groups else member
    broken = {**{f"r{number}": resource() for number in range(14)}, "no": {"type": "Nope"}}
    files = {
        **with_condition({f"g{number}": wrong for number in range(30)}),
        "many.yaml": json.dumps({**json.loads(SINGLE), "resources": broken}),
    }
    found = await preview_create(limited, {"a": resource("x"), "new": nested(LATE)}, files=files)
    assert not any(path.startswith("new/g") and path.count("/") > 1 for path in by_path(found))
    assert [one for one in built if one == 15] == [15] * 2
