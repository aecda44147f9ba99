"""Answers of people: approvals, rights, data, patches, progress, hand-overs, and what is kept."""

from uuid import UUID

import pytest

from engine.hooks.tokens import hook_token
from engine.store.installation import signing_key
from tests.support.changes import ended_again, thing
from tests.support.keys import A_SEALER
from tests.support.program import Json, Program, who
from tests.support.things import World


def asks(point: str = "pre-create", at: str = "a", **more: Json) -> Json:
    return {"hooks": [{"at": at, "on": point, **more}]}


async def held(run: Program, rule: Json, name: str = "s") -> Json:
    """A stack with one resource, and the hook it waits at."""
    await run.create(name, {"a": thing()}, environment=rule)
    (hook,) = await run.waiting(name)
    return hook


async def trail(run: Program, hook: Json) -> list[tuple[str, str]]:
    _, said = await run.call("GET", f"/hooks/{hook['id']}/decisions")
    return [(one["kind"], one["by"]) for one in said["decisions"]]


async def test_two_different_people_approve(run: Program, world: World) -> None:
    hook = await held(run, asks(approvals=2))
    assert hook["approvals"] == {"needed": 2, "given": 0, "by": []}
    for user in ("ann", "ann"):
        status, said = await run.signal(hook, "step", user=user, how="into")
        assert (status, said["state"]) == (200, "waiting")
        assert said["approvals"] == {"needed": 2, "given": 1, "by": ["ann"]}
    assert world.done == []
    status, said = await run.signal(hook, user="bob")
    assert (status, said["state"], said["decided_by"]) == (200, "answered", "bob")
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert await trail(run, hook) == [("step-into", "ann"), ("continue", "bob")]
    kinds = [one["resource_status_reason"] for one in await run.events("s")]
    assert "ann approved pre-create; 1 more to go" in kinds


async def test_one_rejection_decides_whoever_approved(run: Program, world: World) -> None:
    hook = await held(run, asks(approvals=3))
    await run.signal(hook, user="ann")
    assert (await run.signal(hook, "reject", user="bob", reason="too large"))[0] == 200
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "pre-create rejected by bob: too large" in (await run.stack("s"))["stack_status_reason"]
    assert world.done == []


