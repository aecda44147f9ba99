"""Every change, safely: rollback, cancel, visits, policies, retries, partial updates, moves."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.types.contract import Failed, Wait
from tests.support.program import Json, Program, eventually, program, template
from tests.support.things import Thing, World

FAR = Wait(datetime(2100, 1, 1, tzinfo=UTC), {})


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def run(database_url: str, world: World) -> AsyncIterator[Program]:
    quick = {"engine.first_retry": "1s", "engine.poll": "1s"}
    async with program(database_url, quick, types=[Thing(world)]) as made:
        yield made


def thing(size: Json = 1, **more: Json) -> Json:
    properties = {"size": size} | {key: more.pop(key) for key in ("place",) if key in more}
    return {"type": "Test::Thing", "properties": properties, **more}


async def put(run: Program, name: str, resources: Json, **body: Json) -> None:
    await run.update(name, "PUT", template=template(resources), **body)


async def refused(run: Program, method: str, name: str, rest: str, body: Json = None) -> Json:
    stack = await run.stack(name)
    path = f"/stacks/{stack['stack_name']}/{stack['id']}{rest}"
    status, said = await run.call(method, path, body)
    assert status >= 400, said
    return status, said["error"]


async def begun(world: World, operation: str, name: str) -> None:
    async def look() -> bool:
        return operation in world.operations(name)

    await eventually(look)


class TestRollback:
    async def test_a_failed_update_goes_back_to_what_was_reached_last(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1)}, disable_rollback=False)
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        before = await run.resources("s")
        world.will("update", "b", Failed("no"))
        await put(run, "s", {"a": thing(2), "b": thing(2), "c": thing(3)})
        assert await run.until_ended("s") in ("ROLLBACK_COMPLETE", "UPDATE_FAILED")
        await ended_as(run, "s", "ROLLBACK_COMPLETE")
        after = await run.resources("s")
        assert set(after) == {"a", "b"}
        assert after["a"]["physical_resource_id"] == before["a"]["physical_resource_id"]
        assert sorted(world.things.values()) == [1, 1]
        said = await run.at("GET", "s", "/template")
        assert set(said["resources"]) == {"a", "b"}
        events = [one["resource_status"] for one in await run.events("s")
                  if one["resource_name"] == "s"]  # fmt: skip
        assert events[-4:] == [
            "UPDATE_IN_PROGRESS", "UPDATE_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE",
        ]  # fmt: skip

    async def test_two_failures_in_a_row_go_back_to_the_last_that_was_whole(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        world.will("update", "a", Failed("no"))
        await put(run, "s", {"a": thing(2)})
        assert await run.until_ended("s") == "UPDATE_FAILED"
        world.will("create", "a", Failed("no"))
        await put(run, "s", {"a": thing(3)}, disable_rollback=False)
        await ended_as(run, "s", "ROLLBACK_COMPLETE")
        assert list(world.things.values()) == [1]

    async def test_a_failed_create_goes_back_to_nothing(self, run: Program, world: World) -> None:
        world.will("create", "b", Failed("no"))
        await run.create("s", {"a": thing(), "b": thing()}, disable_rollback=False)
        await ended_as(run, "s", "ROLLBACK_COMPLETE")
        assert await run.resources("s") == {} and world.things == {}
        await put(run, "s", {"a": thing(), "b": thing()})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert len(world.things) == 2

    async def test_hooks_hold_a_rollback_too(self, run: Program, world: World) -> None:
        held = {"hooks": [{"at": "b", "on": "pre-update"}]}
        await run.create("s", {"a": thing(1), "b": thing(1)}, environment=held,
                         disable_rollback=False)  # fmt: skip
        await run.until_ended("s")
        world.will("update", "a", Failed("no"))
        await put(run, "s", {"a": thing(2), "b": thing(2)}, environment=held)
        (hook,) = await run.waiting("s")
        await run.signal(hook)

        async def again() -> Any:
            hooks = await run.waiting("s")
            return hooks[0] if hooks[0]["id"] != hook["id"] else None

        second = await eventually(again)
        assert (await run.stack("s"))["stack_status"] == "ROLLBACK_IN_PROGRESS"
        await run.signal(second)
        await ended_as(run, "s", "ROLLBACK_COMPLETE")
        assert sorted(world.things.values()) == [1, 1]


async def ended_as(run: Program, name: str, status: str) -> None:
    async def look() -> bool:
        return bool((await run.stack(name))["stack_status"] == status)

    await eventually(look)


class TestCancel:
    async def test_without_rollback_what_runs_ends_and_nothing_else_begins(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        world.will("update", "a", FAR)
        await put(run, "s", {"a": thing(2), "b": thing(1, depends_on="a")})
        await begun(world, "update", "a")
        await run.act("s", "cancel_without_rollback")
        stack = await run.stack("s")
        assert stack["stack_status"] == "UPDATE_FAILED"
        assert stack["stack_status_reason"] == "Stack UPDATE cancelled"
        assert world.operations("b") == []

    async def test_with_rollback_the_way_back_waits_for_what_runs(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        now = await run.database.pool.fetchval("select now()")
        world.will("update", "a", Wait(now + timedelta(seconds=1), {}))
        await put(run, "s", {"a": thing(2)})
        await begun(world, "update", "a")
        await run.act("s", "cancel_update")
        await ended_as(run, "s", "ROLLBACK_COMPLETE")
        assert list(world.things.values()) == [1]
        assert world.operations("a") == ["create", "update", "update", "update"]

    async def test_what_is_not_in_progress_cannot_be_cancelled(self, run: Program) -> None:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        for action in ("cancel_update", "cancel_without_rollback", "stop"):
            status, error = await refused(run, "POST", "s", "/actions", {action: None})
            assert (status, error["type"]) == (400, "NotSupported")
            assert "when stack is CREATE_COMPLETE is not supported" in error["message"]

    async def test_a_stop_ends_as_stopped_and_an_update_goes_on(
        self, run: Program, world: World
    ) -> None:
        held = {"hooks": [{"at": "b", "on": "pre-create"}]}
        await run.create("s", {"a": thing(), "b": thing(depends_on="a")}, environment=held)
        (hook,) = await run.waiting("s")
        await run.act("s", "stop")
        assert (await run.stack("s"))["stack_status"] == "CREATE_STOPPED"
        status, said = await run.signal(hook)
        assert status == 409, said
        await run.update("s", hooks={"clear": ["*"]})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert world.operations("a") == ["create"]


class TestTimeout:
    async def test_only_time_that_works_counts(self, run: Program, world: World) -> None:
        held = {"hooks": [{"at": "a", "on": "pre-create"}]}
        await run.create("s", {"a": thing()}, environment=held, timeout_mins=1)
        (hook,) = await run.waiting("s")
        pool = run.database.pool
        # An hour in a hook does not count; so the traversal is not due.
        await pool.execute("update traversal set started_at = started_at - interval '1 hour'")
        working = await pool.fetchrow("select working_since, worked, held, active from traversal")
        assert (
            working is not None
            and working["working_since"] is None
            and working["held"] == working["active"] == 1
        )
        world.will("create", "a", FAR)
        await run.signal(hook)
        await begun(world, "create", "a")

        async def worked() -> bool:
            return bool(await pool.fetchval("select working_since is not null from traversal"))

        await eventually(worked)
        await pool.execute(
            "update traversal set working_since = working_since - interval '2 minutes',"
            " wake_at = clock_timestamp()"
        )
        await pool.execute("select pg_notify('headgate_work', '')")
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert (await run.stack("s"))["stack_status_reason"] == "Timed out"


class TestVisits:
    async def test_a_check_finds_what_is_gone_and_an_update_replaces_it(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(), "b": thing()})
        await run.until_ended("s")
        await run.act("s", "check")
        assert await run.until_ended("s") == "CHECK_COMPLETE"
        gone = (await run.resources("s"))["a"]["physical_resource_id"]
        del world.things[gone]
        await run.act("s", "check")
        await ended_as(run, "s", "CHECK_FAILED")
        found = await run.resources("s")
        assert found["a"]["resource_status"] == "CHECK_FAILED"
        assert found["b"]["resource_status"] == "CHECK_COMPLETE"
        await run.update("s")
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert (await run.resources("s"))["a"]["physical_resource_id"] != gone
        assert len(world.things) == 2

    async def test_users_rest_first_and_wake_last(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(), "b": thing(depends_on="a")})
        await run.until_ended("s")
        await run.act("s", "suspend")
        assert await run.until_ended("s") == "SUSPEND_COMPLETE"
        await run.act("s", "suspend")
        await run.act("s", "resume")
        await ended_as(run, "s", "RESUME_COMPLETE")
        assert world.done[2:] == [("suspend", "b"), ("suspend", "a"), ("resume", "a"),
                                  ("resume", "b")]  # fmt: skip

    async def test_an_update_resumes_what_is_suspended_first(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1, depends_on="a")})
        await run.until_ended("s")
        await run.act("s", "suspend")
        await run.until_ended("s")
        await put(run, "s", {"a": thing(2), "b": thing(1, depends_on="a")})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert world.done[4:] == [("resume", "a"), ("update", "a"), ("resume", "b")]

    async def test_a_visit_waits_for_nobody_and_refuses_a_busy_stack(
        self, run: Program, world: World
    ) -> None:
        world.will("create", "a", FAR)
        await run.create("s", {"a": thing()})
        await begun(world, "create", "a")
        for action in ("check", "suspend", "resume"):
            status, error = await refused(run, "POST", "s", "/actions", {action: None})
            assert (status, error["type"]) == (409, "ActionInProgress")

    async def test_hooks_before_a_check(self, run: Program, world: World) -> None:
        held = {"hooks": [{"at": "a", "on": "pre-check"}]}
        await run.create("s", {"a": thing()}, environment=held)
        await run.until_ended("s")
        await run.act("s", "check")
        (hook,) = await run.waiting("s")
        assert hook["point"] == "pre-check" and world.operations("a") == ["create"]
        await run.signal(hook)
        await ended_as(run, "s", "CHECK_COMPLETE")


class TestPolicies:
    async def test_what_is_retained_stays(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(deletion_policy="Retain"), "b": thing()})
        await run.until_ended("s")
        kept = (await run.resources("s"))["a"]["physical_resource_id"]
        await run.at("DELETE", "s")
        await gone(run, "s")
        assert set(world.things) == {kept} and "delete" not in world.operations("a")

    async def test_it_is_retained_when_it_leaves_the_template_or_is_replaced(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(deletion_policy="Retain"), "b": thing()})
        await run.until_ended("s")
        await put(run, "s", {"a": thing(deletion_policy="Retain", place="there"), "b": thing()})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert len(world.things) == 3
        await put(run, "s", {"b": thing()})
        await ended_again(run, "s")
        assert len(world.things) == 3 and world.operations("a") == ["create", "create"]

    async def test_a_snapshot_is_kept_before_it_goes(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(7, deletion_policy="Snapshot")})
        await run.until_ended("s")
        stack = (await run.stack("s"))["id"]
        await run.at("DELETE", "s")
        await gone(run, "s")
        assert world.operations("a") == ["create", "snapshot", "delete"]
        _, said = await run.call("GET", f"/stacks/s/{stack}/resource_snapshots")
        assert [one["resource_name"] for one in said["resource_snapshots"]] == ["a"]

    async def test_without_its_snapshot_nothing_is_deleted(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(7, deletion_policy="Snapshot")})
        await run.until_ended("s")
        world.will("snapshot", "a", Failed("no room"))
        await run.at("DELETE", "s")
        await ended_as(run, "s", "DELETE_FAILED")
        assert len(world.things) == 1 and "delete" not in world.operations("a")

    async def test_an_external_thing_is_neither_made_nor_changed_nor_deleted(
        self, run: Program, world: World
    ) -> None:
        world.things["theirs"] = 5
        await run.create("s", {"a": thing(1, external_id="theirs")})
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        found = (await run.resources("s"))["a"]
        assert found["physical_resource_id"] == "theirs"
        assert found["resource_status"] == "ADOPT_COMPLETE"
        await put(run, "s", {"a": thing(2, external_id="theirs")})
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        await put(run, "s", {"a": thing(2, external_id="others")})
        await ended_as(run, "s", "UPDATE_FAILED")
        assert "external_id" in (await run.stack("s"))["stack_status_reason"]
        await run.at("DELETE", "s")
        await gone(run, "s")
        assert world.things == {"theirs": 5} and world.operations("a") == ["check"]

    @pytest.mark.parametrize(
        ("what", "change"), [("update", {"size": 2}), ("replace", {"place": "x"})]
    )
    async def test_restricted_actions_fail_and_leave_the_state(
        self, run: Program, world: World, what: str, change: Json
    ) -> None:
        said = {"resource_registry": {"resources": {"a*": {"restricted_actions": what}}}}
        await run.create("s", {"a": thing()}, environment=said)
        await run.until_ended("s")
        properties = {"type": "Test::Thing", "properties": change}
        await put(run, "s", {"a": properties}, environment=said)
        assert await run.until_ended("s") == "UPDATE_FAILED"
        reason = (await run.stack("s"))["stack_status_reason"]
        assert f"{what} is restricted for resource." in reason
        assert (await run.resources("s"))["a"]["resource_status"] == "CREATE_COMPLETE"
        assert world.operations("a") == ["create"]
        await put(run, "s", {"a": properties})
        await ended_as(run, "s", "UPDATE_COMPLETE")

    async def test_what_is_protected_is_neither_deleted_nor_replaced(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(), "b": thing()})
        await run.until_ended("s")
        await run.at("PATCH", "s", "/resources/a", {"protect": True})
        assert (await run.at("GET", "s", "/resources/a"))["resource"]["protected"] is True
        status, error = await refused(run, "DELETE", "s", "")
        assert status == 400 and '"a" is protected' in error["message"]
        body = {"template": template({"b": thing()})}
        status, error = await refused(run, "PUT", "s", "", body)
        assert status == 400 and "unprotect" in error["message"]
        await put(run, "s", {"a": thing(place="there"), "b": thing()})
        assert await run.until_ended("s") == "UPDATE_FAILED"
        assert "is protected" in (await run.stack("s"))["stack_status_reason"]
        await put(run, "s", {"a": thing(2), "b": thing()})
        await ended_as(run, "s", "UPDATE_COMPLETE")
        await run.at("PATCH", "s", "/resources/a", {"protect": False})
        await run.at("DELETE", "s")
        await gone(run, "s")
        assert world.things == {}

    async def test_what_is_marked_unhealthy_is_replaced(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        old = (await run.resources("s"))["a"]["physical_resource_id"]
        said = {"mark_unhealthy": True, "resource_status_reason": "it smells"}
        await run.at("PATCH", "s", f"/resources/{old}", said)
        found = (await run.resources("s"))["a"]
        assert (found["resource_status"], found["resource_status_reason"]) == (
            "CHECK_FAILED", "it smells",
        )  # fmt: skip
        await run.at("PATCH", "s", "/resources/a", {"mark_unhealthy": False})
        await run.update("s")
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert world.operations("a") == ["create"]
        await run.at("PATCH", "s", "/resources/a", said)
        await run.update("s")
        await ended_again(run, "s")
        assert (await run.resources("s"))["a"]["physical_resource_id"] != old


async def gone(run: Program, name: str) -> None:
    async def look() -> bool:
        return (await run.call("GET", f"/stacks/{name}"))[0] == 404

    await eventually(look)


async def ended_again(run: Program, name: str) -> None:
    """The newest traversal has ended well."""

    async def look() -> bool:
        said = await run.at("GET", name, "/graph")
        assert said["traversal"]["state"] in ("running", "ending", "complete"), said["traversal"]
        return bool(said["traversal"]["state"] == "complete")

    await eventually(look)


class TestRetries:
    async def test_what_helps_is_tried_again_with_the_same_key(
        self, run: Program, world: World
    ) -> None:
        world.will("create", "a", Failed("busy", retry=True))
        await run.create("s", {"a": thing()})
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        assert world.operations("a") == ["create", "create"]
        said = [one["resource_status_reason"] for one in await run.events("s")]
        assert "busy" in said

    async def test_the_limit_ends_it(self, database_url: str, world: World) -> None:
        world.will("create", "a", *[Failed("busy", retry=True)] * 3)
        few = {"engine.action_retry_limit": 1, "engine.first_retry": "1s"}
        async with program(database_url, few, types=[Thing(world)]) as run:
            await run.create("s", {"a": thing()})
            assert await run.until_ended("s") == "CREATE_FAILED"
            assert world.operations("a") == ["create", "create"]

    async def test_what_does_not_help_is_not(self, run: Program, world: World) -> None:
        world.will("create", "a", Failed("never"))
        await run.create("s", {"a": thing()})
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert world.operations("a") == ["create"]


class TestPartial:
    async def test_what_is_not_chosen_stays_stale_until_it_is(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1), "old": thing(1)})
        await run.until_ended("s")
        wanted = {"a": thing(2), "b": thing(2), "c": thing(2)}
        await put(run, "s", wanted, only=["a"])
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        graph = await run.at("GET", "s", "/graph")
        assert graph["traversal"]["stale"] == ["b", "c", "old"]
        assert world.operations("b") == ["create"] and world.operations("c") == []
        body = {"except": ["c"]}
        await run.at("PATCH", "s", "", body)
        await ended_again(run, "s")
        assert world.operations("b") == ["create", "update"]
        assert world.operations("old") == ["create", "delete"]
        await run.update("s")
        await ended_again(run, "s")
        assert sorted(world.things.values()) == [2, 2, 2]

    async def test_what_a_stale_user_uses_is_kept(self, run: Program, world: World) -> None:
        def resources(place: str) -> Json:
            user = {"type": "Test::Thing", "properties": {"size": {"get_resource": "a"}}}
            return {"a": thing(place=place), "user": user}

        await run.create("s", resources("here"))
        await run.until_ended("s")
        await put(run, "s", resources("there"), only=["a"])
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        assert len(world.things) == 3 and world.operations("a") == ["create", "create"]
        await run.update("s")
        await ended_again(run, "s")
        assert len(world.things) == 2
        new = (await run.resources("s"))["a"]["physical_resource_id"]
        assert new in world.things and new in world.things.values()

    async def test_a_pattern_that_matches_nothing_is_refused(self, run: Program) -> None:
        await run.create("s", {"alpha": thing()})
        await run.until_ended("s")
        status, error = await refused(run, "PATCH", "s", "", {"only": ["alpa"]})
        assert status == 400 and 'Did you mean "alpha"?' in error["message"]

    async def test_what_is_needed_must_be_chosen_too(self, run: Program) -> None:
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        body = {"template": template({"a": thing(), "b": thing(), "c": thing(depends_on="b")}),
                "only": ["c"]}  # fmt: skip
        status, error = await refused(run, "PUT", "s", "", body)
        assert status == 400 and '"c" requires "b", which is not there' in error["message"]


class TestMoves:
    async def test_a_resource_takes_another_name_untouched(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1), "user": thing(1, depends_on="a")})
        await run.until_ended("s")
        old = (await run.resources("s"))["a"]["physical_resource_id"]
        await put(run, "s", {"b": thing(1), "user": thing(1, depends_on="b")},
                  moved=[{"from": "a", "to": "b"}])  # fmt: skip
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        found = await run.resources("s")
        assert found["b"]["physical_resource_id"] == old and set(found) == {"b", "user"}
        assert world.done == [("create", "a"), ("create", "user")]

    async def test_a_resource_goes_to_another_stack_untouched(
        self, run: Program, world: World
    ) -> None:
        await run.create("one", {"a": thing(1), "rest": thing(1)})
        await run.create("two", {"x": thing(1)})
        await run.until_ended("one")
        await run.until_ended("two")
        old = (await run.resources("one"))["a"]["physical_resource_id"]
        await put(run, "two", {"x": thing(1), "b": thing(1)},
                  moved=[{"from": {"stack": "one", "resource": "a"}, "to": "b"}])  # fmt: skip
        await ended_again(run, "two")
        await ended_again(run, "one")
        assert (await run.resources("two"))["b"]["physical_resource_id"] == old
        assert set(await run.resources("one")) == {"rest"}
        assert set((await run.at("GET", "one", "/template"))["resources"]) == {"rest"}
        await run.update("one")
        await ended_again(run, "one")
        assert len(world.done) == 3 and len(world.things) == 3

    async def test_moves_that_cannot_be_are_told_and_nothing_happens(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(), "user": thing(depends_on="a")})
        await run.create("other", {"x": {"type": "OS::Heat::None"}})
        await run.until_ended("s")
        await run.until_ended("other")
        cases = [
            ({"from": "nope", "to": "b"}, 'there is no resource "nope"'),
            ({"from": "a", "to": "nope"}, '"nope" is not in the template'),
            ({"from": "user", "to": "b"}, '"user" is still in the template'),
            ({"from": {"stack": "none", "resource": "x"}, "to": "b"}, 'no stack "none"'),
            ({"from": {"stack": "other", "resource": "x"}, "to": "b"}, "is to be a Test::Thing"),
        ]
        wanted = template({"b": thing(), "user": thing()})
        for move, said in cases:
            status, error = await refused(
                run, "PUT", "s", "", {"template": wanted, "moved": [move]}
            )
            assert status == 400 and said in error["message"], error
        body = {"template": template({"x": {"type": "OS::Heat::None"}, "b": thing()}),
                "moved": [{"from": {"stack": "s", "resource": "a"}, "to": "b"}]}  # fmt: skip
        status, error = await refused(run, "PUT", "other", "", body)
        assert status == 400 and "Update that stack first" in error["message"]
        assert set(await run.resources("s")) == {"a", "user"} and len(world.done) == 2


class TestSnapshots:
    async def test_a_snapshot_is_restored(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1)})
        await run.until_ended("s")
        made = await run.at("POST", "s", "/snapshots", {"name": "before"})
        assert (made["name"], made["status"]) == ("before", "IN_PROGRESS")
        await ended_as(run, "s", "SNAPSHOT_COMPLETE")
        await put(run, "s", {"a": thing(9), "c": thing(9)})
        await ended_as(run, "s", "UPDATE_COMPLETE")
        (only,) = (await run.at("GET", "s", "/snapshots"))["snapshots"]
        assert only["status"] == "COMPLETE" and set(only["data"]["resources"]) == {"a", "b"}
        await run.at("POST", "s", f"/snapshots/{made['id']}/restore")
        await ended_as(run, "s", "RESTORE_COMPLETE")
        assert sorted(world.things.values()) == [1, 1]
        assert set(await run.resources("s")) == {"a", "b"}
        await run.at("DELETE", "s", f"/snapshots/{made['id']}")
        assert (await run.at("GET", "s", "/snapshots"))["snapshots"] == []
        rest = f"/snapshots/{made['id']}/restore"
        status, error = await refused(run, "POST", "s", rest)
        assert (status, error["type"]) == (404, "SnapshotNotFound")

    async def test_a_thing_goes_back_even_if_no_property_differs(
        self, run: Program, world: World
    ) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        made = await run.at("POST", "s", "/snapshots")
        await ended_as(run, "s", "SNAPSHOT_COMPLETE")
        (physical,) = world.things
        world.things[physical] = "spoilt"
        await run.at("POST", "s", f"/snapshots/{made['id']}/restore")
        await ended_as(run, "s", "RESTORE_COMPLETE")
        assert world.things == {physical: 1}

    async def test_a_busy_stack_and_a_failed_snapshot(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        world.will("snapshot", "a", Failed("no room"))
        made = await run.at("POST", "s", "/snapshots")
        await ended_as(run, "s", "SNAPSHOT_FAILED")
        status, error = await refused(run, "POST", "s", f"/snapshots/{made['id']}/restore")
        assert status == 400 and "cannot be restored" in error["message"]
        world.will("update", "a", FAR)
        await put(run, "s", {"a": thing(2)})
        await begun(world, "update", "a")
        status, error = await refused(run, "POST", "s", "/snapshots")
        assert (status, error["type"]) == (409, "ActionInProgress")


class TestExports:
    async def test_abandon_and_adopt_touch_nothing(self, run: Program, world: World) -> None:
        await run.create("s", {"a": thing(1), "b": thing(1, depends_on="a")})
        await run.until_ended("s")
        things = dict(world.things)
        assert (await run.at("GET", "s", "/export"))["resources"].keys() == {"a", "b"}
        exported = await run.at("DELETE", "s", "/abandon")
        assert (await run.call("GET", "/stacks/s"))[0] == 404 and world.things == things
        body = {"stack_name": "again", "adopt_stack_data": json.dumps(exported)}
        status, said = await run.call("POST", "/stacks", body)
        assert status == 201, said
        assert await run.until_ended("again") == "ADOPT_COMPLETE"
        found = await run.resources("again")
        assert {one["physical_resource_id"] for one in found.values()} == set(things)
        assert {one["resource_status"] for one in found.values()} == {"ADOPT_COMPLETE"}
        await put(run, "again", {"a": thing(2), "b": thing(1, depends_on="a")})
        await ended_as(run, "again", "UPDATE_COMPLETE")
        assert world.operations("a") == ["create", "check", "update"]
        await run.at("DELETE", "again")
        await gone(run, "again")
        assert world.things == {}

    async def test_a_failed_adoption_is_rolled_back_without_deleting(
        self, run: Program, world: World
    ) -> None:
        world.things["real"] = 1
        data = {
            "template": template({"a": thing(), "b": thing()}),
            "resources": {"a": {"resource_id": "real"}, "b": {"resource_id": "not there"}},
        }
        body = {"stack_name": "s", "adopt_stack_data": data, "disable_rollback": False}
        assert (await run.call("POST", "/stacks", body))[0] == 201
        await ended_as(run, "s", "ROLLBACK_COMPLETE")
        assert world.things == {"real": 1} and await run.resources("s") == {}

    async def test_what_has_no_id_cannot_be_adopted(self, run: Program) -> None:
        data = {"template": template({"a": thing()}), "resources": {}}
        status, said = await run.call(
            "POST", "/stacks", {"stack_name": "s", "adopt_stack_data": data}
        )
        assert status == 400 and "Resource ID was not provided." in said["error"]["message"]
        status, said = await run.call(
            "POST", "/stacks", {"stack_name": "s", "adopt_stack_data": "5"}
        )
        assert status == 400


class TestVersions:
    async def test_versions_are_listed_and_old_ones_forgotten(
        self, database_url: str, world: World
    ) -> None:
        few = {"retention.versions": 2}
        async with program(database_url, few, types=[Thing(world)]) as run:
            await run.create("s", {"a": thing(1)})
            await run.until_ended("s")
            for size in (2, 3, 4):
                await put(run, "s", {"a": thing(size)})
                await ended_again(run, "s")
            said = await run.at("GET", "s", "/versions")
            assert [one["version"] for one in said["versions"]] == [4, 3]
            assert said["versions"][0]["current"] and said["versions"][1]["reached"]
            assert [one["number"] for one in said["traversals"]] == [4, 3, 2, 1]
            one = await run.at("GET", "s", "/versions/3")
            assert one["template"]["resources"]["a"]["properties"]["size"] == 3
            assert (await refused(run, "GET", "s", "/versions/1"))[0] == 404


class TestPreviews:
    async def test_what_would_happen_and_where_it_would_stop(self, run: Program) -> None:
        resources = {
            "a": thing(1), "b": thing(1), "same": thing(1), "old": thing(1),
            "user": {"type": "Test::Thing", "properties": {"size": {"get_resource": "b"}}},
        }  # fmt: skip
        await run.create("s", resources)
        await run.until_ended("s")
        wanted = resources | {"a": thing(2), "b": thing(1, place="there"), "new": thing(1)}
        del wanted["old"]
        rules = {"hooks": [{"at": "*", "on": ["pre-update", "post-create", "pre-delete"]}]}
        said = await run.at(
            "PUT", "s", "/preview", {"template": template(wanted), "environment": rules}
        )
        changes = {kind: [one["resource_name"] for one in found]
                   for kind, found in said["resource_changes"].items()}  # fmt: skip
        assert changes == {
            "updated": ["a", "user"], "replaced": ["b"], "added": ["new"], "deleted": ["old"],
            "unchanged": ["same"],
        }  # fmt: skip
        (user,) = [one for one in said["resource_changes"]["updated"]
                   if one["resource_name"] == "user"]  # fmt: skip
        assert user["unknown"] == ["size"] and "to" not in user["changes"]["size"]
        (a,) = [one for one in said["resource_changes"]["updated"] if one["resource_name"] == "a"]
        assert a["changes"] == {"size": {"from": 1, "to": 2}} and a["certain"]
        stops = [(one["resource_name"], one["point"]) for one in said["stops"]]
        assert ("b", "pre-update") in stops and ("old", "pre-delete") in stops
        assert stops.index(("b", "post-create")) < stops.index(("user", "pre-update"))
        assert stops.index(("user", "pre-update")) < stops.index(("b", "pre-delete"))
        assert said["stops"][0]["answer_by"] == ["anyone in the project"]
        assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"

    async def test_a_plan_that_is_not_the_one_looked_at_is_refused(self, run: Program) -> None:
        await run.create("s", {"a": thing(1)})
        await run.until_ended("s")
        body = {"template": template({"a": thing(2)})}
        looked = (await run.at("PUT", "s", "/preview", body))["plan_digest"]
        await put(run, "s", {"a": thing(3)})
        await ended_again(run, "s")
        status, error = await refused(run, "PUT", "s", "", body | {"plan_digest": looked})
        assert (status, error["type"]) == (409, "PlanChanged")
        fresh = (await run.at("PUT", "s", "/preview", body))["plan_digest"]
        await run.at("PUT", "s", "", body | {"plan_digest": fresh})
        await ended_again(run, "s")

    async def test_a_stack_that_is_not_there_is_previewed(self, run: Program) -> None:
        body = {"stack_name": "new", "template": template({"a": thing(1)})}
        status, said = await run.call("POST", "/stacks/preview", body)
        assert status == 200, said
        assert [one["resource_name"] for one in said["stack"]["resources"]] == ["a"]
        assert "stack_status" not in said["stack"]
        assert (await run.call("GET", "/stacks/new"))[0] == 404

    async def test_a_preview_refuses_what_the_create_would(self, run: Program) -> None:
        body = {"stack_name": "s", "template": template({"a": thing(1)})}
        await run.create("s", {"a": thing(1)})
        status, said = await run.call("POST", "/stacks/preview", body)
        assert (status, said["error"]["type"]) == (409, "StackExists")
        status, said = await run.call("POST", "/stacks/preview", body | {"stack_name": "1"})
        assert status == 400 and "Invalid stack name 1" in said["error"]["message"]
        body = body | {"stack_name": "new", "plan_digest": "f" * 64}
        status, said = await run.call("POST", "/stacks/preview", body)
        assert (status, said["error"]["type"]) == (409, "PlanChanged")
