"""Failures and early ends in nested stacks and their parents."""

from tests.integration.nested.test_lives import FILES, INNER, child_of, nested, output
from tests.support.program import Json, Program, eventually, resource, template

HELD = """
heat_template_version: 2018-08-31
parameters:
  value: {type: string, default: usual}
resources:
  one: {type: OS::Heat::TestResource, properties: {value: {get_param: value}}}
  two: {type: OS::Heat::TestResource, depends_on: one, properties: {value: {get_param: value}}}
outputs:
  said: {value: {get_attr: [two, output]}}
"""
DEEP = """
heat_template_version: 2018-08-31
parameters: {value: {type: string}}
resources:
  inner: {type: held.yaml, properties: {value: {get_param: value}}}
"""
NESTED = """
select c.id from stack c join resource r on r.stack_id = c.parent_id and r.id = c.parent_resource
 where c.parent_id = $1::uuid and r.name = $2
"""
HOOK = [{"at": "web/two", "on": "pre-create"}]
BELOW = FILES | {"held.yaml": HELD}


def held(value: Json = "x") -> Json:
    return nested(value, "held.yaml")


async def waiting_inside(http: Program, name: str = "s", resource_name: str = "web") -> Json:
    """The only waiting hook of the nested stack of a resource, once there is one."""
    await http.waiting_count(name, 1)
    return (await http.waiting(await nested_id(http, name, resource_name)))[0]


async def nested_id(http: Program, name: str, resource_name: str) -> str:
    """Of the stack inside, also while its resource is not complete."""
    outer = (await http.stack(name))["id"]

    async def found() -> str | None:
        there = await http.database.pool.fetchval(NESTED, outer, resource_name)
        return str(there) if there else None

    return str(await eventually(found))


async def test_a_failure_inside_is_told_around_and_mended_in_place(running: Program) -> None:
    bad = {"type": "inner.yaml", "properties": {"fail": True}}
    await running.create("s", {"web": bad, "free": resource()}, files=FILES)
    assert await running.until_ended("s") == "CREATE_FAILED"
    reason = (await running.stack("s"))["stack_status_reason"]
    assert "resources.two: Test Resource failed" in reason, reason
    child = await child_of(running, "s", "web")
    assert (await running.stack(child))["stack_status"] == "CREATE_FAILED"
    await running.update("s", "PUT", template=template({"web": nested("good")}), files=FILES)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await child_of(running, "s", "web") == child
    inside = await running.resources(child)
    assert {one["resource_status"] for one in inside.values()} <= {
        "CREATE_COMPLETE", "UPDATE_COMPLETE",
    }  # fmt: skip


async def test_a_rollback_goes_through_all_levels(running: Program) -> None:
    outputs = {"said": {"value": {"get_attr": ["web", "said"]}}}
    resources = {"web": nested("before", "outer.yaml")}
    await running.create("s", resources, files=FILES)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    web = await child_of(running, "s", "web")
    inner = await child_of(running, web, "inner")
    changed = {
        "web": nested("after", "outer.yaml"),
        "bad": {"type": "OS::Heat::TestResource", "properties": {"fail": True},
                "depends_on": "web"},
    }  # fmt: skip
    sent = template(changed, outputs=outputs)
    await running.update("s", "PUT", template=sent, files=FILES, disable_rollback=False)
    assert await running.until_ended("s") == "ROLLBACK_COMPLETE"
    assert await output(running, web) == "before"
    assert await output(running, inner) == "before"
    assert await child_of(running, web, "inner") == inner


async def test_an_unanswered_hook_inside_stops_all_around_it_and_an_update_resumes(
    running: Program,
) -> None:
    hook = [{"at": "web/two", "on": "pre-create", "timeout": "1s"}]
    await running.create("s", {"web": held()}, files=BELOW, environment={"hooks": hook})
    assert await running.until_ended("s") == "CREATE_STOPPED"
    child = await child_of(running, "s", "web")
    assert (await running.stack(child))["stack_status"] == "CREATE_STOPPED"
    assert "two" in (await running.stack("s"))["stack_status_reason"]
    await running.update("s", hooks={"clear": ["web/two:pre-create"]})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await child_of(running, "s", "web") == child
    assert (await running.resources(child))["two"]["resource_status"] == "CREATE_COMPLETE"


async def test_while_a_hook_waits_inside_nothing_is_held_around(running: Program) -> None:
    await running.create("s", {"web": held()}, files=BELOW, environment={"hooks": HOOK})
    hook = await waiting_inside(running)
    rows = await running.database.pool.fetch(
        "select wake_at, working_since from traversal where state = 'running'"
    )
    assert len(rows) == 2
    assert {value for row in rows for value in row.values()} == {None}
    status, _ = await running.signal(hook)
    assert status == 200
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_a_newer_update_supersedes_what_is_inside(running: Program) -> None:
    await running.create("s", {"web": held("old")}, files=BELOW, environment={"hooks": HOOK})
    hook = await waiting_inside(running)
    sent = template({"web": held("new")})
    await running.update("s", "PUT", template=sent, files=BELOW)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    _, said = await running.signal(hook)
    assert said["error"]["type"] == "HookSuperseded", said
    child = await child_of(running, "s", "web")
    assert await output(running, child) == "new"


