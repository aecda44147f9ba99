"""What a failed observation pauses: the endpoint, or the request alone; never another project, and
nothing if a user has requested the observation."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from engine.store.observer import failed_requests, provider_endpoints
from engine.store.observer.provider_endpoints import NewFailure
from engine.work.observer import endpoint_back_off
from engine.work.observer.batch_observer import PAGE
from engine.work.observer.batch_outcomes import PROBES
from engine.work.observer.endpoint_back_off import REMEMBERED
from engine.work.observer.observer import Observer
from engine.work.observer.provider_endpoints import ProviderEndpoints, RequestRates
from tests.support.completions import pause_completion_observers
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things, thing
from tests.support.paused_observers import paused_observer
from tests.support.program import Json, Program, eventually, template

DUE = """
update observation_schedule set next_at = now() - interval '1s' where next_at is not null
"""
#: $1: the name of the stack.
DUE_OF_STACK = f"{DUE} and stack_id = (select id from stack where name = $1)"
END_PAUSES = """
with requests as (update failed_request set until = now())
update provider_failure set until = now()
"""
PAUSES = (
    "select failures, until - clock_timestamp() as remaining, reason, request from failed_request"
)
ENDPOINTS = "select endpoint, failures, until from provider_failure order by endpoint"
THROTTLED = "select throttled, until - clock_timestamp() as remaining from provider_failure"
EVERY_10M = {"convergence": {"observe": {"every": "10m"}}}
LIST = {"items": "$.things", "id": "$.id", "next": "$.next"}


@pytest_asyncio.fixture(loop_scope="session")
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@pytest.fixture(scope="module")
def things_settings(paused_observers: None) -> Iterator[Mapping[str, Any]]:
    with pause_completion_observers():
        yield HTTP_SETTINGS


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    """A program whose observers do not run, so that tests run their own."""
    return things_in_own_project


async def observe_due(
    run: Program, *, due: bool = True, per_minute: float = 0.0, page: int = PAGE
) -> None:
    if due:
        await run.database.pool.execute(DUE)
    endpoints = ProviderEndpoints(run.database, RequestRates(per_minute), lambda: 0.0)
    registry = paused_observer(run)[0]
    await Observer(run.database, registry, endpoints=endpoints, page=page).observe_due()


def with_list(things: Things, url: str, **more: Json) -> Json:
    """A resource whose list is read at this URL."""
    return thing(things, list={"url": url, **LIST}, **more)


def alone(things: Things, query: str = "") -> Json:
    """A resource that is observed by a request of its own."""
    return thing(things, listed=False, check={"url": f"/things/${{id}}{query}"})


async def create(run: Program, name: str, resources: Json, environment: Json = EVERY_10M) -> None:
    await run.create(name, resources, environment=environment)
    assert await run.until_ended(name) == "CREATE_COMPLETE", await run.events(name)


async def drift_of(run: Program, name: str) -> Any:
    return await run.stack_request("GET", name, "/drift")


async def paused_of(run: Program, name: str) -> list[Json]:
    paused = (await drift_of(run, name))["paused"]
    assert (await run.stack_request("GET", name, "/why"))["paused"] == paused
    return list(paused)


async def state_of(run: Program, name: str, resource: str = "a") -> str:
    found = (await drift_of(run, name))["resources"]
    return next((one["state"] for one in found if one["resource_name"] == resource), "present")


BAD_ANSWERS = {
    "404": "the service answered 404",
    "401": "the service answered 401",
    "403": "the service answered 403",
    "409": "the service answered 409",
    "501": "the service answered 501",
    "{": "the response is not valid JSON",
    "{}": "the response has no list",
}


@pytest.mark.parametrize(
    "answer", BAD_ANSWERS, ids=["404", "401", "403", "409", "501", "no JSON", "no list"]
)
@pytest.mark.parametrize("requested", [False, True], ids=["policy", "user"])
async def test_a_bad_list_of_one_stack_does_not_pause_another_stack(
    run: Program, things: Things, answer: str, requested: bool
) -> None:
    await create(run, "good", {"a": thing(things)})
    await create(run, "bad", {"a": with_list(things, f"/things?fault={answer}")})
    if requested:
        await run.act("bad", "observe")
    else:
        await run.database.pool.execute(DUE_OF_STACK, "bad")
    await observe_due(run, due=False)
    assert await state_of(run, "bad") == "unknown"
    assert await run.database.pool.fetch(ENDPOINTS) == []
    assert await paused_of(run, "good") == []
    things.requests.clear()
    things.objects[sorted(things.objects)[0]]["size"] = 9
    await observe_due(run)
    assert await state_of(run, "good") == "changed"


async def test_a_bad_list_has_a_pause_of_its_own_that_grows_and_is_explained(
    run: Program, things: Things
) -> None:
    await create(run, "bad", {"a": with_list(things, "/things?fault=401"), "b": thing(things)})
    things.requests.clear()
    await observe_due(run)
    assert things.requests == {"list": 2}
    (pause,) = await run.database.pool.fetch(PAUSES)
    assert (pause["failures"], pause["reason"]) == (1, "list: the service answered 401")
    (paused,) = await paused_of(run, "bad")
    assert (paused["resources"], paused["endpoint"]) == (1, things.url)
    assert paused["reason"] == "list: the service answered 401"
    assert f"is paused until {paused['until']} because list: the" in paused["sentence"]
    # During its pause, only the other list is read, at the usual time.
    await observe_due(run)
    assert things.requests == {"list": 3}
    assert await state_of(run, "bad") == "unknown" and await state_of(run, "bad", "b") == "present"
    planned = "select next_at > now() + interval '5m' from observation_schedule"
    assert await run.database.pool.fetchval(planned)
    await run.database.pool.execute(END_PAUSES)
    await observe_due(run)
    (again,) = await run.database.pool.fetch(PAUSES)
    assert again["failures"] == 2 and again["remaining"] > pause["remaining"]


@pytest.mark.parametrize("listed", [True, False], ids=["list", "object"])
async def test_a_corrected_request_is_sent_at_once(
    run: Program, things: Things, listed: bool
) -> None:
    bad, good = (
        (with_list(things, "/things?fault=401"), thing(things))
        if listed
        else (alone(things, "?fault=401"), alone(things))
    )
    await create(run, "s", {"a": bad})
    await observe_due(run)
    assert len(await paused_of(run, "s")) == 1
    await run.update("s", "PUT", template=template({"a": good}), environment=EVERY_10M)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert await paused_of(run, "s") == []
    things.objects[next(iter(things.objects))]["size"] = 9
    await observe_due(run)
    assert await state_of(run, "s") == "changed"


async def test_a_request_that_works_again_has_no_pause(run: Program, things: Things) -> None:
    await create(run, "s", {"a": alone(things), "b": alone(things)})
    things.requests.clear()
    things.faults, things.fail_after = [403], 1
    await observe_due(run)
    assert len(await run.database.pool.fetch(PAUSES)) == 1
    things.faults = []
    await run.act("s", "observe")
    await observe_due(run, due=False)
    assert await run.database.pool.fetch(PAUSES) == []
    assert (await drift_of(run, "s"))["resources"] == []


@pytest.mark.parametrize("fault", [500, 502, 503, 504])
async def test_an_error_of_the_server_pauses_its_endpoint(
    run: Program, things: Things, fault: int
) -> None:
    """500, which one request can cause, only if several ones of several stacks fail."""
    await create(run, "s", {"a": thing(things)})
    await create(run, "t", {name: with_list(things, f"/things?{name}") for name in ("a", "b")})
    things.faults = [fault]
    things.requests.clear()
    await run.database.pool.execute(DUE)
    await observe_due(run, due=False)
    sent = things.requests["list"]
    await observe_due(run)
    assert things.requests["list"] == sent
    assert [one["endpoint"] for one in await run.database.pool.fetch(ENDPOINTS)] == [things.url]
    assert await run.database.pool.fetch(PAUSES) == []
    assert len(await paused_of(run, "s")) == len(await paused_of(run, "t")) == 1


async def test_an_error_of_the_server_for_one_stack_pauses_its_requests_alone(
    run: Program, things: Things
) -> None:
    await create(run, "good", {"a": thing(things)})
    bad = {f"r{number}": alone(things, "?fault=500") for number in range(4)}
    await create(run, "bad", bad)
    for failures in (1, 2):
        await run.database.pool.execute(DUE_OF_STACK, "bad")
        await observe_due(run, due=False)
        found = await run.database.pool.fetch(PAUSES)
        assert [one["failures"] for one in found] == [failures] * 4
        assert await run.database.pool.fetch(ENDPOINTS) == []
        await run.database.pool.execute(END_PAUSES)
    things.objects["t1"]["size"] = 9
    await run.database.pool.execute(DUE_OF_STACK, "good")
    await observe_due(run, due=False)
    assert await state_of(run, "good") == "changed"


@pytest.mark.parametrize("fault", [500, 504])
@pytest.mark.parametrize("first", ["good", "bad"])
async def test_a_list_that_fails_keeps_no_longer_list_from_being_read(
    run: Program, things: Things, fault: int, first: str
) -> None:
    """Of one batch, in parts that are read one after another."""
    stacks = {
        "bad": {"a": with_list(things, f"/things?fault={fault}")},
        "good": {f"r{number}": thing(things) for number in range(5)},
    }
    for name in sorted(stacks, reverse=first == "good"):
        await create(run, name, stacks[name])
    for one in things.objects.values():
        one["size"] = 9
    for _ in range(2):
        await observe_due(run, page=3)
        found = (await drift_of(run, "good"))["resources"]
        assert [one["state"] for one in found] == ["changed"] * 5
        assert await state_of(run, "bad") == "unknown"
        assert await run.database.pool.fetch(ENDPOINTS) == []
        (paused,) = await run.database.pool.fetch(PAUSES)
        assert paused["reason"] == f"list: the service answered {fault}"
        await run.database.pool.execute(END_PAUSES)


@pytest.mark.parametrize("fault", [500, 504])
async def test_an_object_that_fails_keeps_no_list_from_being_read(
    run: Program, things: Things, fault: int
) -> None:
    listed = {f"r{number}": thing(things) for number in range(5)}
    await create(run, "s", listed | {"x": alone(things, f"?fault={fault}")})
    for one in things.objects.values():
        one["size"] = 9
    for failures in (1, 2):
        await observe_due(run, page=3)
        states = {
            one["resource_name"]: one["state"] for one in (await drift_of(run, "s"))["resources"]
        }
        assert states == dict.fromkeys(listed, "changed") | {"x": "unknown"}
        assert await run.database.pool.fetch(ENDPOINTS) == []
        (paused,) = await run.database.pool.fetch(PAUSES)
        assert paused["failures"] == failures
        await run.database.pool.execute(END_PAUSES)


async def test_many_objects_that_fail_keep_no_other_stack_from_being_observed(
    run: Program, things: Things
) -> None:
    """An endpoint that has answered nothing gets some requests of each further part."""
    for number in range(2):
        bad = {f"r{number}": alone(things, "?fault=504") for number in range(30)}
        await create(run, f"bad{number}", bad)
    await create(run, "good", {"a": alone(things)})
    things.objects[max(things.objects, key=lambda one: int(one[1:]))]["size"] = 9
    await observe_due(run, page=15)
    assert await state_of(run, "good") == "changed"
    assert await run.database.pool.fetch(ENDPOINTS) == []


async def test_an_endpoint_that_is_down_gets_few_requests_of_a_batch(
    run: Program, things: Things
) -> None:
    await create(run, "s", {f"r{number}": alone(things) for number in range(60)})
    things.faults = [504]
    things.requests.clear()
    await observe_due(run, page=20)
    assert things.requests == {"read": 20 + 2 * PROBES}
    assert len(await run.database.pool.fetch(ENDPOINTS)) == 1
    (paused,) = await paused_of(run, "s")
    assert paused["resources"] == 60
    await observe_due(run, page=20)
    assert things.requests == {"read": 20 + 2 * PROBES}


async def test_an_endpoint_without_requests_in_the_last_part_has_its_pause(
    run: Program, things: Things
) -> None:
    """Its failures are withheld until the end of the batch."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        dead = with_list(things, f"{url}/things", read=None, ready=None)
        await create(run, "dead", {f"r{number}": dead for number in range(3)})
        first = (await run.stack("dead"))["id"]
        for number in range(50):  # a batch is in the order of the IDs of its stacks
            await create(run, f"good{number}", {"a": alone(things)})
            if (await run.stack(f"good{number}"))["id"] > first:
                break
        await observe_due(run, page=2)
    (paused,) = await run.database.pool.fetch(ENDPOINTS)
    assert paused["endpoint"] == url


