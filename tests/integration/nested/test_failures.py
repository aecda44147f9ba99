"""Failures and early ends in nested stacks and their parents."""

import pytest

from engine.work.archive import archive_graphs
from tests.integration.nested.test_lifecycle import FILES, INNER, child_of, nested, output
from tests.support.program import Json, Program, eventually, resource, template

WAITING = """
heat_template_version: 2018-08-31
parameters:
  value: {type: string, default: usual}
resources:
  one: {type: OS::Heat::TestResource, properties: {value: {get_param: value}}}
  two: {type: OS::Heat::TestResource, depends_on: one, properties: {value: {get_param: value}}}
outputs:
  result: {value: {get_attr: [two, output]}}
"""
DEEP = """
heat_template_version: 2018-08-31
parameters: {value: {type: string}}
resources:
  inner: {type: waiting.yaml, properties: {value: {get_param: value}}}
"""
NESTED = """
select c.id from stack c join resource r on r.stack_id = c.parent_id and r.id = c.parent_resource
 where c.parent_id = $1::uuid and r.name = $2
"""
HOOK = [{"at": "web/two", "on": "pre-create"}]
WAITING_FILES = FILES | {"waiting.yaml": WAITING}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def waiting_stack(value: Json = "x") -> Json:
    return nested(value, "waiting.yaml")


async def nested_waiting_hook(http: Program, name: str = "s", resource_name: str = "web") -> Json:
    """The waiting hook of a resource's nested stack, once there is one."""
    await http.until_parked(name, 1)
    return (await http.waiting_hooks(await nested_id(http, name, resource_name)))[0]


async def nested_id(http: Program, name: str, resource_name: str) -> str:
    """The ID of a resource's nested stack, also while the resource is not complete."""
    outer = (await http.stack(name))["id"]

    async def found() -> str | None:
        child_id = await http.database.pool.fetchval(NESTED, outer, resource_name)
        return str(child_id) if child_id else None

    return str(await eventually(found))


async def test_a_nested_failure_is_in_the_parents_reason_and_an_update_repairs_it(
    running: Program,
) -> None:
    failing = {"type": "inner.yaml", "properties": {"fail": True}}
    await running.create("s", {"web": failing, "free": resource()}, files=FILES)
    assert await running.until_ended("s") == "CREATE_FAILED"
    reason = (await running.stack("s"))["stack_status_reason"]
    assert "resources.two: Test Resource failed" in reason, reason
    child = await child_of(running, "s", "web")
    assert (await running.stack(child))["stack_status"] == "CREATE_FAILED"
    await running.update("s", "PUT", template=template({"web": nested("good")}), files=FILES)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await child_of(running, "s", "web") == child
    nested_worked = await running.resources(child)
    assert {one["resource_status"] for one in nested_worked.values()} <= {
        "CREATE_COMPLETE", "UPDATE_COMPLETE",
    }  # fmt: skip


async def test_a_rollback_goes_through_all_levels(running: Program) -> None:
    outputs = {"result": {"value": {"get_attr": ["web", "result"]}}}
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


async def test_an_expired_nested_hook_stops_the_tree_and_an_update_resumes_it(
    running: Program,
) -> None:
    hook = [{"at": "web/two", "on": "pre-create", "timeout": "1s"}]
    await running.create(
        "s", {"web": waiting_stack()}, files=WAITING_FILES, environment={"hooks": hook}
    )
    assert await running.until_ended("s") == "CREATE_STOPPED"
    child = await child_of(running, "s", "web")
    assert (await running.stack(child))["stack_status"] == "CREATE_STOPPED"
    assert "two" in (await running.stack("s"))["stack_status_reason"]
    await running.update("s", hooks={"clear": ["web/two:pre-create"]})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await child_of(running, "s", "web") == child
    assert (await running.resources(child))["two"]["resource_status"] == "CREATE_COMPLETE"


async def test_no_timer_runs_in_the_tree_while_a_nested_hook_waits(running: Program) -> None:
    await running.create(
        "s", {"web": waiting_stack()}, files=WAITING_FILES, environment={"hooks": HOOK}
    )
    hook = await nested_waiting_hook(running)
    rows = await running.database.pool.fetch(
        "select wake_at, working_since from traversal where state = 'running'"
    )
    assert len(rows) == 2
    assert {value for row in rows for value in row.values()} == {None}
    status, _ = await running.signal(hook)
    assert status == 200
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_an_update_supersedes_nested_traversals_and_their_hooks(running: Program) -> None:
    await running.create(
        "s", {"web": waiting_stack("old")}, files=WAITING_FILES, environment={"hooks": HOOK}
    )
    hook = await nested_waiting_hook(running)
    sent = template({"web": waiting_stack("new")})
    await running.update("s", "PUT", template=sent, files=WAITING_FILES)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    _, response = await running.signal(hook)
    assert response["error"]["type"] == "HookSuperseded", response
    child = await child_of(running, "s", "web")
    assert await output(running, child) == "new"


