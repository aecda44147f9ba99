"""A project's subscription answers for its owner: with the owner's rights, and as the same
principal. Rules are those of templates and environments."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from engine import errors
from tests.support.people import Person, account_of, notices, token_of
from tests.support.program import Json, Program, eventually, program, resource
from tests.support.receiver import Receiver, receiving, until

APPROVER = ["author", "approver"]


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, {"auth.mode": "tokens", "engine.poll": "1s"}) as one:
        yield one


@pytest.fixture
async def sink() -> AsyncIterator[Receiver]:
    async with receiving() as one:
        one.says({"decision": "continue", "reason": "by a program"})
        yield one


def asking(*sinks: str, **rule: Json) -> dict[str, Any]:
    """An environment with a breakpoint before `a`, and event sinks."""
    return {
        "hooks": [{"at": "a", "on": "pre-create", **rule}],
        "event_sinks": [{"type": "webhook", "target": one} for one in sinks],
    }


async def made(who: Person, environment: Json, name: str = "s") -> Json:
    """The hook before `a` of a new stack."""
    await who.create(name, {"a": resource()}, environment=environment)
    (hook,) = await who.waiting(name)
    return hook


async def approvals(who: Person, hook: Json) -> list[str]:
    _, now = await who.call("GET", f"/hooks/{hook['id']}")
    return list(now["approvals"]["by"])


async def said(who: Person, hook: Json, decision: str = "continue") -> int:
    return (await who.signal(hook, decision))[0]


async def error_of(who: Person, text: str) -> None:
    """Until the delivery history says so."""

    async def seen() -> bool:
        return any(text in one for one in await who.errors())

    await eventually(seen)


async def test_three_sinks_and_their_owner_are_one_of_three(run: Program, sink: Receiver) -> None:
    ann = await token_of(run, "ann", APPROVER)
    targets = [f"{sink.url}/{number}" for number in range(3)]
    hook = await made(ann, asking(*targets, approvals=3))
    await until(lambda: len(notices(sink)) == 3)

    async def counted() -> bool:
        return len(await approvals(ann, hook)) == 1

    await eventually(counted)
    assert await said(ann, hook) == 200
    (by,) = await approvals(ann, hook)
    assert by.startswith("subscription ") and by.endswith(" of ann")
    _, trail = await ann.call("GET", f"/hooks/{hook['id']}/decisions")
    (entry,) = trail["decisions"]
    assert (entry["principal"], entry["door"]) == (f"token:{ann.token_id}", "webhook")
    assert entry["token_id"] in by and entry["address"].startswith(sink.url)
    for name in ("bob", "cyd"):
        assert await said(await token_of(run, name, APPROVER), hook) == 200
    assert await ann.until_ended("s") == "CREATE_COMPLETE"


async def test_two_principals_of_one_name_are_two(run: Program) -> None:
    ann, other = await token_of(run, "ann", APPROVER), await token_of(run, "ann", APPROVER)
    hook = await made(ann, asking(approvals=2))
    assert [await said(ann, hook), await said(ann, hook)] == [200, 200]
    assert await approvals(ann, hook) == ["ann"]
    assert await said(other, hook) == 200
    assert await ann.until_ended("s") == "CREATE_COMPLETE"


async def test_a_requester_is_excluded_with_all_that_acts_for_them(
    run: Program, sink: Receiver
) -> None:
    ann, namesake = await token_of(run, "ann", APPROVER), await token_of(run, "ann", APPROVER)
    await ann.subscribe(sink)
    hook = await made(ann, asking(exclude="requester"))
    await error_of(ann, "the answer was ignored: it acts for ann")
    assert notices(sink)[0]["token"] is None
    assert await said(ann, hook) == 403
    assert await said(namesake, hook) == 200


async def test_user_in_a_rule_means_an_account_or_an_id(run: Program) -> None:
    ann = await account_of(run, "ann", APPROVER)
    impostor = await token_of(run, "ann", APPROVER)
    hook = await made(ann, asking(answer_by=["user:ann"]))
    status, refused = await impostor.signal(hook)
    assert status == 403
    assert f"rules name you user:{impostor.token_id}" in refused["error"]["remedy"]
    assert await said(ann, hook) == 200
    by_id = await made(ann, asking(answer_by=[f"user:{impostor.token_id}"]), "t")
    assert [await said(ann, by_id), await said(impostor, by_id)] == [403, 200]
    by_password = await made(ann, asking(answer_by=[f"user:{ann.token_id}"]), "x")
    assert [await said(impostor, by_password), await said(ann, by_password)] == [403, 200]
    root = await account_of(run, "root", APPROVER, "*")
    of_project = await made(ann, asking(answer_by=["user:root"]), "u")
    of_all = await made(ann, asking(answer_by=["user:root@*"]), "v")
    assert [await said(root, of_project), await said(root, of_all)] == [403, 200]


async def test_a_rule_of_the_settings_does_not_let_a_name_that_was_issued_again_answer(
    database_url: str,
) -> None:
    """An admin of the project revokes a password, and issues its name with one of their own."""

    def settings(name: str) -> dict[str, Any]:
        rule = {"on": ["pre-create"], "at": "a", "answer_by": [f"user:{name}"]}
        return {"auth.mode": "tokens", "hooks.rules": [rule]}

    async with program(database_url, {"auth.mode": "tokens"}) as run:
        ann = await account_of(run, "ann", APPROVER)
    with pytest.raises(errors.Invalid, match='"user:ann@\\*"') as refused:
        async with program(database_url, settings("ann")):
            pass
    assert refused.value.finding.place == "[hooks] rules"
    async with program(database_url, settings(ann.token_id)) as run:
        mallory = await token_of(run, "mallory", ["admin"])
        assert (await mallory.call("DELETE", f"/tokens/{ann.token_id}"))[0] == 204
        impostor = await account_of(run, "ann", APPROVER)
        hook = await made(mallory, {})
        assert [await said(impostor, hook), await said(mallory, hook)] == [403, 403]
        assert (await mallory.call("GET", "/hooks?state=waiting"))[1]["hooks"]


async def test_hand_over_is_to_an_identity(run: Program) -> None:
    ann, other = await token_of(run, "ann", APPROVER), await token_of(run, "ann", APPROVER)
    hook = await made(ann, asking(answer_by=[f"user:{ann.token_id}"]))
    path = f"/hooks/{hook['id']}/hand-over"
    assert (await ann.call("POST", path, {"to": "user:ann"}))[0] == 200
    assert await said(other, hook) == 403
    assert (await ann.call("POST", path, {"to": f"user:{other.token_id}"}))[0] == 200
    assert await said(other, hook) == 200


async def test_a_subscription_of_an_owner_without_the_right_answers_nothing(
    run: Program, sink: Receiver
) -> None:
    eve = await token_of(run, "eve", ["author"])
    await eve.subscribe(sink)
    hook = await made(eve, asking())
    await error_of(eve, "its owner eve has no right to answer hooks")
    assert notices(sink)[0]["token"] is None and notices(sink)[0]["signal_url"] is None
    bob = await token_of(run, "bob", APPROVER)
    _, trail = await bob.call("GET", f"/hooks/{hook['id']}/decisions")
    assert trail["decisions"] == []
    assert await said(bob, hook) == 200


async def test_a_token_ends_with_its_owners_right_and_with_its_subscription(
    run: Program, sink: Receiver
) -> None:
    sink.says({})
    ann, boss = await token_of(run, "ann", APPROVER), await token_of(run, "boss", ["admin"])
    subscription = await ann.subscribe(sink)
    first, second = await made(ann, asking()), await made(boss, asking(), "t")
    await until(lambda: len(notices(sink)) == 2)
    tokens = {one["hook"]["id"]: one["token"] for one in notices(sink)}

    async def by_token(hook: Json) -> int:
        headers = {"Authorization": f"Bearer {tokens[hook['id']]}"}
        path = f"//hooks/{hook['id']}/signal"
        return (await run.call("POST", path, {"decision": "continue"}, headers=headers))[0]

    assert await by_token(first) == 200
    assert (await boss.call("DELETE", f"/tokens/{ann.token_id}"))[0] == 204
    assert await by_token(second) == 403
    assert (await boss.call("DELETE", f"/subscriptions/{subscription['id']}"))[0] == 204
    assert await by_token(second) == 401


async def test_who_redirects_a_subscription_answers_for_it(run: Program, sink: Receiver) -> None:
    ann, eve = await token_of(run, "ann", APPROVER), await token_of(run, "eve", ["author"])
    async with receiving() as anns:
        made_by_ann = await ann.subscribe(anns)
        path = f"/subscriptions/{made_by_ann['id']}"
        _, paused = await eve.call("PATCH", path, {"state": "disabled"})
        assert paused["owner"] == "ann"
        _, now = await eve.call("PATCH", path, {"target": sink.url, "state": "enabled"})
        assert now["owner"] == "eve"
        await made(ann, asking())
        await error_of(eve, "its owner eve has no right to answer hooks")


async def test_a_sink_stays_with_who_first_named_it(run: Program, sink: Receiver) -> None:
    """An approver who keeps the environment, or sends it again, does not vouch for the sink; also
    where that brings it back."""
    eve, ann = await token_of(run, "eve", ["author"]), await token_of(run, "ann", APPROVER)
    named = {"event_sinks": [{"type": "webhook", "target": sink.url}]}
    await eve.create("s", {"a": resource()}, environment=named)
    await eve.until_ended("s")
    await changed(ann, "kept", hooks={"add": ["a:pre-update"]})
    (hook,) = await ann.waiting("s")
    await error_of(eve, "its owner eve has no right to answer hooks")
    assert await said(ann, hook) == 200
    await ann.until_ended("s")
    (one,) = (await ann.call("GET", "/subscriptions"))[1]["subscriptions"]
    path = f"/subscriptions/{one['id']}"
    assert (await ann.call("PATCH", path, {"state": "disabled"}))[0] == 200
    await changed(ann, "sent again", environment=named)
    await ann.until_ended("s")

    async def back() -> bool:
        _, now = await ann.call("GET", path)
        return bool(now["state"] == "enabled")

    await eventually(back)
    _, now = await ann.call("GET", path)
    assert (now["origin"], now["owner"]) == ("environment", "eve")


async def changed(who: Person, value: str, **sent: Json) -> None:
    """An update of the stack's resource."""
    template = {"heat_template_version": "2018-08-31", "resources": {"a": resource(value)}}
    await who.update("s", template=template, **sent)


async def test_the_trail_has_the_identity_the_token_the_address_and_the_door(
    database_url: str,
) -> None:
    settings = {"auth.mode": "tokens", "server.trusted_proxies": ["127.0.0.0/8"]}
    async with program(database_url, settings) as run:
        ann = await account_of(run, "ann", APPROVER)
        hook = await made(ann, asking())
        path, body = f"/hooks/{hook['id']}/signal", {"decision": "continue"}
        there = {"X-Forwarded-For": "203.0.113.9"}
        assert (await ann.call("POST", path, body, headers=there))[0] == 200
        _, trail = await ann.call("GET", f"/hooks/{hook['id']}/decisions")
        (entry,) = trail["decisions"]
        assert {name: entry[name] for name in ("by", "principal", "door", "address", "form")} == {
            "by": "ann", "principal": "account:p/ann", "door": "api", "address": "203.0.113.9",
            "form": 2,
        }  # fmt: skip
        assert len(entry["token_id"]) == 36
        _, found = await ann.call("GET", "/decisions?by=account:p/ann")
        assert [one["number"] for one in found["decisions"]] == [entry["number"]]
