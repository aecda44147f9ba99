"""Stepping, running and live breakpoints on a running stack."""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from engine.principal import principal_of_name
from engine.service import Answer, Engine
from engine.service.requests.requests import StackRequest
from engine.store.database import Database
from engine.types.contract import Confirm
from engine.words import AnswerChannel, Decision
from tests.support.changes import put, thing, until_deleted, until_started
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import ManualWorker
from tests.support.program import Json, Program, eventually, template
from tests.support.scripted_type import Thing, World

CHAIN = {
    "a": thing(),
    "b": thing(depends_on="a"),
    "c": thing(depends_on="b"),
    "d": thing(depends_on="c"),
}
AT_A = {"hooks": [{"at": "a", "on": "pre-create"}]}


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


async def hook_at(run: Program, name: str, point: str = "pre-create") -> Json:
    """Wait for the only hook at this resource and point."""

    async def found() -> Json:
        _, response = await run.call("GET", "/hooks?state=waiting&stack=s")
        return [one for one in response["hooks"] if (one["path"], one["point"]) == (name, point)]

    hooks = await eventually(found)
    assert len(hooks) == 1
    return hooks[0]


async def test_a_step_stops_before_each_following_operation(run: Program, world: World) -> None:
    await run.create("s", CHAIN, environment=AT_A)
    for name in "abc":
        assert (await run.signal(await hook_at(run, name), "step"))[0] == 200
    await run.signal(await hook_at(run, "d"))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert world.done == [("create", name) for name in "abcd"]


async def test_continue_from_a_step_goes_to_the_next_breakpoint(run: Program, world: World) -> None:
    rules = {"hooks": [*AT_A["hooks"], {"at": "d", "on": "pre-create"}]}
    await run.create("s", CHAIN, environment=rules)
    await run.signal(await hook_at(run, "a"), "step")
    await run.signal(await hook_at(run, "b"))
    await run.signal(await hook_at(run, "d"))
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_step_in_an_update_stops_before_each_operation(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(), "b": thing(depends_on="a"), "x": thing()})
    await run.until_ended("s")
    changed = {"a": thing(2), "b": thing(2, depends_on="a")}
    await put(run, "s", changed, environment={"hooks": [{"at": "a", "on": "pre-update"}]})
    await run.signal(await hook_at(run, "a", "pre-update"), "step")
    # x continues without a hook, or waits now, depending on when the step came.
    hook = await hook_at(run, "b", "pre-update")
    await run.signal(hook, "run")
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_run_skips_breakpoints_except_those_of_other_approvers(
    run: Program, world: World
) -> None:
    rules = {"hooks": [
        {"at": "[abc]", "on": "pre-create"},
        {"at": "d", "on": "pre-create", "answer_by": ["role:dba"]},
    ]}  # fmt: skip
    resources = {"a": thing(), "b": thing(), "c": thing(depends_on="b"), "d": thing(depends_on="c")}
    await run.create("s", resources, environment=rules)
    await run.waiting_hooks("s", 2)
    await run.signal(await hook_at(run, "a"), "run", user="ann")
    hook = await hook_at(run, "d")
    assert world.operations("d") == [] and len(world.done) == 3
    assert (await run.signal(hook, user="ann"))[0] == 403
    await run.signal(hook, roles="dba")
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_run_continues_waiting_hooks_except_those_of_other_approvers(
    run: Program, world: World
) -> None:
    rules = {"hooks": [
        {"at": "[ab]", "on": "pre-create"},
        {"at": "d", "on": "pre-create", "answer_by": ["role:dba"]},
        {"at": "e", "on": "pre-create", "approvals": 2},
    ]}  # fmt: skip
    await run.create("s", {name: thing() for name in "abde"}, environment=rules)
    await run.waiting_hooks("s", 4)
    await run.signal(await hook_at(run, "a"), "run", user="ann")
    left = await run.waiting_hooks("s", 2)
    assert sorted(hook["path"] for hook in left) == ["d", "e"]
    assert not {"d", "e"} & {name for _, name in world.done}
    assert (await run.stack("s"))["stack_status"] == "CREATE_IN_PROGRESS"


async def test_run_to_stops_at_the_resource_only(run: Program, world: World) -> None:
    await run.create("s", CHAIN, environment=AT_A)
    await hook_at(run, "a")
    assert (await run.stack_request("POST", "s", "/run-to", {"resource": "c"}))["too_late"] == []
    await run.signal(await hook_at(run, "c"))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    stack = await run.stack("s")
    path = f"/stacks/s/{stack['id']}/run-to"
    status, response = await run.call("POST", path, {"resource": "c"})
    assert status == 400 and "not supported" in response["error"]["message"]


