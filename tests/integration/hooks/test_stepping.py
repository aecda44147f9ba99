"""Stepping, running on and breakpoints on a live stack, as somebody who debugs does it."""

from tests.support.changes import begun, gone, put, thing
from tests.support.program import Json, Program, eventually
from tests.support.things import World

CHAIN = {
    "a": thing(),
    "b": thing(depends_on="a"),
    "c": thing(depends_on="b"),
    "d": thing(depends_on="c"),
}
AT_A = {"hooks": [{"at": "a", "on": "pre-create"}]}


async def at(run: Program, name: str, point: str = "pre-create") -> Json:
    """The one hook that waits, which must be there."""

    async def found() -> Json:
        _, said = await run.call("GET", "/hooks?state=waiting&stack=s")
        return [one for one in said["hooks"] if (one["path"], one["point"]) == (name, point)]

    hooks = await eventually(found)
    assert len(hooks) == 1
    return hooks[0]


async def test_a_step_stops_at_whatever_comes_next(run: Program, world: World) -> None:
    await run.create("s", CHAIN, environment=AT_A)
    for name in "abc":
        assert (await run.signal(await at(run, name), "step"))[0] == 200
    await run.signal(await at(run, "d"))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert world.done == [("create", name) for name in "abcd"]


async def test_to_continue_from_a_step_goes_to_the_next_breakpoint(
    run: Program, world: World
) -> None:
    rules = {"hooks": [*AT_A["hooks"], {"at": "d", "on": "pre-create"}]}
    await run.create("s", CHAIN, environment=rules)
    await run.signal(await at(run, "a"), "step")
    await run.signal(await at(run, "b"))
    await run.signal(await at(run, "d"))
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_step_in_an_update_stops_before_each_operation(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(), "b": thing(depends_on="a"), "x": thing()})
    await run.until_ended("s")
    changed = {"a": thing(2), "b": thing(2, depends_on="a")}
    await put(run, "s", changed, environment={"hooks": [{"at": "a", "on": "pre-update"}]})
    await run.signal(await at(run, "a", "pre-update"), "step")
    # x goes by itself; it had begun before anybody stepped, or asks now.
    hook = await at(run, "b", "pre-update")
    await run.signal(hook, "run")
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_to_run_passes_breakpoints_but_not_those_of_others(
    run: Program, world: World
) -> None:
    rules = {"hooks": [
        {"at": "[abc]", "on": "pre-create"},
        {"at": "d", "on": "pre-create", "answer_by": ["role:dba"]},
    ]}  # fmt: skip
    resources = {"a": thing(), "b": thing(), "c": thing(depends_on="b"), "d": thing(depends_on="c")}
    await run.create("s", resources, environment=rules)
    await run.waiting("s", 2)
    await run.signal(await at(run, "a"), "run", user="ann")
    hook = await at(run, "d")
    assert world.operations("d") == [] and len(world.done) == 3
    assert (await run.signal(hook, user="ann"))[0] == 403
    await run.signal(hook, roles="dba")
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_to_run_lets_go_what_waits_but_not_what_waits_for_others(
    run: Program, world: World
) -> None:
    rules = {"hooks": [
        {"at": "[ab]", "on": "pre-create"},
        {"at": "d", "on": "pre-create", "answer_by": ["role:dba"]},
        {"at": "e", "on": "pre-create", "approvals": 2},
    ]}  # fmt: skip
    await run.create("s", {name: thing() for name in "abde"}, environment=rules)
    await run.waiting("s", 4)
    await run.signal(await at(run, "a"), "run", user="ann")
    left = await run.waiting("s", 2)
    assert sorted(hook["path"] for hook in left) == ["d", "e"]
    assert not {"d", "e"} & {name for _, name in world.done}
    assert (await run.stack("s"))["stack_status"] == "CREATE_IN_PROGRESS"


async def test_run_to_stops_there_and_nowhere_else(run: Program, world: World) -> None:
    await run.create("s", CHAIN, environment=AT_A)
    await at(run, "a")
    assert (await run.at("POST", "s", "/run-to", {"resource": "c"}))["too_late"] == []
    await run.signal(await at(run, "c"))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    stack = await run.stack("s")
    path = f"/stacks/s/{stack['id']}/run-to"
    status, said = await run.call("POST", path, {"resource": "c"})
    assert status == 400 and "not supported" in said["error"]["message"]


async def test_run_to_says_whether_it_continued_the_resource_or_whether_it_still_waits(
    run: Program,
) -> None:
    rules = {"hooks": [
        {"at": "a", "on": "pre-create"},
        {"at": "b", "on": "pre-create", "answer_by": ["role:dba"]},
    ]}  # fmt: skip
    await run.create("s", {name: thing() for name in "ab"}, environment=rules)
    await run.waiting("s", 2)
    for name, reason in (
        ("a", "it was waiting there and was continued"),
        ("b", "it waits there now"),
    ):
        said = await run.at("POST", "s", "/run-to", {"resource": name})
        assert [(one["path"], one["reason"]) for one in said["too_late"]] == [(name, reason)]
    await run.signal(await at(run, "b"), roles="dba")
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_run_to_something_that_is_not_ahead_is_refused(run: Program) -> None:
    await run.create("s", CHAIN, environment=AT_A)
    await at(run, "a")
    stack = await run.stack("s")
    path = f"/stacks/s/{stack['id']}/run-to"
    for body, status in (({"resource": "cc"}, 404), ({"resource": 5}, 400), ({}, 400)):
        got, said = await run.call("POST", path, body)
        assert got == status and said["error"]["remedy"], body
    assert (await at(run, "a"))["state"] == "waiting"


