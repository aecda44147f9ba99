"""Several operator rules at one point: a rule never cancels the block of another one."""

import logging
from typing import Any

import pytest

from tests.integration.operator_rules.guard_every_stack import run_recipe, running_policy, server
from tests.support.principals import token_client
from tests.support.program import Json, eventually, resource

UNOWNED = {"a": server()}
POINTS = ["pre-stack-create", "pre-stack-update", "pre-stack-restore", "pre-stack-rollback"]


@pytest.mark.parametrize(
    "rule",
    [{"dry": True}, {"mode": "notify"}, {"dry": True, "projects": ["p"]}],
    ids=["dry", "notify", "dry-of-one-project"],
)
@pytest.mark.parametrize("is_later", [True, False], ids=["later", "earlier"])
async def test_a_rule_that_does_not_block_does_not_weaken_one_that_does(
    database_url: str, rule: dict[str, Any], is_later: bool
) -> None:
    added: Json = {"on": POINTS, **rule}
    async with running_policy() as policy:
        target = policy.receiver.url
        async with run_recipe(database_url, target, added=[added], is_later=is_later) as run:
            eve = await token_client(run, "eve", ["author"])
            await eve.create("s", UNOWNED)
            (hook,) = await eve.waiting_hooks("s")
            assert (hook["point"], hook["answer_by"]) == (
                "pre-stack-create",
                ["subscription:policy"],
            )
            policy.released.set()
            assert await eve.until_ended("s") == "CREATE_FAILED"


async def test_a_dry_run_rule_does_not_replace_a_rule_of_the_project(database_url: str) -> None:
    async with running_policy() as policy:
        policy.decision = "continue"
        policy.released.set()
        dry: Json = {"on": ["pre-create"], "at": "*", "dry": True}
        async with run_recipe(database_url, policy.receiver.url, added=[dry]) as run:
            eve = await token_client(run, "eve", ["author"])
            own = {"hooks": [{"at": "v", "on": "pre-create", "answer_by": ["role:approver"]}]}
            await eve.create("s", {"v": resource()}, environment=own)

            async def waits_at_own_rule() -> bool:
                _, response = await eve.call("GET", "/hooks?state=waiting&stack=s&point=pre-create")
                return [one["dry"] for one in response["hooks"]] == [False]

            await eventually(waits_at_own_rule)


async def test_overlapping_rules_are_logged_at_start(
    database_url: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with running_policy() as policy:
        other: Json = {"on": ["pre-stack-update"]}
        async with run_recipe(database_url, policy.receiver.url, added=[other]):
            pass
    logged = "".join(capsys.readouterr()) + caplog.text
    assert "hooks.rules_overlap" in logged
    assert "[[hooks.rules]] 1 and [[hooks.rules]] 3" in logged
