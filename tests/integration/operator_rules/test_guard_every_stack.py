"""The recipe of docs/how-to/guard-every-stack.md, against the users whom it restricts."""

import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from engine.hooks.derived_tokens import hook_token
from engine.store.access.token_keys import signing_key
from hub.settings.settings import load_settings
from tests.integration.examples.test_policies import POLICIES, Example
from tests.integration.operator_rules.guard_every_stack import (
    BLOCKS,
    Policy,
    Server,
    recipe_settings,
    run_recipe,
    running_policy,
    server,
)
from tests.support.http_things import HTTP_SETTINGS, lend_credential, serve_things, thing
from tests.support.keys import KEYRING
from tests.support.principals import PrincipalClient, hook_notifications, token_client
from tests.support.program import Json, Program, eventually, program, template
from tests.support.receiver import Receiver, running_receiver, until

UNOWNED = {"a": server()}
IGNORED = "the answer was ignored: an operator rule blocks the node"


@pytest.fixture
async def policy() -> AsyncIterator[Policy]:
    async with running_policy() as one:
        yield one


@pytest.fixture
async def sink() -> AsyncIterator[Receiver]:
    """An attacker's receiver, which continues every hook at once."""
    async with running_receiver() as one:
        one.respond_with({"decision": "continue", "reason": "let me in"})
        yield one


def sinks(receiver: Receiver, count: int = 1) -> Json:
    targets = [f"{receiver.url}/{number}" for number in range(count)]
    return {"event_sinks": [{"type": "webhook", "target": target} for target in targets]}


async def until_ignored(client: PrincipalClient, count: int) -> None:
    """Wait until so many answers were ignored, according to the delivery history."""

    async def count_matches() -> bool:
        return [one.startswith(IGNORED) for one in await client.errors()].count(True) == count

    await eventually(count_matches)


async def undecided_hook(
    client: PrincipalClient, name: str, point: str = "pre-stack-create"
) -> Json:
    """The waiting hook of the stack, for which no decision exists."""
    (hook,) = await client.waiting_hooks(name)
    assert hook["point"] == point
    assert hook["approvals"]["given"] == 0
    _, audit_log = await client.call("GET", f"/hooks/{hook['id']}/decisions")
    assert [one["kind"] for one in audit_log["decisions"] if one["kind"] != "refused"] == []
    return hook


async def rejected_by_policy(policy: Policy, client: PrincipalClient, name: str) -> None:
    policy.released.set()
    assert (await client.until_ended(name)).endswith("_FAILED")
    assert (
        "rejected by subscription policy: by policy"
        in (await client.stack(name))["stack_status_reason"]
    )


@pytest.mark.parametrize("block", BLOCKS)
def test_each_block_of_the_page_is_a_valid_configuration(block: str, tmp_path: Path) -> None:
    file, names = tmp_path / "headgate.toml", ""
    if "subscription:policy" in block and "[[subscriptions]]" not in block:
        names = '[[subscriptions]]\nname = "policy"\nproject = "*"\ntarget = "http://a.test/"\n'
    file.write_text(f"{block}\n{names}")
    tomllib.loads(file.read_text())
    load_settings(file, {}, environment={})


async def test_the_recipe_with_the_example_program(
    database_url: str, sink: Receiver, tmp_path: Path
) -> None:
    example = Example(POLICIES / "owner_tag.py", "--types", "OS::Nova::Server")
    settings = recipe_settings(example.url) | {"auth.mode": "tokens", "engine.poll": "1s"}
    async with example.running(tmp_path), program(database_url, settings, types=[Server()]) as run:
        eve = await token_client(run, "eve", ["author"])
        await eve.create("owned", {"a": server("ada")}, environment=sinks(sink))
        assert await eve.until_ended("owned") == "CREATE_COMPLETE"
        for number in range(3):  # the sink answers as fast as the policy program
            name = f"unowned{number}"
            await eve.create(name, UNOWNED, environment=sinks(sink))
            assert await eve.until_ended(name) == "CREATE_FAILED"
            reason = (await eve.stack(name))["stack_status_reason"]
            assert "rejected by subscription policy: no metadata.owner: a" in reason
        assert {(one["token"], one["signal_url"]) for one in hook_notifications(sink)} == {
            (None, None)
        }


@pytest.mark.parametrize(
    ("roles", "by_sinks", "approvals"),
    [(["author"], 1, 1), (["author", "approver"], 1, 1), (["admin"], 3, 3), (["author"], 3, 3)],
)
async def test_event_sinks_of_a_request_cannot_answer_operator_rules(
    database_url: str,
    policy: Policy,
    sink: Receiver,
    roles: list[str],
    by_sinks: int,
    approvals: int,
) -> None:
    changes: dict[str, Any] = {"answer_by": [], "approvals": approvals}
    async with run_recipe(database_url, policy.receiver.url, **changes) as run:
        eve = await token_client(run, "eve", roles)
        await eve.create("s", UNOWNED, environment=sinks(sink, by_sinks))
        await until_ignored(eve, by_sinks)
        await undecided_hook(eve, "s")
        assert {(one["token"], one["signal_url"]) for one in hook_notifications(sink)} == {
            (None, None)
        }
        await rejected_by_policy(policy, eve, "s")


