"""Labels of workers: each process executes the operations on the resources that have its labels.

Each process has a world of its own, which records the operations that it has called.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from engine.store.maintenance.processes import read_unserved_labels
from engine.types.contract import Wait
from hub.checks.doctor import check_labels
from tests.support.program import Program, eventually, program, template
from tests.support.scripted_type import Thing, World

Json = Any
EU, US = "region=eu", "region=us"
#: Resources whose name begins with a region.
RULES = [
    {"label": EU, "types": ["Test::Thing"], "resources": ["eu*"]},
    {"label": US, "types": ["Test::*"], "resources": ["us*"]},
]
#: As before, but without a region.
MOVED = [{"label": US, "types": ["Test::Thing"], "resources": ["eu*"]}]


@asynccontextmanager
async def run(
    url: str, world: World, *labels: str, rules: Json = RULES, **engine: Json
) -> AsyncIterator[Program]:
    """A process with all roles, whose workers have these labels."""
    values = {"poll": "1s", "labels": list(labels), "label_rules": rules, **engine}
    settings = {f"engine.{name}": value for name, value in values.items()}
    async with program(url, settings, types=[Thing(world)]) as opened:
        yield opened


def things(*names: str, **properties: Json) -> dict[str, Json]:
    return {name: {"type": "Test::Thing", "properties": properties} for name in names}


async def update(run: Program, name: str, resources: Json) -> None:
    await run.update(name, "PUT", template=template(resources))
    assert await run.until_ended(name) == "UPDATE_COMPLETE"


async def delete(run: Program, name: str) -> None:
    stack = await run.stack(name)
    await run.stack_request("DELETE", name)

    async def gone() -> bool:
        status, _ = await run.call("GET", f"/stacks/{name}/{stack['id']}")
        return status == 404 or (await run.call("GET", f"/stacks/{name}"))[0] == 404

    await eventually(gone)


async def why(run: Program, name: str) -> dict[str, str]:
    """The sentence of each unfinished resource."""
    nodes = (await run.stack_request("GET", name, "/why"))["nodes"]
    return {one["resource_name"]: one["sentence"] for one in nodes}


async def test_each_process_executes_the_resources_of_its_labels(database_url: str) -> None:
    here, eu, us = World(), World(), World()
    async with (
        run(database_url, here) as main,
        run(database_url, eu, EU),
        run(database_url, us, US),
    ):
        await main.create("s", things("eu1", "us1", "eu2", "other"))
        assert await main.until_ended("s") == "CREATE_COMPLETE"
        await main.act("s", "check")
        assert await main.until_ended("s") == "CHECK_COMPLETE"
        await update(main, "s", things("eu1", "us1", "other", size=2))
        await update(main, "s", things("eu1", "us1", "other", size=2, place="there"))
        await delete(main, "s")
    every = ["create", "check", "update", "create", "delete", "delete"]
    assert {name: here.operations(name) for name in ("eu1", "us1", "eu2", "other")} == {
        "eu1": [], "us1": [], "eu2": [], "other": every,
    }  # fmt: skip
    assert (eu.operations("eu1"), eu.operations("eu2")) == (every, ["create", "check", "delete"])
    assert {name for _, name in eu.done} == {"eu1", "eu2"}
    assert us.operations("us1") == every and {name for _, name in us.done} == {"us1"}


async def test_work_without_a_process_waits_says_why_and_goes_when_one_starts(
    database_url: str,
) -> None:
    here, eu = World(), World()
    async with run(database_url, here) as main, run(database_url, World(), US):
        await main.create("s", things("eu1", "other"))

        async def waits() -> bool:
            return set(await why(main, "s")) == {"eu1"}

        await eventually(waits)
        assert (await why(main, "s"))["eu1"] == (
            "eu1 (create) is ready and waits for a worker with the label region=eu; no running"
            " process has this label."
        )
        async with main.database.connection() as conn:
            (unserved,) = await read_unserved_labels(conn)
            assert (unserved.label, unserved.nodes) == (EU, 1)
            # Workers without the label do not look at the stack again and again.
            assert await conn.fetchval("select wake_at from traversal") is None
            (warning,) = [one async for one in check_labels(conn)]
        assert (warning.check, warning.state) == ("labels", "warning")
        assert "1 node waits for a worker with the label region=eu since" in warning.reason
        assert warning.remedy == (
            'Start a process with the role engine and [engine] labels = ["region=eu"]'
        )
        metrics = (await main.call("GET", "//metrics"))[1]
        assert 'headgate_unserved_nodes{label="region=eu"} 1.0' in metrics
        inspected = await main.stack_request("GET", "s", "/resources/eu1/inspect")
        assert (inspected["label"], inspected["nodes"][0]["label"]) == (EU, EU)
        async with run(database_url, eu, EU):
            assert await main.until_ended("s") == "CREATE_COMPLETE"
            _, listed = await main.call("GET", "/services")
            labels = [one["labels"] for one in listed["services"] if one["topic"] == "engine"]
            assert sorted(labels) == [[], [EU], [US]]
        async with main.database.connection() as conn:
            assert await read_unserved_labels(conn) == []
    assert (here.operations("eu1"), eu.operations("eu1")) == ([], ["create"])


async def test_an_update_changes_the_label_and_a_delete_uses_the_stored_one(
    database_url: str,
) -> None:
    here, eu = World(), World()
    us = World(things=eu.things)
    async with run(database_url, eu, EU), run(database_url, us, US):
        async with run(database_url, here) as main:
            await main.create("s", things("eu1", "eu2", "eu3", "eu4"))
            assert await main.until_ended("s") == "CREATE_COMPLETE"
        async with run(database_url, here, rules=MOVED) as main:
            # Without an update, all stay where they are.
            await main.act("s", "check")
            assert await main.until_ended("s") == "CHECK_COMPLETE"
            assert {name for _, name in eu.done} == {"eu1", "eu2", "eu3", "eu4"} and not us.done
            # Updated, replaced, unchanged, and deleted.
            await update(
                main, "s",
                things("eu1", size=2) | things("eu2", place="there") | things("eu3"),
            )  # fmt: skip
            await main.act("s", "check")
            assert await main.until_ended("s") == "CHECK_COMPLETE"
            await delete(main, "s")
    assert eu.operations("eu1") == ["create", "check"]
    assert us.operations("eu1") == ["update", "check", "delete"]
    assert eu.operations("eu2") == ["create", "check", "delete"]  # of the replaced one
    assert us.operations("eu2") == ["create", "check", "delete"]
    assert (eu.operations("eu3"), us.operations("eu3")) == (
        ["create", "check"], ["check", "delete"],
    )  # fmt: skip
    assert (eu.operations("eu4"), us.operations("eu4")) == (["create", "check", "delete"], [])
    assert not here.done


async def test_hooks_timers_and_dependencies_lead_back_to_the_label(database_url: str) -> None:
    here, eu = World(), World()
    eu.script("create", "eu2", Wait(datetime.now(UTC), {"left": 1}))
    resources = things("eu1", "eu2", "other")
    resources["other"]["depends_on"] = "eu1"
    resources["eu2"]["depends_on"] = "other"
    hooks = {"resource_registry": {"resources": {"eu1": {"hooks": "pre-create"}}}}
    async with run(database_url, here) as main, run(database_url, eu, EU):
        await main.create("s", resources, environment=hooks)
        (hook,) = await main.waiting_hooks("s")
        assert (await main.signal(hook))[0] == 200
        assert await main.until_ended("s") == "CREATE_COMPLETE"
    assert [name for _, name in here.done] == ["other"]
    assert [name for _, name in eu.done] == ["eu1", "eu2", "eu2"]


async def test_a_preview_shows_labels(database_url: str) -> None:
    resources = things("eu1", "eu2", "other")
    # The condition is not known yet.
    resources["eu2"]["condition"] = {"equals": [{"get_param": "OS::stack_id"}, "x"]}
    async with run(database_url, World()) as main:
        body = {"stack_name": "s", "template": template(resources)}
        _, preview = await main.call("POST", "/stacks/preview", body)
    changes = preview["stack"]["resource_changes"]["added"]
    assert {one["resource_name"]: one["label"] for one in changes} == {
        "eu1": EU, "eu2": EU, "other": None,
    }  # fmt: skip


async def test_one_process_can_also_execute_what_has_no_label(database_url: str) -> None:
    """Alone, with more due stacks than one claim locks, of several projects."""
    world = World()
    async with run(database_url, world, EU, unlabelled=True) as only:
        names = [f"s{number}" for number in range(24)]
        for number, name in enumerate(names):
            only.project = f"p{number % 3}"
            await only.create(name, things("eu1", "other"))
        for number, name in enumerate(names):
            only.project = f"p{number % 3}"
            assert await only.until_ended(name) == "CREATE_COMPLETE"
    assert sorted(world.done) == sorted([("create", "eu1"), ("create", "other")] * len(names))


OFFERED = [{"label": EU, "on_request": True}, {"label": US, "projects": ["q"], "on_request": True}]
INNER: Json = template(
    things("a", "b") | {"deep": {"type": "deep.yaml"}},
    parameters={"n": {"type": "string", "default": ""}},
)
FILES = {
    "inner.yaml": json.dumps(INNER), "deep.yaml": json.dumps(template(things("c", "d"))),
}  # fmt: skip
NESTED = things("top", "plain") | {"in": {"type": "inner.yaml"}, "out": {"type": "inner.yaml"}}


def requesting(resources: Json) -> Json:
    """An environment that requests labels for resources."""
    return {"resource_registry": {"resources": resources}}


async def labels_of(run: Program, name: str) -> dict[str, str]:
    """The stored labels of the things of a stack and its nested stacks, by path."""
    async with run.database.connection() as conn:
        rows = await conn.fetch(PATHS_WITH_LABELS, name)
    return {row["path"]: row["label"] for row in rows}


PATHS_WITH_LABELS = """
with recursive tree as (
    select id, '' as path from stack where name = $1
    union all
    select s.id, t.path || r.name || '/' from tree t
      join resource r on r.stack_id = t.id join stack s on s.id::text = r.physical_id
)
select t.path || r.name as path, r.label from tree t join resource r on r.stack_id = t.id
 where r.type = 'Test::Thing' and r.label is not null
