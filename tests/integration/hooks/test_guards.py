"""The operator's own rules: in every project, strongest, and judged by a program elsewhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from engine.errors import Invalid
from hub.settings.settings import load_settings
from tests.support.changes import thing
from tests.support.program import Http, Json, Program, eventually, program
from tests.support.receiver import Received, Receiver, receiving
from tests.support.things import Thing, World

GUARD = {"on": ["pre-stack-create", "pre-stack-update"], "timeout": "10s", "on_timeout": "reject"}


@asynccontextmanager
async def guarded(url: str, world: World, *rules: Json, policy: str = "") -> AsyncIterator[Program]:
    """A program with these rules, whose notices go to a policy program."""
    said: dict[str, Any] = {"hooks.rules": list(rules), "engine.poll": "1s"}
    if policy:
        said["subscriptions"] = [
            {"project": "*", "target": f"{policy}/policy", "events": ["headgate.hook.waiting"],
             "points": ["pre-stack-*"]}
        ]  # fmt: skip
    async with program(url, said, types=[Thing(world)]) as made:
        yield made


@pytest.fixture
async def policy() -> AsyncIterator[Receiver]:
    """Refuses whatever makes a thing that is larger than ten."""
    async with receiving() as receiver:

        async def judge(received: Received) -> web.StreamResponse:
            plan = received.event["data"]["change"]["plan"]
            large = [one["name"] for one in plan if one["properties"].get("size", 0) > 10]
            if large:
                reason = f"too large: {', '.join(large)}"
                return web.json_response({"decision": "reject", "reason": reason})
            return web.json_response({"decision": "continue"})

        receiver.handle = judge
        yield receiver


async def test_a_policy_program_lets_pass_and_refuses_in_any_project(
    database_url: str, world: World, policy: Receiver
) -> None:
    async with guarded(database_url, world, GUARD, policy=policy.url) as run:
        other = Http(run.session, run.url, "elsewhere")
        await run.create("small", {"a": thing(1)})
        await other.create("large", {"a": thing(11)})
        assert await run.until_ended("small") == "CREATE_COMPLETE"
        assert await other.until_ended("large") == "CREATE_FAILED"
        reason = (await other.stack("large"))["stack_status_reason"]
        assert "pre-stack-create rejected by subscription " in reason and "too large: a" in reason
        assert world.done == [("create", "a")]


async def test_a_live_breakpoint_does_not_take_the_place_of_an_operators_rule(
    database_url: str, world: World
) -> None:
    rule = {"on": ["pre-create"], "at": "b", "answer_by": ["role:operator"]}
    async with guarded(database_url, world, rule) as run:
        rules = {"hooks": [{"at": "a", "on": "pre-create"}]}
        resources = {"a": thing(), "b": thing(depends_on="a")}
        await run.create("s", resources, environment=rules)
        (first,) = await run.waiting("s")
        await run.at("POST", "s", "/breakpoints", {"breakpoints": ["b:pre-create"]})
        await run.signal(first)

        async def at_b() -> Json:
            return [one for one in await run.waiting("s") if one["path"] == "b"]

        (hook,) = await eventually(at_b)
        assert (await run.signal(hook, user="ann"))[0] == 403
        assert (await run.signal(hook, roles="operator"))[0] == 200


async def test_nobody_takes_an_operators_rule_away(database_url: str, world: World) -> None:
    rule = {"on": ["pre-create"], "at": "*", "types": ["Test::*"], "answer_by": ["role:operator"]}
    async with guarded(database_url, world, rule) as run:
        resources = {"a": thing(), "t": {"type": "OS::Heat::TestResource"}}
        sent = {"stack_name": "s", "hooks": {"clear": ["*"]},
                "environment": {"hooks": [{"at": "a", "on": "pre-create", "mode": "notify"}]},
                "template": {"heat_template_version": "2018-08-31", "resources": resources}}  # fmt: skip
        status, said = await run.call("POST", "/stacks", sent)
        assert status == 201, said
        (hook,) = await run.waiting("s")
        assert hook["resource_name"] == "a" and hook["answer_by"] == ["role:operator"]
        assert (await run.signal(hook, "run", user="ann"))[0] == 403
        assert (await run.signal(hook, roles="operator"))[0] == 200
        assert await run.until_ended("s") == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    ("on_timeout", "ended"), [("reject", "CREATE_FAILED"), ("continue", "CREATE_COMPLETE")]
)
async def test_a_guard_that_says_nothing_fails_closed_or_open(
    database_url: str, world: World, on_timeout: str, ended: str
) -> None:
    rule = GUARD | {"timeout": "1s", "on_timeout": on_timeout}
    async with guarded(database_url, world, rule) as run:
        await run.create("s", {"a": thing()})
        assert await run.until_ended("s") == ended


async def test_a_guard_that_is_tried_out_holds_nothing_and_records_what_it_would_have(
    database_url: str, world: World, policy: Receiver
) -> None:
    rule = GUARD | {"dry": True}
    async with guarded(database_url, world, rule, policy=policy.url) as run:
        await run.create("s", {"a": thing(11)})
        assert await run.until_ended("s") == "CREATE_COMPLETE"

        async def recorded() -> Json:
            trail = await run.at("GET", "s", "/decisions")
            return trail["decisions"]

        (entry,) = await eventually(recorded)
        assert (entry["kind"], entry["reason"]) == ("dry-reject", "too large: a")
        _, report = await run.call("GET", "/hooks?dry=true")
        assert [one["dry"] for one in report["hooks"]] == [True]


async def test_a_condition_is_decided_by_the_stacks_parameters(
    database_url: str, world: World
) -> None:
    rule = GUARD | {"when": {"equals": [{"get_param": "tier"}, "prod"]}}
    async with guarded(database_url, world, rule) as run:
        template = {
            "heat_template_version": "2013-05-23",
            "parameters": {"tier": {"type": "string"}},
            "resources": {"a": thing()},
        }
        for tier, held in (("test", 0), ("prod", 1)):
            body = {"stack_name": tier, "template": template, "parameters": {"tier": tier}}
            assert (await run.call("POST", "/stacks", body))[0] == 201
            if held:
                await run.waiting(tier)
            else:
                assert await run.until_ended(tier) == "CREATE_COMPLETE"
        await run.create("without", {"a": thing()})
        assert await run.until_ended("without") == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"on": ["pre-stack-craete"]}, "pre-stack-create"),
        ({"on": ["pre-create"]}, "names no resource"),
        ({"on": ["pre-stack-create"], "at": "a"}, "whole stack"),
        ({"on": ["pre-stack-create"], "timeout": "0s"}, "is not a valid time"),
        ({"on": ["pre-stack-create"], "answer_by": ["ann"]}, "is not a user or role"),
    ],
)
def test_a_wrong_rule_of_the_operators_is_refused_at_start(rule: Json, told: str) -> None:
    with pytest.raises(Invalid) as refused:
        load_settings(None, {"hooks.rules": [rule]}, environment={})
    assert told in str(refused.value)
