"""Budgets of requests to providers, and pauses after failures, which all processes share."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import timedelta
from time import monotonic
from typing import Any

import pytest
import pytest_asyncio

from engine import request_budget
from engine.work.observer import provider_endpoints
from engine.work.observer.batch_observer import PAGE
from engine.work.observer.completion_observer import CompletionObserver
from engine.work.observer.observer import Observer
from engine.work.observer.provider_endpoints import ProviderEndpoints, RequestRates
from tests.support.changes import thing as simple
from tests.support.completions import pause_completion_observers
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things, thing
from tests.support.paused_observers import paused_observer
from tests.support.program import Http, Json, Program, eventually

DUE = """
update observation_schedule set next_at = now() - interval '1s'
 where next_at is not null and deferred is null
"""
#: $1: the name of the stack.
DUE_OF_STACK = f"{DUE} and stack_id = (select id from stack where name = $1)"
#: A requested pause that does not end during a test.
LONG_PAUSE = "update provider_failure set until = now() + interval '1h'"
#: Requests per minute: one more in 10 minutes, so that the time that a test takes does not matter.
SLOW = 0.1
#: As if the time of the next turn had come.
DEFERRED_DUE = """
with due as (update observation_schedule set next_at = now() where deferred is not null),
passed as (
    select b.endpoint,
           min((turn.value ->> 0)::float) - extract(epoch from now())::float + $1 as seconds
      from provider_budget b cross join lateral jsonb_each(b.state -> 'turns') turn
     group by b.endpoint)
update provider_budget b
   set state = b.state || jsonb_build_object(
       'paid', (b.state ->> 'paid')::float - p.seconds,
       'turns', (select jsonb_object_agg(
                            key, jsonb_build_array((value ->> 0)::float - p.seconds, value -> 1))
                   from jsonb_each(b.state -> 'turns')))
  from passed p where p.endpoint = b.endpoint
"""


@pytest_asyncio.fixture(loop_scope="session")
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@pytest.fixture
def requests_at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets how many requests the rate SLOW allows at once."""

    def change(count: int) -> None:
        monkeypatch.setattr(request_budget, "BURST", count * 60 / SLOW)

    return change


@pytest.fixture(scope="module")
def things_settings(paused_observers: None) -> Iterator[Mapping[str, Any]]:
    with pause_completion_observers():
        yield HTTP_SETTINGS


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    """A program whose observers do not run, so that tests run their own."""
    return things_in_own_project


def observer_of(run: Program, per_minute: float = 0.0, page: int = PAGE) -> Observer:
    endpoints = ProviderEndpoints(run.database, RequestRates(per_minute), lambda: 0.0)
    return Observer(run.database, paused_observer(run)[0], endpoints=endpoints, page=page)


async def create(
    run: Program, things: Things, count: int, name: str = "s", *, listed: bool = False
) -> None:
    resources = {f"r{number}": thing(things, listed=listed) for number in range(count)}
    environment = {"convergence": {"observe": {"every": "10m"}}}
    await run.create(name, resources, environment=environment)
    assert await run.until_ended(name) == "CREATE_COMPLETE", await run.events(name)


async def drift_of(run: Program, name: str = "s") -> Any:
    return await run.stack_request("GET", name, "/drift")


def states(drift: Json) -> Mapping[str, str]:
    return {one["resource_name"]: one["state"] for one in drift["resources"]}


async def paused_endpoints(run: Program, project: str = "") -> list[Json]:
    """The endpoints that make a project wait, from its usage."""
    _, found = await Http(run.session, run.url, project or run.project).call("GET", "/usage")
    return list(found["paused"])


async def requested_endpoints(run: Program, project: str = "") -> list[Json]:
    """The endpoints that got requests of a project today, from its usage."""
    _, found = await Http(run.session, run.url, project or run.project).call("GET", "/usage")
    return list(found["endpoints"])


