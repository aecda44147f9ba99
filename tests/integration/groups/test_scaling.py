"""Signals to scaling policies start changes that resize groups."""

import json
from pathlib import Path

import yaml

from tests.integration.groups.test_members import change, values
from tests.integration.nested.test_lives import output
from tests.support.program import Json, Program, resource, template

A_TEST_RESOURCE = "OS::Heat::TestResource"
EXAMPLE = Path(__file__).parents[3] / "examples" / "group"


def scaled(*, size: int = 2, value: Json = "v", **more: Json) -> Json:
    body = {"type": A_TEST_RESOURCE, "properties": {"value": value}}
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
    "door": {"value": {"get_attr": ["up", "signal_url"]}},
}


INNER = {
    "parameters": {"value": {"type": "string"}},
    "resources": {"g": scaled(value={"get_param": "value"}), "up": policy()},
}


async def begin(http: Program, **resources: Json) -> None:
    sent = {"g": scaled(), "up": policy(), **resources}
    await http.create("s", {}, template=template(sent, outputs=OUTPUTS))
    assert await http.until_ended("s") == "CREATE_COMPLETE"


async def signal(http: Program, name: str = "up", body: Json = None) -> str:
    """The reason of the last event."""
    stack = await http.stack("s")
    path = f"/stacks/s/{stack['id']}/resources/{name}/signal"
    status, said = await http.call("POST", path, body)
    assert status == 200, said
    events = [one for one in await http.events("s") if one["resource_name"] == name]
    return str(events[-1]["resource_status_reason"])


async def test_a_signal_scales_the_group_and_what_reads_it_follows(running: Program) -> None:
    reader = resource({"list_join": [",", {"get_attr": ["g", "refs"]}]})
    await begin(running, reader=reader)
    before = await running.stack("s")
    assert await signal(running) == "g is scaled from 2 to 3 (change_in_capacity: 1)"
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await output(running, "s", "size") == 3
    seen = (await running.at("GET", "s", "/resources/reader"))["resource"]["attributes"]
    assert len(seen["output"].split(",")) == 3
    reasons = [one["resource_status_reason"] for one in await running.events("s")]
    assert "Stack UPDATE started" in reasons
    assert (await running.stack("s"))["id"] == before["id"]
    # However many alarms come, none is kept.
    kept = "select count(*) from resource_signal"
    assert await running.database.pool.fetchval(kept) == 0


async def test_alarms_need_no_login_and_the_urls_are_for_their_policy_alone(
    running: Program,
) -> None:
    await begin(running)
    url = await output(running, "s", "alarm")
    async with running.session.post(url, json={"current": "alarm"}) as said:
        assert said.status == 200, await said.text()
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert await output(running, "s", "size") == 3
    door = await output(running, "s", "door")
    async with running.session.post(door) as said:
        assert said.status == 401


async def test_a_group_that_is_busy_or_rests_is_left_alone_and_the_event_says_so(
    running: Program,
) -> None:
    slow = {"type": A_TEST_RESOURCE, "properties": {"action_wait_secs": {"create": 3600}}}
    await begin(running, rest=policy(cooldown=3600), none=policy(2, "exact_capacity"))
    assert (await signal(running, "none")).startswith("g was not scaled: it has 2 members")
    assert await signal(running, "rest") == "g is scaled from 2 to 3 (change_in_capacity: 1)"
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert (await signal(running)).startswith("g was not scaled: it is in cooldown until 20")
    sent = {"g": scaled(), "up": policy(), "slow": slow}
    await running.update("s", "PUT", template=template(sent))
    assert await signal(running) == "g was not scaled: UPDATE of its stack is in progress"
    await running.act("s", "cancel_without_rollback")
    assert await running.until_ended("s") == "UPDATE_FAILED"
    assert await signal(running) == "g was not scaled: its stack is UPDATE_FAILED"


