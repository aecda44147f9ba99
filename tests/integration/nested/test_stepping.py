"""Stepping through nested stacks, continuing, and live breakpoints."""

from tests.integration.nested.test_rules import DISK, FILES, let_go, waiting_at, web
from tests.support.changes import refused
from tests.support.program import Json, Program, resource

#: web, with two stacks inside each other, and what comes after it.
RESOURCES = web() | {"after": resource(depends_on="web")}
AT_WEB = {"hooks": [{"at": "web", "on": "pre-create"}]}


async def begin(run: Program, **body: Json) -> None:
    await run.create("s", RESOURCES, files=FILES, **{"environment": AT_WEB, **body})


async def answer(run: Program, path: str, decision: str = "step", **more: Json) -> Json:
    """Answer the hook that waits there before something is made."""
    hook = next(one for one in await waiting(run) if one["path"] == path)
    status, said = await run.signal(hook, decision, **more)
    assert status == 200, said
    return said


async def waiting(run: Program) -> list[Json]:
    _, said = await run.call("GET", "/hooks?state=waiting&stack=s")
    return list(said["hooks"])


async def at(run: Program, *places: str) -> None:
    """Until something waits at these paths before it is made, and nothing else does."""
    hooks = await run.waiting("s", len(places))
    assert sorted(f"{one['path']}:{one['point']}" for one in hooks) == [
        f"{path}:pre-create" for path in sorted(places)
    ]


async def test_to_step_is_to_step_over(running: Program) -> None:
    await begin(running)
    await at(running, "web")
    await answer(running, "web")
    await at(running, "after")
    await answer(running, "after")
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_into_stops_inside_and_at_its_end_in_the_stack_around(running: Program) -> None:
    await begin(running)
    await at(running, "web")
    said = await answer(running, "web", how="into")
    assert said["decision"] == "step-into"
    hook = {"id": said["id"]}
    assert (await running.signal(hook, "step", how="into"))[0] == 200
    assert (await running.signal(hook, "step"))[0] == 409
    await at(running, "web/db", "web/server")
    await answer(running, "web/server")
    await answer(running, "web/db")  # over: its disk does not ask
    await at(running, "after")
    await answer(running, "after", "continue")
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    trail = await running.at("GET", "s", "/decisions")
    assert [one["kind"] for one in trail["decisions"]] == ["step-into", "continue"]


async def test_into_goes_deeper_and_out_comes_back(running: Program) -> None:
    await begin(running)
    await at(running, "web")
    await answer(running, "web", how="into")
    await at(running, "web/db", "web/server")
    await answer(running, "web/db", how="into")
    await at(running, DISK, "web/server")
    await answer(running, DISK, how="out")
    await at(running, "web/server")  # db has run to its end
    await answer(running, "web/server", how="out")
    await at(running, "after")
    status, said = await running.signal((await waiting(running))[0], "step", how="out")
    assert status == 400 and "this stack has no parent" in said["error"]["message"]
    for decision, how in (("step", "sideways"), ("continue", "into")):
        status, said = await running.signal((await waiting(running))[0], decision, how=how)
        assert (status, said["error"]["findings"][0]["place"]) == (400, "how"), said
    await answer(running, "after", "run")
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_whoever_begins_to_step_inside_steps_on_around_it(running: Program) -> None:
    resources = {"web": {"type": "db.yaml"}, "after": resource(depends_on="web")}
    rules = {"hooks": [{"at": "web/disk", "on": "pre-create"}]}
    await running.create("s", resources, files=FILES, environment=rules)
    await at(running, "web/disk")
    await answer(running, "web/disk")
    await at(running, "after")


async def test_out_lets_go_what_stepping_holds_but_no_breakpoint(running: Program) -> None:
    rules = {"hooks": [*AT_WEB["hooks"], {"at": "web/server", "on": "post-create"}]}
    await begin(running, environment=rules)
    await at(running, "web")
    await answer(running, "web", how="into")
    await at(running, "web/db", "web/server")
    await answer(running, "web/db", how="out")
    assert await waiting_at(running, "s") == ["web/server:post-create"]
    await let_go(running, "s")
    await at(running, "after")