async def test_run_to_reports_whether_it_continued_a_waiting_resource(
    run: Program,
) -> None:
    rules = {"hooks": [
        {"at": "a", "on": "pre-create"},
        {"at": "b", "on": "pre-create", "answer_by": ["role:dba"]},
    ]}  # fmt: skip
    await run.create("s", {name: thing() for name in "ab"}, environment=rules)
    await run.waiting_hooks("s", 2)
    for name, reason in (
        ("a", "it was waiting there and was continued"),
        ("b", "it waits there now"),
    ):
        response = await run.stack_request("POST", "s", "/run-to", {"resource": name})
        assert [(one["path"], one["reason"]) for one in response["too_late"]] == [(name, reason)]
    await run.signal(await hook_at(run, "b"), roles="dba")
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_run_to_an_unknown_or_passed_resource_is_refused(run: Program) -> None:
    await run.create("s", CHAIN, environment=AT_A)
    await hook_at(run, "a")
    stack = await run.stack("s")
    path = f"/stacks/s/{stack['id']}/run-to"
    for body, status in (({"resource": "cc"}, 404), ({"resource": 5}, 400), ({}, 400)):
        actual, response = await run.call("POST", path, body)
        assert actual == status and response["error"]["remedy"], body
    assert (await hook_at(run, "a"))["state"] == "waiting"


async def test_a_live_breakpoint_reports_the_nodes_that_have_passed_it(
    run: Program, world: World
) -> None:
    await run.create("s", CHAIN, environment={"hooks": [{"at": "b", "on": "pre-create"}]})
    await hook_at(run, "b")
    response = await run.stack_request(
        "POST", "s", "/breakpoints", {"breakpoints": ["[b-d]:pre-create"]}
    )
    assert [(one["resource_name"], one["reason"]) for one in response["too_late"]] == [
        ("b", "it waits there now")
    ]
    await run.signal(await hook_at(run, "b"))
    await run.signal(await hook_at(run, "c"))
    listed = await run.stack_request("GET", "s", "/breakpoints")
    assert [one["at"] for one in listed["breakpoints"]] == ["[b-d]"]
    await hook_at(run, "d")
    (one,) = listed["breakpoints"]
    await run.stack_request("DELETE", "s", f"/breakpoints/{one['id']}")
    assert (await run.stack_request("GET", "s", "/breakpoints"))["breakpoints"] == []
    await run.signal(await hook_at(run, "d"))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    trail = await run.stack_request("GET", "s", "/decisions")
    kinds = [entry["kind"] for entry in trail["decisions"]]
    assert kinds == [
        "breakpoint-added", "continue", "continue", "breakpoint-removed", "continue",
    ]  # fmt: skip