async def observe_due(run: Program, observer: Observer) -> None:
    await run.database.pool.execute(DUE)
    await observer.observe_due()


async def continue_deferred(run: Program, observer: Observer, late: float = 0.0) -> None:
    """Observe at the time of the next turn, or some seconds later."""
    await run.database.pool.execute(DEFERRED_DUE, late)
    await observer.observe_due()


async def test_a_budget_divides_an_observation_and_says_so(run: Program, things: Things) -> None:
    await create(run, things, 5)
    await run.act("s", "observe")
    things.objects.clear()
    things.requests.clear()
    observer = observer_of(run, 12.0)  # two requests in ten seconds
    await observer.observe_due()
    assert things.requests == {"read": 2}
    drift = await drift_of(run)
    assert (drift["observing"], drift["observed_at"]) == (True, None)
    assert (len(drift["resources"]), drift["observable_resources"]) == (2, 5)
    (paused,) = drift["paused"]
    reason = f"the budget of 12 requests per minute to {things.url} is used up"
    assert paused == {
        "resources": 3, "resource_type": None, "endpoint": None, "reason": reason,
        "until": drift["next_observation_at"],
        "sentence": "The observation of 3 resources is paused until"
                    f" {drift['next_observation_at']} because {reason}.",
    }  # fmt: skip
    assert (await run.stack_request("GET", "s", "/why"))["paused"] == [paused]
    (found,) = await paused_endpoints(run)
    assert (found["endpoint"], found["resource_type"]) == (things.url, None)
    assert found["requests_per_minute"] == 12.0
    # Two requests were sent, and the next two are promised.
    assert found["used"] == 4 and found["until"] > drift["resources"][0]["observed_at"]
    assert found["reason"] == "the budget of 12 requests per minute is used up"
    assert await paused_endpoints(run, "other") == []
    assert await requested_endpoints(run) == [
        {"endpoint": things.url, "requests": 2, "requests_per_minute": 12.0, "used": 4}
    ]
    assert await requested_endpoints(run, "other") == []
    # Requests that were not sent after all are refilled, also while a turn waits.
    paid = await run.database.pool.fetchval("select state ->> 'paid' from provider_budget")
    change = "update provider_budget set state = jsonb_set(state, '{paid}', to_jsonb($1::float))"
    await run.database.pool.execute(change, 0.0)
    assert [one["used"] for one in await paused_endpoints(run)] == [0]
    await run.database.pool.execute(change, float(paid))
    # The rest is observed in turns: none twice, none left out.
    for left in (1, 0):
        await continue_deferred(run, observer)
        drift = await drift_of(run)
        assert [one["resources"] for one in drift["paused"]] == [left] * bool(left)
    assert things.requests == {"read": 5}
    assert [one["requests"] for one in await requested_endpoints(run)] == [5]
    assert (drift["observing"], len(drift["resources"])) == (False, 5)
    assert drift["observable_resources"] == 5 and drift["observed_at"] is not None


async def test_a_request_during_a_pause_observes_the_whole_stack(
    run: Program, things: Things
) -> None:
    await create(run, things, 3)
    observer = observer_of(run, 12.0)
    await observe_due(run, observer)
    assert (await drift_of(run))["paused"][0]["resources"] == 1
    await run.act("s", "observe")
    things.requests.clear()
    await observer_of(run).observe_due()
    assert things.requests == {"read": 3}
    drift = await drift_of(run)
    assert (drift["paused"], drift["observing"], drift["observable_resources"]) == ([], False, 3)


