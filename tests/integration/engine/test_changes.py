"""Stacks are created, updated, stopped, resumed and deleted, with hooks."""

import asyncio
from uuid import UUID

import pytest

from engine.store.encryption.secret_values import Scope, decrypt
from engine.work.archive import archive_graphs
from tests.support.changes import expire_hook
from tests.support.program import Program, resource

HOOK_AT_B = {"resource_registry": {"resources": {"b": {"hooks": "pre-create"}}}}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def reasons(events: list[dict[str, str]], name: str) -> list[str]:
    return [
        f"{one['resource_status']} {one['resource_status_reason']}"
        for one in events
        if one["resource_name"] == name
    ]


def position(events: list[dict[str, str]], name: str, status: str) -> int:
    return next(
        index
        for index, one in enumerate(events)
        if one["resource_name"] == name and one["resource_status"] == status
    )


async def test_a_create_and_a_delete_keep_the_order_of_dependencies(running: Program) -> None:
    stack = await running.create(
        "s",
        {
            "c": resource(depends_on=["a", "b"]),
            "a": resource(),
            "b": {"type": "OS::Heat::TestResource", "properties": {"value": {"get_attr": ["a", "output"]}}},
        },
    )  # fmt: skip
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    events = await running.events("s")
    assert position(events, "a", "CREATE_COMPLETE") < position(events, "b", "CREATE_IN_PROGRESS")
    assert position(events, "b", "CREATE_COMPLETE") < position(events, "c", "CREATE_IN_PROGRESS")
    assert events[0]["resource_status_reason"] == "Stack CREATE started"
    assert events[-1]["resource_status_reason"] == "Stack CREATE completed successfully"
    assert (await running.call("DELETE", f"/stacks/s/{stack}"))[0] == 204
    assert await running.until_ended(stack) == "DELETE_COMPLETE"
    events = await running.events(stack)
    assert position(events, "c", "DELETE_COMPLETE") < position(events, "b", "DELETE_IN_PROGRESS")
    assert position(events, "b", "DELETE_COMPLETE") < position(events, "a", "DELETE_IN_PROGRESS")
    await archive_graphs(running.database)
    left = await running.database.pool.fetchval("select count(*) from resource")
    assert left + await running.database.pool.fetchval("select count(*) from node") == 0
    assert (await running.call("GET", "/stacks/s"))[0] == 404


async def test_resources_that_do_not_depend_on_a_failed_one_complete(running: Program) -> None:
    failing = {"type": "OS::Heat::TestResource", "properties": {"fail": True}}
    slow = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 0.3}}
    await running.create("s", {"bad": failing, "after": resource(depends_on="bad"), "slow": slow})
    assert await running.until_ended("s") == "CREATE_FAILED"
    stack = await running.stack("s")
    assert stack["stack_status_reason"] == (
        "Resource CREATE failed: OS::Heat::TestResource: resources.bad: Test Resource failed"
    )
    found = await running.resources("s")
    assert found["slow"]["resource_status"] == "CREATE_COMPLETE"
    assert found["after"]["resource_status"] == "INIT_COMPLETE"
    good = {"bad": resource(), "after": resource(depends_on="bad"), "slow": slow}
    await running.update(
        "s", "PUT", template={"heat_template_version": "2018-08-31", "resources": good}
    )
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    after = await running.resources("s")
    assert {one["resource_status"] for one in after.values()} == {"CREATE_COMPLETE"}
    assert after["slow"]["physical_resource_id"] == found["slow"]["physical_resource_id"]


async def test_a_replacement_is_created_and_its_dependents_updated_before_the_old_is_deleted(
    running: Program,
) -> None:
    def resources(salt: str) -> dict[str, object]:
        user = {"type": "OS::Heat::TestResource", "properties": {"value": {"get_resource": "r"}}}
        return {
            "r": {"type": "OS::Heat::RandomString", "properties": {"salt": salt}},
            "user": user,
            "other": resource(),
        }

    await running.create("s", resources("1"))
    await running.until_ended("s")
    before = await running.resources("s")
    seen = len(await running.events("s"))
    await running.update(
        "s", "PUT", template={"heat_template_version": "2018-08-31", "resources": resources("2")}
    )
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    after = await running.resources("s")
    events = (await running.events("s"))[seen:]
    assert position(events, "r", "CREATE_COMPLETE") < position(events, "user", "UPDATE_IN_PROGRESS")
    assert position(events, "user", "UPDATE_COMPLETE") < position(events, "r", "DELETE_IN_PROGRESS")
    assert after["r"]["physical_resource_id"] != before["r"]["physical_resource_id"]
    assert after["user"]["physical_resource_id"] == before["user"]["physical_resource_id"]
    assert not [one for one in events if one["resource_name"] == "other"]
    assert await running.database.pool.fetchval("select count(*) from resource") == 3