@pytest.mark.parametrize("roles", [["author"], ["author", "approver"], ["admin"]])
async def test_a_projects_subscription_cannot_answer_operator_rules(
    database_url: str, policy: Policy, sink: Receiver, roles: list[str]
) -> None:
    async with run_recipe(database_url, policy.receiver.url, answer_by=["token"]) as run:
        eve = await token_client(run, "eve", roles)
        await eve.subscribe(sink)
        await eve.create("s", UNOWNED)
        await until_ignored(eve, 1)
        await undecided_hook(eve, "s")
        assert hook_notifications(sink)[0]["token"] is None
        await rejected_by_policy(policy, eve, "s")


async def test_hook_tokens_of_a_project_cannot_answer_operator_rules(
    database_url: str, policy: Policy, sink: Receiver
) -> None:
    """Also not a valid one, which an earlier version issued."""
    async with run_recipe(database_url, policy.receiver.url, answer_by=["token"]) as run:
        ann = await token_client(run, "ann", ["author", "approver"])
        created = await ann.subscribe(sink)
        await ann.create("s", UNOWNED)
        hook = await undecided_hook(ann, "s")
        async with run.database.connection() as conn:
            key = await signing_key(conn, b"", KEYRING)
        mine = UUID(created["id"])
        shown = {
            hook_token(key, UUID(hook["id"]), mine): 403,
            hook_token(key, UUID(int=1), mine): 401,
            hook_token(key, UUID(hook["id"]), UUID(int=1)): 401,
        }
        for token, wanted in shown.items():
            assert await answer_with_token(run, hook, token) == wanted
        await undecided_hook(ann, "s")
        await eventually(lambda: _true(hook_notifications(policy.receiver)))
        assert (
            await answer_with_token(run, hook, hook_notifications(policy.receiver)[0]["token"])
            == 200
        )


async def answer_with_token(run: Program, hook: Json, token: str) -> int:
    """The status of an answer with a hook token."""
    headers = {"Authorization": f"Bearer {token}"}
    path, body = f"//hooks/{hook['id']}/signal", {"decision": "continue"}
    status, _ = await run.call("POST", path, body, headers=headers)
    return status


async def _true(found: object) -> bool:
    return bool(found)


async def test_only_the_named_subscription_of_the_settings_answers(
    database_url: str, policy: Policy, sink: Receiver
) -> None:
    settings = recipe_settings(policy.receiver.url) | {"auth.mode": "tokens", "engine.poll": "1s"}
    settings["subscriptions"] = [
        *settings["subscriptions"], {"name": "audit", "project": "*", "target": sink.url}
    ]  # fmt: skip
    async with program(database_url, settings, types=[Server()]) as run:
        eve = await token_client(run, "eve", ["author"])
        await eve.create("s", UNOWNED)
        await until(lambda: hook_notifications(sink))
        assert hook_notifications(sink)[0]["token"] is None
        await undecided_hook(eve, "s")
        await rejected_by_policy(policy, eve, "s")


async def test_a_project_cannot_change_a_subscription_of_the_settings(
    database_url: str, policy: Policy, sink: Receiver
) -> None:
    settings = recipe_settings(policy.receiver.url) | {"auth.mode": "tokens", "engine.poll": "1s"}
    settings["subscriptions"][0]["project"] = "p"
    async with program(database_url, settings, types=[Server()]) as run:
        boss = await token_client(run, "boss", ["admin"])
        _, known = await boss.call("GET", "/subscriptions")
        (one,) = known["subscriptions"]
        assert (one["name"], one["origin"], one["owner"]) == ("policy", "configuration", "")
        path = f"/subscriptions/{one['id']}"
        attempts = [
            ("PATCH", path, {"target": sink.url}),
            ("PATCH", path, {"points": ["post-create"]}),
            ("PATCH", path, {"state": "disabled"}),
            ("DELETE", path, None),
            ("POST", f"{path}/rotate", None),
        ]
        for method, where, body in attempts:
            status, answer = await boss.call(method, where, body)
            assert (status, answer["error"]["type"]) == (403, "Forbidden"), (method, where, body)
        everywhere = await token_client(run, "root", ["operator"], "*")
        assert (await everywhere.call("PATCH", path, {"target": sink.url}))[0] == 403
        assert (await everywhere.call("PATCH", path, {"state": "disabled"}))[0] == 200


async def test_operator_rules_hold_for_adopted_and_external_resources(
    database_url: str, policy: Policy, sink: Receiver
) -> None:
    """By adoption at the stack's rule; by external_id at the server's rule."""
    async with run_recipe(database_url, policy.receiver.url) as run:
        eve = await token_client(run, "eve", ["author"])
        data = {"resources": {"a": {"name": "a", "resource_id": "real-1"}}}
        body = {"stack_name": "adopted", "template": template(UNOWNED),
                "adopt_stack_data": data, "environment": sinks(sink)}  # fmt: skip
        status, response = await eve.call("POST", "/stacks", body)
        assert status == 201, response
        assert (await undecided_hook(eve, "adopted"))["point"] == "pre-stack-create"
        await until_ignored(eve, 1)
        await rejected_by_policy(policy, eve, "adopted")


