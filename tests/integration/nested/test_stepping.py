"""Stepping through nested stacks, continuing, and live breakpoints."""

from uuid import UUID, uuid4

import pytest

from engine.principal import principal_of_name
from engine.service import Answer, Engine, StackRequest
from engine.store.database import Database
from engine.words import AnswerChannel, Decision, StepKind
from tests.integration.groups.test_members import group
from tests.integration.nested.test_breakpoints import DISK, FILES, answer_hook, waiting_at, web
from tests.support.changes import expect_error
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import ManualWorker
from tests.support.program import Json, Program, resource, template

#: web, with two levels of nested stacks, and a resource that depends on it.
RESOURCES = web() | {"after": resource(depends_on="web")}
AT_WEB = {"hooks": [{"at": "web", "on": "pre-create"}]}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


async def create_stepped(run: Program, **body: Json) -> None:
    await run.create("s", RESOURCES, files=FILES, **{"environment": AT_WEB, **body})


async def answer(run: Program, path: str, decision: str = "step", **more: Json) -> Json:
    """Answer the hook that waits at pre-create of the path."""
    hook = next(one for one in await waiting(run) if one["path"] == path)
    status, response = await run.signal(hook, decision, **more)
    assert status == 200, response
    return response


async def waiting(run: Program) -> list[Json]:
    _, response = await run.call("GET", "/hooks?state=waiting&stack=s")
    return list(response["hooks"])


async def until_waiting_at(run: Program, *expected: str) -> None:
    """Wait until exactly these paths wait at pre-create."""
    hooks = await run.waiting_hooks("s", len(expected))
    assert sorted(f"{one['path']}:{one['point']}" for one in hooks) == [
        f"{path}:pre-create" for path in sorted(expected)
    ]


async def test_step_steps_over_a_nested_stack(running: Program) -> None:
    await create_stepped(running)
    await until_waiting_at(running, "web")
    await answer(running, "web")
    await until_waiting_at(running, "after")
    await answer(running, "after")
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_step_into_stops_in_the_nested_stack_and_after_it_in_the_parent(
    running: Program,
) -> None:
    await create_stepped(running)
    await until_waiting_at(running, "web")
    response = await answer(running, "web", how="into")
    assert response["decision"] == "step-into"
    hook = {"id": response["id"]}
    assert (await running.signal(hook, "step", how="into"))[0] == 200
    assert (await running.signal(hook, "step"))[0] == 409
    await until_waiting_at(running, "web/db", "web/server")
    await answer(running, "web/server")
    await answer(running, "web/db")  # steps over: its disk does not stop
    await until_waiting_at(running, "after")
    await answer(running, "after", "continue")
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    audit_log = await running.stack_request("GET", "s", "/decisions")
    assert [one["kind"] for one in audit_log["decisions"]] == ["step-into", "continue"]


async def test_step_into_two_levels_and_step_out_again(running: Program) -> None:
    await create_stepped(running)
    await until_waiting_at(running, "web")
    await answer(running, "web", how="into")
    await until_waiting_at(running, "web/db", "web/server")
    await answer(running, "web/db", how="into")
    await until_waiting_at(running, DISK, "web/server")
    await answer(running, DISK, how="out")
    await until_waiting_at(running, "web/server")  # db has completed
    await answer(running, "web/server", how="out")
    await until_waiting_at(running, "after")
    status, response = await running.signal((await waiting(running))[0], "step", how="out")
    assert status == 400 and "this stack has no parent" in response["error"]["message"]
    for decision, how in (("step", "sideways"), ("continue", "into")):
        status, response = await running.signal((await waiting(running))[0], decision, how=how)
        assert (status, response["error"]["findings"][0]["place"]) == (400, "how"), response
    await answer(running, "after", "run")
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_stepping_in_a_nested_stack_continues_in_the_parent(running: Program) -> None:
    resources = {"web": {"type": "db.yaml"}, "after": resource(depends_on="web")}
    rules = {"hooks": [{"at": "web/disk", "on": "pre-create"}]}
    await running.create("s", resources, files=FILES, environment=rules)
    await until_waiting_at(running, "web/disk")
    await answer(running, "web/disk")
    await until_waiting_at(running, "after")


async def test_step_out_continues_steps_and_keeps_breakpoints(running: Program) -> None:
    rules = {"hooks": [*AT_WEB["hooks"], {"at": "web/server", "on": "post-create"}]}
    await create_stepped(running, environment=rules)
    await until_waiting_at(running, "web")
    await answer(running, "web", how="into")
    await until_waiting_at(running, "web/db", "web/server")
    await answer(running, "web/db", how="out")
    assert await waiting_at(running, "s") == ["web/server:post-create"]
    await answer_hook(running, "s")
    await until_waiting_at(running, "after")