async def test_reported_changes_wait_for_the_budget_and_are_observed_alone(
    run: Program, things: Things
) -> None:
    await create(run, things, 3)
    await observe_due(run, observer_of(run))
    before = (await drift_of(run))["next_observation_at"]
    ids = [one["physical_resource_id"] for one in (await run.resources("s")).values()]
    body = {"observations": [{"physical_resource_id": one} for one in ids]}
    status, _ = await run.call("POST", "/observations", body)
    assert status == 202
    things.requests.clear()
    observer = observer_of(run, 12.0)
    await observer.observe_due()
    drift = await drift_of(run)
    assert things.requests == {"read": 2} and drift["observing"]
    assert drift["paused"][0]["resources"] == 1
    await continue_deferred(run, observer)
    drift = await drift_of(run)
    assert things.requests == {"read": 3} and not drift["observing"] and not drift["paused"]
    # The schedule of the policy is as before.
    assert drift["next_observation_at"] == before


async def test_what_differs_is_observed_first(run: Program, things: Things) -> None:
    await create(run, things, 6)
    last = sorted(things.objects)[-1]
    things.objects[last]["size"] = 9
    await observe_due(run, observer_of(run))
    assert len((await drift_of(run))["resources"]) == 1
    things.objects[last]["size"] = 1
    await observe_due(run, observer_of(run, 6.0))  # one request
    assert (await drift_of(run))["resources"] == []


async def test_what_drifted_before_is_observed_first(run: Program, things: Things) -> None:
    for name in ("before", "other"):  # the later change is more urgent
        await create(run, things, 1, name)
    (first, _) = sorted(things.objects)
    for size in (9, 1):
        things.objects[first]["size"] = size
        await observe_due(run, observer_of(run))
    assert (await drift_of(run, "before"))["resources"] == []
    await run.database.pool.execute(
        "update observation_schedule set observed_at = now() - interval '1h'"
    )
    await observe_due(run, observer_of(run, 6.0))  # one request
    paused = [len((await drift_of(run, name))["paused"]) for name in ("before", "other")]
    assert paused == [0, 1]


async def test_projects_take_turns(run: Program, things: Things) -> None:
    other = Program(run.session, run.url, "other")
    await create(run, things, 8)
    await create(other, things, 2)
    await run.database.pool.execute(DUE)
    await run.database.pool.execute(
        "update observation_schedule set next_at = now() - interval '1h' where project <> 'other'"
    )
    observer = observer_of(run, 12.0)
    await observer.observe_due()
    turns = await run.database.pool.fetchval("select state -> 'turns' from provider_budget")
    assert {key: count for key, (_, count) in turns.items()} == {run.project: 2, "other": 2}
    # Who uses a turn late makes the next one as late: here less than four seconds.
    for late in (0.0, 4.0):
        await continue_deferred(run, observer, late)
    assert (await drift_of(other))["paused"] == []
    assert (await drift_of(run))["paused"][0]["resources"] == 4


@pytest.mark.parametrize("page", [PAGE, 4], ids=["one page", "long list"])
async def test_pages_of_a_list_are_a_debt_of_its_project_alone(
    run: Program,
    things: Things,
    requests_at_once: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
    page: int,
) -> None:
    monkeypatch.setattr(provider_endpoints, "MAX_PACE", 0.0)
    requests_at_once(3)
    other = Program(run.session, run.url, "other")
    await create(run, things, 60, listed=True)  # 20 pages
    await create(other, things, 1)
    things.requests.clear()
    observer = observer_of(run, SLOW, page)
    await run.act("s", "observe")
    await observer.observe_due()
    assert things.requests == {"list": 20} and not (await drift_of(run))["observing"]
    state = await run.database.pool.fetchval("select state from provider_budget")
    assert state["debts"] == {run.project: 17} and state["turns"] == {}
    # Another project gets the next request.
    await other.act("s", "observe")
    await observer.observe_due()
    await continue_deferred(run, observer)
    assert things.requests == {"list": 20, "read": 1} and not (await drift_of(other))["observing"]
    # The project pays before its own next one.
    await run.act("s", "observe")
    await observer.observe_due()
    for paid in (3, 6, 9, 12, 15):
        await continue_deferred(run, observer)
        state = await run.database.pool.fetchval("select state from provider_budget")
        assert state["debts"] == {run.project: pytest.approx(17 - paid, abs=0.5)}
        assert things.requests["list"] == 20
    for _ in range(2):
        await continue_deferred(run, observer)
    assert things.requests["list"] > 20


