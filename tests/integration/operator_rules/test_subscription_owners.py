"""A project's subscription answers with the rights and the identity of its owner, also for rules of
templates and environments.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio

from engine import errors
from tests.support.principals import (
    PrincipalClient,
    hook_notifications,
    password_client,
    token_client,
)
from tests.support.program import Json, Program, eventually, program, resource
from tests.support.receiver import Receiver, running_receiver, until

pytestmark = pytest.mark.usefixtures("cheap_hashes")
APPROVER = ["author", "approver"]


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return {"auth.mode": "tokens", "engine.poll": "1s"}


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


@pytest_asyncio.fixture(loop_scope="session")
async def sink() -> AsyncIterator[Receiver]:
    async with running_receiver() as one:
        one.respond_with({"decision": "continue", "reason": "by a program"})
        yield one


def environment_with_hook(*sinks: str, **rule: Json) -> dict[str, Any]:
    """An environment with a breakpoint before `a`, and event sinks."""
    return {
        "hooks": [{"at": "a", "on": "pre-create", **rule}],
        "event_sinks": [{"type": "webhook", "target": one} for one in sinks],
    }


async def create_waiting(client: PrincipalClient, environment: Json, name: str = "s") -> Json:
    """Create a stack; return the hook before `a`."""
    await client.create(name, {"a": resource()}, environment=environment)
    (hook,) = await client.waiting_hooks(name)
    return hook


async def approvals(client: PrincipalClient, hook: Json) -> list[str]:
    _, now = await client.call("GET", f"/hooks/{hook['id']}")
    return list(now["approvals"]["by"])


async def answer_status(client: PrincipalClient, hook: Json, decision: str = "continue") -> int:
    return (await client.signal(hook, decision))[0]


async def until_error(client: PrincipalClient, text: str) -> None:
    """Wait until the delivery history has an error with this text."""

    async def has_error() -> bool:
        return any(text in one for one in await client.errors())

    await eventually(has_error)


async def test_the_sinks_of_an_owner_and_the_owner_are_one_approval(
    run: Program, sink: Receiver
) -> None:
    ann = await token_client(run, "ann", APPROVER)
    targets = [f"{sink.url}/{number}" for number in range(3)]
    hook = await create_waiting(ann, environment_with_hook(*targets, approvals=3))
    await until(lambda: len(hook_notifications(sink)) == 3)

    async def approvals_counted() -> bool:
        return len(await approvals(ann, hook)) == 1

    await eventually(approvals_counted)
    assert await answer_status(ann, hook) == 200
    (by,) = await approvals(ann, hook)
    assert by.startswith("subscription ") and by.endswith(" of ann")
    _, trail = await ann.call("GET", f"/hooks/{hook['id']}/decisions")
    (entry,) = trail["decisions"]
    assert (entry["principal"], entry["channel"]) == (f"token:{ann.token_id}", "webhook")
    assert entry["token_id"] in by and entry["address"].startswith(sink.url)
    for name in ("bob", "cyd"):
        assert await answer_status(await token_client(run, name, APPROVER), hook) == 200
    assert await ann.until_ended("s") == "CREATE_COMPLETE"


async def test_two_principals_with_the_same_name_are_two_approvals(run: Program) -> None:
    ann, other = await token_client(run, "ann", APPROVER), await token_client(run, "ann", APPROVER)
    hook = await create_waiting(ann, environment_with_hook(approvals=2))
    assert [await answer_status(ann, hook), await answer_status(ann, hook)] == [200, 200]
    assert await approvals(ann, hook) == ["ann"]
    assert await answer_status(other, hook) == 200
    assert await ann.until_ended("s") == "CREATE_COMPLETE"


async def test_an_excluded_requester_cannot_answer_through_subscriptions_either(
    run: Program, sink: Receiver
) -> None:
    ann, namesake = (
        await token_client(run, "ann", APPROVER),
        await token_client(run, "ann", APPROVER),
    )
    await ann.subscribe(sink)
    hook = await create_waiting(ann, environment_with_hook(exclude="requester"))
    await until_error(ann, "the answer was ignored: it acts for ann")
    assert hook_notifications(sink)[0]["token"] is None
    assert await answer_status(ann, hook) == 403
    assert await answer_status(namesake, hook) == 200


async def test_user_in_a_rule_matches_an_account_or_an_id(run: Program) -> None:
    ann = await password_client(run, "ann", APPROVER)
    impostor = await token_client(run, "ann", APPROVER)
    hook = await create_waiting(ann, environment_with_hook(answer_by=["user:ann"]))
    status, refused = await impostor.signal(hook)
    assert status == 403
    assert f"rules name you user:{impostor.token_id}" in refused["error"]["remedy"]
    assert await answer_status(ann, hook) == 200
    by_id = await create_waiting(
        ann, environment_with_hook(answer_by=[f"user:{impostor.token_id}"]), "t"
    )
    assert [await answer_status(ann, by_id), await answer_status(impostor, by_id)] == [403, 200]
    by_password = await create_waiting(
        ann, environment_with_hook(answer_by=[f"user:{ann.token_id}"]), "x"
    )
    assert [await answer_status(impostor, by_password), await answer_status(ann, by_password)] == [
        403,
        200,
    ]
    root = await password_client(run, "root", APPROVER, "*")
    of_project = await create_waiting(ann, environment_with_hook(answer_by=["user:root"]), "u")
    of_all = await create_waiting(ann, environment_with_hook(answer_by=["user:root@*"]), "v")
    assert [await answer_status(root, of_project), await answer_status(root, of_all)] == [403, 200]


async def test_a_reissued_name_does_not_match_an_operator_rule(
    database_url: str,
) -> None:
    """A project admin revokes a password, and issues the name again with another password."""

    def settings(name: str) -> dict[str, Any]:
        rule = {"on": ["pre-create"], "at": "a", "answer_by": [f"user:{name}"]}
        return {"auth.mode": "tokens", "hooks.rules": [rule]}

    async with program(database_url, {"auth.mode": "tokens"}) as run:
        ann = await password_client(run, "ann", APPROVER)
    with pytest.raises(errors.Invalid, match='"user:ann@\\*"') as refused:
        async with program(database_url, settings("ann")):
            pass
    assert refused.value.finding.place == "[[hooks.rules]] 1, answer_by"
    async with program(database_url, settings(ann.token_id)) as run:
        mallory = await token_client(run, "mallory", ["admin"])
        assert (await mallory.call("DELETE", f"/tokens/{ann.token_id}"))[0] == 204
        impostor = await password_client(run, "ann", APPROVER)
        hook = await create_waiting(mallory, {})
        assert [await answer_status(impostor, hook), await answer_status(mallory, hook)] == [
            403,
            403,
        ]
        assert (await mallory.call("GET", "/hooks?state=waiting"))[1]["hooks"]


async def test_hand_over_is_to_an_identity(run: Program) -> None:
    ann, other = await token_client(run, "ann", APPROVER), await token_client(run, "ann", APPROVER)
    hook = await create_waiting(ann, environment_with_hook(answer_by=[f"user:{ann.token_id}"]))
    path = f"/hooks/{hook['id']}/hand-over"
    assert (await ann.call("POST", path, {"to": "user:ann"}))[0] == 200
    assert await answer_status(other, hook) == 403
    assert (await ann.call("POST", path, {"to": f"user:{other.token_id}"}))[0] == 200
    assert await answer_status(other, hook) == 200


async def test_the_answer_of_a_subscription_without_an_entitled_owner_is_ignored(
    run: Program, sink: Receiver
) -> None:
    eve = await token_client(run, "eve", ["author"])
    await eve.subscribe(sink)
    hook = await create_waiting(eve, environment_with_hook())
    await until_error(eve, "its owner eve has no right to answer hooks")
    assert (
        hook_notifications(sink)[0]["token"] is None
        and hook_notifications(sink)[0]["signal_url"] is None
    )
    bob = await token_client(run, "bob", APPROVER)
    _, trail = await bob.call("GET", f"/hooks/{hook['id']}/decisions")
    assert trail["decisions"] == []
    assert await answer_status(bob, hook) == 200


async def test_a_hook_token_ends_with_its_owners_right_or_its_subscription(
    run: Program, sink: Receiver
) -> None:
    sink.respond_with({})
    ann, boss = await token_client(run, "ann", APPROVER), await token_client(run, "boss", ["admin"])
    subscription = await ann.subscribe(sink)
    first, second = (
        await create_waiting(ann, environment_with_hook()),
        await create_waiting(boss, environment_with_hook(), "t"),
    )
    await until(lambda: len(hook_notifications(sink)) == 2)
    tokens = {one["hook"]["id"]: one["token"] for one in hook_notifications(sink)}

    async def by_token(hook: Json) -> int:
        headers = {"Authorization": f"Bearer {tokens[hook['id']]}"}
        path = f"//hooks/{hook['id']}/signal"
        return (await run.call("POST", path, {"decision": "continue"}, headers=headers))[0]

    assert await by_token(first) == 200
    assert (await boss.call("DELETE", f"/tokens/{ann.token_id}"))[0] == 204
    assert await by_token(second) == 403
    assert (await boss.call("DELETE", f"/subscriptions/{subscription['id']}"))[0] == 204
    assert await by_token(second) == 401


async def test_a_principal_who_redirects_a_subscription_becomes_its_owner(
    run: Program, sink: Receiver
) -> None:
    ann, eve = await token_client(run, "ann", APPROVER), await token_client(run, "eve", ["author"])
    async with running_receiver() as anns:
        made_by_ann = await ann.subscribe(anns)
        path = f"/subscriptions/{made_by_ann['id']}"
        _, paused = await eve.call("PATCH", path, {"state": "disabled"})
        assert paused["owner"] == "ann"
        _, now = await eve.call("PATCH", path, {"target": sink.url, "state": "enabled"})
        assert now["owner"] == "eve"
        await create_waiting(ann, environment_with_hook())
        await until_error(eve, "its owner eve has no right to answer hooks")


async def test_a_sink_keeps_its_first_owner(run: Program, sink: Receiver) -> None:
    """An approver who keeps the environment, or sends it again, does not become the sink's owner,
    also if that recreates the sink.
    """
    eve, ann = await token_client(run, "eve", ["author"]), await token_client(run, "ann", APPROVER)
    named = {"event_sinks": [{"type": "webhook", "target": sink.url}]}
    await eve.create("s", {"a": resource()}, environment=named)
    await eve.until_ended("s")
    await update_resource(ann, "kept", hooks={"add": ["a:pre-update"]})
    (hook,) = await ann.waiting_hooks("s")
    await until_error(eve, "its owner eve has no right to answer hooks")
    assert await answer_status(ann, hook) == 200
    await ann.until_ended("s")
    (one,) = (await ann.call("GET", "/subscriptions"))[1]["subscriptions"]
    path = f"/subscriptions/{one['id']}"
    assert (await ann.call("PATCH", path, {"state": "disabled"}))[0] == 200
    await update_resource(ann, "sent again", environment=named)
    await ann.until_ended("s")

    async def is_recreated() -> bool:
        _, now = await ann.call("GET", path)
        return bool(now["state"] == "enabled")

    await eventually(is_recreated)
    _, now = await ann.call("GET", path)
    assert (now["origin"], now["owner"]) == ("environment", "eve")


async def update_resource(client: PrincipalClient, value: str, **sent: Json) -> None:
    """Update the stack's resource."""
    template = {"heat_template_version": "2018-08-31", "resources": {"a": resource(value)}}
    await client.update("s", template=template, **sent)


async def test_the_audit_log_has_identity_token_address_and_channel(
    database_url: str,
) -> None:
    settings = {"auth.mode": "tokens", "server.trusted_proxies": ["127.0.0.0/8"]}
    async with program(database_url, settings) as run:
        ann = await password_client(run, "ann", APPROVER)
        hook = await create_waiting(ann, environment_with_hook())
        path, body = f"/hooks/{hook['id']}/signal", {"decision": "continue"}
        there = {"X-Forwarded-For": "203.0.113.9"}
        assert (await ann.call("POST", path, body, headers=there))[0] == 200
        _, trail = await ann.call("GET", f"/hooks/{hook['id']}/decisions")
        (entry,) = trail["decisions"]
        assert {name: entry[name] for name in ("by", "principal", "channel", "address", "form")} == {
            "by": "ann", "principal": "account:p/ann", "channel": "api", "address": "203.0.113.9",
            "form": 2,
        }  # fmt: skip
        assert len(entry["token_id"]) == 36
        _, response = await ann.call("GET", "/decisions?by=account:p/ann")
        assert [one["number"] for one in response["decisions"]] == [entry["number"]]