@pytest.mark.parametrize("how", ["over", "out"])
async def test_a_step_in_a_nested_stack_after_run_stops_in_the_parent(
    running: Program, how: str
) -> None:
    ask = {"schema": {"type": "object"}}  # `run` does not skip such a rule
    restricted = {"at": "web/disk", "on": "pre-create", "ask": ask}
    rules = {"hooks": [*AT_WEB["hooks"], restricted]}
    resources = {"web": {"type": "db.yaml"}, "after": resource(depends_on="web")}
    await running.create("s", resources, files=FILES, environment=rules)
    await until_waiting_at(running, "web")
    await answer(running, "web", "run")
    await until_waiting_at(running, "web/disk")
    await answer(running, "web/disk", how=how, data={})
    await until_waiting_at(running, "after")
    await answer(running, "after", "run")
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_continue_ends_stepping_in_the_nested_stack_and_the_parent(
    running: Program,
) -> None:
    await create_stepped(running)
    await until_waiting_at(running, "web")
    await answer(running, "web", how="into")
    await until_waiting_at(running, "web/db", "web/server")
    await answer(running, "web/server")
    await answer(running, "web/db", "continue")
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_run_continues_every_hook_of_the_tree_that_the_user_may_answer(
    running: Program,
) -> None:
    rules = [
        {"at": DISK, "on": ["pre-create", "post-create"]},
        {"at": "web/server", "on": "pre-create"},
        {"at": "web/server", "on": "post-create", "answer_by": ["role:dba"]},
        {"at": "free", "on": "pre-create"},
        {"at": "after", "on": "pre-create"},
    ]
    resources = RESOURCES | {"free": resource()}
    await running.create("s", resources, files=FILES, environment={"hooks": rules})
    await until_waiting_at(running, DISK, "web/server", "free")
    await answer(running, "free", "run")
    # The hook that only another role may answer still waits; the others were continued.
    assert await waiting_at(running, "s") == ["web/server:post-create"]
    await running.signal((await waiting(running))[0], roles="dba")
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_run_holds_for_nested_stacks_that_start_later(running: Program) -> None:
    rules = [{"at": path, "on": "pre-create"} for path in ("web", DISK, "*/server")]
    await create_stepped(running, environment={"hooks": rules})
    await until_waiting_at(running, "web")
    await answer(running, "web", "run")
    assert await running.until_ended("s") == "CREATE_COMPLETE"


WAITING_SQL = "select resource_name, id from hook where state = 'waiting' order by resource_name"


async def waiting_in_database(database: Database) -> dict[str, UUID]:
    async with database.connection() as conn:
        return {row["resource_name"]: row["id"] for row in await conn.fetch(WAITING_SQL)}


async def step_into_before_it_begins(
    database: Database, resources: Json, *waiting_before: str
) -> tuple[Engine, ManualWorker, UUID]:
    """Step into the nested stack of web, whose operation no worker has claimed yet."""
    engine = idle_engine(database)
    worker = ManualWorker(
        database,
        make_registry(),
        engine.stacks.end_traversal,
        uuid4,
        run_nested=engine.nested.run_operation,
    )
    rules = {"hooks": [{"at": name, "on": "pre-create"} for name in resources]}
    request = StackRequest(name="s", template=template(resources), files=FILES, environment=rules)
    stack = (await engine.stacks.create("p", request)).id
    await work(worker)
    waiting = await waiting_in_database(database)
    assert sorted(waiting) == sorted(waiting_before)
    into = Answer(Decision.STEP, principal_of_name("ann"), AnswerChannel.API, how=StepKind.INTO)
    await engine.hooks.answer(waiting["web"], into, project="p")
    return engine, worker, stack


async def work(worker: ManualWorker) -> None:
    """Run all operations that are ready."""
    while await worker.claim(10) or worker.jobs:
        while worker.jobs:
            await worker.operate_nested(0)


BESIDE = {"web": {"type": "db.yaml"}, "side": resource()}


async def test_run_ends_a_step_into_a_nested_stack_that_has_not_begun(database: Database) -> None:
    engine, worker, _ = await step_into_before_it_begins(database, BESIDE, "side", "web")
    run = Answer(Decision.RUN, principal_of_name("ann"), AnswerChannel.API)
    await engine.hooks.answer((await waiting_in_database(database))["side"], run, project="p")
    await work(worker)
    assert await waiting_in_database(database) == {}


async def test_run_to_ends_a_step_into_a_nested_stack_that_has_not_begun(
    database: Database,
) -> None:
    engine, worker, stack = await step_into_before_it_begins(database, BESIDE, "side", "web")
    by = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)
    await engine.hooks.run_to("p", stack, "side", by)
    await work(worker)
    assert await waiting_in_database(database) == {}


async def test_continue_beside_a_step_into_a_nested_stack_keeps_it(database: Database) -> None:
    """As it does if the nested stack has begun."""
    engine, worker, _ = await step_into_before_it_begins(database, BESIDE, "side", "web")
    by = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)
    await engine.hooks.answer((await waiting_in_database(database))["side"], by, project="p")
    await work(worker)
    assert [*await waiting_in_database(database)] == ["disk"]


