"""The recipe of docs/how-to/guard-every-stack.md, attacked by those whom it is to hold."""

import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from engine.hooks.tokens import hook_token
from engine.store.installation import signing_key
from hub.settings.settings import load_settings
from tests.integration.examples.test_policies import POLICIES, Example
from tests.integration.gates.recipe import (
    BLOCKS,
    Policy,
    Server,
    guarded,
    recipe,
    server,
    waiting_policy,
)
from tests.support.keys import A_SEALER
from tests.support.people import Person, notices, token_of
from tests.support.program import Json, Program, eventually, program, template
from tests.support.receiver import Receiver, receiving, until

UNOWNED = {"a": server()}
BY_OPERATOR = "the answer was ignored: the operator's rule holds it"


@pytest.fixture
async def policy() -> AsyncIterator[Policy]:
    async with waiting_policy() as one:
        yield one


@pytest.fixture
async def sink() -> AsyncIterator[Receiver]:
    """Of an attacker: lets everything go on, at once."""
    async with receiving() as one:
        one.says({"decision": "continue", "reason": "let me in"})
        yield one


def sinks(receiver: Receiver, count: int = 1) -> Json:
    targets = [f"{receiver.url}/{number}" for number in range(count)]
    return {"event_sinks": [{"type": "webhook", "target": target} for target in targets]}


async def ignored(who: Person, count: int) -> None:
    """Until so many answers were ignored, which their senders can see."""

    async def seen() -> bool:
        return [one.startswith(BY_OPERATOR) for one in await who.errors()].count(True) == count

    await eventually(seen)


async def still_held(who: Person, name: str, point: str = "pre-stack-create") -> Json:
    """The hook of a stack, that waits, and of which nothing was decided."""
    (hook,) = await who.waiting(name)
    assert hook["point"] == point
    assert hook["approvals"]["given"] == 0
    _, trail = await who.call("GET", f"/hooks/{hook['id']}/decisions")
    assert [one["kind"] for one in trail["decisions"] if one["kind"] != "refused"] == []
    return hook


async def rejected_by_policy(policy: Policy, who: Person, name: str) -> None:
    policy.released.set()
    assert (await who.until_ended(name)).endswith("_FAILED")
    assert (
        "rejected by subscription policy: by policy"
        in (await who.stack(name))["stack_status_reason"]
    )


@pytest.mark.parametrize("block", BLOCKS)
def test_each_block_of_the_page_is_a_configuration(block: str, tmp_path: Path) -> None:
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
    said = recipe(example.url) | {"auth.mode": "tokens", "engine.poll": "1s"}
    async with example.running(tmp_path), program(database_url, said, types=[Server()]) as run:
        eve = await token_of(run, "eve", ["author"])
        await eve.create("owned", {"a": server("ada")}, environment=sinks(sink))
        assert await eve.until_ended("owned") == "CREATE_COMPLETE"
        for number in range(3):  # the sink answers as fast as the policy
            name = f"unowned{number}"
            await eve.create(name, UNOWNED, environment=sinks(sink))
            assert await eve.until_ended(name) == "CREATE_FAILED"
            reason = (await eve.stack(name))["stack_status_reason"]
            assert "rejected by subscription policy: no metadata.owner: a" in reason
        assert {(one["token"], one["signal_url"]) for one in notices(sink)} == {(None, None)}


@pytest.mark.parametrize(
    ("roles", "by_sinks", "approvals"),
    [(["author"], 1, 1), (["author", "approver"], 1, 1), (["admin"], 3, 3), (["author"], 3, 3)],
)
async def test_event_sinks_of_a_request_open_nothing(
    database_url: str,
    policy: Policy,
    sink: Receiver,
    roles: list[str],
    by_sinks: int,
    approvals: int,
) -> None:
    changes = {"answer_by": [], "approvals": approvals}
    async with guarded(database_url, policy.receiver.url, **changes) as run:
        eve = await token_of(run, "eve", roles)
        await eve.create("s", UNOWNED, environment=sinks(sink, by_sinks))
        await ignored(eve, by_sinks)
        await still_held(eve, "s")
        assert {(one["token"], one["signal_url"]) for one in notices(sink)} == {(None, None)}
        await rejected_by_policy(policy, eve, "s")


@pytest.mark.parametrize("roles", [["author"], ["author", "approver"], ["admin"]])
async def test_a_projects_subscription_opens_nothing(
    database_url: str, policy: Policy, sink: Receiver, roles: list[str]
) -> None:
    async with guarded(database_url, policy.receiver.url, answer_by=["token"]) as run:
        eve = await token_of(run, "eve", roles)
        await eve.subscribe(sink)
        await eve.create("s", UNOWNED)
        await ignored(eve, 1)
        await still_held(eve, "s")
        assert notices(sink)[0]["token"] is None
        await rejected_by_policy(policy, eve, "s")