async def test_an_unchanged_update_calls_no_operation(running: Program) -> None:
    await running.create("s", {"a": resource(), "b": resource(depends_on="a")})
    await running.until_ended("s")
    seen = len(await running.events("s"))
    await running.update("s")
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert [one["resource_name"] for one in (await running.events("s"))[seen:]] == ["s", "s"]


async def test_hooks_of_an_update_open_for_added_changed_and_removed_resources(
    running: Program,
) -> None:
    await running.create("s", {"gone": resource(), "kept": resource("1")})
    await running.until_ended("s")
    hooks = [{"at": "*", "on": ["pre-create", "pre-update", "pre-delete"], "mode": "wait"}]
    await running.update(
        "s",
        "PUT",
        template={
            "heat_template_version": "2018-08-31",
            "resources": {"kept": resource("2"), "fresh": resource()},
        },
        environment={"hooks": hooks},
    )
    waiting = await running.waiting_hooks("s", 2)
    points = {hook["resource_name"]: hook["point"] for hook in waiting}
    assert points == {"kept": "pre-update", "fresh": "pre-create"}
    changed = next(hook for hook in waiting if hook["resource_name"] == "kept")
    assert changed["resource"]["changes"] == {"value": {"from": "1", "to": "2"}}
    for hook in waiting:
        assert (await running.signal(hook))[0] == 200
    (last,) = await running.waiting_hooks("s")
    assert (last["resource_name"], last["point"]) == ("gone", "pre-delete")
    assert (await running.signal(last))[0] == 200
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert set(await running.resources("s")) == {"kept", "fresh"}


async def test_a_rejected_hook_fails_the_operation_and_an_update_continues(
    running: Program,
) -> None:
    await running.create(
        "s", {"a": resource(), "b": resource(depends_on="a")}, environment=HOOK_AT_B
    )
    (hook,) = await running.waiting_hooks("s")
    status, response = await running.signal(hook, "reject", reason="not today")
    assert status == 200 and response["decision"] == "reject"
    assert await running.until_ended("s") == "CREATE_FAILED"
    assert (
        "pre-create rejected by anonymous: not today"
        in (await running.stack("s"))["stack_status_reason"]
    )
    await running.update("s", hooks={"clear": ["*"]})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"


async def test_an_expired_hook_stops_the_stack_and_a_patch_resumes_it(running: Program) -> None:
    rule = {"at": "b", "on": "pre-create", "timeout": "1h"}
    await running.create(
        "s",
        {"a": resource(), "b": resource(depends_on="a"), "c": resource(depends_on="b"), "d": resource()},
        environment={"hooks": [rule]},
    )  # fmt: skip
    hook = await expire_hook(running)
    assert await running.until_ended("s") == "CREATE_STOPPED"
    events = await running.events("s")
    assert events[-1]["resource_status"] == "CREATE_FAILED"
    assert events[-1]["resource_status_reason"].startswith("Stopped: b ")
    status, response = await running.signal(hook)
    assert status == 409 and response["error"]["type"] == "StackStopped"
    assert response["error"]["remedy"] and response["error"]["decision"] == "stop"
    before = await running.resources("s")
    assert {n: r["resource_status"] for n, r in before.items()} == {
        "a": "CREATE_COMPLETE", "b": "INIT_COMPLETE", "c": "INIT_COMPLETE", "d": "CREATE_COMPLETE",
    }  # fmt: skip
    await running.update("s", hooks={"clear": ["b:pre-create"], "add": ["c:post-create"]})
    (hook,) = await running.waiting_hooks("s")
    assert (hook["resource_name"], hook["point"]) == ("c", "post-create")
    assert (await running.signal(hook))[0] == 200
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    after = await running.resources("s")
    assert after["a"]["physical_resource_id"] == before["a"]["physical_resource_id"]