async def test_an_answer_chooses_the_removed_members_and_an_update_sets_the_size_again(
    running: Program,
) -> None:
    await begin(running, down=policy(-1))
    names = sorted(await values(running))
    asked = {"breakpoints": [{"at": "g", "on": "pre-scale-in"}]}
    await running.at("POST", "s", "/breakpoints", asked)
    await signal(running, "down")
    (hook,) = await running.waiting("s")
    seen = hook["resource"]["seen"]
    assert sorted(seen["may_choose"]) == names
    (stays,) = seen["victims"]
    (victim,) = {*names} - {stays}
    assert (await running.signal(hook, data={"victims": [victim]}))[0] == 200
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    assert [*await values(running)] == [stays]
    await change(running, {"g": scaled(size=3), "up": policy()})
    assert stays in await values(running)
    assert len(await values(running)) == 3


async def test_a_member_that_fails_fails_the_change_and_the_group_is_not_lost(
    running: Program,
) -> None:
    await begin(running)
    bad = scaled(value="w")
    bad["properties"]["resource"]["properties"]["fail"] = True
    await change(running, {"g": bad, "up": policy()}, "UPDATE_FAILED")
    await change(running, {"g": scaled(value="w"), "up": policy()})
    assert sorted((await values(running)).values()) == ["w", "w"]


async def test_policies_that_cannot_be_are_refused_and_one_of_no_group_is_told_so(
    running: Program,
) -> None:
    for made, told in (
        (policy(1, "twice"), '"twice" is not an allowed value'),
        (policy(1, min_adjustment_step=2), "valid only with percent_change_in_capacity"),
    ):
        sent = {"stack_name": "s", "template": template({"g": scaled(), "up": made})}
        status, refused = await running.call("POST", "/stacks", sent)
        assert (status, told in str(refused)) == (400, True), refused
    other = policy()
    other["properties"]["auto_scaling_group_id"] = "nobody"
    await begin(running, up=other)
    stack = await running.stack("s")
    status, said = await running.call("POST", f"/stacks/s/{stack['id']}/resources/up/signal")
    assert status == 404
    assert 'could not find scaling group named "nobody"' in str(said)


async def test_the_example_grows_changes_in_batches_and_shrinks(running: Program) -> None:
    written, asks = (
        yaml.safe_load((EXAMPLE / name).read_text()) for name in ("group.yaml", "ask.yaml")
    )
    written["heat_template_version"] = str(written["heat_template_version"])
    await running.create("crew", {}, template=written)
    assert await running.until_ended("crew") == "CREATE_COMPLETE"
    async with running.session.post(await output(running, "crew", "more_url")) as said:
        assert said.status == 200
    assert await running.until_ended("crew") == "UPDATE_COMPLETE"
    assert len(await output(running, "crew", "workers")) == 3
    changed = {"template": written, "environment": asks, "parameters": {"greeting": "hi"}}
    await running.update("crew", "PUT", **changed)
    for _ in range(2):
        (hook,) = await running.waiting("crew")
        assert (hook["point"], (await running.signal(hook))[0]) == ("pre-batch", 200)
    assert await running.until_ended("crew") == "UPDATE_COMPLETE"
    assert await output(running, "crew", "greetings") == ["hi"] * 3
    async with running.session.post(await output(running, "crew", "fewer_url")) as said:
        assert said.status == 200
    (hook,) = await running.waiting("crew")
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
    await running.at("POST", "s", "/breakpoints", {"breakpoints": ["web/g/*:pre-create"]})
    web = (await running.resources("s"))["web"]["physical_resource_id"]
    await running.at("POST", web, "/resources/up/signal", {})
    (hook,) = await running.waiting("s")
    sent = template(around("new"))
    await running.update("s", "PUT", template=sent, files=files, hooks={"clear": ["*"]})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    status, said = await running.signal(hook)
    assert (status, said["error"]["type"]) == (409, "HookSuperseded")
    assert await running.until_ended(web) == "UPDATE_COMPLETE"
