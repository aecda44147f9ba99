"""Convergence policies: what is observed without a request, when, and by how many requests."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from engine.errors import Findings
from engine.plan.convergence import OperatorPolicy, PolicyRules, ignores, read_section
from engine.store.observer import observation_schedule
from engine.types.registry import TypeRegistry
from engine.work.observer.observer import BATCH, Observer
from tests.support.changes import observed
from tests.support.changes import thing as simple
from tests.support.http_things import HTTP_SETTINGS, PAGE, Things, serve_things, thing
from tests.support.paused_observers import paused_observer, run_observers
from tests.support.program import Json, Program, program
from tests.support.scripted_type import Thing, World

EVERY_10M: Json = {"observe": {"every": "10m"}}
LEASE = timedelta(minutes=1)
#: Rows that an observation must not write if nothing has changed.
UNCHANGED = ("stack", "resource", "event", "outbox", "observation", "traversal", "template", "node")


@pytest_asyncio.fixture(loop_scope="session")
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@pytest.fixture(scope="module")
def things_settings(paused_observers: None) -> Mapping[str, Any]:
    return HTTP_SETTINGS


@pytest.fixture
def unobserved(things_in_own_project: Program) -> Program:
    """A program whose observer does not run, so that tests run their own."""
    return things_in_own_project


def observer_of(run: Program, rules: PolicyRules = PolicyRules()) -> Observer:  # noqa: B008
    return Observer(run.database, paused_observer(run)[0], rules)


async def created(
    run: Program, resources: Json, convergence: Json = None, name: str = "s"
) -> dict[str, str]:
    """Create a stack with a policy; return the physical ID of each resource."""
    environment = {"convergence": EVERY_10M if convergence is None else convergence}
    await run.create(name, resources, environment=environment)
    assert await run.until_ended(name) == "CREATE_COMPLETE", await run.events(name)
    found = await run.resources(name)
    return {key: one["physical_resource_id"] for key, one in found.items()}


async def make_due(run: Program) -> None:
    """All scheduled observations are due."""
    await run.database.pool.execute(
        "update observation_schedule set next_at = now() - interval '1s' where next_at is not null"
    )


async def drift_of(run: Program, name: str = "s") -> Any:
    return await run.stack_request("GET", name, "/drift")


def states(drift: Json) -> dict[str, str]:
    return {one["resource_name"]: one["state"] for one in drift["resources"]}


async def intervals(run: Program) -> list[float]:
    """Minutes until the next observation of each scheduled stack, rounded to whole intervals."""
    statement = "select extract(epoch from next_at - now()) / 60 as m from observation_schedule"
    rows = await run.database.pool.fetch(statement + " where next_at is not null")
    return [float(row["m"]) for row in rows]


async def test_a_policy_observes_without_a_request(unobserved: Program, things: Things) -> None:
    physical = await created(unobserved, {"a": thing(things)})
    (minutes,) = await intervals(unobserved)
    assert 8 < minutes < 11
    observer = observer_of(unobserved)
    assert await observer.observe_due() == 0  # not yet
    before = await drift_of(unobserved)
    assert before["policy"] == {
        "observe": {"every": "10m"}, "on_drift": "ignore", "tolerate": "0s", "repairs_per_day": 5,
        "window": None, "ignore": {}, "hold": {}, "by_operator": [],
    }  # fmt: skip
    assert before["observing"] is False and before["observed_at"] is None
    assert before["next_observation_at"] is not None
    del things.objects[physical["a"]]
    await make_due(unobserved)
    assert await observer.observe_due() == 1
    drift = await drift_of(unobserved)
    assert states(drift) == {"a": "missing"}
    assert drift["resources"][0]["found_by"] == "policy"
    assert drift["observed_at"] is not None and drift["observing"] is False
    (minutes,) = await intervals(unobserved)
    assert 8 < minutes < 11


async def test_stacks_of_a_project_share_the_requests_for_a_list(
    unobserved: Program, things: Things
) -> None:
    for name in ("s", "t", "u"):
        await created(unobserved, {key: thing(things) for key in ("a", "b")}, name=name)
    await make_due(unobserved)
    things.requests.clear()
    assert await observer_of(unobserved).observe_due() == 3
    assert things.requests == {"list": 6 / PAGE}
    for name in ("s", "t", "u"):
        assert (await drift_of(unobserved, name))["observable_resources"] == 2


async def test_stacks_that_are_due_soon_are_observed_with_others(
    unobserved: Program, things: Things
) -> None:
    pool = unobserved.database.pool
    for name in ("s", "t", "u"):
        await created(unobserved, {"a": thing(things)}, name=name)
    due = """
    update observation_schedule q set next_at = now() + $2::interval, early_at = now() + $3::interval
      from stack s where s.id = q.stack_id and s.name = $1
    """
    await pool.execute(due, "s", timedelta(0), timedelta(minutes=-2))
    await pool.execute(due, "t", timedelta(minutes=1), timedelta(seconds=-1))
    await pool.execute(due, "u", timedelta(minutes=5), timedelta(minutes=3))
    things.requests.clear()
    assert await observer_of(unobserved).observe_due() == 2
    assert things.requests == {"list": 1}
    assert (await drift_of(unobserved, "u"))["observed_at"] is None
    # From now on, both are due at the same time.
    apart = "select extract(epoch from max(next_at) - min(next_at)) from observation_schedule q"
    observed_ones = apart + " where observed_at is not null"
    assert await pool.fetchval(observed_ones) < 30  # not a minute


async def test_intervals_vary(unobserved: Program) -> None:
    await created(unobserved, {"a": simple()})
    found: list[float] = []
    for number in (0.0, 0.999):
        chance = iter([number]).__next__
        await make_due(unobserved)
        observer = Observer(unobserved.database, paused_observer(unobserved)[0], chance=chance)
        assert await observer.observe_due() == 1
        found += await intervals(unobserved)
    shorter, longer = found
    assert longer - shorter > 1


async def test_a_stack_that_drifted_before_is_observed_sooner(
    unobserved: Program, things: Things
) -> None:
    for name in ("before", "other"):
        await created(unobserved, {"a": thing(things)}, name=name)
    (first, _) = sorted(things.objects)
    for size in (9, 1):
        things.objects[first]["size"] = size
        await make_due(unobserved)
        await observer_of(unobserved).observe_due()
    await make_due(unobserved)
    await observer_of(unobserved).observe_due()
    found = {
        row["name"]: row["next_at"]
        for row in await unobserved.database.pool.fetch(
            "select name, next_at from observation_schedule join stack on id = stack_id"
        )
    }
    # By a fiftieth of the interval: what was changed before its drift counts for both.
    assert found["other"] - found["before"] > timedelta(seconds=10)


async def test_drift_that_a_replacement_ends_counts_from_its_end(
    unobserved: Program, things: Things
) -> None:
    """The drift of a resource that is gone was found eight days before."""
    physical = await created(unobserved, {"a": thing(things)})
    del things.objects[physical["a"]]
    await make_due(unobserved)
    await observer_of(unobserved).observe_due()
    pool = unobserved.database.pool
    await pool.execute("update observation_schedule set drifted_at = now() - interval '8d'")
    await unobserved.stack_request("PATCH", "s", "/resources/a", {"mark_unhealthy": True})
    await unobserved.update("s")
    assert await unobserved.until_ended("s") == "UPDATE_COMPLETE"
    await make_due(unobserved)
    await observer_of(unobserved).observe_due()
    assert states(await drift_of(unobserved)) == {}
    is_recent = "select drifted_at > now() - interval '1d' from observation_schedule"
    assert await pool.fetchval(is_recent)


async def test_an_observation_without_changes_writes_only_the_schedule(
    unobserved: Program, things: Things
) -> None:
    physical = await created(unobserved, {key: thing(things) for key in ("a", "b", "c")})
    del things.objects[physical["a"]]

    async def rows() -> Mapping[str, Any]:
        pool = unobserved.database.pool
        return {
            table: await pool.fetch(f"select xmin, ctid from {table} order by ctid")
            for table in UNCHANGED
        }

    observer, seen = observer_of(unobserved), []
    for _ in range(2):
        await make_due(unobserved)
        assert await observer.observe_due() == 1
        seen.append(await rows())
    assert len(seen[0]["observation"]) == 1
    assert seen[0] == seen[1]


async def test_two_observers_observe_each_resource_once(
    unobserved: Program,
    world: World,
    worlds: dict[str, World],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = Program(unobserved.session, unobserved.url, f"{unobserved.project}-other")
    worlds[other.project] = world
    other.database = unobserved.database
    for run in (unobserved, other):
        for number in range(4):
            await created(run, {"a": simple(), "b": simple()}, name=f"s{number}")
    looked: list[Any] = []
    observe = Thing.observe

    def counting(self: Thing, calls: Any) -> Any:
        looked.extend(call.resource_id for call in calls)
        return observe(self, calls)

    monkeypatch.setattr(Thing, "observe", counting)
    await make_due(unobserved)
    registry = TypeRegistry([Thing(world)])
    observers = [Observer(unobserved.database, registry) for _ in range(2)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one.observe_due()) for one in observers]
    assert sum(task.result() for task in tasks) == 8
    assert len(looked) == len(set(looked)) == 16


async def test_a_project_with_many_due_stacks_does_not_delay_others(unobserved: Program) -> None:
    pool = unobserved.database.pool
    insert = """
    insert into observation_schedule (stack_id, project, next_at)
    select gen_random_uuid(), $1, now() - interval '1 hour' from generate_series(1, $2)
    """
    await pool.execute(insert, "busy", 3 * BATCH)
    await pool.execute(insert, "other", 1)
    async with unobserved.database.connection() as conn:
        first = await observation_schedule.claim(conn, BATCH, LEASE)
        assert len(first) == BATCH and len({one.project for one in first}) == 1
        (second,) = await observation_schedule.claim(conn, BATCH, LEASE, ["busy"])
        assert second.project == "other"
        # A request precedes what policies have scheduled, and is a batch of its own.
        asked = "update observation_schedule set next_at = 'epoch', requested_at = now()"
        await pool.execute(
            asked + " where stack_id = (select stack_id from observation_schedule"
            " where project = 'busy' and claimed_at is null limit 1)"
        )
        (third,) = await observation_schedule.claim(conn, BATCH, LEASE)
        assert (third.project, third.requested) == ("busy", True)


async def test_a_failing_endpoint_is_left_alone_until_its_pause_ends(
    unobserved: Program, things: Things
) -> None:
    await created(unobserved, {"a": thing(things), "v": simple()}, {"observe": {"every": "1d"}})
    things.faults = [503]
    things.requests.clear()
    observer = observer_of(unobserved)
    await make_due(unobserved)
    await observer.observe_due()
    assert states(await drift_of(unobserved)) == {"a": "unknown"}
    assert things.requests == {"list": 1}
    # The next attempt is made when the pause ends, not a day later.
    (minutes,) = await intervals(unobserved)
    assert minutes < 2
    drift = await drift_of(unobserved)
    (unknown,) = (await unobserved.stack_request("GET", "s", "/why"))["unknown"]
    (one,) = drift["resources"]
    at = drift["next_observation_at"]
    sentence = f"The state of a could not be observed since {one['since']}: {one['reason']}."
    assert unknown == {
        "resources": ["a"], "reason": one["reason"], "since": one["since"],
        "next_observation_at": at, "sentence": f"{sentence} The next observation is at {at}.",
    }  # fmt: skip
    await make_due(unobserved)
    await observer.observe_due()
    assert things.requests == {"list": 1}
    assert states(await drift_of(unobserved)) == {"a": "unknown"}
    # A request of a user is made at once; when the service answers, the pause ends.
    things.faults = []
    await unobserved.act("s", "observe")
    await observer.observe_due()
    assert things.requests == {"list": 2}
    assert await unobserved.database.pool.fetch("select from provider_failure") == []
    assert states(await drift_of(unobserved)) == {}
    assert (await unobserved.stack_request("GET", "s", "/why"))["unknown"] == []
    (minutes,) = await intervals(unobserved)
    assert minutes > 60


async def test_ignored_paths_are_no_drift(unobserved: Program, things: Things) -> None:
    compare = {"$.size": 1, "$.tags.owner": "ada"}
    one = thing(things, compare=compare)
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": one}}
    policy = EVERY_10M | {"ignore": {"a*": ["$.tags.*"], "group/*": ["$.size"]}}
    physical = await created(unobserved, {"a": one, "b": one, "group": group}, policy)
    for found in things.objects.values():
        found["tags"] = {"owner": "bob"}
    things.objects[physical["b"]]["tags"] = {"owner": "ada"}
    member = next(key for key in things.objects if key not in physical.values())
    things.objects[member] |= {"size": 9, "tags": {"owner": "ada"}}
    observer = observer_of(unobserved)
    await make_due(unobserved)
    assert await observer.observe_due() == 2
    assert states(await drift_of(unobserved)) == {}
    things.objects[physical["a"]]["size"] = 7
    await make_due(unobserved)
    await observer.observe_due()
    (found,) = (await drift_of(unobserved))["resources"]
    assert [one["path"] for one in found["differences"]] == ["$.size"]


async def test_ignored_paths_may_be_absent(unobserved: Program, things: Things) -> None:
    compare = {"$.size": 1, "$.color": "red"}
    body = {"size": 1, "color": "red"}
    one = thing(things, compare=compare, create={"url": "/things", "body": body})
    policy = EVERY_10M | {"ignore": {"removed": ["$.size"], "hidden": ["$.size"]}}
    # Of `hidden`, only a list shows values, of which it leaves one out.
    alone = one | {"properties": {**one["properties"], "read": None, "ready": None}}
    resources = {"removed": one, "hidden": alone, "other": one}
    physical = await created(unobserved, resources, policy)
    things.listed_fields = ["id", "color", "state"]
    for name in ("removed", "other"):
        del things.objects[physical[name]]["size"]
    await make_due(unobserved)
    await observer_of(unobserved).observe_due()
    assert states(await drift_of(unobserved)) == {"other": "changed"}
    things.listed_fields = ["id", "state"]
    del things.objects[physical["removed"]]["color"]
    await make_due(unobserved)
    await observer_of(unobserved).observe_due()
    found = {one["path"]: one for one in (await drift_of(unobserved))["resources"]}
    lacks = "the response has no value at $.color"
    assert [one["path"] for one in found["removed"]["differences"]] == ["$.color"]
    assert found["removed"]["reason"] == lacks
    assert (found["hidden"]["state"], found["hidden"]["reason"]) == (
        "unknown", f"{lacks}, which `compare` names",
    )  # fmt: skip


async def test_nested_stacks_are_observed_by_the_policy_of_their_root_stack(
    unobserved: Program, world: World
) -> None:
    group = {
        "type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": simple()},
    }  # fmt: skip
    await created(unobserved, {"group": group, "a": simple()})
    world.things.clear()
    await make_due(unobserved)
    assert await observer_of(unobserved).observe_due() == 2
    drift = await drift_of(unobserved)
    assert sorted(one["path"] for one in drift["resources"]) == ["a", "group/0", "group/1"]
    assert len(await intervals(unobserved)) == 2


async def test_a_policy_ends_when_an_update_removes_it(unobserved: Program, things: Things) -> None:
    await created(unobserved, {"a": thing(things)})
    await unobserved.update("s", environment={"convergence": {"observe": "never"}})
    assert await unobserved.until_ended("s") == "UPDATE_COMPLETE"
    things.requests.clear()
    await make_due(unobserved)
    await observer_of(unobserved).observe_due()
    assert not things.requests and await intervals(unobserved) == []
    assert (await drift_of(unobserved))["policy"]["observe"] == "never"
    # A shorter interval applies at once.
    for every, limit in (("1d", 2000), ("5m", 6)):
        await unobserved.update("s", environment={"convergence": {"observe": {"every": every}}})
        assert await unobserved.until_ended("s") == "UPDATE_COMPLETE"
        (minutes,) = await intervals(unobserved)
        assert minutes < limit
    environment = await unobserved.stack_request("GET", "s", "/environment")
    assert environment["convergence"] == {"observe": {"every": "5m"}}


def with_policy(convergence: Json, version: str = "2026-12-01") -> Json:
    return {
        "heat_template_version": version,
        "convergence": convergence,
        "resources": {"a": simple()},
    }


async def test_a_template_has_a_policy_and_the_environment_wins_by_key(
    unobserved: Program, world: World
) -> None:
    policy = {"observe": {"every": "10m"}, "on_drift": "notify", "tolerate": "15m"}
    body = {"stack_name": "s", "template": with_policy(policy)}
    status, response = await unobserved.call("POST", "/stacks", body)
    assert status == 201, response
    assert await unobserved.until_ended("s") == "CREATE_COMPLETE"
    (minutes,) = await intervals(unobserved)
    assert 8 < minutes < 11

    async def shown() -> Json:
        found = (await drift_of(unobserved))["policy"]
        return found and (found["observe"]["every"], found["on_drift"], found["tolerate"])

    assert await shown() == ("10m", "notify", "15m")
    observer = observer_of(unobserved)
    world.things.clear()
    await make_due(unobserved)
    assert await observer.observe_due() == 1
    assert states(await drift_of(unobserved)) == {"a": "missing"}
    # The environment overrides single keys; null removes one.
    own = {"observe": {"every": "2h"}, "tolerate": None}
    await unobserved.update("s", environment={"convergence": own})
    assert await unobserved.until_ended("s") == "UPDATE_COMPLETE"
    assert await shown() == ("2h", "notify", "0s")
    await make_due(unobserved)
    assert await observer.observe_due() == 1
    (minutes,) = await intervals(unobserved)
    assert 100 < minutes < 140
    # A rule of the operator wins over both.
    rules = PolicyRules(
        [OperatorPolicy([unobserved.project], {"observe": {"every": "5m"}}, "rule 1")]
    )
    await make_due(unobserved)
    assert await observer_of(unobserved, rules).observe_due() == 1
    (minutes,) = await intervals(unobserved)
    assert 4 < minutes < 6


async def test_the_policy_of_a_template_ends_with_it(unobserved: Program) -> None:
    body = {"stack_name": "s", "template": with_policy(EVERY_10M)}
    assert (await unobserved.call("POST", "/stacks", body))[0] == 201
    assert await unobserved.until_ended("s") == "CREATE_COMPLETE"
    await unobserved.update("s", "PUT", template=with_policy(None))
    assert await unobserved.until_ended("s") == "UPDATE_COMPLETE"
    await make_due(unobserved)
    assert await observer_of(unobserved).observe_due() == 1  # the claim ends without an observation
    assert await intervals(unobserved) == []
    assert (await drift_of(unobserved))["policy"] is None


@pytest.mark.parametrize(
    ("policy", "version", "reason"),
    [
        ({"observ": "never"}, "2026-12-01", "convergence.observ: is not a known key"),
        ([1], "2026-12-01", "convergence: must be a map"),
        ({"on_drift": "notify"}, "2026-12-01", "needs observations"),
        ({"observe": {"every": {"get_param": "x"}}}, "2026-12-01", "is not a duration"),
        (EVERY_10M, "2021-04-16", '"convergence"'),
    ],
)
async def test_a_wrong_policy_of_a_template_is_refused(
    unobserved: Program, policy: Json, version: str, reason: str
) -> None:
    body = {"stack_name": "s", "template": with_policy(policy, version)}
    status, response = await unobserved.call("POST", "/stacks", body)
    assert status == 400 and reason in str(response).replace("'", '"'), response


async def test_an_operator_rule_schedules_existing_stacks_and_wins(
    unobserved: Program, things: Things
) -> None:
    await unobserved.create("s", {"a": thing(things)})
    assert await unobserved.until_ended("s") == "CREATE_COMPLETE"
    await created(unobserved, {"a": thing(things)}, {"observe": "never"}, name="t")
    assert await intervals(unobserved) == []
    elsewhere = OperatorPolicy(["q"], {"observe": {"every": "1h"}}, "1")
    await observer_of(unobserved, PolicyRules([elsewhere])).schedule_by_rules()
    assert await intervals(unobserved) == []
    rules = PolicyRules([OperatorPolicy([unobserved.project], {"observe": {"every": "1h"}}, "1")])
    observer = observer_of(unobserved, rules)
    for _ in range(2):
        await observer.schedule_by_rules()
        assert len(await intervals(unobserved)) == 2
    await make_due(unobserved)
    assert await observer.observe_due() == 2
    assert all(50 < one < 70 for one in await intervals(unobserved))


async def test_an_operator_rule_of_the_settings_applies_to_new_stacks(
    database_url: str, world: World
) -> None:
    rule = {"projects": ["p"], "observe": "1h", "ignore": {"x": ["$.y"]}}
    settings = {"convergence.rules": [rule]}
    with run_observers():
        async with program(database_url, settings, types=[Thing(world)]) as run:
            await created(run, {"a": simple()}, {"observe": {"every": "2h"}})
            policy = (await drift_of(run))["policy"]
            assert policy == {
                "observe": {"every": "1h"}, "on_drift": "ignore", "tolerate": "0s",
                "repairs_per_day": 5, "window": None, "ignore": {"x": ["$.y"]}, "hold": {},
                "by_operator": ["ignore", "observe"],
            }  # fmt: skip
            (minutes,) = await intervals(run)
            assert 50 < minutes < 70
            (started,) = [
                one for one in (await run.stack_request("GET", "s", "/history"))["events"]
                if one["type"] == "headgate.stack.create.started"
            ]  # fmt: skip
            assert "a rule of the operator sets it" in str(started["data"]["warnings"])
            assert (await observed(run))["observable_resources"] == 1


@pytest.mark.parametrize(
    ("convergence", "place", "reason", "remedy"),
    [
        ({"obsrve": "never"}, "convergence.obsrve", "is not a known key", "observe"),
        ({"observe": "10m"}, "convergence.observe", "is not an interval", "every: 10m"),
        ({"observe": {"every": "soon"}}, "convergence.observe.every", "not a duration", "90s"),
        ({"ignore": ["web"]}, "convergence.ignore", "must be a map", "$.tags.*"),
        ({"ignore": {"a": []}}, "convergence.ignore.a", "ignores nothing", "Add a path"),
        (
            {"ignore": {f"{n}*": ["x"] for n in range(101)}},
            "convergence.ignore",
            "101 patterns",
            "Combine",
        ),
        (
            {"ignore": {"a": ["x"] * 51, "b": ["x"] * 50}},
            "convergence.ignore",
            "101 paths",
            "Combine",
        ),
        ({"ignore": {"a": ["*x" * 101]}}, "convergence.ignore", "202 characters", "Shorten"),
        ({"ignore": {"wbe": ["$.size"]}}, "convergence.ignore.wbe", "no resource", '"web"'),
        ({"ignore": {"web": ["$.sice"]}}, "convergence.ignore.web", "no property", '"$.size"'),
        ({"on_drift": "repair"}, "convergence.on_drift", "needs observations", "every: 10m"),
        ({"tolerate": "5m"}, "convergence.tolerate", "has no effect without", "Remove it"),
    ],
)
async def test_a_wrong_policy_is_refused(
    unobserved: Program, things: Things, convergence: Json, place: str, reason: str, remedy: str
) -> None:
    body: Json = {
        "stack_name": "s",
        "template": {"heat_template_version": "2018-08-31", "resources": {"web": thing(things)}},
        "environment": {"convergence": convergence},
    }
    status, document = await unobserved.call("POST", "/stacks", body)
    assert status == 400, document
    (found,) = document["error"]["findings"]
    assert found["place"] == place
    assert reason in found["reason"] and remedy in found["remedy"]
    # A validation finds the same, beside the errors of the template. Its errors have one type.
    found["type"] = "Invalid"
    del body["stack_name"]
    status, document = await unobserved.call("POST", "/validate", body)
    assert (status, document["error"]["findings"]) == (400, [found]), document
    body["template"]["resources"]["other"] = {"type": "No::Such"}
    status, document = await unobserved.call("POST", "/validate", body)
    places = [one["place"] for one in document["error"]["findings"]]
    assert any(one.startswith("resources.other") for one in places), places
    assert (place in places) == (reason not in LATER), places


#: Errors that need the resources of the stack, or the rules of the operator.
LATER = ("needs observations", "has no effect without", "no resource", "no property")


@pytest.mark.parametrize("given", [True, False], ids=["all parameters", "missing parameters"])
async def test_a_policy_is_validated_before_all_values_are_known(
    unobserved: Program, things: Things, given: bool
) -> None:
    template = {
        "heat_template_version": "2018-08-31",
        "parameters": {"wanted": {"type": "boolean"}, "size": {"type": "number"}},
        "conditions": {"is_wanted": {"get_param": "wanted"}},
        "resources": {
            "web": thing(things, compare={"$.size": {"get_param": "size"}}),
            "perhaps": {"condition": "is_wanted", **thing(things)},
        },
    }
    ignore = {"web": ["$.size"], "perhaps": ["$.size"]}
    policy = {"observe": {"every": "10m"}, "on_drift": "notify", "ignore": ignore}
    body = {"template": template, "environment": {"convergence": policy}}
    if given:
        body["parameters"] = {"wanted": True, "size": 1}
    status, document = await unobserved.call("POST", "/validate", body)
    assert status == 200, document
    assert bool(document["warnings"]) != given  # it is not known what `perhaps` compares
    ignore["perhpas"] = ["$.size"]
    status, document = await unobserved.call("POST", "/validate", body)
    (found,) = document["error"]["findings"]
    assert (status, found["place"]) == (400, "convergence.ignore.perhpas")
    assert '"perhaps"' in found["remedy"]


async def test_a_duration_of_more_than_a_year_gets_a_warning(
    unobserved: Program, things: Things
) -> None:
    policy = {"observe": {"every": "36500d"}, "on_drift": "notify", "tolerate": "366d"}
    template = {"heat_template_version": "2018-08-31", "resources": {"a": thing(things)}}
    body = {"template": template, "environment": {"convergence": policy}}
    status, document = await unobserved.call("POST", "/validate", body)
    assert status == 200, document
    assert [(one["path"], one["code"]) for one in document["warnings"]] == [
        ("convergence.observe.every", "NoEffect"), ("convergence.tolerate", "NoEffect"),
    ]  # fmt: skip
    assert all("longer than 365d" in one["message"] for one in document["warnings"])
    await created(unobserved, {"a": thing(things)}, policy)
    history = (await unobserved.stack_request("GET", "s", "/history"))["events"]
    assert "longer than 365d" in str(history[0]["data"]["warnings"])
    policy |= {"observe": {"every": "365d"}, "tolerate": "365d"}
    status, document = await unobserved.call("POST", "/validate", body)
    assert (status, document["warnings"]) == (200, [])


async def test_an_interval_below_the_shortest_is_extended_with_a_warning(
    unobserved: Program, things: Things
) -> None:
    await created(unobserved, {"a": thing(things)}, {"observe": {"every": "1s"}})
    assert (await drift_of(unobserved))["policy"]["observe"] == {"every": "1m"}
    history = (await unobserved.stack_request("GET", "s", "/history"))["events"]
    assert "min_interval" in str(history[0]["data"]["warnings"])


def test_the_largest_policy_is_valid() -> None:
    paths = {f"r{number}*": [f"$.a{number}{'b*' * 90}"] for number in range(100)}
    findings = Findings()
    read_section({"ignore": paths}, "convergence", findings)
    assert not findings.all
    policy = PolicyRules().policy({"ignore": paths}, "p")
    assert policy is not None and ignores(policy.ignored_paths((), "r7x"), f"$.a7{'bb' * 90}")
    assert not ignores(policy.ignored_paths((), "x7x"), f"$.a7{'bb' * 90}")
