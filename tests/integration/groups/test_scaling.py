"""Signals to scaling policies start changes that resize groups."""

import json
from pathlib import Path

import pytest
import yaml

from tests.integration.groups.test_members import change, values
from tests.integration.nested.test_lifecycle import output
from tests.support.program import Json, Program, resource, template

TEST_RESOURCE = "OS::Heat::TestResource"
EXAMPLE = Path(__file__).parents[3] / "examples" / "group"


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def scaling_group(*, size: int = 2, value: Json = "v", **more: Json) -> Json:
    body = {"type": TEST_RESOURCE, "properties": {"value": value}}
    properties = {"resource": body, "min_size": 1, "max_size": 5, "desired_capacity": size, **more}
    return {"type": "OS::Heat::AutoScalingGroup", "properties": properties}


def policy(amount: int = 1, kind: str = "change_in_capacity", **more: Json) -> Json:
    return {
        "type": "OS::Heat::ScalingPolicy",
        "properties": {
            "auto_scaling_group_id": {"get_resource": "g"},
            "scaling_adjustment": amount, "adjustment_type": kind, **more,
        },
    }  # fmt: skip


OUTPUTS = {
    "size": {"value": {"get_attr": ["g", "current_size"]}},
    "alarm": {"value": {"get_attr": ["up", "alarm_url"]}},
    "url": {"value": {"get_attr": ["up", "signal_url"]}},
}


INNER = {
    "parameters": {"value": {"type": "string"}},
    "resources": {"g": scaling_group(value={"get_param": "value"}), "up": policy()},
}


async def create_group(http: Program, **resources: Json) -> None:
    sent = {"g": scaling_group(), "up": policy(), **resources}
    await http.create("s", {}, template=template(sent, outputs=OUTPUTS))
    assert await http.until_ended("s") == "CREATE_COMPLETE"


async def signal(http: Program, name: str = "up", body: Json = None) -> str:
    """Send a signal; return the reason of the resource's last event."""
    stack = await http.stack("s")
    path = f"/stacks/s/{stack['id']}/resources/{name}/signal"
    status, response = await http.call("POST", path, body)
    assert status == 200, response
    events = [one for one in await http.events("s") if one["resource_name"] == name]
    return str(events[-1]["resource_status_reason"])


async def test_a_signal_scales_the_group_and_updates_its_readers(running: Program) -> None:
    reader = resource({"list_join": [",", {"get_attr": ["g", "refs"]}]})
    await create_group(running, reader=reader)
    before = await running.stack("s")
    assert await signal(running) == "g is scaled from 2 to 3 (change_in_capacity: 1)"
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await output(running, "s", "size") == 3
    response = (await running.stack_request("GET", "s", "/resources/reader"))["resource"][
        "attributes"
    ]
    assert len(response["output"].split(",")) == 3
    reasons = [one["resource_status_reason"] for one in await running.events("s")]
    assert "Stack UPDATE started" in reasons
    assert (await running.stack("s"))["id"] == before["id"]
    # Signals of alarms are not stored.
    stored_signals = "select count(*) from resource_signal"
    assert await running.database.pool.fetchval(stored_signals) == 0


async def test_alarm_and_signal_urls_scale_the_group(running: Program) -> None:
    """The signal URL is a request of the API, which authenticates its users in the other modes."""
    await create_group(running)
    url = await output(running, "s", "alarm")
    async with running.session.post(url, json={"current": "alarm"}) as response:
        assert response.status == 200, await response.text()
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await output(running, "s", "size") == 3
    url = await output(running, "s", "url")
    async with running.session.post(url, json={"current": "alarm"}) as response:
        assert response.status == 200, await response.text()
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await output(running, "s", "size") == 4


async def test_the_urls_of_a_renamed_policy_stay_valid(running: Program) -> None:
    """A move does not write the attributes again, and alarms outside the stack have the URLs."""
    await create_group(running)
    urls = [await output(running, "s", name) for name in ("alarm", "url")]
    sent = template({"g": scaling_group(), "grow": policy()}, outputs={"size": OUTPUTS["size"]})
    await running.update("s", "PUT", template=sent, moved=[{"from": "up", "to": "grow"}])
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    for size, url in enumerate(urls, start=3):
        async with running.session.post(url) as response:
            assert response.status == 200, await response.text()
        assert await running.until_ended("s") == "UPDATE_COMPLETE"
        assert await output(running, "s", "size") == size
    unknown = urls[1].replace(urls[1].split("/")[-2], "00000000-0000-0000-0000-000000000000")
    async with running.session.post(unknown) as response:
        assert (response.status, "EntityNotFound" in await response.text()) == (404, True)


async def test_a_policy_that_moves_to_another_stack_has_the_urls_of_its_new_stack(
    running: Program,
) -> None:
    """Its group is another one, so it is replaced."""
    await running.create("before", {"g": scaling_group(), "up": policy()})
    assert await running.until_ended("before") == "CREATE_COMPLETE"
    await running.create("s", {"g": scaling_group()})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    sent = template({"g": scaling_group(), "up": policy()}, outputs=OUTPUTS)
    moved = [{"from": {"stack": "before", "resource": "up"}, "to": "up"}]
    await running.update("s", "PUT", template=sent, moved=moved)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    for size, name in enumerate(("alarm", "url"), start=3):
        async with running.session.post(await output(running, "s", name)) as response:
            assert response.status == 200, await response.text()
        assert await running.until_ended("s") == "UPDATE_COMPLETE"
        assert await output(running, "s", "size") == size