async def test_on_timeout_of_the_rule_decides_at_the_deadline(running: Program) -> None:
    hooks = [
        {"at": "go", "on": "pre-create", "timeout": "1s", "on_timeout": "continue"},
        {"at": "no", "on": "pre-create", "timeout": "1s", "on_timeout": "reject"},
    ]
    await running.create("s", {"go": resource(), "no": resource()}, environment={"hooks": hooks})
    assert await running.until_ended("s") == "CREATE_FAILED"
    found = await running.resources("s")
    assert found["go"]["resource_status"] == "CREATE_COMPLETE"
    assert found["no"]["resource_status"] == "CREATE_FAILED"


async def test_a_stop_rule_stops_the_stack_and_a_notify_rule_does_not_block(
    running: Program,
) -> None:
    hooks = [
        {"at": "stop", "on": "pre-create", "mode": "stop"},
        {"at": "tell", "on": "pre-create", "mode": "notify"},
    ]
    await running.create(
        "s", {"stop": resource(), "tell": resource()}, environment={"hooks": hooks}
    )
    assert await running.until_ended("s") == "CREATE_STOPPED"
    _, response = await running.call("GET", "/hooks")
    states = {
        hook["resource_name"]: (hook["state"], hook["decision"]) for hook in response["hooks"]
    }
    assert states == {"stop": ("expired", "stop"), "tell": ("answered", "continue")}


async def test_the_environment_overrides_hooks_of_the_template(
    running: Program,
) -> None:
    breakpoints = resource(hooks=[{"on": "pre-create", "mode": "wait"}])
    await running.create("held", {"a": breakpoints})
    await running.waiting_hooks("held")
    over = {"hooks": [{"at": "a", "on": "pre-create", "mode": "notify"}]}
    await running.create("free", {"a": breakpoints}, environment=over)
    assert await running.until_ended("free") == "CREATE_COMPLETE"


async def test_a_newer_update_supersedes_a_waiting_hook(running: Program) -> None:
    await running.create("s", {"a": resource(), "b": resource()}, environment=HOOK_AT_B)
    (old,) = await running.waiting_hooks("s")
    await running.update("s")
    (new,) = await running.waiting_hooks("s")
    assert new["id"] != old["id"]
    status, response = await running.signal(old)
    assert status == 409 and response["error"]["type"] == "HookSuperseded"
    assert (await running.signal(new))[0] == 200
    assert await running.until_ended("s") == "UPDATE_COMPLETE"


async def test_a_delete_during_a_create_ends_operations_that_wait(
    running: Program,
) -> None:
    waits = {"action_wait_secs": {"create": 600}}
    slow = {"type": "OS::Heat::TestResource", "properties": waits}
    stack = await running.create("s", {"slow": slow, "b": resource()}, environment=HOOK_AT_B)
    await running.waiting_hooks("s")
    assert (await running.call("DELETE", f"/stacks/s/{stack}"))[0] == 204
    assert await running.until_ended(stack) == "DELETE_COMPLETE"
    events = await running.events(stack)
    assert position(events, "slow", "CREATE_FAILED") < position(
        events, "slow", "DELETE_IN_PROGRESS"
    )
    assert not [
        one
        for one in events
        if one["resource_status"] == "CREATE_IN_PROGRESS" and one["resource_name"] == "b"
    ]


async def test_a_delete_hook_that_was_set_at_creation_opens_at_the_deletion(
    running: Program,
) -> None:
    hooks = {"resource_registry": {"resources": {"a": {"hooks": ["pre-delete", "post-delete"]}}}}
    stack = await running.create("s", {"a": resource()}, environment=hooks)
    await running.until_ended("s")
    await running.call("DELETE", f"/stacks/s/{stack}")
    (before,) = await running.waiting_hooks(stack)
    assert before["point"] == "pre-delete"
    await running.signal(before)
    (after,) = await running.waiting_hooks(stack)
    assert after["point"] == "post-delete"
    assert (await running.resources("s"))["a"]["resource_status"] == "DELETE_COMPLETE"
    await running.signal(after)
    assert await running.until_ended(stack) == "DELETE_COMPLETE"