async def test_a_live_breakpoint_holds_in_later_changes(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await run.stack_request(
        "POST", "s", "/breakpoints", {"breakpoints": [{"at": "a", "on": "pre-update"}]}
    )
    await put(run, "s", {"a": thing(2)})
    await run.signal(await hook_at(run, "a", "pre-update"))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_a_removed_live_breakpoint_opens_no_hook(run: Program, world: World) -> None:
    await run.create("s", CHAIN, environment=AT_A)
    await hook_at(run, "a")
    response = await run.stack_request(
        "POST", "s", "/breakpoints", {"breakpoints": ["d:pre-create"]}
    )
    (one,) = response["breakpoints"]
    await run.stack_request("DELETE", "s", f"/breakpoints/{one['id']}")
    await run.signal(await hook_at(run, "a"))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await until_started(world, "create", "d")


async def test_the_overridden_rule_holds_again_after_a_live_breakpoint_is_removed(
    run: Program,
) -> None:
    environment = {"hooks": [
        {"at": "a", "on": "pre-create"},
        {"at": "b", "on": "pre-create", "answer_by": ["role:dba"]},
    ]}  # fmt: skip
    await run.create("s", CHAIN, environment=environment)
    await hook_at(run, "a")
    await run.stack_request(
        "POST", "s", "/breakpoints", {"breakpoints": ["b:pre-create", "c:pre-create"]}
    )
    listed = (await run.stack_request("GET", "s", "/breakpoints"))["breakpoints"]
    for one in listed:
        await run.stack_request("DELETE", "s", f"/breakpoints/{one['id']}")
    await run.signal(await hook_at(run, "a"))
    hook = await hook_at(run, "b")
    assert (await run.signal(hook, user="ann"))[0] == 403
    await run.signal(hook, roles="dba")
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_removed_live_breakpoint_does_not_stay_with_resources_added_meanwhile(
    run: Program,
) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await run.stack_request("POST", "s", "/breakpoints", {"breakpoints": ["*:pre-delete"]})
    await put(run, "s", {"a": thing(), "b": thing()})
    await run.until_ended("s")
    (one,) = (await run.stack_request("GET", "s", "/breakpoints"))["breakpoints"]
    await run.stack_request("DELETE", "s", f"/breakpoints/{one['id']}")
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")


async def test_invalid_live_breakpoints_are_refused(run: Program) -> None:
    await run.create("s", {"db": thing()})
    await run.until_ended("s")
    stack = await run.stack("s")
    path = f"/stacks/s/{stack['id']}/breakpoints"
    for items, message in (
        (["dbb:pre-create"], 'Did you mean "db"?'),
        (["db:pre-creat"], 'Did you mean "pre-create"?'),
        ([], "resource:point"),
        ("db:pre-create", "must be a list"),
        ([{"at": "db", "on": "pre-create", "when": {"equals": [1, 1]}}], "no parameters"),
    ):
        status, response = await run.call("POST", path, {"breakpoints": items})
        assert status == 400 and message in str(response["error"]), items
    unknown_id = "00000000-0000-0000-0000-000000000000"
    assert (await run.call("DELETE", f"{path}/{unknown_id}"))[0] == 404


async def test_run_skips_the_later_hooks_of_the_same_resource(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    rules = [{"at": "a", "on": ["post-create", "post-update"]}]
    await put(run, "s", {"a": thing(2, place="there")}, environment={"hooks": rules})
    await run.signal(await hook_at(run, "a", "post-create"), "run")
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


WAITING_SQL = "select resource_name, point from hook where stack_id = $1 and state = 'waiting'"


@pytest.mark.parametrize("decision", [Decision.STEP, Decision.RUN, Decision.CONTINUE])
async def test_the_step_mode_applies_to_a_node_that_a_worker_has_claimed(
    database: Database, decision: Decision
) -> None:
    """The worker decides the next step of b before the answer, and writes it afterwards."""
    world = World()
    engine = idle_engine(database, Thing(world))
    hands = ManualWorker(database, make_registry(Thing(world)), engine.stacks.end_traversal, uuid4)

    async def work() -> None:
        while hands.jobs or await hands.claim(10):
            while hands.jobs:
                hands.operate(0)

    async def answer(decision: Decision) -> None:
        async with database.connection() as conn:
            hook = await conn.fetchval("select id from hook where state = 'waiting'")
        hook_answer = Answer(decision, principal_of_name("ann"), AnswerChannel.API)
        await engine.hooks.answer(hook, hook_answer, project="p")

    request = StackRequest(template=template({"a": thing(), "b": thing()}))
    stack = (await engine.stacks.create("p", replace(request, name="s"))).id
    await work()
    rules = {"hooks": [{"at": "*", "on": "pre-update"}]}
    if decision is Decision.STEP:
        rules = {"hooks": [{"at": "a", "on": "pre-update"}]}
    changed = template({"a": thing(2), "b": thing(2)})
    await engine.stacks.update("p", stack, StackRequest(template=changed, environment=rules))
    await hands.claim(1)
    await hands.claim(1)
    await answer(decision)
    await work()
    async with database.connection() as conn:
        waiting = [tuple(row) for row in await conn.fetch(WAITING_SQL, stack)]
    assert waiting == ([] if decision is Decision.RUN else [("b", "pre-update")])
    assert world.operations("a") == ["create", "update"]
    assert world.operations("b") == ["create", "update"][: 1 + (decision is Decision.RUN)]
    assert hands.refused == (decision is not Decision.CONTINUE)


ANN = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)


async def _claimed_before_a_create(
    database: Database, mode: str
) -> tuple[Engine, ManualWorker, World, UUID]:
    """A create with a rule at `pre-create`, which a worker has claimed and not begun."""
    world = World()
    engine = idle_engine(database, Thing(world))
    hands = ManualWorker(database, make_registry(Thing(world)), engine.stacks.end_traversal, uuid4)
    rules = {"hooks": [{"at": "a", "on": "pre-create", "mode": mode}]}
    request = StackRequest(name="s", template=template({"a": thing()}), environment=rules)
    stack = (await engine.stacks.create("p", request)).id
    await hands.claim(1)
    return engine, hands, world, stack


async def test_a_breakpoint_at_a_node_that_a_worker_has_claimed_is_in_time(
    database: Database,
) -> None:
    """The worker has decided to begin the operation, and writes that after the breakpoint is set."""
    engine, hands, world, stack = await _claimed_before_a_create(database, "notify")
    added = await engine.breakpoints.add("p", stack, ["a:pre-create"], ANN)
    await hands.work()
    assert added.missed == []
    assert world.operations("a") == []
    async with database.connection() as conn:
        assert await conn.fetchval(HOOK_SQL, "a") is not None


async def test_a_breakpoint_that_a_claimed_node_has_passed_leaves_it_to_its_worker(
    database: Database,
) -> None:
    engine, hands, world, stack = await _claimed_before_a_create(database, "wait")
    await hands.claim(1)
    async with database.connection() as conn:
        hook = await conn.fetchval(HOOK_SQL, "a")
    await engine.hooks.answer(hook, ANN, project="p")
    await hands.claim(1)
    added = await engine.breakpoints.add("p", stack, ["a:pre-create"], ANN)
    async with database.connection() as conn:
        node = await conn.fetchrow(CLAIMED_SQL, stack)
    assert [one.reason for one in added.missed] == ["it has already passed this point"]
    assert node is not None and tuple(node) == ("running", "execute", "manual")
    await hands.work()
    assert world.operations("a") == ["create"]


#: Of the node of a resource.
CLAIMED_SQL = "select state, phase, worker from node where stack_id = $1 and name = 'a'"
HOOK_SQL = "select id from hook where resource_name = $1 and state = 'waiting'"
PHASES_SQL = "select name, state, phase from node where stack_id = $1 and name <> ''"


async def test_stepping_stops_only_operations_that_have_not_begun(database: Database) -> None:
    """An operation whose step was answered has begun, although its node is ready."""
    world = World()
    engine = idle_engine(database, Thing(world))
    hands = ManualWorker(database, make_registry(Thing(world)), engine.stacks.end_traversal, uuid4)
    world.script("create", "begun", Confirm("resize", {}))
    rules = {"hooks": [{"at": "begun", "on": "confirm-resize"}, {"at": "held", "on": "pre-create"}]}
    resources = {"begun": thing(), "held": thing(), "later": thing(depends_on="held")}
    request = StackRequest(name="s", template=template(resources), environment=rules)
    stack = (await engine.stacks.create("p", request)).id
    await hands.work()

    async def answer(name: str, decision: Decision) -> None:
        async with database.connection() as conn:
            hook = await conn.fetchval(HOOK_SQL, name)
        hook_answer = Answer(decision, principal_of_name("ann"), AnswerChannel.API)
        await engine.hooks.answer(hook, hook_answer, project="p")

    await answer("begun", Decision.CONTINUE)
    await answer("held", Decision.STEP)
    async with database.connection() as conn:
        places = {row["name"]: tuple(row)[1:] for row in await conn.fetch(PHASES_SQL, stack)}
    assert places == {
        "begun": ("ready", "execute"), "held": ("ready", "execute"), "later": ("waiting", "pre"),
    }  # fmt: skip
    await hands.work()
    assert world.operations("begun") == ["create", "create"]
    async with database.connection() as conn:
        waiting = [tuple(row) for row in await conn.fetch(WAITING_SQL, stack)]
    assert waiting == [("later", "pre-create")]


async def test_what_only_a_claim_finds_out_is_prepared_after_the_answer(database: Database) -> None:
    """Preconditions are evaluated again, and patched properties are. Other creates begin with the
    claim."""
    world = World()
    engine = idle_engine(database, Thing(world))
    hands = ManualWorker(database, make_registry(Thing(world)), engine.stacks.end_traversal, uuid4)
    condition = {"assert": {"equals": [{"get_attr": ["first", "size"]}, 1]}, "message": "no"}
    resources = {
        "first": thing(),
        "plain": thing(),
        "checked": thing(preconditions=[condition]),
        "patched": thing(),
    }
    rules = [{"at": name, "on": "pre-create"} for name in ("plain", "checked")]
    patched = {"at": "patched", "on": "pre-create", "patch": ["size"]}
    document = template(resources) | {"heat_template_version": "2026-12-01"}
    request = StackRequest(name="s", template=document, environment={"hooks": [*rules, patched]})
    stack = (await engine.stacks.create("p", request)).id
    await hands.work()
    patch = replace(ANN, decision=Decision.PATCH, properties={"size": 7})
    for name, given in {"plain": ANN, "checked": ANN, "patched": patch}.items():
        async with database.connection() as conn:
            hook = await conn.fetchval(HOOK_SQL, name)
        await engine.hooks.answer(hook, given, project="p")
    async with database.connection() as conn:
        places = {row["name"]: tuple(row)[1:] for row in await conn.fetch(PHASES_SQL, stack)}
    del places["first"]
    assert places == {
        "plain": ("ready", "execute"), "checked": ("ready", "pre"), "patched": ("ready", "pre"),
    }  # fmt: skip
    await hands.work()
    assert all(world.operations(name) == ["create"] for name in resources)