async def test_stop_and_cancel_end_nested_traversals(running: Program) -> None:
    for action, status in (("stop", "STOPPED"), ("cancel_without_rollback", "FAILED")):
        await running.create(action, {"web": nested("x", "deep.yaml")},
                             files=WAITING_FILES | {"deep.yaml": DEEP},
                             environment={"hooks": [{"at": "web/inner/two", "on": "pre-create"}]})  # fmt: skip
        await running.until_parked(action, 1)
        web = await nested_id(running, action, "web")
        await running.until_parked(web, 1)
        inner = await nested_id(running, web, "inner")
        (hook,) = await running.waiting_hooks(inner)
        await running.act(action, action)
        assert await running.until_ended(action) == f"CREATE_{status}"
        assert await running.until_ended(web) == f"CREATE_{status}"
        assert await running.until_ended(inner) == f"CREATE_{status}"
        assert (await running.signal(hook))[0] == 409
        stack = await running.stack(action)
        await running.call("DELETE", f"/stacks/{action}/{stack['id']}")
        assert await running.until_ended(stack["id"]) == "DELETE_COMPLETE"
        assert await running.until_ended(inner) == "DELETE_COMPLETE"


async def test_a_delete_during_the_creation_of_a_nested_stack(running: Program) -> None:
    stack = await running.create(
        "s", {"web": waiting_stack()}, files=WAITING_FILES, environment={"hooks": HOOK}
    )
    hook = await nested_waiting_hook(running)
    child = await nested_id(running, "s", "web")
    assert (await running.call("DELETE", f"/stacks/s/{stack}"))[0] == 204
    assert await running.until_ended(stack) == "DELETE_COMPLETE"
    assert await running.until_ended(child) == "DELETE_COMPLETE"
    assert (await running.signal(hook))[0] in (404, 409)
    await archive_graphs(running.database)
    assert await running.database.pool.fetchval("select count(*) from node") == 0


async def test_time_at_a_nested_hook_is_not_working_time(running: Program) -> None:
    """The timeout counts the longest path of work through the tree, without hooks."""
    slow = INNER.replace("value: {get_param: value}}", "value: {get_param: value}, wait_secs: 0.4}")
    files = FILES | {"inner.yaml": slow}
    resources = {name: nested(name) for name in ("a", "b")} | {
        "c": nested("c", depends_on=["a", "b"])
    }
    await running.create("s", resources, files=files,
                         environment={"hooks": [{"at": "a/two", "on": "pre-create"}]})  # fmt: skip
    await running.until_parked("s", 1)
    child = await nested_id(running, "s", "a")
    (hook,) = await running.waiting_hooks(child)
    query = "select working_time, working_since from traversal where stack_id = $1::uuid"
    before = await running.database.pool.fetchrow(query, child)
    assert before is not None
    assert before["working_since"] is None
    await running.signal(hook)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    outer = (await running.stack("s"))["id"]
    nested_worked = await running.database.pool.fetchval(
        "select max(t.working_time) from traversal t join stack s on s.id = t.stack_id"
        " where s.parent_id = $1::uuid", outer
    )  # fmt: skip
    root_worked = await running.database.pool.fetchval(
        "select working_time from traversal where stack_id = $1::uuid", outer
    )
    assert root_worked >= nested_worked
    total_worked = await running.database.pool.fetchval(
        "select sum(t.working_time) from traversal t join stack s on s.id = t.stack_id"
        " where s.parent_id = $1::uuid", outer
    )  # fmt: skip
    assert root_worked < total_worked, "concurrent work counts once"


async def test_the_timeout_is_one_for_the_whole_tree(running: Program) -> None:
    """A nested stack continues with its parent's working time, and its timeout ends the tree."""
    slow = INNER.replace("value: {get_param: value}}", "value: {get_param: value}, wait_secs: -1}")
    await running.create(
        "s", {"a": resource(), "web": nested("x", depends_on="a")},
        files={"inner.yaml": slow}, timeout_mins=1,
    )  # fmt: skip
    child = await nested_id(running, "s", "web")
    await running.until_parked(child, 1)
    started = await running.database.pool.fetchrow(
        "select working_time, time_limit from traversal where stack_id = $1::uuid", child
    )
    assert started is not None and started["time_limit"].total_seconds() == 60
    assert started["working_time"].total_seconds() > 0, "the parent's working time is included"
    await running.database.pool.execute(
        "update traversal set working_time = '59.95 seconds', wake_at = now() where stack_id = $1::uuid", child
    )  # fmt: skip
    assert await running.until_ended(child) == "CREATE_FAILED"
    assert (await running.stack(child))["stack_status_reason"] == "Timed out"
    assert await running.until_ended("s") == "CREATE_FAILED"
    assert (await running.stack("s"))["stack_status_reason"].endswith("Timed out")