@pytest.mark.parametrize("way", ["external_id", "adopt", "nested", "import", "import of a key"])
async def test_the_rule_for_servers_holds_for_each_server(
    database_url: str, policy: Policy, sink: Receiver, way: str
) -> None:
    async with run_recipe(database_url, policy.receiver.url, on=["pre-stack-check"]) as run:
        eve = await token_client(run, "eve", ["author"])
        inner = template(UNOWNED)
        resources = {
            "external_id": {"a": {**server(), "external_id": "real-1"}},
            "adopt": UNOWNED,
            "nested": {"inner": {"type": "inner.yaml"}},
            "import": UNOWNED,
            "import of a key": {"a": {**server(), "for_each": ["x"]}},
        }[way]
        body: Json = {"stack_name": "s", "template": template(resources),
                      "environment": sinks(sink)}  # fmt: skip
        name = 'a["x"]' if way == "import of a key" else "a"
        if way.startswith("import"):
            body["template"] |= {"heat_template_version": "2026-12-01",
                                 "import": [{"resource": name, "id": "real-1"}]}  # fmt: skip
        if way == "adopt":
            body["adopt_stack_data"] = {"resources": {"a": {"resource_id": "real-1"}}}
        if way == "nested":
            body["files"] = {"inner.yaml": str(inner).replace("'", '"')}
        status, response = await eve.call("POST", "/stacks", body)
        assert status == 201, response
        await until_ignored(eve, 1)
        hook = await undecided_hook(eve, "s", "pre-create")
        assert hook["path"] == ("inner/a" if way == "nested" else name)
        policy.released.set()
        assert (await eve.until_ended("s")).endswith("_FAILED")
        assert "rejected by subscription policy" in (await eve.stack("s"))["stack_status_reason"]


async def test_an_import_evades_no_operator_rule(database_url: str, policy: Policy) -> None:
    """No hook precedes it, so it changes nothing and uses no credential of the operator."""
    async with serve_things() as things:
        things.objects = {"t1": {"id": "t1", "state": "ready", "size": 1}}
        settings = recipe_settings(policy.receiver.url) | HTTP_SETTINGS
        settings |= {"auth.mode": "tokens", **lend_credential(things)}
        async with program(database_url, settings, types=[Server()]) as run:
            eve = await token_client(run, "eve", ["author"])
            deletes = {"read": {"url": "/things/${id}", "method": "DELETE"}}
            for more, place, code in (
                (deletes, "read.method", "Invalid"),
                ({"credential": "lent"}, "credential", "Forbidden"),
            ):
                given = thing(things, listed=False, **more)["properties"]
                one = {"type": "Headgate::HTTP", "id": "t1", "properties": given}
                status, found = await eve.call("POST", "/import", {"resources": [one]})
                assert status == 200, found
                (wrong,) = found["findings"]
                assert wrong["place"] == f"resources[0].properties.{place}"
                assert wrong["code"] == code and wrong["reason"] and wrong["remedy"]
        assert things.requests.total() == 0 and "t1" in things.objects


async def test_the_policy_program_cannot_answer_rules_of_a_project(
    database_url: str, policy: Policy
) -> None:
    """The program continues each hook of which it is notified."""
    policy.decision = "continue"
    policy.released.set()
    rules: list[Json] = [
        {"at": "a", "on": "pre-create", "exclude": "requester", "approvals": 2},
        {"at": "b", "on": "pre-create", "answer_by": ["token"]},
        {"at": "c", "on": "pre-create", "answer_by": ["subscription:policy"]},
    ]
    resources = {name: {"type": "OS::Heat::None"} for name in "abc"}
    async with run_recipe(database_url, policy.receiver.url) as run:
        eve = await token_client(run, "eve", ["author"])
        await eve.create("s", resources, environment={"hooks": rules})

        async def c_is_created() -> bool:
            c = (await eve.resources("s"))["c"]
            return bool(c["resource_status"] == "CREATE_COMPLETE")

        await eventually(c_is_created)
        await until(lambda: len(hook_notifications(policy.receiver)) == 4)
        tokens = {one["hook"]["path"]: one["token"] for one in hook_notifications(policy.receiver)}
        assert {path for path, token in tokens.items() if token} == {"", "c"}
        by_operator = {
            one["hook"]["path"]: one["hook"]["by_operator"]
            for one in hook_notifications(policy.receiver)
        }
        assert by_operator == {"": True, "a": False, "b": False, "c": False}
        hooks = await eve.waiting_hooks("s", 2)
        assert {one["path"]: one["approvals"]["given"] for one in hooks} == {"a": 0, "b": 0}