async def start_waiting(run: Program, things: Things, name: str) -> "asyncio.Task[None]":
    """Start the observation of a stack, whose list does not answer yet."""
    things.gate = asyncio.Event()
    await run.database.pool.execute(DUE_OF_STACK, name)
    before = things.requests["list"]
    task = asyncio.create_task(observe_due(run, due=False))
    await eventually(lambda: _has_asked(things, before))
    return task


async def _has_asked(things: Things, before: int) -> bool:
    return things.requests["list"] > before


async def test_an_earlier_request_that_succeeds_ends_no_later_pause(
    run: Program, things: Things
) -> None:
    await create(run, "slow", {"a": with_list(things, "/things?slow")})
    await create(run, "s", {"a": alone(things)})
    things.faults = [503]
    await observe_due(run)
    await run.database.pool.execute(END_PAUSES)
    task = await start_waiting(run, things, "slow")
    things.faults, things.retry_after = [429], "3600"
    await run.database.pool.execute(DUE_OF_STACK, "s")
    await observe_due(run, due=False)
    things.faults = []
    assert things.gate is not None
    things.gate.set()
    await task
    assert await state_of(run, "slow") == "present"
    (pause,) = await run.database.pool.fetch(THROTTLED)
    assert pause["throttled"] and pause["remaining"] > timedelta(minutes=59)
    # A success after the pause ends it.
    await run.database.pool.execute(END_PAUSES)
    await observe_due(run)
    assert await run.database.pool.fetch(THROTTLED) == []