@pytest.mark.parametrize(("inside", "between"), [("step", "step"), ("continue", "continue")])
async def test_a_group_stops_in_a_batch_only_after_a_step_into_it(
    running: Program, inside: str, between: str
) -> None:
    """A step over the next batch, and continue in a batch, end the step into the batch before."""
    await running.create("s", {"g": group(2, "v")})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    rolling = group(2, "w", policy={"rolling_update": {"max_batch_size": 1}})
    hooks = {"hooks": [{"at": "g", "on": "pre-batch"}]}
    await running.update("s", "PUT", template=template({"g": rolling}), environment=hooks)
    (first,) = await running.waiting_hooks("s")
    assert (await running.signal(first, "step", how="into"))[0] == 200
    (member,) = await running.waiting_hooks("s")
    assert (member["path"], member["point"]) == ("g/1", "pre-update")
    assert (await running.signal(member, inside))[0] == 200
    (second,) = await running.waiting_hooks("s")
    assert (second["path"], second["point"]) == ("g", "pre-batch")
    assert (await running.signal(second, between))[0] == 200
    assert await running.until_ended("s") == "UPDATE_COMPLETE"


async def test_run_to_a_nested_resource(running: Program) -> None:
    await create_stepped(running)
    await until_waiting_at(running, "web")
    for path, status in (("web/dbb", 404), ("web/server/x", 404), ("after/x", 404)):
        assert (await expect_error(running, "POST", "s", "/run-to", {"resource": path}))[
            0
        ] == status
    await running.stack_request("POST", "s", "/run-to", {"resource": DISK})
    await until_waiting_at(running, DISK)
    response = await running.stack_request("POST", "s", "/run-to", {"resource": DISK})
    assert [(one["path"], one["point"], one["reason"]) for one in response["too_late"]] == [
        (DISK, "pre-create", "it was waiting there and was continued")
    ]
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_live_breakpoints_in_nested_stacks(running: Program) -> None:
    rules = [{"at": path, "on": "pre-create"} for path in ("web/server", "web/db")]
    await create_stepped(running, environment={"hooks": rules})
    await until_waiting_at(running, "web/server", "web/db")
    wanted = ["web/server:pre-create", "web/*:post-create", f"{DISK}:pre-create"]
    response = await running.stack_request("POST", "s", "/breakpoints", {"breakpoints": wanted})
    assert [(one["path"], one["reason"]) for one in response["too_late"]] == [
        ("web/server", "it waits there now")
    ]
    await answer(running, "web/db", "continue")
    await until_waiting_at(running, DISK, "web/server")
    for one in response["breakpoints"]:
        if one["at"] == "web/*":
            await running.stack_request("DELETE", "s", f"/breakpoints/{one['id']}")
    for path in (DISK, "web/server"):
        await answer(running, path, "continue")
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    response = await running.stack_request(
        "POST", "s", "/breakpoints", {"breakpoints": ["web/db:pre-update"]}
    )
    assert response["too_late"] == []
    invalid = {"breakpoints": ["web/bd:pre-update"]}
    status, error = await expect_error(running, "POST", "s", "/breakpoints", invalid)
    assert status == 400 and 'Did you mean "web/db"?' in str(error)
    await running.update("s", files=FILES, template={
        "heat_template_version": "2018-08-31", "resources": RESOURCES | web("large"),
    })  # fmt: skip
    assert await waiting_at(running, "s") == ["web/db:pre-update"]


async def test_why_and_the_graph_show_what_waits_in_nested_stacks(running: Program) -> None:
    await create_stepped(running, environment={"hooks": [{"at": DISK, "on": "pre-create"}]})
    await until_waiting_at(running, DISK)
    response = await running.stack_request("GET", "s", "/why")
    sentences = {one["path"]: one["sentence"] for one in response["nodes"]}
    assert sentences["web"] == "web (create) waits for its nested stack."
    assert sentences["web/db"] == "web/db (create) waits for its nested stack."
    assert sentences[DISK].startswith(f"{DISK} has waited at pre-create since ")
    assert "no subscription was notified" in sentences[DISK]
    assert sentences["after"] == "after (create) waits for web."
    graph = await running.stack_request("GET", "s", "/graph?nested=true")
    stacks = {one["path"]: one for one in graph["stacks"]}
    assert set(stacks) == {"web", "web/db"}
    (web_node,) = [one for one in graph["nodes"] if one["path"] == "web"]
    assert web_node["nested_stack_id"] == stacks["web"]["stack_id"]
    assert [one["path"] for one in stacks["web/db"]["nodes"]] == [DISK]
    assert "stacks" not in await running.stack_request("GET", "s", "/graph")
    await answer(running, DISK, "reject", reason="no")
    assert await running.until_ended("s") == "CREATE_FAILED"
    sentences = {one["path"]: one["sentence"]
            for one in (await running.stack_request("GET", "s", "/why"))["nodes"]}  # fmt: skip
    assert f"{DISK} (create) failed: pre-create rejected by" in sentences[DISK]