async def test_a_breakpoint_is_set_on_a_live_stack_and_says_where_it_is_too_late(
    run: Program, world: World
) -> None:
    await run.create("s", CHAIN, environment={"hooks": [{"at": "b", "on": "pre-create"}]})
    await at(run, "b")
    said = await run.at("POST", "s", "/breakpoints", {"breakpoints": ["[b-d]:pre-create"]})
    assert [(one["resource_name"], one["reason"]) for one in said["too_late"]] == [
        ("b", "it waits there now")
    ]
    await run.signal(await at(run, "b"))
    await run.signal(await at(run, "c"))
    listed = await run.at("GET", "s", "/breakpoints")
    assert [one["at"] for one in listed["breakpoints"]] == ["[b-d]"]
    await at(run, "d")
    (one,) = listed["breakpoints"]
    await run.at("DELETE", "s", f"/breakpoints/{one['id']}")
    assert (await run.at("GET", "s", "/breakpoints"))["breakpoints"] == []
    await run.signal(await at(run, "d"))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    trail = await run.at("GET", "s", "/decisions")
    kinds = [entry["kind"] for entry in trail["decisions"]]
    assert kinds == [
        "breakpoint-added", "continue", "continue", "breakpoint-removed", "continue",
    ]  # fmt: skip


async def test_a_live_breakpoint_holds_in_later_changes_too(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await run.at("POST", "s", "/breakpoints", {"breakpoints": [{"at": "a", "on": "pre-update"}]})
    await put(run, "s", {"a": thing(2)})
    await run.signal(await at(run, "a", "pre-update"))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_a_removed_breakpoint_does_not_hold_what_has_not_come_to_it(
    run: Program, world: World
) -> None:
    await run.create("s", CHAIN, environment=AT_A)
    await at(run, "a")
    said = await run.at("POST", "s", "/breakpoints", {"breakpoints": ["d:pre-create"]})
    (one,) = said["breakpoints"]
    await run.at("DELETE", "s", f"/breakpoints/{one['id']}")
    await run.signal(await at(run, "a"))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await begun(world, "create", "d")


async def test_what_a_live_breakpoint_stood_in_the_place_of_holds_again_without_it(
    run: Program,
) -> None:
    environment = {"hooks": [
        {"at": "a", "on": "pre-create"},
        {"at": "b", "on": "pre-create", "answer_by": ["role:dba"]},
    ]}  # fmt: skip
    await run.create("s", CHAIN, environment=environment)
    await at(run, "a")
    await run.at("POST", "s", "/breakpoints", {"breakpoints": ["b:pre-create", "c:pre-create"]})
    listed = (await run.at("GET", "s", "/breakpoints"))["breakpoints"]
    for one in listed:
        await run.at("DELETE", "s", f"/breakpoints/{one['id']}")
    await run.signal(await at(run, "a"))
    hook = await at(run, "b")
    assert (await run.signal(hook, user="ann"))[0] == 403
    await run.signal(hook, roles="dba")
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_live_breakpoint_that_is_gone_does_not_stay_with_what_was_added_meanwhile(
    run: Program,
) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await run.at("POST", "s", "/breakpoints", {"breakpoints": ["*:pre-delete"]})
    await put(run, "s", {"a": thing(), "b": thing()})
    await run.until_ended("s")
    (one,) = (await run.at("GET", "s", "/breakpoints"))["breakpoints"]
    await run.at("DELETE", "s", f"/breakpoints/{one['id']}")
    await run.at("DELETE", "s")
    await gone(run, "s")


async def test_wrong_live_breakpoints_are_refused(run: Program) -> None:
    await run.create("s", {"db": thing()})
    await run.until_ended("s")
    stack = await run.stack("s")
    path = f"/stacks/s/{stack['id']}/breakpoints"
    for items, told in (
        (["dbb:pre-create"], 'Did you mean "db"?'),
        (["db:pre-creat"], 'Did you mean "pre-create"?'),
        ([], "resource:point"),
        ("db:pre-create", "must be a list"),
        ([{"at": "db", "on": "pre-create", "when": {"equals": [1, 1]}}], "no parameters"),
    ):
        status, said = await run.call("POST", path, {"breakpoints": items})
        assert status == 400 and told in str(said["error"]), items
    no_one = "00000000-0000-0000-0000-000000000000"
    assert (await run.call("DELETE", f"{path}/{no_one}"))[0] == 404