async def test_no_token_of_a_project_opens_the_operators_gate(
    database_url: str, policy: Policy, sink: Receiver
) -> None:
    """Not even one that is right, such as an earlier version gave out."""
    async with guarded(database_url, policy.receiver.url, answer_by=["token"]) as run:
        ann = await token_of(run, "ann", ["author", "approver"])
        made = await ann.subscribe(sink)
        await ann.create("s", UNOWNED)
        hook = await still_held(ann, "s")
        async with run.database.connection() as conn:
            key = await signing_key(conn, b"", A_SEALER)
        mine = UUID(made["id"])
        shown = {
            hook_token(key, UUID(hook["id"]), mine): 403,
            hook_token(key, UUID(int=1), mine): 401,
            hook_token(key, UUID(hook["id"]), UUID(int=1)): 401,
        }
        for token, wanted in shown.items():
            assert await answered(run, hook, token) == wanted
        await still_held(ann, "s")
        await eventually(lambda: _true(notices(policy.receiver)))
        assert await answered(run, hook, notices(policy.receiver)[0]["token"]) == 200


async def answered(run: Program, hook: Json, token: str) -> int:
    """The status of an answer with a hook's token."""
    headers = {"Authorization": f"Bearer {token}"}
    path, body = f"//hooks/{hook['id']}/signal", {"decision": "continue"}
    status, _ = await run.call("POST", path, body, headers=headers)
    return status


async def _true(found: object) -> bool:
    return bool(found)


async def test_only_the_named_subscription_of_the_settings_answers(
    database_url: str, policy: Policy, sink: Receiver
) -> None:
    said = recipe(policy.receiver.url) | {"auth.mode": "tokens", "engine.poll": "1s"}
    said["subscriptions"] = [
        *said["subscriptions"], {"name": "audit", "project": "*", "target": sink.url}
    ]  # fmt: skip
    async with program(database_url, said, types=[Server()]) as run:
        eve = await token_of(run, "eve", ["author"])
        await eve.create("s", UNOWNED)
        await until(lambda: notices(sink))
        assert notices(sink)[0]["token"] is None
        await still_held(eve, "s")
        await rejected_by_policy(policy, eve, "s")


async def test_a_project_cannot_change_a_subscription_of_the_settings(
    database_url: str, policy: Policy, sink: Receiver
) -> None:
    said = recipe(policy.receiver.url) | {"auth.mode": "tokens", "engine.poll": "1s"}
    said["subscriptions"][0]["project"] = "p"
    async with program(database_url, said, types=[Server()]) as run:
        boss = await token_of(run, "boss", ["admin"])
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
        everywhere = await token_of(run, "root", ["operator"], "*")
        assert (await everywhere.call("PATCH", path, {"target": sink.url}))[0] == 403
        assert (await everywhere.call("PATCH", path, {"state": "disabled"}))[0] == 200


async def test_what_is_taken_over_passes_the_gates_as_what_is_made(
    database_url: str, policy: Policy, sink: Receiver
) -> None:
    """By adoption before the stack; by external_id before the server."""
    async with guarded(database_url, policy.receiver.url) as run:
        eve = await token_of(run, "eve", ["author"])
        data = {"resources": {"a": {"name": "a", "resource_id": "real-1"}}}
        body = {"stack_name": "adopted", "template": template(UNOWNED),
                "adopt_stack_data": data, "environment": sinks(sink)}  # fmt: skip
        status, made = await eve.call("POST", "/stacks", body)
        assert status == 201, made
        assert (await still_held(eve, "adopted"))["point"] == "pre-stack-create"
        await ignored(eve, 1)
        await rejected_by_policy(policy, eve, "adopted")


@pytest.mark.parametrize("way", ["external_id", "adopt", "nested"])
async def test_each_server_passes_the_gate_before_it(
    database_url: str, policy: Policy, sink: Receiver, way: str
) -> None:
    async with guarded(database_url, policy.receiver.url, on=["pre-stack-check"]) as run:
        eve = await token_of(run, "eve", ["author"])
        inner = template(UNOWNED)
        resources = {
            "external_id": {"a": {**server(), "external_id": "real-1"}},
            "adopt": UNOWNED,
            "nested": {"inner": {"type": "inner.yaml"}},
        }[way]
        body: Json = {"stack_name": "s", "template": template(resources),
                      "environment": sinks(sink)}  # fmt: skip
        if way == "adopt":
            body["adopt_stack_data"] = {"resources": {"a": {"resource_id": "real-1"}}}
        if way == "nested":
            body["files"] = {"inner.yaml": str(inner).replace("'", '"')}
        status, made = await eve.call("POST", "/stacks", body)
        assert status == 201, made
        await ignored(eve, 1)
        hook = await still_held(eve, "s", "pre-create")
        assert hook["path"] == ("inner/a" if way == "nested" else "a")
        policy.released.set()
        assert (await eve.until_ended("s")).endswith("_FAILED")
        assert "rejected by subscription policy" in (await eve.stack("s"))["stack_status_reason"]