async def test_an_earlier_request_that_succeeds_ends_no_later_pause_of_a_request(
    run: Program, things: Things
) -> None:
    await create(run, "slow", {"a": with_list(things, "/things?slow"), "b": thing(things)})
    things.faults = [403]
    await observe_due(run)
    await run.database.pool.execute(END_PAUSES)
    task = await start_waiting(run, things, "slow")
    later = "update failed_request set until = now() + interval '1h'"
    await run.database.pool.execute(later)
    things.faults = []
    assert things.gate is not None
    things.gate.set()
    await task
    assert len(await run.database.pool.fetch(PAUSES)) == 2
    await run.database.pool.execute(END_PAUSES)
    await observe_due(run)
    assert await run.database.pool.fetch(PAUSES) == []


@pytest.mark.parametrize(
    ("stored", "new", "kept"),
    [
        ((1, 30, False), (1, 3600, True), (3600, True)),
        ((5, 600, False), (1, 3600, True), (3600, True)),
        ((5, 600, False), (1, 60, True), (600, False)),
        ((1, 3600, True), (2, 60, False), (3600, True)),
        ((1, 3600, True), (2, 7200, False), (3600, True)),
        ((1, 600, True), (1, 3600, True), (3600, True)),
        ((1, 3600, True), (2, 600, True), (3600, True)),
        ((1, 600, False), (2, 1200, False), (1200, False)),
        ((2, 600, False), (2, 1200, False), (600, False)),
        ((2, -1, True), (1, 30, False), (30, False)),
    ],
)
async def test_a_pause_that_the_provider_requested_precedes_others(
    run: Program, stored: tuple[int, int, bool], new: tuple[int, int, bool], kept: tuple[int, bool]
) -> None:
    """Of processes that fail at the same time. (failures, seconds, throttled)"""
    key = (run.project, "t", "http://h")
    async with run.database.connection() as conn:
        for failures, seconds, throttled in (stored, new):
            failure = NewFailure(failures, timedelta(seconds=seconds), "it failed", "", throttled)
            await provider_endpoints.store_failures(conn, {key: failure}, REMEMBERED, 9)
        found = await provider_endpoints.read_failures(conn, [key], REMEMBERED)
    seconds, throttled = kept
    assert found[key].throttled is throttled
    assert timedelta(0) <= timedelta(seconds=seconds) - found[key].remaining < timedelta(seconds=30)