async def test_hook_notifications_mask_secrets_also_of_deleted_resources(running: Program) -> None:
    secret = {"type": "OS::Heat::RandomString", "properties": {"length": 20}}
    user = resource({"list_join": ["-", [{"get_param": "pw"}, {"get_attr": ["r", "value"]}]]})
    stack = await running.create(
        "s",
        {"r": secret, "u": user, "v": resource({"get_resource": "r"})},
        environment={"hooks": [{"at": "*", "on": ["pre-create", "pre-delete", "post-delete"]}]},
        parameters={"pw": "tops3cret"},
        template={
            "heat_template_version": "2018-08-31",
            "parameters": {"pw": {"type": "string", "hidden": True}},
            "resources": {"r": secret, "u": user, "v": resource({"get_resource": "r"})},
        },
    )
    texts: list[str] = []

    async def answer_all(goal: str) -> None:
        while (await running.stack(stack))["stack_status"] != goal:
            _, response = await running.call("GET", "/hooks?state=waiting")
            texts.extend(str(hook) for hook in response["hooks"])
            for hook in response["hooks"]:
                await running.signal(hook)

    await answer_all("CREATE_COMPLETE")
    found = await running.database.pool.fetchval("select reference from resource where name = 'r'")
    value = decrypt(found, Scope(running.project, UUID(stack), "resource.reference"))
    assert (
        await running.database.pool.fetchval(
            "select count(*) from resource where masked_properties is not null"
        )
        == 2
    )
    await running.call("DELETE", f"/stacks/s/{stack}")
    await answer_all("DELETE_COMPLETE")
    assert len(texts) >= 9 and "******" in "".join(texts)
    assert value not in "".join(texts) and "tops3cret" not in "".join(texts)


async def test_exactly_one_of_many_concurrent_answers_decides(running: Program) -> None:
    await running.create("s", {"b": resource()}, environment=HOOK_AT_B)
    (hook,) = await running.waiting_hooks("s")
    responses = await asyncio.gather(
        *(running.signal(hook, "continue" if n % 2 else "reject") for n in range(60))
    )
    decided = {body["decision"] for status, body in responses if status == 200}
    assert len(decided) == 1
    assert {status for status, _ in responses} == {200, 409}
    wanted = "CREATE_COMPLETE" if decided == {"continue"} else "CREATE_FAILED"
    assert await running.until_ended("s") == wanted
    events = await running.events("s")
    assert sum("Hook pre-create" in one["resource_status_reason"] for one in events) == 2


async def test_a_waiting_hook_has_no_lease_and_no_timer(running: Program) -> None:
    await running.create("s", {"b": resource()}, environment=HOOK_AT_B)
    await running.waiting_hooks("s")
    due = await running.database.pool.fetch(
        "select wake_at, worker from node union all select wake_at, null from traversal"
    )
    assert [tuple(row) for row in due] == [(None, None), (None, None)]


async def test_a_repeated_idempotency_key_creates_one_stack(running: Program) -> None:
    body = {
        "stack_name": "s",
        "template": {"heat_template_version": "2018-08-31", "resources": {"a": resource()}},
    }
    headers = {"Idempotency-Key": "k1"}
    first = await running.call("POST", "/stacks", body, headers=headers)
    repeated = await running.call("POST", "/stacks", body, headers=headers)
    assert first == repeated and first[0] == 201
    status, response = await running.call(
        "POST", "/stacks", body | {"stack_name": "t"}, headers=headers
    )
    assert status == 409 and response["error"]["type"] == "IdempotencyKeyReused"


async def test_a_value_that_cannot_be_stored_fails_its_resource_only(
    running: Program,
) -> None:
    text = {
        "type": "OS::Heat::Value",
        "properties": {"value": {"get_attr": ["a", "output"]}, "type": "number"},
    }
    await running.create("s", {"a": resource("no number"), "b": text, "c": resource()})
    assert await running.until_ended("s") == "CREATE_FAILED"
    assert (await running.resources("s"))["c"]["resource_status"] == "CREATE_COMPLETE"


async def test_event_numbers_have_no_gaps(running: Program) -> None:
    await running.create("s", {f"r{n}": resource() for n in range(40)})
    await running.until_ended("s")
    rows = await running.database.pool.fetch("select sequence from event order by sequence")
    assert [row["sequence"] for row in rows] == list(range(1, 83))
