"""Stepping through nested stacks, continuing, and live breakpoints."""

from tests.integration.nested.test_breakpoints import DISK, FILES, answer_hook, waiting_at, web
from tests.support.changes import expect_error
from tests.support.program import Json, Program, resource

#: web, with two levels of nested stacks, and a resource that depends on it.
RESOURCES = web() | {"after": resource(depends_on="web")}
AT_WEB = {"hooks": [{"at": "web", "on": "pre-create"}]}


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