async def test_pages_beyond_the_budget_are_requested_in_steps(
    run: Program, things: Things, requests_at_once: Callable[[int], None]
) -> None:
    """Which do not count in the time limit of the list."""
    requests_at_once(3)
    await create(run, things, 24, listed=True)  # eight pages
    await run.act("s", "observe")
    things.requests.clear()
    endpoints = ProviderEndpoints(run.database, RequestRates(SLOW), lambda: 0.0)
    observer = Observer(
        run.database,
        paused_observer(run)[0],
        endpoints=endpoints,
        page_timeout=4 * timedelta(seconds=provider_endpoints.MAX_PACE),
    )
    begin = monotonic()
    await observer.observe_due()
    assert things.requests == {"list": 8} and states(await drift_of(run)) == {}
    assert monotonic() - begin >= 4 * provider_endpoints.MAX_PACE


async def test_pages_of_a_list_are_paid_afterwards(
    run: Program, things: Things, requests_at_once: Callable[[int], None]
) -> None:
    requests_at_once(2)
    await create(run, things, 7, listed=True)  # three pages
    things.requests.clear()
    observer = observer_of(run, SLOW)
    await observe_due(run, observer)
    assert things.requests == {"list": 3}
    await observe_due(run, observer)
    assert things.requests == {"list": 3}
    assert (await drift_of(run))["paused"][0]["resources"] == 7


@pytest.mark.parametrize("page", [PAGE, 4], ids=["one page", "long list"])
async def test_what_a_list_lacks_is_read_within_the_budget(
    run: Program, things: Things, requests_at_once: Callable[[int], None], page: int
) -> None:
    requests_at_once(3)
    await create(run, things, 12, listed=True)
    things.objects.clear()
    things.requests.clear()
    observer = observer_of(run, SLOW, page)
    await observe_due(run, observer)
    # The second reading of the list counts before the reads of single objects.
    assert things.requests == {"list": 2, "read": 1}
    drift = await drift_of(run)
    assert list(states(drift).values()) == ["missing"]
    assert (drift["paused"][0]["resources"], drift["observable_resources"]) == (11, 12)
    # Three requests were sent, and the project has a turn of at most three.
    (found,) = await paused_endpoints(run)
    assert found["used"] <= 6
    while drift["paused"]:
        before = things.requests["read"]
        await continue_deferred(run, observer)
        assert 0 < things.requests["read"] - before <= 3
        drift = await drift_of(run)
    # None was read twice, and none was left out.
    assert things.requests["read"] == 12
    assert list(states(drift).values()) == ["missing"] * 12 and not drift["observing"]


async def test_a_list_that_uses_up_each_turn_lets_one_more_object_be_read(
    run: Program, things: Things, requests_at_once: Callable[[int], None]
) -> None:
    requests_at_once(1)
    await create(run, things, 2, listed=True)
    things.objects.clear()
    things.requests.clear()
    observer = observer_of(run, SLOW)
    await observe_due(run, observer)
    assert things.requests == {"list": 2} and states(await drift_of(run)) == {}
    # Turns that pay precede: for the second reading of the list, and then for a read of an object.
    for read, turns in ((1, 2), (2, 3)):
        for _ in range(turns):
            assert things.requests["read"] == read - 1
            await continue_deferred(run, observer)
        assert things.requests["read"] == len(states(await drift_of(run))) == read
    assert (await drift_of(run))["paused"] == []


