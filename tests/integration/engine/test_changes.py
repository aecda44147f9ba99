"""Stacks made, changed, stopped, resumed and deleted, through the API, on a real database."""

import asyncio
from uuid import UUID

from engine.store.encryption import Scope, reveal
from tests.support.program import Program, resource

HELD = {"resource_registry": {"resources": {"b": {"hooks": "pre-create"}}}}


def reasons(events: list[dict[str, str]], name: str) -> list[str]:
    return [
        f"{one['resource_status']} {one['resource_status_reason']}"
        for one in events
        if one["resource_name"] == name
    ]


def place(events: list[dict[str, str]], name: str, status: str) -> int:
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
    assert place(events, "a", "CREATE_COMPLETE") < place(events, "b", "CREATE_IN_PROGRESS")
    assert place(events, "b", "CREATE_COMPLETE") < place(events, "c", "CREATE_IN_PROGRESS")
    assert events[0]["resource_status_reason"] == "Stack CREATE started"
    assert events[-1]["resource_status_reason"] == "Stack CREATE completed successfully"
    assert (await running.call("DELETE", f"/stacks/s/{stack}"))[0] == 204
    assert await running.until_ended(stack) == "DELETE_COMPLETE"
    events = await running.events(stack)
    assert place(events, "c", "DELETE_COMPLETE") < place(events, "b", "DELETE_IN_PROGRESS")
    assert place(events, "b", "DELETE_COMPLETE") < place(events, "a", "DELETE_IN_PROGRESS")
    left = await running.database.pool.fetchval("select count(*) from resource")
    assert left + await running.database.pool.fetchval("select count(*) from node") == 0
    assert (await running.call("GET", "/stacks/s"))[0] == 404


async def test_a_failure_lets_what_does_not_depend_on_it_finish(running: Program) -> None:
    bad = {"type": "OS::Heat::TestResource", "properties": {"fail": True}}
    slow = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 0.3}}
    await running.create("s", {"bad": bad, "after": resource(depends_on="bad"), "slow": slow})
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


