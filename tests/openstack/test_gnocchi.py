"""Alarms about metrics, on a real Gnocchi: Aodh evaluates them, and signals a scaling policy."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from tests.openstack.cloud import OpenStack, Project, alarms_of
from tests.openstack.neutron_stacks import physical_ids
from tests.openstack.stacks import delete, run
from tests.support.program import Program, eventually, template

Json = Any
__all__ = ["run"]  # a fixture
#: Seconds of one value: longer than Aodh needs from one evaluation to the next.
GRANULARITY = 60
METRIC = "load"


@pytest.fixture(scope="session", autouse=True)
def gnocchi(openstack: OpenStack) -> None:
    """Gnocchi and Aodh run; they start once per run."""
    openstack.start("gnocchi")
    openstack.start("aodh")


class Measured:
    """A resource of Gnocchi with a metric."""

    def __init__(self, project: Project) -> None:
        session = project.cloud.session
        self._session = session
        self._root = session.get_endpoint(service_type="metric", interface="public")
        self.id = str(uuid4())
        body = {"id": self.id, "metrics": {METRIC: {"archive_policy_name": "high"}}}
        created = session.post(f"{self._root}/v1/resource/generic", json=body).json()
        self.metric_id = str(created["metrics"][METRIC])

    def add(self, value: float) -> None:
        measures = [{"timestamp": datetime.now(UTC).isoformat(), "value": value}]
        self._session.post(f"{self._root}/v1/metric/{self.metric_id}/measures", json=measures)

    def delete(self) -> None:
        """With its metric."""
        self._session.delete(f"{self._root}/v1/resource/generic/{self.id}")


def stack_of(measured: Measured, *, threshold: float) -> Json:
    """An alarm of each type; the one of a resource scales a group."""
    usual = {
        "threshold": threshold, "granularity": GRANULARITY, "aggregation_method": "mean",
        "comparison_operator": "gt", "evaluation_periods": 1, "repeat_actions": False,
    }  # fmt: skip
    properties: dict[str, Json] = {
        "GnocchiResourcesAlarm": {
            "metric": METRIC, "resource_type": "generic", "resource_id": measured.id,
            "alarm_actions": [{"get_attr": ["grow", "alarm_url"]}],
        },
        "GnocchiAggregationByMetricsAlarm": {"metrics": [measured.metric_id]},
        "GnocchiAggregationByResourcesAlarm": {
            "metric": METRIC, "resource_type": "generic",
            "query": json.dumps({"=": {"id": measured.id}}),
        },
    }  # fmt: skip
    group = {
        "min_size": 1, "max_size": 2, "cooldown": 0, "resource": {"type": "OS::Heat::RandomString"}
    }  # fmt: skip
    policy = {
        "auto_scaling_group_id": {"get_resource": "group"},
        "adjustment_type": "change_in_capacity", "scaling_adjustment": 1,
    }  # fmt: skip
    resources = {
        kind: {"type": f"OS::Aodh::{kind}", "properties": {**usual, **own}}
        for kind, own in properties.items()
    }
    resources["group"] = {"type": "OS::Heat::AutoScalingGroup", "properties": group}
    resources["grow"] = {"type": "OS::Heat::ScalingPolicy", "properties": policy}
    return template(resources, outputs={"size": {"value": {"get_attr": ["group", "current_size"]}}})


async def test_alarms_follow_a_metric_and_scale_a_group(run: Program, project: Project) -> None:
    measured = await asyncio.to_thread(Measured, project)
    await run.create("s", {}, template=stack_of(measured, threshold=50))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    before = await physical_ids(run)

    async def until_state(wanted: str) -> None:
        """Until all alarms have this state. A value counts for a minute, so send one each time."""

        async def reached() -> bool:
            await asyncio.to_thread(measured.add, 90)
            found = await asyncio.to_thread(alarms_of, project.cloud)
            assert len(found) == 3
            return {one.fields["state"] for one in found} == {wanted}

        await eventually(reached)

    async def is_grown() -> bool:
        (output,) = (await run.stack("s"))["outputs"]
        return bool(output["output_value"] == 2)

    await until_state("alarm")
    await eventually(is_grown)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"

    await run.update("s", "PUT", template=stack_of(measured, threshold=95))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert await physical_ids(run) == before
    await until_state("ok")
    await delete(run)
    assert await asyncio.to_thread(alarms_of, project.cloud) == []
    await asyncio.to_thread(measured.delete)