async def test_another_project_does_not_wait_for_all_that_a_list_lacks(
    run: Program, things: Things, requests_at_once: Callable[[int], None]
) -> None:
    requests_at_once(3)
    other = Program(run.session, run.url, "other")
    await create(run, things, 12, listed=True)
    await create(other, things, 1)
    things.objects.clear()
    await run.database.pool.execute(DUE)
    await run.database.pool.execute(
        "update observation_schedule set next_at = now() - interval '1h' where project <> 'other'"
    )
    await observer_of(run, SLOW).observe_due()
    turns = await run.database.pool.fetchval("select state -> 'turns' from provider_budget")
    (first, _), (second, count) = turns[run.project], turns["other"]
    assert count == 1 and second - first <= 2.5 * 60 / SLOW


async def test_jitter_is_shorter_than_the_time_for_which_a_turn_is_kept(run: Program) -> None:
    waits = list[float]()
    for chance in (0.0, 1.0):
        endpoints = ProviderEndpoints(run.database, RequestRates(60.0), lambda: chance)  # noqa: B023
        await endpoints.take("before", {"service": 10})
        await endpoints.charge("before", {"service": -10})
        await run.database.pool.execute(
            "update provider_budget set state = jsonb_build_object('paid',"
            " extract(epoch from clock_timestamp())::float + 3600)"
        )
        waits.append((await endpoints.take("late", {"service": 1}))["service"].wait)
    assert 0 < waits[1] - waits[0] <= request_budget.KEPT / 5


async def test_observers_of_all_processes_share_a_budget(
    run: Program, things: Things, requests_at_once: Callable[[int], None]
) -> None:
    requests_at_once(5)
    for name in ("s", "t", "u"):
        await create(run, things, 4, name)
    things.requests.clear()
    for name in ("s", "t", "u"):
        await run.database.pool.execute(DUE_OF_STACK, name)
        await observer_of(run, SLOW).observe_due()
    assert things.requests == {"read": 5}


async def test_all_processes_leave_a_failing_endpoint_alone(run: Program, things: Things) -> None:
    await create(run, things, 1, listed=True)
    things.faults = [503]
    things.requests.clear()
    await observe_due(run, observer_of(run))
    await observe_due(run, observer_of(run))
    assert things.requests == {"list": 1}
    (paused,) = (await drift_of(run))["paused"]
    assert paused["endpoint"] == things.url and paused["resource_type"] == "Headgate::HTTP"
    assert paused["reason"] == "list: the service answered 503"
    assert (await run.stack_request("GET", "s", "/why"))["paused"] == [paused]
    things.faults = []
    await run.database.pool.execute("update provider_failure set until = now() - interval '1s'")
    await observe_due(run, observer_of(run))
    assert things.requests == {"list": 2}
    assert (await drift_of(run))["paused"] == []
    assert await run.database.pool.fetch("select from provider_failure") == []


async def test_a_requested_pause_also_holds_for_users(run: Program, things: Things) -> None:
    await create(run, things, 1, listed=True)
    things.faults, things.retry_after = [429], "1200"
    things.requests.clear()
    await observe_due(run, observer_of(run))
    pause = "select until - clock_timestamp() from provider_failure"
    assert await run.database.pool.fetchval(pause) > timedelta(minutes=19)
    things.faults = []
    await run.act("s", "observe")
    await observer_of(run).observe_due()
    assert things.requests == {"list": 1}
    assert states(await drift_of(run)) == {"r0": "unknown"}
    (found,) = await paused_endpoints(run)
    assert (found["endpoint"], found["resource_type"]) == (things.url, "Headgate::HTTP")
    assert (found["requests_per_minute"], found["used"]) == (None, None)
    assert "429" in found["reason"] or "fewer requests" in found["reason"], found
    assert await paused_endpoints(run, "other") == []


async def test_a_429_without_a_time_also_holds_for_users(run: Program, things: Things) -> None:
    await create(run, things, 1, listed=True)
    things.faults = [429]
    things.requests.clear()
    await observe_due(run, observer_of(run))
    await run.database.pool.execute(LONG_PAUSE)
    things.faults = []
    await run.act("s", "observe")
    await observer_of(run).observe_due()
    assert things.requests == {"list": 1}
    assert states(await drift_of(run)) == {"r0": "unknown"}