async def test_a_replacement_is_made_before_the_old_one_goes_and_users_move_over(
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
    assert place(events, "r", "CREATE_COMPLETE") < place(events, "user", "UPDATE_IN_PROGRESS")
    assert place(events, "user", "UPDATE_COMPLETE") < place(events, "r", "DELETE_IN_PROGRESS")
    assert after["r"]["physical_resource_id"] != before["r"]["physical_resource_id"]
    assert after["user"]["physical_resource_id"] == before["user"]["physical_resource_id"]
    assert not [one for one in events if one["resource_name"] == "other"]
    assert await running.database.pool.fetchval("select count(*) from resource") == 3


async def test_an_update_of_nothing_does_nothing(running: Program) -> None:
    await running.create("s", {"a": resource(), "b": resource(depends_on="a")})
    await running.until_ended("s")
    seen = len(await running.events("s"))
    await running.update("s")
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert [one["resource_name"] for one in (await running.events("s"))[seen:]] == ["s", "s"]


async def test_resources_added_changed_and_removed_by_an_update_ask_where_they_are_told_to(
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
    waiting = await running.waiting("s", 3)
    points = {hook["resource_name"]: hook["point"] for hook in waiting}
    assert points == {"gone": "pre-delete", "kept": "pre-update", "fresh": "pre-create"}
    changed = next(hook for hook in waiting if hook["resource_name"] == "kept")
    assert changed["resource"]["changes"] == {"value": {"from": "1", "to": "2"}}
    for hook in waiting:
        assert (await running.signal(hook))[0] == 200
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert set(await running.resources("s")) == {"kept", "fresh"}


async def test_a_rejected_hook_fails_its_operation_and_an_update_goes_on(running: Program) -> None:
    await running.create("s", {"a": resource(), "b": resource(depends_on="a")}, environment=HELD)
    (hook,) = await running.waiting("s")
    status, said = await running.signal(hook, "reject", reason="not today")
    assert status == 200 and said["decision"] == "reject"
    assert await running.until_ended("s") == "CREATE_FAILED"
    assert (
        "pre-create rejected by anonymous: not today"
        in (await running.stack("s"))["stack_status_reason"]
    )
    await running.update("s", hooks={"clear": ["*"]})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"


async def test_an_unanswered_hook_stops_the_stack_and_a_patch_resumes_it(running: Program) -> None:
    rule = {"at": "b", "on": "pre-create", "timeout": "1s"}
    await running.create(
        "s",
        {"a": resource(), "b": resource(depends_on="a"), "c": resource(depends_on="b"), "d": resource()},
        environment={"hooks": [rule]},
    )  # fmt: skip
    (hook,) = await running.waiting("s")
    assert await running.until_ended("s") == "CREATE_STOPPED"
    events = await running.events("s")
    assert events[-1]["resource_status"] == "CREATE_FAILED"
    assert events[-1]["resource_status_reason"].startswith("Stopped: b ")
    status, said = await running.signal(hook)
    assert status == 409 and said["error"]["type"] == "StackStopped"
    assert said["error"]["remedy"] and said["error"]["decision"] == "stop"
    before = await running.resources("s")
    assert {n: r["resource_status"] for n, r in before.items()} == {
        "a": "CREATE_COMPLETE", "b": "INIT_COMPLETE", "c": "INIT_COMPLETE", "d": "CREATE_COMPLETE",
    }  # fmt: skip
    await running.update("s", hooks={"clear": ["b:pre-create"], "add": ["c:post-create"]})
    (hook,) = await running.waiting("s")
    assert (hook["resource_name"], hook["point"]) == ("c", "post-create")
    assert (await running.signal(hook))[0] == 200
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    after = await running.resources("s")
    assert after["a"]["physical_resource_id"] == before["a"]["physical_resource_id"]


async def test_what_happens_at_a_deadline_is_what_the_rule_says(running: Program) -> None:
    hooks = [
        {"at": "go", "on": "pre-create", "timeout": "1s", "on_timeout": "continue"},
        {"at": "no", "on": "pre-create", "timeout": "1s", "on_timeout": "reject"},
    ]
    await running.create("s", {"go": resource(), "no": resource()}, environment={"hooks": hooks})
    assert await running.until_ended("s") == "CREATE_FAILED"
    found = await running.resources("s")
    assert found["go"]["resource_status"] == "CREATE_COMPLETE"
    assert found["no"]["resource_status"] == "CREATE_FAILED"


async def test_a_stop_rule_ends_the_stack_there_and_a_notify_rule_goes_on(running: Program) -> None:
    hooks = [
        {"at": "stop", "on": "pre-create", "mode": "stop"},
        {"at": "tell", "on": "pre-create", "mode": "notify"},
    ]
    await running.create(
        "s", {"stop": resource(), "tell": resource()}, environment={"hooks": hooks}
    )
    assert await running.until_ended("s") == "CREATE_STOPPED"
    _, said = await running.call("GET", "/hooks")
    states = {hook["resource_name"]: (hook["state"], hook["decision"]) for hook in said["hooks"]}
    assert states == {"stop": ("expired", "stop"), "tell": ("answered", "continue")}


async def test_hooks_in_the_template_hold_and_the_environment_overrides_them(
    running: Program,
) -> None:
    held = resource(hooks=[{"on": "pre-create", "mode": "wait"}])
    await running.create("held", {"a": held})
    await running.waiting("held")
    over = {"hooks": [{"at": "a", "on": "pre-create", "mode": "notify"}]}
    await running.create("free", {"a": held}, environment=over)
    assert await running.until_ended("free") == "CREATE_COMPLETE"


async def test_a_newer_update_supersedes_a_waiting_hook(running: Program) -> None:
    await running.create("s", {"a": resource(), "b": resource()}, environment=HELD)
    (old,) = await running.waiting("s")
    await running.update("s")
    (new,) = await running.waiting("s")
    assert new["id"] != old["id"]
    status, said = await running.signal(old)
    assert status == 409 and said["error"]["type"] == "HookSuperseded"
    assert (await running.signal(new))[0] == 200
    assert await running.until_ended("s") == "UPDATE_COMPLETE"


async def test_a_delete_during_a_create_waits_for_what_runs_and_leaves_nothing(
    running: Program,
) -> None:
    slow = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 0.5}}
    stack = await running.create("s", {"slow": slow, "b": resource()}, environment=HELD)
    await running.waiting("s")
    assert (await running.call("DELETE", f"/stacks/s/{stack}"))[0] == 204
    assert await running.until_ended(stack) == "DELETE_COMPLETE"
    events = await running.events(stack)
    assert place(events, "slow", "CREATE_COMPLETE") < place(events, "slow", "DELETE_IN_PROGRESS")
    assert not [
        one
        for one in events
        if one["resource_status"] == "CREATE_IN_PROGRESS" and one["resource_name"] == "b"
    ]


