"""Answers of users: approvals, rights, data, patches, progress, hand-overs and the audit log."""

from uuid import UUID

import pytest

from engine.hooks.derived_tokens import hook_token
from engine.store.access.token_keys import signing_key
from tests.support.changes import thing, until_complete
from tests.support.keys import KEYRING
from tests.support.program import Json, Program, identity_headers
from tests.support.scripted_type import World


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def hook_rule(point: str = "pre-create", at: str = "a", **more: Json) -> Json:
    return {"hooks": [{"at": at, "on": point, **more}]}


async def create_waiting(run: Program, rule: Json, name: str = "s") -> Json:
    """Create a stack with one resource; return the hook at which it waits."""
    await run.create(name, {"a": thing()}, environment=rule)
    (hook,) = await run.waiting_hooks(name)
    return hook


async def audit_log(run: Program, hook: Json) -> list[tuple[str, str]]:
    _, response = await run.call("GET", f"/hooks/{hook['id']}/decisions")
    return [(one["kind"], one["by"]) for one in response["decisions"]]


async def test_two_different_people_approve(run: Program, world: World) -> None:
    hook = await create_waiting(run, hook_rule(approvals=2))
    assert hook["approvals"] == {"needed": 2, "given": 0, "by": []}
    for user in ("ann", "ann"):
        status, response = await run.signal(hook, "step", user=user, how="into")
        assert (status, response["state"]) == (200, "waiting")
        assert response["approvals"] == {"needed": 2, "given": 1, "by": ["ann"]}
    assert world.done == []
    status, response = await run.signal(hook, user="bob")
    assert (status, response["state"], response["decided_by"]) == (200, "answered", "bob")
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert await audit_log(run, hook) == [("step-into", "ann"), ("continue", "bob")]
    kinds = [one["resource_status_reason"] for one in await run.events("s")]
    assert "ann approved pre-create; approvals still required: 1" in kinds


async def test_one_rejection_decides_despite_approvals(run: Program, world: World) -> None:
    hook = await create_waiting(run, hook_rule(approvals=3))
    await run.signal(hook, user="ann")
    assert (await run.signal(hook, "reject", user="bob", reason="too large"))[0] == 200
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "pre-create rejected by bob: too large" in (await run.stack("s"))["stack_status_reason"]
    assert world.done == []


