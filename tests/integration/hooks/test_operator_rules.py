"""Operator rules: they hold in every project, users cannot remove them, and a policy program can
answer them.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from engine.errors import Invalid
from hub.settings.settings import load_settings
from tests.support.changes import thing
from tests.support.program import Http, Json, Program, eventually, program
from tests.support.receiver import Received, Receiver, running_receiver
from tests.support.scripted_type import Thing, World

RULE = {"on": ["pre-stack-create", "pre-stack-update"], "timeout": "10s", "on_timeout": "reject"}


@asynccontextmanager
async def run_with_rules(
    url: str, world: World, *rules: Json, policy: str = ""
) -> AsyncIterator[Program]:
    """A program with these rules, which sends hook notifications to a policy program."""
    settings: dict[str, Any] = {"hooks.rules": list(rules), "engine.poll": "1s"}
    if policy:
        settings["subscriptions"] = [
            {"project": "*", "target": f"{policy}/policy", "events": ["headgate.hook.waiting"],
             "points": ["pre-stack-*"]}
        ]  # fmt: skip
    async with program(url, settings, types=[Thing(world)]) as run:
        yield run


@pytest.fixture
async def policy() -> AsyncIterator[Receiver]:
    """Rejects plans that contain a size above ten."""
    async with running_receiver() as receiver:

        async def decide(received: Received) -> web.StreamResponse:
            plan = received.event["data"]["change"]["plan"]
            large = [one["name"] for one in plan if one["properties"].get("size", 0) > 10]
            if large:
                reason = f"too large: {', '.join(large)}"
                return web.json_response({"decision": "reject", "reason": reason})
            return web.json_response({"decision": "continue"})

        receiver.handle = decide
        yield receiver


async def test_a_policy_program_approves_and_rejects_in_every_project(
    database_url: str, world: World, policy: Receiver
) -> None:
    async with run_with_rules(database_url, world, RULE, policy=policy.url) as run:
        other = Http(run.session, run.url, "elsewhere")
        await run.create("small", {"a": thing(1)})
        await other.create("large", {"a": thing(11)})
        assert await run.until_ended("small") == "CREATE_COMPLETE"
        assert await other.until_ended("large") == "CREATE_FAILED"
        reason = (await other.stack("large"))["stack_status_reason"]
        assert "pre-stack-create rejected by subscription " in reason and "too large: a" in reason
        assert world.done == [("create", "a")]


async def test_a_live_breakpoint_does_not_replace_an_operator_rule(
    database_url: str, world: World
) -> None:
    rule = {"on": ["pre-create"], "at": "b", "answer_by": ["role:operator"]}
    async with run_with_rules(database_url, world, rule) as run:
        rules = {"hooks": [{"at": "a", "on": "pre-create"}]}
        resources = {"a": thing(), "b": thing(depends_on="a")}
        await run.create("s", resources, environment=rules)
        (first,) = await run.waiting_hooks("s")
        await run.stack_request("POST", "s", "/breakpoints", {"breakpoints": ["b:pre-create"]})
        await run.signal(first)

        async def hooks_at_b() -> Json:
            return [one for one in await run.waiting_hooks("s") if one["path"] == "b"]

        (hook,) = await eventually(hooks_at_b)
        assert (await run.signal(hook, user="ann"))[0] == 403
        assert (await run.signal(hook, roles="operator"))[0] == 200


async def test_users_cannot_clear_an_operator_rule(database_url: str, world: World) -> None:
    rule = {"on": ["pre-create"], "at": "*", "types": ["Test::*"], "answer_by": ["role:operator"]}
    async with run_with_rules(database_url, world, rule) as run:
        resources = {"a": thing(), "t": {"type": "OS::Heat::TestResource"}}
        sent = {"stack_name": "s", "hooks": {"clear": ["*"]},
                "environment": {"hooks": [{"at": "a", "on": "pre-create", "mode": "notify"}]},
                "template": {"heat_template_version": "2018-08-31", "resources": resources}}  # fmt: skip
        status, response = await run.call("POST", "/stacks", sent)
        assert status == 201, response
        (hook,) = await run.waiting_hooks("s")
        assert hook["resource_name"] == "a" and hook["answer_by"] == ["role:operator"]
        assert (await run.signal(hook, "run", user="ann"))[0] == 403
        assert (await run.signal(hook, roles="operator"))[0] == 200
        assert await run.until_ended("s") == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    ("on_timeout", "ended"), [("reject", "CREATE_FAILED"), ("continue", "CREATE_COMPLETE")]
)
async def test_on_timeout_of_an_unanswered_operator_rule_decides(
    database_url: str, world: World, on_timeout: str, ended: str
) -> None:
    rule = RULE | {"timeout": "1s", "on_timeout": on_timeout}
    async with run_with_rules(database_url, world, rule) as run:
        await run.create("s", {"a": thing()})
        assert await run.until_ended("s") == ended


async def test_a_dry_run_rule_records_its_decision_and_does_not_block(
    database_url: str, world: World, policy: Receiver
) -> None:
    rule = RULE | {"dry": True}
    async with run_with_rules(database_url, world, rule, policy=policy.url) as run:
        await run.create("s", {"a": thing(11)})
        assert await run.until_ended("s") == "CREATE_COMPLETE"

        async def decisions() -> Json:
            audit_log = await run.stack_request("GET", "s", "/decisions")
            return audit_log["decisions"]

        (entry,) = await eventually(decisions)
        assert (entry["kind"], entry["reason"]) == ("dry-reject", "too large: a")
        _, report = await run.call("GET", "/hooks?dry=true")
        assert [one["dry"] for one in report["hooks"]] == [True]


async def test_a_condition_of_an_operator_rule_uses_the_stacks_parameters(
    database_url: str, world: World
) -> None:
    rule = RULE | {"when": {"equals": [{"get_param": "tier"}, "prod"]}}
    async with run_with_rules(database_url, world, rule) as run:
        template = {
            "heat_template_version": "2013-05-23",
            "parameters": {"tier": {"type": "string"}},
            "resources": {"a": thing()},
        }
        for tier, held in (("test", 0), ("prod", 1)):
            body = {"stack_name": tier, "template": template, "parameters": {"tier": tier}}
            assert (await run.call("POST", "/stacks", body))[0] == 201
            if held:
                await run.waiting_hooks(tier)
            else:
                assert await run.until_ended(tier) == "CREATE_COMPLETE"
        await run.create("without", {"a": thing()})
        assert await run.until_ended("without") == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"on": ["pre-stack-craete"]}, "pre-stack-create"),
        ({"on": ["pre-create"]}, "names no resource"),
        ({"on": ["pre-stack-create"], "at": "a"}, "whole stack"),
        ({"on": ["pre-stack-create"], "timeout": "0s"}, "is not a valid time"),
        ({"on": ["pre-stack-create"], "answer_by": ["ann"]}, "is not a user or role"),
    ],
)
def test_an_invalid_operator_rule_is_refused_at_start(rule: Json, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        load_settings(None, {"hooks.rules": [rule]}, environment={})
    assert message in str(refused.value)