async def test_only_who_is_named_answers_and_who_tried_is_kept(run: Program, world: World) -> None:
    hook = await held(run, asks(answer_by=["role:dba", "user:ann"]))
    for _ in range(2):
        status, said = await run.signal(hook, user="eve", roles="reader")
        assert (status, said["error"]["type"]) == (403, "MayNotAnswer")
        assert "role:dba, user:ann" in said["error"]["message"]
    assert (await run.signal(hook, user="bob", roles="reader,dba"))[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert await trail(run, hook) == [("refused", "eve"), ("continue", "bob")]


async def test_who_asked_for_the_change_may_not_answer(run: Program) -> None:
    body = {"stack_name": "s", "environment": asks(exclude="requester"),
            "template": {"heat_template_version": "2018-08-31", "resources": {"a": thing()}}}  # fmt: skip
    assert (await run.call("POST", "/stacks", body, headers=who("ann")))[0] == 201
    (hook,) = await run.waiting("s")
    assert hook["requested_by"] == "ann"
    status, said = await run.signal(hook, user="ann")
    assert (status, said["error"]["type"]) == (403, "MayNotAnswer")
    _, mine = await run.call("GET", "/hooks?state=waiting&mine=true", headers=who("ann"))
    _, yours = await run.call("GET", "/hooks?state=waiting&mine=true", headers=who("bob"))
    assert mine["hooks"] == [] and [one["id"] for one in yours["hooks"]] == [hook["id"]]
    assert (await run.signal(hook, user="bob"))[0] == 200


async def test_a_hook_is_handed_over_with_a_note(run: Program) -> None:
    hook = await held(run, asks(answer_by=["user:ann"]))
    path = f"/hooks/{hook['id']}/hand-over"
    to_bob = {"to": "user:bob", "note": "you know this one"}
    assert (await run.call("POST", path, to_bob, headers=who("eve")))[0] == 403
    status, said = await run.call("POST", path, to_bob, headers=who("ann"))
    assert (status, said["assigned"]) == (200, "user:bob")
    status, wrong = await run.call("POST", path, {"to": "bob"}, headers=who("ann"))
    assert status == 400 and "user:NAME" in wrong["error"]["remedy"]
    assert (await run.signal(hook, user="bob"))[0] == 200
    assert await trail(run, hook) == [("handed-over", "ann"), ("continue", "bob")]
    status, said = await run.call("POST", path, to_bob, headers=who("ann"))
    assert (status, said["error"]["type"]) == (409, "HookAlreadyAnswered")


async def test_handing_over_brings_no_data_that_an_answer_must_bring(run: Program) -> None:
    hook = await held(run, asks(ask={"schema": {"type": "object"}}))
    path = f"/hooks/{hook['id']}/hand-over"
    assert (await run.call("POST", path, {"to": "user:bob"}, headers=who("ann")))[0] == 200
    assert (await run.signal(hook, user="bob", data={}))[0] == 200


async def test_what_is_asked_for_must_come_and_is_handed_on(run: Program, world: World) -> None:
    schema = {"type": "object", "properties": {"ticket": {"type": "string"}},
              "required": ["ticket"]}  # fmt: skip
    rules = [{"at": "a", "on": "pre-create", "ask": {"schema": schema}},
             {"at": "a", "on": "post-create"}]  # fmt: skip
    hook = await held(run, {"hooks": rules})
    assert hook["ask"] == schema
    for data in (None, {}, {"ticket": 5}):
        status, said = await run.signal(hook, data=data)
        assert (status, said["error"]["type"]) == (400, "DataRefused")
    assert (await run.signal(hook, data={"ticket": "T-1"}))[0] == 200
    (later,) = await run.waiting("s")
    assert later["point"] == "post-create"
    assert later["answers"] == {"a:pre-create": {"ticket": "T-1"}}
    assert world.calls[0].answers == {"pre-create": {"ticket": "T-1"}}


async def test_an_answer_changes_properties_where_the_rule_allows_it(
    run: Program, world: World
) -> None:
    hook = await held(run, asks(patch=["size"]))
    assert "patch" in hook["allowed"]
    status, said = await run.signal(hook, "patch", properties={"size": 5}, user="ann")
    assert (status, said["decision"]) == (200, "patch")
    assert (await run.signal(hook, "patch", properties={"size": 5}))[0] == 200
    status, said = await run.signal(hook, "patch", properties={"size": 6})
    assert (status, said["error"]["type"]) == (409, "HookAlreadyAnswered")
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert list(world.things.values()) == [5]
    shown = await run.at("GET", "s", "/resources/a")
    assert shown["resource"]["attributes"]["size"] == 5
    # The next update says that this is not what the template says, and mends it.
    await run.update("s", environment={"hooks": []}, hooks={"clear": ["*"]})
    await ended_again(run, "s")
    assert list(world.things.values()) == [1]


async def test_the_same_patch_is_the_same_however_it_was_written(run: Program) -> None:
    test_resource = {"type": "OS::Heat::TestResource", "properties": {"value": "x"}}
    await run.create("s", {"a": test_resource}, environment=asks(patch=True))
    (hook,) = await run.waiting("s")
    for wait_secs, status in (("0", 200), (0, 200), ("1", 409), ("soon", 409)):
        properties = {"wait_secs": wait_secs}
        got, said = await run.signal(hook, "patch", properties=properties)
        assert got == status, said
    assert await run.until_ended("s") == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"place": "x"}, "may not be changed by an answer"),
        ({"sise": 1}, "may not be changed by an answer"),
        ({}, "are not valid with this decision"),
    ],
)
async def test_a_patch_of_anything_else_is_refused(
    run: Program, world: World, properties: Json, told: str
) -> None:
    hook = await held(run, asks(patch=["size"]))
    status, said = await run.signal(hook, "patch", properties=properties)
    assert status == 400 and told in said["error"]["message"]
    assert (await run.waiting("s"))[0]["state"] == "waiting" and world.done == []