async def test_to_continue_from_a_step_inside_ends_stepping_around_it_too(
    running: Program,
) -> None:
    await begin(running)
    await at(running, "web")
    await answer(running, "web", how="into")
    await at(running, "web/db", "web/server")
    await answer(running, "web/server")
    await answer(running, "web/db", "continue")
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_to_run_runs_everything_inside(running: Program) -> None:
    rules = [
        {"at": DISK, "on": ["pre-create", "post-create"]},
        {"at": "web/server", "on": "pre-create"},
        {"at": "web/server", "on": "post-create", "answer_by": ["role:dba"]},
        {"at": "free", "on": "pre-create"},
        {"at": "after", "on": "pre-create"},
    ]
    resources = RESOURCES | {"free": resource()}
    await running.create("s", resources, files=FILES, environment={"hooks": rules})
    await at(running, DISK, "web/server", "free")
    await answer(running, "free", "run")
    # What is somebody else's to answer still holds, and nothing else did on the way.
    assert await waiting_at(running, "s") == ["web/server:post-create"]
    await running.signal((await waiting(running))[0], roles="dba")
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_to_run_holds_for_what_is_yet_to_be_inside(running: Program) -> None:
    rules = [{"at": path, "on": "pre-create"} for path in ("web", DISK, "*/server")]
    await begin(running, environment={"hooks": rules})
    await at(running, "web")
    await answer(running, "web", "run")
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_run_to_a_place_inside(running: Program) -> None:
    await begin(running)
    await at(running, "web")
    for path, status in (("web/dbb", 404), ("web/server/x", 404), ("after/x", 404)):
        assert (await refused(running, "POST", "s", "/run-to", {"resource": path}))[0] == status
    await running.at("POST", "s", "/run-to", {"resource": DISK})
    await at(running, DISK)
    said = await running.at("POST", "s", "/run-to", {"resource": DISK})
    assert [(one["path"], one["point"], one["reason"]) for one in said["too_late"]] == [
        (DISK, "pre-create", "it was waiting there and was continued")
    ]
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_a_live_breakpoint_holds_inside(running: Program) -> None:
    rules = [{"at": path, "on": "pre-create"} for path in ("web/server", "web/db")]
    await begin(running, environment={"hooks": rules})
    await at(running, "web/server", "web/db")
    wanted = ["web/server:pre-create", "web/*:post-create", f"{DISK}:pre-create"]
    said = await running.at("POST", "s", "/breakpoints", {"breakpoints": wanted})
    assert [(one["path"], one["reason"]) for one in said["too_late"]] == [
        ("web/server", "it waits there now")
    ]
    await answer(running, "web/db", "continue")
    await at(running, DISK, "web/server")
    for one in said["breakpoints"]:
        if one["at"] == "web/*":
            await running.at("DELETE", "s", f"/breakpoints/{one['id']}")
    for path in (DISK, "web/server"):
        await answer(running, path, "continue")
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    said = await running.at("POST", "s", "/breakpoints", {"breakpoints": ["web/db:pre-update"]})
    assert said["too_late"] == []
    wrong = {"breakpoints": ["web/bd:pre-update"]}
    status, error = await refused(running, "POST", "s", "/breakpoints", wrong)
    assert status == 400 and 'Did you mean "web/db"?' in str(error)
    await running.update("s", files=FILES, template={
        "heat_template_version": "2018-08-31", "resources": RESOURCES | web("large"),
    })  # fmt: skip
    assert await waiting_at(running, "s") == ["web/db:pre-update"]


async def test_why_and_the_graph_lead_to_what_waits_inside(running: Program) -> None:
    await begin(running, environment={"hooks": [{"at": DISK, "on": "pre-create"}]})
    await at(running, DISK)
    said = await running.at("GET", "s", "/why")
    sentences = {one["path"]: one["sentence"] for one in said["nodes"]}
    assert sentences["web"] == "web (create) waits for its nested stack."
    assert sentences["web/db"] == "web/db (create) waits for its nested stack."
    assert sentences[DISK].startswith(f"{DISK} has waited at pre-create since ")
    assert "no subscription was notified" in sentences[DISK]
    assert sentences["after"] == "after (create) waits for web."
    graph = await running.at("GET", "s", "/graph?nested=true")
    stacks = {one["path"]: one for one in graph["stacks"]}
    assert set(stacks) == {"web", "web/db"}
    (web_node,) = [one for one in graph["nodes"] if one["path"] == "web"]
    assert web_node["inside"] == stacks["web"]["stack_id"]
    assert [one["path"] for one in stacks["web/db"]["nodes"]] == [DISK]
    assert "stacks" not in await running.at("GET", "s", "/graph")
    await answer(running, DISK, "reject", reason="no")
    assert await running.until_ended("s") == "CREATE_FAILED"
    told = {one["path"]: one["sentence"]
            for one in (await running.at("GET", "s", "/why"))["nodes"]}  # fmt: skip
    assert f"{DISK} (create) failed: pre-create rejected by" in told[DISK]