"""


async def test_environments_request_labels_for_resources_and_their_nested_stacks(
    database_url: str,
) -> None:
    here, eu = World(), World()
    async with (
        run(database_url, here, rules=OFFERED) as main,
        run(database_url, eu, EU, rules=OFFERED),
    ):
        asked = {
            "t*": {"label": EU},
            "in": {"label": EU, "b": {"label": ""}, "deep": {"c": {"label": None}}},
            "out": {"a": {"label": EU}},
        }
        sent = {"files": FILES, "environment": requesting(asked)}
        body = {"stack_name": "s", "template": template(NESTED), **sent}
        _, preview = await main.call("POST", "/stacks/preview", body)
        changes = preview["stack"]["resource_changes"]["added"]
        shown = {one["path"]: one["label"] for one in changes if one["label"]}
        await main.create("s", NESTED, **sent)
        assert await main.until_ended("s") == "CREATE_COMPLETE"
        expected = dict.fromkeys(("top", "in/a", "in/deep/d", "out/a"), EU)
        assert await labels_of(main, "s") == expected
        assert {path for path in shown if path.rpartition("/")[2] not in ("in", "deep")} == {
            *expected
        }
        assert sorted(name for _, name in eu.done) == ["a", "a", "d", "top"]
        assert sorted(name for _, name in here.done) == ["b", "b", "c", "c", "d", "plain"]
        # An update stores the labels also of what it does not change, and without a request none.
        sent["environment"] = requesting({**asked, "plain": {"label": EU}})
        await main.update("s", "PUT", template=template(NESTED), **sent)
        assert await main.until_ended("s") == "UPDATE_COMPLETE"
        assert await labels_of(main, "s") == {**expected, "plain": EU}
        await main.update("s", "PUT", template=template(NESTED), files=FILES, environment={})
        assert await main.until_ended("s") == "UPDATE_COMPLETE"
        assert "top" not in await labels_of(main, "s")


async def test_a_requested_label_without_a_process_waits_and_says_why(database_url: str) -> None:
    async with run(database_url, World(), rules=OFFERED) as main:
        environment = requesting({"*": {"label": EU}})
        await main.create("s", {"in": {"type": "deep.yaml"}}, files=FILES, environment=environment)

        async def waiting() -> dict[str, str]:
            found = await why(main, "s")
            return {name: one for name, one in found.items() if "label" in one}

        found = await eventually(waiting)
        assert found == {
            "in": "in (create) is ready and waits for a worker with the label region=eu; no running"
            " process has this label."
        }


async def test_a_requested_label_that_no_resource_gets_is_a_warning(database_url: str) -> None:
    rules = [{"label": EU, "types": ["OS::Nova::*"], "on_request": True}]
    asked = {"w*": {"label": EU}, "in": {"label": EU}}  # the nested stack may have servers
    body = {"stack_name": "s", "template": template(NESTED | things("web")), "files": FILES,
            "environment": requesting(asked)}  # fmt: skip
    async with run(database_url, World(), rules=rules) as main:
        for path in ("/stacks/preview", "/stacks"):
            status, done = await main.call("POST", path, body)
            (warning,) = done.get("warnings") or done["stack"]["warnings"]
            assert status in (200, 201)
            assert warning["code"] == "NoEffect"
            assert warning["path"] == "resource_registry.resources.w*.label"
            assert (
                "web (Test::Thing). Remove it. Types with this label: OS::Nova::*."
                in (warning["message"])
            )
        status, refused = await main.call(
            "POST", "/stacks", body | {"stack_name": "t", "strict": True}
        )
        assert status == 400 and "has no effect" in str(refused)


async def test_a_label_that_is_not_offered_to_the_project_is_refused(database_url: str) -> None:
    async with run(database_url, World(), rules=OFFERED) as main:
        for asked, place, remedy in (
            ({"w*": {"label": "zone=plant7"}}, "w*.label", "Offered: region=eu."),
            ({"in": {"b": {"label": "region=eo"}}}, "in.b.label", 'Did you mean "region=eu"?'),
        ):
            body = {"stack_name": "s", "template": template(NESTED), "files": FILES,
                    "environment": requesting(asked)}  # fmt: skip
            for path in ("/stacks", "/stacks/preview"):
                status, refused = await main.call("POST", path, body)
                (finding,) = refused["error"]["findings"]
                assert status == 400
                assert finding["place"] == f"resource_registry.resources.{place}"
                assert "is not offered to this project" in finding["reason"]
                assert remedy in finding["remedy"]
        main.project = "q"
        await main.create("s", {}, environment=requesting({"*": {"label": US}}))
    async with run(database_url, World()) as main:
        body = {"stack_name": "t", "template": template({}),
                "environment": requesting({"*": {"label": US}})}  # fmt: skip
        status, refused = await main.call("POST", "/stacks", body)
        assert status == 400 and "with on_request = true" in str(refused)
