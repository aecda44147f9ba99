"""Alarms, on a real Aodh: what it stores, and alarms about events. test_gnocchi.py has those about
metrics; there is no Prometheus."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.openstack.alarm_events import send_event
from tests.openstack.cloud import OpenStack, Project, alarms_of, delete_trusts
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.headgate import connected_headgate
from tests.openstack.neutron_stacks import delete as delete_stack
from tests.openstack.neutron_stacks import physical_ids
from tests.openstack.observations import drift_of, observing
from tests.openstack.stacks import SETTINGS, create, delete, reason, resource_of, run, update
from tests.support.program import Http, Program, ServerProcess, eventually, template

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


def scaled_by(action: Json) -> Json:
    """A group with a policy that an event alarm signals."""
    return {
        "group": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {
                "min_size": 1, "max_size": 2, "cooldown": 0,
                "resource": {"type": "OS::Heat::RandomString"},
            },
        },
        "grow": {
            "type": "OS::Heat::ScalingPolicy",
            "properties": {
                "auto_scaling_group_id": {"get_resource": "group"},
                "adjustment_type": "change_in_capacity", "scaling_adjustment": 1,
            },
        },
        "overload": alarm(
            "EventAlarm", event_type="app.overload", alarm_actions=[action],
            query=[{"field": "traits.app", "op": "eq", "value": "shop"}],
        ),
    }  # fmt: skip


SIGNALS = {
    "signed URL": {"get_attr": ["grow", "alarm_url"]},
    "trust": {"list_join": ["", ["trust+", {"get_attr": ["grow", "signal_url"]}]]},
}


@pytest.mark.parametrize("action", SIGNALS.values(), ids=SIGNALS)
async def test_an_event_alarm_scales_a_group(
    run: Program, openstack: OpenStack, project: Project, action: Json
) -> None:
    """The notifier of Aodh sends the signal, in the second case with the requester's trust."""
    outputs = {"size": {"value": {"get_attr": ["group", "current_size"]}}}
    document = template(scaled_by(action), outputs=outputs)
    await run.create("s", {}, template=document)
    assert await run.until_ended("s") == "CREATE_COMPLETE"

    async def size() -> int:
        (output,) = (await run.stack("s"))["outputs"]
        return int(output["output_value"])

    async def signals() -> list[str]:
        """The reasons of the events of signals."""
        reasons = [str(one["resource_status_reason"]) for one in await run.events("s")]
        return [one for one in reasons if one.startswith("group ")]

    assert await size() == 1
    url = (await resource_of(run, "s", "grow"))["attributes"]["signal_url"]
    status = (await run.session.post(url, json={}, headers={"X-Auth-Token": "wrong"})).status
    assert status == 401
    await send_event(openstack, "app.overload", app="other", project_id=project.id)
    await send_event(openstack, "app.overload", app="shop", project_id=project.id)
    await eventually(signals)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert await signals() == ["group is scaled from 1 to 2 (change_in_capacity: 1)"]
    assert await size() == 2
    (found,) = (await alarms(project)).values()
    assert found["state"] == "alarm"

    # The alarm repeats its action; the group has its largest size.
    await send_event(openstack, "app.overload", app="shop", project_id=project.id)

    async def is_repeated() -> bool:
        return len(await signals()) == 2

    await eventually(is_repeated)
    assert await size() == 2
    await delete(run)


async def test_a_refused_trust_has_a_reason_and_is_not_tried_again(
    database_url: str, openstack: OpenStack, project: Project
) -> None:
    """The change acts with a trust, from which Keystone makes no other one."""
    settings = {**SETTINGS, "auth.keystone.trusts": True}
    async with connected_headgate(database_url, openstack, project, settings=settings) as run:
        await run.create("s", scaled_by(SIGNALS["trust"]))
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert (await reason(run, "s", "overload")).startswith("Keystone refused the trust")
        events = [one for one in await run.events("s") if one["resource_name"] == "overload"]
        assert [one["resource_status"] for one in events] == ["CREATE_IN_PROGRESS", "CREATE_FAILED"]
        await delete(run)
    await asyncio.to_thread(delete_trusts, project.cloud)
