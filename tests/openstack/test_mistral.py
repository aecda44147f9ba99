"""Workflows, cron triggers and external resources, on a real Mistral."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.neutron_stacks import delete as delete_stack
from tests.openstack.neutron_stacks import physical_ids
from tests.openstack.observations import drift_of, observing
from tests.openstack.stacks import create, delete, reason, resource_of, run, update
from tests.openstack.test_zaqar import queue, request, subscriptions
from tests.support.program import Http, Program, ServerProcess, eventually, template

Json = Any
__all__ = ["observing", "run"]  # fixtures


@pytest.fixture(scope="session", autouse=True)
def mistral(openstack: OpenStack) -> None:
    """Mistral runs, and Zaqar beside it; they start once per run."""
    openstack.start("mistral")
    openstack.start("zaqar")


def workflow(*tasks: Json, **properties: Json) -> Json:
    listed = list(tasks) or [{"name": "one", "action": "std.noop"}]
    usual = {"type": "direct", "tasks": listed}
    return {"type": "OS::Mistral::Workflow", "properties": {**usual, **properties}}


def echo(**properties: Json) -> Json:
    """A workflow whose output is its input."""
    task = {
        "name": "say", "action": "std.echo", "input": {"output": "<% $.text %>"},
        "publish": {"said": "<% task().result %>"},
    }  # fmt: skip
    output = {"said": "<% $.said %>", **properties.pop("output", {})}
    return workflow(task, input={"text": "nothing"}, output=output, **properties)


def trigger(runs: str, **properties: Json) -> Json:
    usual = {"workflow": {"name": {"get_resource": runs}}, "pattern": "0 0 1 1 *"}
    return {"type": "OS::Mistral::CronTrigger", "properties": {**usual, **properties}}


async def found(project: Project, path: str, key: str) -> dict[str, Json]:
    """The objects of a list of Mistral, by name."""
    answer = await asyncio.to_thread(project.cloud.workflow.get, path)
    return {one.get("name") or one["id"]: one for one in answer.json()[key]}


async def workflows(project: Project) -> dict[str, Json]:
    return await found(project, "/workflows", "workflows")


async def executions(project: Project) -> list[Json]:
    return list((await found(project, "/executions", "executions")).values())


async def test_workflows_and_triggers_live_and_change(run: Program, project: Project) -> None:
    first = workflow(
        {"name": "one", "action": "std.noop", "on_success": ["two"], "timeout": 60},
        {"name": "two", "action": "std.noop"},
        name="named", tags=["own"], task_defaults={"timeout": 9},
    )  # fmt: skip
    resources = {"a": first, "b": echo(), "c": trigger("b", workflow={
        "name": {"get_resource": "b"}, "input": {"text": "hello"},
    }), "d": trigger("a", name="nightly")}  # fmt: skip
    await create(run, resources)
    known = await physical_ids(run)
    assert set(await workflows(project)) == {"named", known["b"]} and known["a"] == "named"
    shown = (await resource_of(run, "s", "a"))["attributes"]
    assert shown["data"]["name"] == "named" and shown["show"]["tags"] == ["own"]
    assert '"on-success"' in shown["show"]["definition"]
    triggers = await found(project, "/cron_triggers", "cron_triggers")
    assert set(triggers) == {"nightly", known["c"]}
    shown = (await resource_of(run, "s", "c"))["attributes"]
    assert shown["next_execution_time"].endswith("-01-01 00:00:00")
    changed = {**resources, "a": workflow(name="named", description="another")}
    await update(run, changed)
    assert await physical_ids(run) == known
    definition = (await workflows(project))["named"]["definition"]
    assert "another" in definition and "two" not in definition and "headgate:" in definition
    await delete(run)
    assert await workflows(project) == {}
    assert await found(project, "/cron_triggers", "cron_triggers") == {}


async def test_a_killed_create_finds_its_own_object(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    """A process dies after Mistral has created an object, before the result is stored."""
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    external = {
        "type": "OS::Mistral::ExternalResource",
        "properties": {"actions": {"CREATE": {"workflow": {"get_resource": "b"}}}},
    }
    resources = {
        "a": workflow(name="named"),
        "b": workflow(),
        "c": trigger("b"),
        "d": trigger("b", name="nightly"),
        "e": external,
    }
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            # The first call of a create with a name records that there is no such trigger.
            assert await die_after_each(server, http, resources, {"d": 2}) == "CREATE_COMPLETE"
            known = await physical_ids(http)
            assert set(await workflows(project)) == {"named", known["b"]}
            triggers = await found(project, "/cron_triggers", "cron_triggers")
            assert set(triggers) == {"nightly", known["c"]}
            assert [one["id"] for one in await executions(project)] == [known["e"]]
            await delete_stack(http)
            assert await workflows(project) == {}
    finally:
        server.kill()


async def test_objects_of_other_clients_are_not_taken(run: Program, project: Project) -> None:
    text = b'{"version": "2.0", "theirs": {"tasks": {"a": {"action": "std.noop"}}}}'
    cloud = project.cloud.workflow
    headers = {"Content-Type": "text/plain"}
    made = await asyncio.to_thread(cloud.post, "/workflows", data=text, headers=headers)
    assert made.status_code == 201
    body = {"name": "nightly", "pattern": "0 0 1 1 *", "workflow_name": "theirs"}
    made = await asyncio.to_thread(cloud.post, "/cron_triggers", json=body)
    assert made.status_code == 201
    theirs = trigger("a", name="nightly", workflow={"name": "theirs"})
    for resource in (workflow(name="theirs"), theirs):
        await run.create("s", {"a": resource})
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert "already" in await reason(run, "s")
        await delete(run)
    assert set(await workflows(project)) == {"theirs"}
    assert set(await found(project, "/cron_triggers", "cron_triggers")) == {"nightly"}
    await asyncio.to_thread(project.delete_leftovers)


async def test_an_external_resource_runs_its_workflows(run: Program, project: Project) -> None:
    action = {"workflow": {"get_resource": "w"}}
    actions = {name: action for name in ("CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME")}
    fails = workflow({"name": "one", "action": "std.fail"})

    def external(text: str, **properties: Json) -> Json:
        given = {"actions": actions, "input": {"text": text}, **properties}
        return {"type": "OS::Mistral::ExternalResource", "properties": given}

    output = {"resource_id": "<% $.said %>-id", "before": "<% env().get(heat_extresource_data) %>"}
    resources = {"w": echo(output=output), "f": fails, "e": external("one")}
    await create(run, resources)
    shown = await resource_of(run, "s", "e")
    assert shown["physical_resource_id"] == "one-id"
    assert shown["attributes"]["output"] == {
        "said": "one", "resource_id": "one-id", "before": None,
    }  # fmt: skip
    await update(run, {**resources, "e": external("two")})
    shown = await resource_of(run, "s", "e")
    assert shown["physical_resource_id"] == "two-id"
    assert shown["attributes"]["output"]["before"]["said"] == "one"
    for what in ("suspend", "resume"):
        await run.stack_request("POST", "s", "/actions", {what: None})
        assert await run.until_ended("s") == f"{what.upper()}_COMPLETE"
    ran = [one["input"] for one in await executions(project)]
    assert ran.count('{"text": "two"}') == 3 and len(ran) == 4
    failing = external("three", actions={**actions, "UPDATE": {"workflow": {"get_resource": "f"}}})
    await run.update("s", "PUT", template=template({**resources, "e": failing}))
    await run.until_ended("s")
    await delete(run)
    assert await workflows(project) == {}


async def test_a_failed_workflow_fails_the_resource_with_its_reason(
    run: Program, project: Project
) -> None:
    external = {
        "type": "OS::Mistral::ExternalResource",
        "properties": {"actions": {"CREATE": {"workflow": {"get_resource": "w"}}}},
    }
    fails = workflow({"name": "broken", "action": "std.fail"})
    await run.create("s", {"w": fails, "e": external})
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "ended with ERROR" in (text := await reason(run, "s", "e")) and "broken" in text
    await delete(run)


async def test_a_message_runs_a_workflow(run: Program, project: Project) -> None:
    """Zaqar calls Mistral with a trust, which the delete deletes."""
    message = {"name": "say", "action": "std.echo", "input": {"output": "<% env().notification %>"}}
    starts = {
        "type": "OS::Zaqar::MistralTrigger",
        "properties": {
            "queue_name": {"get_resource": "q"},
            "workflow_id": {"get_attr": ["w", "show", "id"]},
            "params": {"env": {"team": "one"}},
        },
    }
    await create(run, {"q": queue(name="work"), "w": workflow(message), "t": starts})
    (one,) = (await subscriptions(project, "work")).values()
    assert one["subscriber"].startswith("trust+http://") and one["options"]["trust_id"]
    body = {"messages": [{"ttl": 60, "body": {"order": 7}}]}
    sent = await request(project, "POST", "/queues/work/messages", json=body)
    assert sent.status_code == 201

    async def ran() -> bool:
        return bool([1 for one in await executions(project) if "order" in one["params"]])

    await eventually(ran)
    await delete(run)


async def test_changes_of_other_clients_are_found_and_repaired(
    observing: Program, project: Project
) -> None:
    resources = {
        "a": workflow(name="named", tags=["own"]),
        "b": workflow(),
        "c": trigger("b", name="nightly"),
        "d": trigger("b", name="few", count=2),
    }
    await create(observing, resources)
    assert await drift_of(observing) == {}
    before = await physical_ids(observing)
    cloud = project.cloud.workflow
    text = (await workflows(project))["named"]["definition"]
    changed = text.replace("own", "other").replace("std.noop", "std.echo output=1")
    headers = {"Content-Type": "text/plain"}
    put = await asyncio.to_thread(cloud.put, "/workflows", data=changed.encode(), headers=headers)
    assert put.status_code == 200, put.text
    for name in ("nightly", "few"):
        await asyncio.to_thread(cloud.delete, f"/cron_triggers/{name}")
    # A trigger that runs a limited number of times has ended.
    assert await drift_of(observing) == {
        "a": ("changed", ["tags", "tasks"]),
        "c": ("missing", []),
    }
    await update(observing, resources, converge=True)
    assert await physical_ids(observing) == before
    assert "own" in (await workflows(project))["named"]["definition"]
    assert "nightly" in await found(project, "/cron_triggers", "cron_triggers")
    assert await drift_of(observing) == {}
    await delete(observing)


@pytest.mark.parametrize(
    ("resource", "place"),
    [
        (workflow({"name": "a"}), "tasks[0]"),
        (workflow({"name": "a", "action": "std.noop", "workflow": "w"}), "tasks[0]"),
        (workflow({"name": "a", "action": "std.noop", "requires": ["b"]}), "tasks[0].requires"),
        (workflow(type="reverse"), "params"),
        (trigger("a", workflow={"name": "unknown"}), "workflow.name"),
        (trigger("a", pattern=None, workflow={"name": "unknown"}), ""),
    ],
    ids=["no-action", "both", "requires", "no-task-name", "unknown-workflow", "no-time"],
)
async def test_a_wrong_property_is_refused_before_anything_is_created(
    run: Program, project: Project, resource: Json, place: str
) -> None:
    body = {"stack_name": "s", "template": template({"a": resource})}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 400
    found = str(response["error"]["findings"])
    assert f"resources.a.properties.{place}".removesuffix(".") in found