async def test_a_patch_before_an_update_may_not_replace(run: Program) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    rule = asks("pre-update", patch=True)
    template = {"heat_template_version": "2018-08-31", "resources": {"a": thing(2)}}
    await run.update("s", template=template, environment=rule)
    (hook,) = await run.waiting("s")
    for properties, told in (
        ({"place": "x"}, "cannot be changed in place"),
        ({"plcae": 1}, 'Did you mean "place"?'),
    ):
        status, said = await run.signal(hook, "patch", properties=properties)
        assert status == 400 and told in str(said["error"])


async def test_progress_puts_the_deadline_off_within_the_rules_bounds(run: Program) -> None:
    hook = await held(run, asks(timeout="10m", at_most="1h"))
    status, said = await run.signal(hook, "progress", user="ann", reason="at it")
    assert (status, said["state"]) == (200, "waiting") and said["deadline"] > hook["deadline"]
    _, longer = await run.signal(hook, "progress", extend="5d")
    assert longer["deadline"] > said["deadline"]
    status, refused = await run.signal(hook, "progress", extend="1h")
    assert status == 400 and "not longer" in refused["error"]["message"]
    assert [kind for kind, _ in await trail(run, hook)] == ["progress", "progress"]


async def test_an_answer_for_what_was_seen_before_is_refused(run: Program) -> None:
    hook = await held(run, asks())
    status, said = await run.signal(hook, digest="f" * 64)
    assert (status, said["error"]["type"]) == (409, "DigestChanged")
    assert (await run.signal(hook, digest=hook["digest"]))[0] == 200


async def test_the_inbox_is_filtered_and_paged(run: Program) -> None:
    resources = {name: thing() for name in "abcd"}
    await run.create("s", resources, environment=asks(at="*"))
    await run.waiting("s", 4)
    _, first = await run.call("GET", "/hooks?state=waiting&limit=3&point=pre-*")
    _, rest = await run.call("GET", f"/hooks?state=waiting&limit=3&marker={first['next']}")
    names = [one["resource_name"] for one in (*first["hooks"], *rest["hooks"])]
    assert sorted(names) == list("abcd") and rest["next"] is None
    for query, count in (("older=1h", 0), ("point=post-create", 0), ("point=*-create", 4)):
        _, found = await run.call("GET", f"/hooks?state=waiting&{query}")
        assert len(found["hooks"]) == count, query
    for query in ("older=soon", "point=pre-creat", "mine=yes"):
        status, said = await run.call("GET", f"/hooks?{query}")
        assert status == 400 and said["error"]["remedy"], query


async def test_a_token_answers_unless_the_rule_names_people(run: Program) -> None:
    open_one = await held(run, asks(), "s")
    named = await held(run, asks(answer_by=["role:dba"]), "t")
    body = {"target": "http://127.0.0.1:9/"}
    _, made = await run.call("POST", "/subscriptions", body, headers=who("sue"))
    for hook, wanted in ((open_one, 200), (named, 403)):
        token = await _token(run, hook, made["id"])
        status, _ = await run.call(
            "POST", f"//hooks/{hook['id']}/signal", {"decision": "continue"},
            headers={"Authorization": f"Bearer {token}"},
        )  # fmt: skip
        assert status == wanted


async def _token(run: Program, hook: Json, subscription: str) -> str:
    async with run.database.connection() as conn:
        key = await signing_key(conn, b"", A_SEALER)
    return hook_token(key, UUID(hook["id"]), UUID(subscription))
