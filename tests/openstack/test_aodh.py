"""Alarms, on a real Aodh. There is no Gnocchi, without which Aodh refuses the alarms that name its
resources, and no Prometheus: the tests are about alarms, not about their states.
"""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.openstack.cloud import OpenStack, Project, alarms_of
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.neutron_stacks import delete as delete_stack
from tests.openstack.neutron_stacks import physical_ids
from tests.openstack.observations import drift_of, observing
from tests.openstack.stacks import create, delete, resource_of, run, update
from tests.support.program import Http, Program, ServerProcess

Json = Any
__all__ = ["observing", "run"]  # fixtures


@pytest.fixture(scope="session", autouse=True)
def aodh(openstack: OpenStack) -> None:
    """Aodh runs; it starts once per run."""
    openstack.start("aodh")


def alarm(kind: str, **properties: Json) -> Json:
    return {"type": f"OS::Aodh::{kind}", "properties": properties}


METRIC = {
    "threshold": 1, "granularity": 60, "aggregation_method": "mean", "comparison_operator": "gt",
}  # fmt: skip
RULE = {
    "type": "gnocchi_resources_threshold", "metric": "cpu", "resource_type": "instance",
    "resource_id": "a", **METRIC,
}  # fmt: skip
ALARMS = {
    "event": alarm(
        "EventAlarm", event_type="compute.instance.update", alarm_actions=["http://127.0.0.1:1/"],
        query=[{"field": "traits.state", "op": "eq", "value": "error"}],
        time_constraints=[{"name": "night", "start": "0 0 * * *", "duration": 60}],
    ),
    "composite": alarm(
        "CompositeAlarm", composite_rule={"operator": "or", "rules": [RULE, RULE]}
    ),
    "one": alarm("PrometheusAlarm", query="up", threshold=1, comparison_operator="lt"),
}  # fmt: skip


async def alarms(project: Project) -> dict[str, Json]:
    """The alarms of the project, by ID."""
    found = await asyncio.to_thread(alarms_of, project.cloud)
    return {one.id: one.fields for one in found}


async def test_alarms_live_and_change(run: Program, project: Project) -> None:
    await create(run, ALARMS)
    before = await physical_ids(run)
    found = await alarms(project)
    assert set(found) == set(before.values())
    event = found[before["event"]]
    assert event["event_rule"]["event_type"] == "compute.instance.update"
    assert event["alarm_actions"] == ["http://127.0.0.1:1/"] and event["repeat_actions"] is True
    assert [one["name"] for one in event["time_constraints"]] == ["night"]
    assert len(found[before["composite"]]["composite_rule"]["or"]) == 2
    assert found[before["one"]]["prometheus_rule"]["threshold"] == 1
    shown = (await resource_of(run, "s", "event"))["attributes"]["show"]
    assert shown["state"] == "insufficient data"
    changed = {
        **ALARMS,
        "event": alarm("EventAlarm", severity="critical", enabled=False, time_constraints=ALARMS[
            "event"]["properties"]["time_constraints"]),
        "one": alarm("PrometheusAlarm", query="down", threshold=2, description="new"),
    }  # fmt: skip
    await update(run, changed)
    assert await physical_ids(run) == before
    found = await alarms(project)
    event = found[before["event"]]
    assert (event["severity"], event["enabled"], event["alarm_actions"]) == ("critical", False, [])
    assert found[before["one"]]["prometheus_rule"]["query"] == "down"
    for what, is_enabled in (("suspend", False), ("resume", True)):
        await run.stack_request("POST", "s", "/actions", {what: None})
        assert await run.until_ended("s") == f"{what.upper()}_COMPLETE"
        assert (await alarms(project))[before["one"]]["enabled"] is is_enabled
    await delete(run)
    assert await alarms(project) == {}


async def test_a_killed_create_finds_its_own_alarm(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    """A process dies after Aodh has created an alarm, before the result is stored."""
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            assert await die_after_each(server, http, ALARMS) == "CREATE_COMPLETE"
            assert set(await alarms(project)) == set((await physical_ids(http)).values())
            await delete_stack(http)
            assert await alarms(project) == {}
    finally:
        server.kill()


async def test_changes_of_other_clients_are_found_and_repaired(
    observing: Program, project: Project
) -> None:
    await create(observing, ALARMS)
    assert await drift_of(observing) == {}
    before = await physical_ids(observing)
    cloud = project.cloud.session
    root = cloud.get_endpoint(service_type="alarming", interface="public")
    event = (await alarms(project))[before["event"]]
    body = {**event, "severity": "critical"}
    url = f"{root}/v2/alarms/{before['event']}"
    await asyncio.to_thread(cloud.request, url, "PUT", json=body)
    await asyncio.to_thread(cloud.request, f"{root}/v2/alarms/{before['one']}", "DELETE")
    assert await drift_of(observing) == {
        "event": ("changed", ["severity"]),
        "one": ("missing", []),
    }
    await update(observing, ALARMS, converge=True)
    assert (await physical_ids(observing))["event"] == before["event"]
    assert (await alarms(project))[before["event"]]["severity"] == "low"
    assert await drift_of(observing) == {}
    await delete(observing)