async def test_the_pause_of_a_request_delays_no_other_resource(
    run: Program, things: Things
) -> None:
    await create(run, "s", {"a": with_list(things, "/things?fault=401"), "b": alone(things)})
    b = (await run.resources("s"))["b"]["physical_resource_id"]
    del things.objects[b]["state"]
    await observe_due(run)
    await run.database.pool.execute("update failed_request set until = now() + interval '1h'")
    until = await run.database.pool.fetchval("select until from failed_request")
    why = await run.stack_request("GET", "s", "/why")
    found = {tuple(one["resources"]): one for one in why["unknown"]}
    assert f"is not before {until:%Y-%m-%dT%H:%M:%S}." in found[("a",)]["sentence"]
    assert "is at " in found[("b",)]["sentence"]
    assert found[("b",)]["next_observation_at"] < found[("a",)]["next_observation_at"]


async def test_an_endpoint_that_refuses_connections_has_a_pause(
    run: Program, things: Things
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        resources = {
            "a": with_list(things, f"{url}/things", read=None, ready=None),
            "b": with_list(things, "https://name.invalid/things", read=None, ready=None),
            "c": with_list(
                things, f"https{things.url.removeprefix('http')}/things", read=None, ready=None
            ),
        }
        await create(run, "s", resources)
        await observe_due(run)
    paused = [one["endpoint"] for one in await run.database.pool.fetch(ENDPOINTS)]
    tls = f"https{things.url.removeprefix('http')}"
    assert paused == sorted([url, tls, "https://name.invalid"])
    assert await run.database.pool.fetch(PAUSES) == []
    assert await paused_of(run, "s") != []


async def test_an_endpoint_that_answers_others_has_no_pause(run: Program, things: Things) -> None:
    await create(run, "s", {"a": with_list(things, "/things?fault=500"), "b": thing(things)})
    await observe_due(run)
    assert await run.database.pool.fetch(ENDPOINTS) == []
    (paused,) = await paused_of(run, "s")
    assert (paused["resources"], paused["reason"]) == (1, "list: the service answered 500")


@pytest.mark.parametrize("fault", [500, 404])
async def test_a_requested_observation_lengthens_no_pause(
    run: Program, things: Things, fault: int
) -> None:
    await create(run, "bad", {"a": with_list(things, f"/things?fault={fault}")})
    await create(run, "same", {"a": with_list(things, f"/things?fault={fault}")})
    everything = f"{ENDPOINTS.partition(' order')[0]} union all select request, failures, until from failed_request"
    await run.act("bad", "observe")
    await observe_due(run, due=False)
    assert await run.database.pool.fetch(everything) == []
    await observe_due(run)
    before = await run.database.pool.fetch(everything)
    assert len(before) == 1
    things.requests.clear()
    for _ in range(3):
        await run.act("bad", "observe")
        await observe_due(run, due=False)
    assert things.requests == {"list": 3}
    assert await run.database.pool.fetch(everything) == before


async def test_another_project_is_never_paused(run: Program, things: Things) -> None:
    other = Program(run.session, run.url, f"{run.project}-other")
    for one in (run, other):
        await create(one, "s", {"a": with_list(things, "/things?fault=401")})
    await create(other, "t", {"a": thing(things)})
    await create(run, "u", {"a": thing(things)})
    await run.database.pool.execute(
        "update observation_schedule set next_at = null where project = $1", other.project
    )
    await observe_due(run)
    things.faults = [503]
    await observe_due(run)
    things.faults = []
    assert await run.database.pool.fetchval("select project from provider_failure") == run.project
    assert len(await paused_of(run, "s")) == 1
    things.requests.clear()
    await run.database.pool.execute(
        "update observation_schedule set next_at = now() where project = $1", other.project
    )
    await observe_due(run, due=False)
    assert things.requests == {"list": 2}
    assert await state_of(other, "t") == "present"


async def test_many_wrong_urls_of_a_stack_pause_this_stack_alone(
    run: Program, things: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_back_off, "MAX_OF_STACK", 5)
    wrong = {f"r{number}": alone(things, "?fault=401") for number in range(30)}
    await create(run, "wrong", wrong | {"a": alone(things)})
    await create(run, "good", {"a": alone(things)})
    things.requests.clear()
    await observe_due(run)
    assert things.requests == {"read": 32}
    (pause,) = await run.database.pool.fetch(PAUSES)
    assert pause["request"] == (await run.stack("wrong"))["id"]
    (paused,) = await paused_of(run, "wrong")
    many = "30 of 31 requests of the stack to this endpoint failed"
    assert (paused["resources"], paused["reason"]) == (
        30,
        f"{many}: check: the service answered 401",
    )
    assert await paused_of(run, "good") == []
    things.requests.clear()
    for _ in range(3):
        await observe_due(run)
    assert things.requests == {"read": 3}
    # After the pause, they are sent once, and a longer one follows.
    await run.database.pool.execute(END_PAUSES)
    await observe_due(run)
    await observe_due(run)
    assert things.requests == {"read": 3 + 32 + 1}
    (again,) = await run.database.pool.fetch(PAUSES)
    assert again["failures"] == 2 and again["remaining"] > pause["remaining"]
    # A few requests of the stack that work do not say that the others do.
    left = {"a": alone(things)} | dict(list(wrong.items())[:2])
    await run.update("wrong", "PUT", template=template(left), environment=EVERY_10M)
    assert await run.until_ended("wrong") == "UPDATE_COMPLETE"
    await run.database.pool.execute(END_PAUSES)
    await observe_due(run)
    found = await run.database.pool.fetch(PAUSES)
    assert sorted(one["failures"] for one in found) == [1, 1, 2]


async def test_the_budget_counts_requests_that_fail(run: Program, things: Things) -> None:
    await create(run, "s", {f"r{number}": alone(things, "?fault=401") for number in range(6)})
    things.requests.clear()
    await observe_due(run, per_minute=12.0)  # two requests in ten seconds
    assert things.requests == {"read": 2}
    paused = (await drift_of(run, "s"))["paused"]
    assert sorted(one["resources"] for one in paused) == [2, 4]


async def test_a_project_has_a_limited_number_of_failures(run: Program) -> None:
    """Those that end last are kept, and those of other projects."""

    def failure(seconds: int) -> NewFailure:
        return NewFailure(1, timedelta(seconds=seconds), "it failed", "", False)

    mine, other = run.project, f"{run.project}-other"
    async with run.database.connection() as conn:
        for project in (other, mine):
            for number in range(6):
                key = (project, "t", "http://h", f"{number}")
                await failed_requests.store(conn, {key: failure(60 + number)}, REMEMBERED, 3)
                await provider_endpoints.store_failures(
                    conn, {(project, "t", f"http://{number}"): failure(60 + number)}, REMEMBERED, 3
                )
        kept = "select request from failed_request where project = $1 order by request"
        hosts = "select endpoint from provider_failure where project = $1 order by endpoint"
        for project in (other, mine):
            # The newest one is added to those that are kept.
            assert [one[0] for one in await conn.fetch(kept, project)] == ["2", "3", "4", "5"]
            found = [one[0] for one in await conn.fetch(hosts, project)]
            assert found == [f"http://{number}" for number in (2, 3, 4, 5)]