async def test_what_is_stopped_or_cancelled_around_is_so_inside(running: Program) -> None:
    for action, status in (("stop", "STOPPED"), ("cancel_without_rollback", "FAILED")):
        await running.create(action, {"web": nested("x", "deep.yaml")},
                             files=BELOW | {"deep.yaml": DEEP},
                             environment={"hooks": [{"at": "web/inner/two", "on": "pre-create"}]})  # fmt: skip
        await running.waiting_count(action, 1)
        web = await nested_id(running, action, "web")
        await running.waiting_count(web, 1)
        inner = await nested_id(running, web, "inner")
        (hook,) = await running.waiting(inner)
        await running.act(action, action)
        assert await running.until_ended(action) == f"CREATE_{status}"
        assert await running.until_ended(web) == f"CREATE_{status}"
        assert await running.until_ended(inner) == f"CREATE_{status}"
        assert (await running.signal(hook))[0] == 409
        stack = await running.stack(action)
        await running.call("DELETE", f"/stacks/{action}/{stack['id']}")
        assert await running.until_ended(stack["id"]) == "DELETE_COMPLETE"
        assert await running.until_ended(inner) == "DELETE_COMPLETE"


async def test_a_delete_while_the_inside_is_made(running: Program) -> None:
    stack = await running.create("s", {"web": held()}, files=BELOW, environment={"hooks": HOOK})
    hook = await waiting_inside(running)
    child = await nested_id(running, "s", "web")
    assert (await running.call("DELETE", f"/stacks/s/{stack}"))[0] == 204
    assert await running.until_ended(stack) == "DELETE_COMPLETE"
    assert await running.until_ended(child) == "DELETE_COMPLETE"
    assert (await running.signal(hook))[0] in (404, 409)
    assert await running.database.pool.fetchval("select count(*) from node") == 0


async def test_time_at_a_hook_inside_is_nobodys(running: Program) -> None:
    """The timeout counts the longest path of work through the tree, without hooks."""
    slow = INNER.replace("value: {get_param: value}}", "value: {get_param: value}, wait_secs: 0.4}")
    files = FILES | {"inner.yaml": slow}
    resources = {name: nested(name) for name in ("a", "b")} | {
        "c": nested("c", depends_on=["a", "b"])
    }
    await running.create("s", resources, files=files,
                         environment={"hooks": [{"at": "a/two", "on": "pre-create"}]})  # fmt: skip
    await running.waiting_count("s", 1)
    child = await nested_id(running, "s", "a")
    (hook,) = await running.waiting(child)
    asked = "select worked, working_since from traversal where stack_id = $1::uuid"
    before = await running.database.pool.fetchrow(asked, child)
    assert before is not None
    assert before["working_since"] is None
    await running.signal(hook)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    outer = (await running.stack("s"))["id"]
    inside = await running.database.pool.fetchval(
        "select max(t.worked) from traversal t join stack s on s.id = t.stack_id"
        " where s.parent_id = $1::uuid", outer
    )  # fmt: skip
    around = await running.database.pool.fetchval(
        "select worked from traversal where stack_id = $1::uuid", outer
    )
    assert around >= inside
    every = await running.database.pool.fetchval(
        "select sum(t.worked) from traversal t join stack s on s.id = t.stack_id"
        " where s.parent_id = $1::uuid", outer
    )  # fmt: skip
    assert around < every, "what goes on side by side counts once"


async def test_the_time_limit_is_one_for_the_whole_tree(running: Program) -> None:
    """What is inside goes on with the time that was worked around it, and what ends it ends all."""
    slow = INNER.replace("value: {get_param: value}}", "value: {get_param: value}, wait_secs: -1}")
    await running.create(
        "s", {"a": resource(), "web": nested("x", depends_on="a")},
        files={"inner.yaml": slow}, timeout_mins=1,
    )  # fmt: skip
    child = await nested_id(running, "s", "web")
    await running.waiting_count(child, 1)
    begun = await running.database.pool.fetchrow(
        "select worked, time_limit from traversal where stack_id = $1::uuid", child
    )
    assert begun is not None and begun["time_limit"].total_seconds() == 60
    assert begun["worked"].total_seconds() > 0, "it does not begin anew"
    await running.database.pool.execute(
        "update traversal set worked = '59.95 seconds', wake_at = now() where stack_id = $1::uuid", child
    )  # fmt: skip
    assert await running.until_ended(child) == "CREATE_FAILED"
    assert (await running.stack(child))["stack_status_reason"] == "Timed out"
    assert await running.until_ended("s") == "CREATE_FAILED"
    assert (await running.stack("s"))["stack_status_reason"].endswith("Timed out")