async def test_a_throttled_endpoint_gets_no_further_requests(run: Program, things: Things) -> None:
    """Also if some of its objects were read before."""
    await create(run, things, 40)
    things.requests.clear()
    things.fail_after = 5
    things.faults = [429]
    await observe_due(run, observer_of(run))
    # Those that were under way end.
    assert things.requests["read"] <= 5 + 10
    drift = await drift_of(run)
    assert set(states(drift).values()) == {"unknown"} and len(states(drift)) >= 25
    (paused,) = drift["paused"]
    assert paused["resources"] == len(states(drift))


async def test_operations_that_wait_for_a_list_share_the_budget(
    run: Program, things: Things
) -> None:
    ready = {"path": "$.state", "values": ["up"], "source": "list"}
    await run.create("s", {"a": thing(things, ready=ready, interval=1)})

    async def waits() -> bool:
        return bool(await run.database.pool.fetchval("select count(*) from completion"))

    await eventually(waits)
    endpoints = ProviderEndpoints(run.database, RequestRates(SLOW), lambda: 0.0)
    observer = CompletionObserver(run.database, paused_observer(run)[0], endpoints=endpoints)
    due = "update completion_request set next_at = now() - interval '1s'"
    things.requests.clear()
    for _ in range(3):
        await run.database.pool.execute(due)
        await observer.send_due()
    assert things.requests["list"] == 1
    # A requested pause is that of observations, too.
    things.faults, things.retry_after = [429], "1200"
    await run.database.pool.execute("delete from provider_budget")
    await run.database.pool.execute(due)
    await observer.send_due()
    assert things.requests["list"] == 2
    wait = "select next_at - clock_timestamp() from completion_request"
    assert await run.database.pool.fetchval(wait) > timedelta(minutes=19)
    await run.database.pool.execute("delete from provider_budget")
    await run.database.pool.execute(due)
    await observer.send_due()
    assert things.requests["list"] == 2
    # Also one without a time.
    things.retry_after = ""
    await run.database.pool.execute("delete from provider_failure")
    for _ in range(2):
        await run.database.pool.execute(due)
        await observer.send_due()
        await run.database.pool.execute(LONG_PAUSE)
        await run.database.pool.execute("delete from provider_budget")
    assert things.requests["list"] == 3
    things.faults = []
    things.objects[next(iter(things.objects))]["state"] = "up"
    await run.database.pool.execute("update provider_failure set until = now()")
    await run.database.pool.execute(due)
    await observer.send_due()
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert await run.database.pool.fetch("select from provider_failure") == []


async def test_an_endpoint_may_have_a_budget_of_its_own() -> None:
    rates = RequestRates(10.0, [(["http://a*", "nova"], 5.0), (["http://*"], 0.0)])
    found = [
        rates.rate_of(one) for one in ("http://a.example", "http://b.example", "nova", "cinder")
    ]
    assert found == [5.0, 0.0, 5.0, 10.0]


async def test_resources_without_an_endpoint_need_no_budget(run: Program) -> None:
    await run.create("s", {"a": simple()})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await run.act("s", "observe")
    await observer_of(run, 1.0).observe_due()
    assert (await drift_of(run))["observable_resources"] == 1


async def observations_today(run: Program) -> int:
    _, found = await run.call("GET", "/usage")
    return sum(day["observations"] for day in found["usage"])


async def test_observations_without_a_request_are_not_counted(run: Program, things: Things) -> None:
    """A project pays for what its providers were asked, not for resources of a paused endpoint."""
    await create(run, things, 2)
    things.faults = [500]
    observer = observer_of(run)
    await observe_due(run, observer)
    assert await observations_today(run) == 2
    things.requests.clear()
    await observe_due(run, observer)
    assert things.requests == {} and states(await drift_of(run)) == {
        "r0": "unknown",
        "r1": "unknown",
    }
    assert await observations_today(run) == 2