async def test_a_hook_stored_with_a_resource_asks_when_the_stack_is_deleted(
    running: Program,
) -> None:
    hooks = {"resource_registry": {"resources": {"a": {"hooks": ["pre-delete", "post-delete"]}}}}
    stack = await running.create("s", {"a": resource()}, environment=hooks)
    await running.until_ended("s")
    await running.call("DELETE", f"/stacks/s/{stack}")
    (before,) = await running.waiting(stack)
    assert before["point"] == "pre-delete"
    await running.signal(before)
    (after,) = await running.waiting(stack)
    assert after["point"] == "post-delete"
    assert (await running.resources("s"))["a"]["resource_status"] == "DELETE_COMPLETE"
    await running.signal(after)
    assert await running.until_ended(stack) == "DELETE_COMPLETE"


async def test_no_notice_tells_a_secret_not_even_of_what_goes(running: Program) -> None:
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
    told: list[str] = []

    async def answer_all(goal: str) -> None:
        while (await running.stack(stack))["stack_status"] != goal:
            _, said = await running.call("GET", "/hooks?state=waiting")
            told.extend(str(hook) for hook in said["hooks"])
            for hook in said["hooks"]:
                await running.signal(hook)

    await answer_all("CREATE_COMPLETE")
    found = await running.database.pool.fetchval("select reference from resource where name = 'r'")
    value = reveal(found, Scope(running.project, UUID(stack), "resource.reference"))
    assert (
        await running.database.pool.fetchval(
            "select count(*) from resource where shown is not null"
        )
        == 2
    )
    await running.call("DELETE", f"/stacks/s/{stack}")
    await answer_all("DELETE_COMPLETE")
    assert len(told) >= 9 and "******" in "".join(told)
    assert value not in "".join(told) and "tops3cret" not in "".join(told)


async def test_of_many_answers_at_once_exactly_one_decides(running: Program) -> None:
    await running.create("s", {"b": resource()}, environment=HELD)
    (hook,) = await running.waiting("s")
    said = await asyncio.gather(
        *(running.signal(hook, "continue" if n % 2 else "reject") for n in range(60))
    )
    decided = {body["decision"] for status, body in said if status == 200}
    assert len(decided) == 1
    assert {status for status, _ in said} == {200, 409}
    wanted = "CREATE_COMPLETE" if decided == {"continue"} else "CREATE_FAILED"
    assert await running.until_ended("s") == wanted
    events = await running.events("s")
    assert sum("Hook pre-create" in one["resource_status_reason"] for one in events) == 2


async def test_while_a_hook_waits_nothing_of_it_is_due_or_leased(running: Program) -> None:
    await running.create("s", {"b": resource()}, environment=HELD)
    await running.waiting("s")
    due = await running.database.pool.fetch(
        "select wake_at, worker from node union all select wake_at, null from traversal"
    )
    assert [tuple(row) for row in due] == [(None, None), (None, None)]


async def test_the_same_idempotency_key_makes_one_stack(running: Program) -> None:
    body = {
        "stack_name": "s",
        "template": {"heat_template_version": "2018-08-31", "resources": {"a": resource()}},
    }
    headers = {"Idempotency-Key": "k1"}
    first = await running.call("POST", "/stacks", body, headers=headers)
    again = await running.call("POST", "/stacks", body, headers=headers)
    assert first == again and first[0] == 201
    status, said = await running.call(
        "POST", "/stacks", body | {"stack_name": "t"}, headers=headers
    )
    assert status == 409 and said["error"]["type"] == "IdempotencyKeyReused"


async def test_a_value_that_cannot_be_stored_fails_its_resource_and_nothing_else(
    running: Program,
) -> None:
    text = {
        "type": "OS::Heat::Value",
        "properties": {"value": {"get_attr": ["a", "output"]}, "type": "number"},
    }
    await running.create("s", {"a": resource("no number"), "b": text, "c": resource()})
    assert await running.until_ended("s") == "CREATE_FAILED"
    assert (await running.resources("s"))["c"]["resource_status"] == "CREATE_COMPLETE"


async def test_events_are_numbered_without_a_gap(running: Program) -> None:
    await running.create("s", {f"r{n}": resource() for n in range(40)})
    await running.until_ended("s")
    rows = await running.database.pool.fetch("select sequence from event order by sequence")
    assert [row["sequence"] for row in rows] == list(range(1, 83))