async def test_only_named_approvers_answer_and_refused_ones_are_recorded(
    run: Program, world: World
) -> None:
    hook = await create_waiting(run, hook_rule(answer_by=["role:dba", "user:ann"]))
    for _ in range(2):
        status, response = await run.signal(hook, user="eve", roles="reader")
        assert (status, response["error"]["type"]) == (403, "MayNotAnswer")
        assert "role:dba, user:ann" in response["error"]["message"]
    assert (await run.signal(hook, user="bob", roles="reader,dba"))[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert await audit_log(run, hook) == [("refused", "eve"), ("continue", "bob")]


async def test_requesters_find_the_hooks_of_their_changes_that_they_may_answer(
    run: Program,
) -> None:
    """A rule without `exclude` lets the requester answer."""
    body = {"stack_name": "s", "environment": hook_rule(),
            "template": {"heat_template_version": "2018-08-31", "resources": {"a": thing()}}}  # fmt: skip
    for user in ("ann", ""):
        name = {"stack_name": f"s{user}"}
        headers = identity_headers(user)
        assert (await run.call("POST", "/stacks", body | name, headers=headers))[0] == 201
        (hook,) = await run.waiting_hooks(name["stack_name"])
        path = f"/hooks?state=waiting&mine=true&stack={name['stack_name']}"
        _, found = await run.call("GET", path, headers=headers)
        assert [one["id"] for one in found["hooks"]] == [hook["id"]]


async def test_an_excluded_requester_may_not_answer(run: Program) -> None:
    body = {"stack_name": "s", "environment": hook_rule(exclude="requester"),
            "template": {"heat_template_version": "2018-08-31", "resources": {"a": thing()}}}  # fmt: skip
    assert (await run.call("POST", "/stacks", body, headers=identity_headers("ann")))[0] == 201
    (hook,) = await run.waiting_hooks("s")
    assert hook["requested_by"] == "ann"
    status, response = await run.signal(hook, user="ann")
    assert (status, response["error"]["type"]) == (403, "MayNotAnswer")
    _, for_ann = await run.call(
        "GET", "/hooks?state=waiting&mine=true", headers=identity_headers("ann")
    )
    _, for_bob = await run.call(
        "GET", "/hooks?state=waiting&mine=true", headers=identity_headers("bob")
    )
    assert for_ann["hooks"] == [] and [one["id"] for one in for_bob["hooks"]] == [hook["id"]]
    assert (await run.signal(hook, user="bob"))[0] == 200


async def test_a_hook_is_handed_over_with_a_note(run: Program) -> None:
    hook = await create_waiting(run, hook_rule(answer_by=["user:ann"]))
    path = f"/hooks/{hook['id']}/hand-over"
    to_bob = {"to": "user:bob", "note": "you know this one"}
    assert (await run.call("POST", path, to_bob, headers=identity_headers("eve")))[0] == 403
    status, response = await run.call("POST", path, to_bob, headers=identity_headers("ann"))
    assert (status, response["assigned"]) == (200, "user:bob")
    status, wrong = await run.call("POST", path, {"to": "bob"}, headers=identity_headers("ann"))
    assert status == 400 and "user:NAME" in wrong["error"]["remedy"]
    assert (await run.signal(hook, user="bob"))[0] == 200
    assert await audit_log(run, hook) == [("handed-over", "ann"), ("continue", "bob")]
    status, response = await run.call("POST", path, to_bob, headers=identity_headers("ann"))
    assert (status, response["error"]["type"]) == (409, "HookAlreadyAnswered")


async def test_a_hand_over_needs_no_answer_data(run: Program) -> None:
    hook = await create_waiting(run, hook_rule(ask={"schema": {"type": "object"}}))
    path = f"/hooks/{hook['id']}/hand-over"
    assert (await run.call("POST", path, {"to": "user:bob"}, headers=identity_headers("ann")))[
        0
    ] == 200
    assert (await run.signal(hook, user="bob", data={}))[0] == 200


async def test_required_answer_data_is_validated_and_passed_to_the_operation(
    run: Program, world: World
) -> None:
    schema = {"type": "object", "properties": {"ticket": {"type": "string"}},
              "required": ["ticket"]}  # fmt: skip
    rules = [{"at": "a", "on": "pre-create", "ask": {"schema": schema}},
             {"at": "a", "on": "post-create"}]  # fmt: skip
    hook = await create_waiting(run, {"hooks": rules})
    assert hook["ask"] == schema
    for data in (None, {}, {"ticket": 5}):
        status, response = await run.signal(hook, data=data)
        assert (status, response["error"]["type"]) == (400, "DataRefused")
    assert (await run.signal(hook, data={"ticket": "T-1"}))[0] == 200
    (second,) = await run.waiting_hooks("s")
    assert second["point"] == "post-create"
    assert second["answers"] == {"a:pre-create": {"ticket": "T-1"}}
    assert world.calls[0].answers == {"pre-create": {"ticket": "T-1"}}


async def test_an_answer_patches_properties_if_the_rule_allows_it(
    run: Program, world: World
) -> None:
    hook = await create_waiting(run, hook_rule(patch=["size"]))
    assert "patch" in hook["allowed"]
    status, response = await run.signal(hook, "patch", properties={"size": 5}, user="ann")
    assert (status, response["decision"]) == (200, "patch")
    assert (await run.signal(hook, "patch", properties={"size": 5}))[0] == 200
    status, response = await run.signal(hook, "patch", properties={"size": 6})
    assert (status, response["error"]["type"]) == (409, "HookAlreadyAnswered")
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert list(world.things.values()) == [5]
    document = await run.stack_request("GET", "s", "/resources/a")
    assert document["resource"]["attributes"]["size"] == 5
    # The next update shows the difference from the template, and removes it.
    await run.update("s", environment={"hooks": []}, hooks={"clear": ["*"]})
    await until_complete(run, "s")
    assert list(world.things.values()) == [1]


async def test_equivalent_patches_are_the_same_answer(run: Program) -> None:
    test_resource = {"type": "OS::Heat::TestResource", "properties": {"value": "x"}}
    await run.create("s", {"a": test_resource}, environment=hook_rule(patch=True))
    (hook,) = await run.waiting_hooks("s")
    for wait_secs, status in (("0", 200), (0, 200), ("1", 409), ("soon", 409)):
        properties = {"wait_secs": wait_secs}
        got, response = await run.signal(hook, "patch", properties=properties)
        assert got == status, response
    assert await run.until_ended("s") == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"place": "x"}, "may not be changed by an answer"),
        ({"sise": 1}, "may not be changed by an answer"),
        ({}, "are not valid with this decision"),
    ],
)
async def test_a_patch_of_other_properties_is_refused(
    run: Program, world: World, properties: Json, message: str
) -> None:
    hook = await create_waiting(run, hook_rule(patch=["size"]))
    status, response = await run.signal(hook, "patch", properties=properties)
    assert status == 400 and message in response["error"]["message"]
    assert (await run.waiting_hooks("s"))[0]["state"] == "waiting" and world.done == []