async def test_a_signal_during_a_change_or_cooldown_scales_nothing_and_its_event_has_the_reason(
    running: Program,
) -> None:
    slow = {"type": TEST_RESOURCE, "properties": {"action_wait_secs": {"create": 3600}}}
    await create_group(running, rest=policy(cooldown=3600), none=policy(2, "exact_capacity"))
    assert (await signal(running, "none")).startswith("g was not scaled: it already has 2 members")
    assert await signal(running, "rest") == "g is scaled from 2 to 3 (change_in_capacity: 1)"
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert (await signal(running)).startswith("g was not scaled: it is in cooldown until 20")
    sent = {"g": scaling_group(), "up": policy(), "slow": slow}
    await running.update("s", "PUT", template=template(sent))
    assert await signal(running) == "g was not scaled: UPDATE of its stack is in progress"
    await running.act("s", "cancel_without_rollback")
    assert await running.until_ended("s") == "UPDATE_FAILED"
    assert await signal(running) == "g was not scaled: its stack is UPDATE_FAILED"


async def test_an_answer_chooses_the_removed_members_and_an_update_resets_the_size(
    running: Program,
) -> None:
    await create_group(running, down=policy(-1))
    names = sorted(await values(running))
    breakpoints = {"breakpoints": [{"at": "g", "on": "pre-scale-in"}]}
    await running.stack_request("POST", "s", "/breakpoints", breakpoints)
    await signal(running, "down")
    (hook,) = await running.waiting_hooks("s")
    shown = hook["resource"]["seen"]
    assert sorted(shown["may_choose"]) == names
    (remaining,) = shown["victims"]
    (victim,) = {*names} - {remaining}
    assert (await running.signal(hook, data={"victims": [victim]}))[0] == 200
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert [*await values(running)] == [remaining]
    await change(running, {"g": scaling_group(size=3), "up": policy()})
    assert remaining in await values(running)
    assert len(await values(running)) == 3


async def test_a_failed_member_fails_the_change_and_the_next_update_repairs_the_group(
    running: Program,
) -> None:
    await create_group(running)
    failing = scaling_group(value="w")
    failing["properties"]["resource"]["properties"]["fail"] = True
    await change(running, {"g": failing, "up": policy()}, "UPDATE_FAILED")
    await change(running, {"g": scaling_group(value="w"), "up": policy()})
    assert sorted((await values(running)).values()) == ["w", "w"]


async def test_invalid_policies_are_refused_and_a_signal_without_a_group_is_404(
    running: Program,
) -> None:
    for policy_body, message in (
        (policy(1, "twice"), '"twice" is not an allowed value'),
        (policy(1, min_adjustment_step=2), "valid only with percent_change_in_capacity"),
    ):
        sent = {"stack_name": "s", "template": template({"g": scaling_group(), "up": policy_body})}
        status, refused = await running.call("POST", "/stacks", sent)
        assert (status, message in str(refused)) == (400, True), refused
    other = policy()
    other["properties"]["auto_scaling_group_id"] = "unknown"
    await create_group(running, up=other)
    stack = await running.stack("s")
    status, response = await running.call("POST", f"/stacks/s/{stack['id']}/resources/up/signal")
    assert status == 404
    assert 'could not find scaling group named "unknown"' in str(response)


async def test_the_example_scales_out_updates_in_batches_and_scales_in(running: Program) -> None:
    group_template, hooks_environment = (
        yaml.safe_load((EXAMPLE / name).read_text()) for name in ("group.yaml", "ask.yaml")
    )
    group_template["heat_template_version"] = str(group_template["heat_template_version"])
    await running.create("crew", {}, template=group_template)
    assert await running.until_ended("crew") == "CREATE_COMPLETE"
    async with running.session.post(await output(running, "crew", "more_url")) as response:
        assert response.status == 200
    assert await running.until_ended("crew") == "UPDATE_COMPLETE"
    assert len(await output(running, "crew", "workers")) == 3
    changed = {
        "template": group_template,
        "environment": hooks_environment,
        "parameters": {"greeting": "hi"},
    }
    await running.update("crew", "PUT", **changed)
    for _ in range(2):
        (hook,) = await running.waiting_hooks("crew")
        assert (hook["point"], (await running.signal(hook))[0]) == ("pre-batch", 200)
    assert await running.until_ended("crew") == "UPDATE_COMPLETE"
    assert await output(running, "crew", "greetings") == ["hi"] * 3
    async with running.session.post(await output(running, "crew", "fewer_url")) as response:
        assert response.status == 200
    (hook,) = await running.waiting_hooks("crew")
    assert (hook["point"], (await running.signal(hook))[0]) == ("pre-scale-in", 200)
    assert await running.until_ended("crew") == "UPDATE_COMPLETE"
    assert len(await output(running, "crew", "workers")) == 2


async def test_a_scaling_of_a_nested_group_is_superseded_by_a_change_of_its_parent(
    running: Program,
) -> None:
    """A parent does not wait for a change that its nested stack started itself."""
    files = {"inner.yaml": json.dumps({"heat_template_version": "2018-08-31", **INNER})}

    def around(value: str) -> Json:
        return {"web": {"type": "inner.yaml", "properties": {"value": value}}}

    await running.create("s", around("old"), files=files)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    await running.stack_request(
        "POST", "s", "/breakpoints", {"breakpoints": ["web/g/*:pre-create"]}
    )
    web = (await running.resources("s"))["web"]["physical_resource_id"]
    await running.stack_request("POST", web, "/resources/up/signal", {})
    (hook,) = await running.waiting_hooks("s")
    sent = template(around("new"))
    await running.update("s", "PUT", template=sent, files=files, hooks={"clear": ["*"]})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    status, response = await running.signal(hook)
    assert (status, response["error"]["type"]) == (409, "HookSuperseded")
    assert await running.until_ended(web) == "UPDATE_COMPLETE"