async def test_a_patch_at_pre_update_may_not_cause_a_replacement(run: Program) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    rule = hook_rule("pre-update", patch=True)
    template = {"heat_template_version": "2018-08-31", "resources": {"a": thing(2)}}
    await run.update("s", template=template, environment=rule)
    (hook,) = await run.waiting_hooks("s")
    for properties, message in (
        ({"place": "x"}, "cannot be changed in place"),
        ({"plcae": 1}, 'Did you mean "place"?'),
    ):
        status, response = await run.signal(hook, "patch", properties=properties)
        assert status == 400 and message in str(response["error"])


async def test_progress_extends_the_deadline_within_the_rules_limit(run: Program) -> None:
    hook = await create_waiting(run, hook_rule(timeout="10m", at_most="1h"))
    status, response = await run.signal(hook, "progress", user="ann", reason="at it")
    assert (status, response["state"]) == (200, "waiting") and response["deadline"] > hook[
        "deadline"
    ]
    _, longer = await run.signal(hook, "progress", extend="5d")
    assert longer["deadline"] > response["deadline"]
    status, refused = await run.signal(hook, "progress", extend="1h")
    assert status == 400 and "latest possible deadline" in refused["error"]["message"]
    assert [kind for kind, _ in await audit_log(run, hook)] == ["progress", "progress"]


async def test_an_answer_with_an_old_digest_is_refused(run: Program) -> None:
    hook = await create_waiting(run, hook_rule())
    status, response = await run.signal(hook, digest="f" * 64)
    assert (status, response["error"]["type"]) == (409, "DigestChanged")
    assert (await run.signal(hook, digest=hook["digest"]))[0] == 200


async def test_the_inbox_is_filtered_and_paged(run: Program) -> None:
    resources = {name: thing() for name in "abcd"}
    await run.create("s", resources, environment=hook_rule(at="*"))
    await run.waiting_hooks("s", 4)
    _, first = await run.call("GET", "/hooks?state=waiting&limit=3&point=pre-*")
    _, rest = await run.call("GET", f"/hooks?state=waiting&limit=3&marker={first['next']}")
    names = [one["resource_name"] for one in (*first["hooks"], *rest["hooks"])]
    assert sorted(names) == list("abcd") and rest["next"] is None
    for query, count in (("older=1h", 0), ("point=post-create", 0), ("point=*-create", 4)):
        _, document = await run.call("GET", f"/hooks?state=waiting&{query}")
        assert len(document["hooks"]) == count, query
    for query in ("older=soon", "point=pre-creat", "mine=yes"):
        status, response = await run.call("GET", f"/hooks?{query}")
        assert status == 400 and response["error"]["remedy"], query


async def test_a_hook_token_answers_unless_the_rule_names_approvers(run: Program) -> None:
    open_one = await create_waiting(run, hook_rule(), "s")
    named = await create_waiting(run, hook_rule(answer_by=["role:dba"]), "t")
    body = {"target": "http://127.0.0.1:9/"}
    _, response = await run.call("POST", "/subscriptions", body, headers=identity_headers("sue"))
    for hook, wanted in ((open_one, 200), (named, 403)):
        token = await _token(run, hook, response["id"])
        status, _ = await run.call(
            "POST", f"//hooks/{hook['id']}/signal", {"decision": "continue"},
            headers={"Authorization": f"Bearer {token}"},
        )  # fmt: skip
        assert status == wanted


async def _token(run: Program, hook: Json, subscription: str) -> str:
    async with run.database.connection() as conn:
        key = await signing_key(conn, b"", KEYRING)
    return hook_token(key, UUID(hook["id"]), UUID(subscription))
