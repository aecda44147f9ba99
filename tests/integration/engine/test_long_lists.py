"""Observations of more resources than are read at once, whose objects a list has."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from engine import request_budget
from engine.store.observer import observation_schedule
from engine.types.contract import Call
from engine.types.observation import PRESENT, Difference, Observation, request_sent
from engine.types.observed_list import ListUnreadable, ObservedList
from engine.types.registry import TypeRegistry
from engine.words import Json, ObservedState
from engine.work.observer import batch_observer
from engine.work.observer.observer import Observer
from engine.work.observer.provider_endpoints import ProviderEndpoints, RequestRates
from tests.support.changes import put, thing
from tests.support.program import Program
from tests.support.scripted_type import Thing, World

#: Resources that are read at once, and objects of a page of the list.
PAGE, LIST_PAGE = 4, 3
#: Requests per minute: one more in 10 minutes, so that the time that a test takes does not matter.
SLOW = 0.1
POLICY = {"convergence": {"observe": {"every": "10m"}}}
MAKE_DUE = "update observation_schedule set next_at = now(), early_at = null"
BUSY = Observation.unknown("the service is busy", "the service is busy")


@dataclass
class Reads:
    """Reads of the lists. begun: how many. before: is awaited before each page; gets its
    number."""

    begun: int = 0
    pages: list[str] = field(default_factory=list)
    before: Callable[[int], Awaitable[None]] | None = None


class ListedThing(Thing):
    """A thing whose state a list of its place has: of all things with the same `place`."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.reads = Reads()
        self.compared: list[str] = []
        self.endless = False
        #: Reads what the list lacks; None: it is gone.
        self.missing: Callable[[Call], Observation] | None = None
        #: In place of the objects of the world.
        self.older: dict[str, Json] | None = None

    def observation_key(self, call: Call) -> str:
        return str(call.properties["place"])

    def observation_endpoint(self, call: Call) -> str:
        return "things"

    def observed_list(self, call: Call) -> ObservedList:
        place = str(call.properties["place"])
        gone = Observation(ObservedState.MISSING, reason="it is gone")
        return ObservedList(
            lambda: self._pages(place), self._compare, self.missing or (lambda _: gone),
            reads_alone=lambda _: self.missing is not None,
        )  # fmt: skip

    def observe(self, calls: Any) -> Any:
        return self.observed_list(calls[0]).observe(calls)

    async def _pages(self, place: str) -> AsyncIterator[list[tuple[str, Json]]]:
        self.reads.begun += 1
        last = 10**9 if self.endless else max(len(self._objects()), 1)
        for start in range(0, last, LIST_PAGE):
            request_sent()
            self.reads.pages.append(place)
            if self.reads.before is not None:
                await self.reads.before(len(self.reads.pages))
            # As it is now: an object may have moved to another page.
            yield self._objects()[start : start + LIST_PAGE]

    def _objects(self) -> list[tuple[str, Json]]:
        return sorted((self.world.things if self.older is None else self.older).items())

    def _compare(self, call: Call, size: Json) -> Observation:
        self.compared.append(call.resource_name)
        seen = self.world.observed.get(call.resource_name)
        if isinstance(seen, Exception):
            raise seen
        if size == call.properties["size"]:
            return PRESENT
        return Observation(
            ObservedState.CHANGED, [Difference("size", call.properties["size"], size)]
        )


@pytest.fixture(scope="module")
def things_settings(paused_observers: None) -> Mapping[str, Any]:
    return {}


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


@pytest.fixture
def listed(world: World) -> ListedThing:
    return ListedThing(world)


def observer_of(run: Program, type_: Thing, **options: Any) -> Observer:
    return Observer(run.database, TypeRegistry([type_]), page=PAGE, **options)


async def create(run: Program, stacks: int, resources: int, **more: Json) -> None:
    for number in range(stacks):
        things = {f"s{number}r{n}": thing(**more) for n in range(resources)}
        await run.create(f"s{number}", things, environment=POLICY)
        assert await run.until_ended(f"s{number}") == "CREATE_COMPLETE"


async def observe(run: Program, observer: Observer) -> int:
    await run.database.pool.execute(MAKE_DUE)
    return await observer.observe_due()


async def states(run: Program, stacks: int) -> dict[str, str]:
    """The states of the resources that differ."""
    found = [await run.stack_request("GET", f"s{n}", "/drift") for n in range(stacks)]
    return {one["resource_name"]: one["state"] for drift in found for one in drift["resources"]}


def object_of(world: World, name: str) -> str:
    (found,) = [one for one in world.things if one.startswith(f"{name}-")]
    return found


async def test_a_list_is_read_once_for_all_resources_of_a_batch(
    run: Program, world: World, listed: ListedThing
) -> None:
    await create(run, 3, 5)
    world.things[object_of(world, "s1r3")] = 2
    assert await observe(run, observer_of(run, listed)) == 3
    assert len(listed.reads.pages) == 5  # of 15 objects; not once for each page of resources
    assert await states(run, 3) == {"s1r3": "changed"}
    drift = await run.stack_request("GET", "s1", "/drift")
    assert (drift["observable_resources"], drift["observing"]) == (5, False)
    assert drift["observed_at"] is not None


@pytest.mark.parametrize(("of_all", "lists"), [(28, 1), (27, 2)])
async def test_a_batch_reads_its_lists_sooner_if_all_batches_keep_many_resources(
    run: Program,
    world: World,
    worlds: dict[str, World],
    listed: ListedThing,
    monkeypatch: pytest.MonkeyPatch,
    of_all: int,
    lists: int,
) -> None:
    monkeypatch.setattr(batch_observer, "LISTED_OF_ALL", of_all)
    monkeypatch.setattr(batch_observer, "MIN_LISTED", 2 * PAGE)
    other = Program(run.session, run.url, f"{run.project}-other")
    worlds[other.project] = world
    for one, name in ((run, "a"), (other, "b")):
        await one.create("s", {f"{name}{n}": thing() for n in range(15)}, environment=POLICY)
        assert await one.until_ended("s") == "CREATE_COMPLETE"
    observer = observer_of(run, listed)
    await run.database.pool.execute(MAKE_DUE)
    begun = list[int]()

    async def observe_other(page: int) -> None:
        if page == 1:
            await observer.observe_due()
            begun.append(listed.reads.begun)

    listed.reads.before = observe_other
    await observer.observe_due()
    # The list of the first batch, which keeps 15, and those of the second one after 12 and 15.
    assert begun == [1 + lists]


async def test_an_object_is_missing_if_two_lists_lack_it(
    run: Program, world: World, listed: ListedThing
) -> None:
    await create(run, 2, 5)
    del world.things[object_of(world, "s0r0")], world.things[object_of(world, "s1r4")]
    await observe(run, observer_of(run, listed))
    assert len(listed.reads.pages) == 2 * 3
    assert await states(run, 2) == {"s0r0": "missing", "s1r4": "missing"}


async def test_an_object_that_moves_between_pages_is_not_missing(
    run: Program, world: World, listed: ListedThing
) -> None:
    await create(run, 2, 5)
    first, last = object_of(world, "s0r0"), object_of(world, "s1r4")

    async def move(page: int) -> None:
        if page == 2:  # of the first object: all others are one place further up
            world.things["zzz"] = world.things.pop(first)
        if page == 5:
            world.things[first] = world.things.pop("zzz")

    listed.reads.before = move
    await observe(run, observer_of(run, listed))
    assert len(listed.reads.pages) > 4 and last in world.things
    assert await states(run, 2) == {}


async def test_what_a_list_has_until_it_cannot_be_read_is_observed(
    run: Program, world: World, listed: ListedThing
) -> None:
    await create(run, 2, 5)
    for name in ("s0r0", "s1r4"):
        world.things[object_of(world, name)] = 2

    async def fail(page: int) -> None:
        if page == 3:
            raise ListUnreadable(BUSY)

    listed.reads.before = fail
    observer = observer_of(run, listed)
    await observe(run, observer)
    found = await states(run, 2)
    assert found.pop("s0r0") == "changed"
    assert len(found) == 4 and set(found.values()) == {"unknown"}
    drift = await run.stack_request("GET", "s1", "/drift")
    assert {one["reason"] for one in drift["resources"]} == {"the service is busy"}
    # The endpoint is not asked again at once.
    await observe(run, observer)
    assert len(listed.reads.pages) == 3


async def test_a_page_that_takes_too_long_makes_the_rest_unknown(
    run: Program, listed: ListedThing
) -> None:
    await create(run, 2, 5)

    async def hang(page: int) -> None:
        if page == 2:
            await asyncio.Event().wait()

    listed.reads.before = hang
    await observe(run, observer_of(run, listed, page_timeout=timedelta(milliseconds=100)))
    found = await states(run, 2)
    assert len(found) == 10 - LIST_PAGE and set(found.values()) == {"unknown"}
    (one, *_) = (await run.stack_request("GET", "s1", "/drift"))["resources"]
    assert one["reason"] == "there was no answer within 0.1 s"


async def test_the_time_limit_is_one_of_the_whole_list(run: Program, listed: ListedThing) -> None:
    """A service that adds a page whenever one is read does not occupy the observer."""
    await create(run, 2, 5)

    async def add(page: int) -> None:
        await asyncio.sleep(0)
        listed.older = dict.fromkeys((f"{number:04}" for number in range(page * LIST_PAGE)), 1)

    listed.reads.before, listed.endless = add, True
    await observe(run, observer_of(run, listed, page_timeout=timedelta(milliseconds=40)))
    found = await states(run, 2)
    assert len(found) == 10 and set(found.values()) == {"unknown"}
    (one, *_) = (await run.stack_request("GET", "s1", "/drift"))["resources"]
    assert one["reason"] == "there was no answer within 0.2 s"


async def test_an_error_of_a_comparison_is_one_of_its_resource(
    run: Program, world: World, listed: ListedThing
) -> None:
    await create(run, 2, 5)
    world.observed["s0r2"] = ValueError("a secret text")
    await observe(run, observer_of(run, listed))
    assert await states(run, 2) == {"s0r2": "unknown"}
    (one,) = (await run.stack_request("GET", "s0", "/drift"))["resources"]
    assert one["reason"].startswith("internal error ")


async def test_an_error_of_a_list_makes_its_resources_unknown(
    run: Program, listed: ListedThing
) -> None:
    await create(run, 2, 3)

    async def fail(page: int) -> None:
        raise ValueError("a secret text")

    listed.reads.before = fail
    await observe(run, observer_of(run, listed))
    found = await states(run, 2)
    assert len(found) == 6 and set(found.values()) == {"unknown"}


async def test_a_resource_that_changes_while_a_list_is_read_keeps_its_new_state(
    run: Program, world: World, listed: ListedThing
) -> None:
    await create(run, 2, 5)

    async def change(page: int) -> None:
        if page == 2:
            changed = {f"s1r{n}": thing(7) for n in range(5)}
            await put(run, "s1", changed, environment=POLICY)
            assert await run.until_ended("s1") == "UPDATE_COMPLETE"

    listed.reads.before = change
    await observe(run, observer_of(run, listed))
    assert await states(run, 2) == {}


async def test_a_list_says_nothing_about_a_resource_that_has_changed_since(
    run: Program, world: World, listed: ListedThing
) -> None:
    """Neither that it differs, from an object as it was before, nor that it is missing."""
    await create(run, 2, 5)
    older = dict(world.things)

    async def change(page: int) -> None:
        if page == 3:  # the page has arrived, and is not compared yet
            changed = {f"s1r{n}": thing(7) for n in range(5)}
            await put(run, "s1", changed, environment=POLICY)
            assert await run.until_ended("s1") == "UPDATE_COMPLETE"

    listed.older, listed.reads.before = older, change
    del older[object_of(world, "s1r3")]
    await observe(run, observer_of(run, listed))
    assert await states(run, 2) == {}


class FewFields(ListedThing):
    """Entries of every second resource of a stack lack values."""

    def observed_list(self, call: Call) -> ObservedList:
        return replace(super().observed_list(call), missing=self._read_alone, compare=self._listed)

    def _listed(self, call: Call, size: Json) -> Observation | None:
        few = int(call.resource_name[-1]) % 2
        return None if few else self._compare(call, size)

    async def _read_alone(self, call: Call) -> Observation:
        request_sent()
        if call.physical_id not in self.world.things:
            return Observation(ObservedState.MISSING)
        return self._compare(call, self.world.things[call.physical_id])


async def test_entries_of_a_long_list_that_lack_values_are_read_by_themselves(
    run: Program, world: World
) -> None:
    await create(run, 2, 6)
    listed = FewFields(world)
    world.things[object_of(world, "s1r1")] = 9
    world.things[object_of(world, "s1r2")] = 9
    del world.things[object_of(world, "s0r3")]
    await observe(run, observer_of(run, listed))
    assert await states(run, 2) == {"s1r1": "changed", "s1r2": "changed", "s0r3": "missing"}
    assert sorted(listed.compared) == sorted(set(listed.compared))
    assert len(listed.compared) == 11


class ReadAlone(ListedThing):
    """What the list lacks is read by itself, and the service requests fewer requests."""

    def observed_list(self, call: Call) -> ObservedList:
        return replace(super().observed_list(call), missing=self._read_alone, reads=1)

    async def _read_alone(self, call: Call) -> Observation:
        request_sent()
        self.compared.append(call.resource_name)
        return replace(BUSY, retry_after=60.0)


async def test_a_service_that_requests_fewer_requests_gets_none_for_what_its_list_lacks(
    run: Program, world: World
) -> None:
    await create(run, 2, 5)
    world.things.clear()
    listed = ReadAlone(world)
    observer = observer_of(run, listed)
    for _ in range(2):
        await observe(run, observer)
    assert len(listed.reads.pages) == 1 and len(listed.compared) == 1
    found = await states(run, 2)
    assert len(found) == 10 and set(found.values()) == {"unknown"}


async def test_a_process_that_loses_its_claim_writes_nothing_more(
    run: Program, world: World, listed: ListedThing
) -> None:
    await create(run, 2, 5)
    for name in world.things:
        world.things[name] = 2
    stack_id = UUID((await run.stack("s1"))["id"])

    async def claim(page: int) -> None:
        if page == 2:
            await run.database.pool.execute(
                "update observation_schedule set claim = claim + 1 where stack_id = $1", stack_id
            )

    listed.reads.before = claim
    await observe(run, observer_of(run, listed))
    found = await states(run, 2)
    assert {name for name in found if name.startswith("s0")} == {f"s0r{n}" for n in range(5)}
    assert not any(name.startswith("s1") for name in found)
    # One page finds out that the claim is lost.
    assert len([name for name in listed.compared if name.startswith("s1")]) <= LIST_PAGE
    # The stack is still the other process's.
    claimed = "select claimed_at is not null from observation_schedule where stack_id = $1"
    assert await run.database.pool.fetchval(claimed, stack_id)


async def test_each_short_list_is_read_once(
    run: Program, world: World, listed: ListedThing
) -> None:
    for number in range(3):
        things = {f"s{number}r{n}": thing(place=f"place {n}") for n in range(4)}
        await run.create(f"s{number}", things, environment=POLICY)
        assert await run.until_ended(f"s{number}") == "CREATE_COMPLETE"
    del world.things[object_of(world, "s2r1")]
    await observe(run, observer_of(run, listed))
    lists = {place: listed.reads.pages.count(place) for place in listed.reads.pages}
    # Of 11 objects, as far as to the last wanted one; the list of the missing one is read twice.
    assert lists == {"place 0": 3, "place 1": 8, "place 2": 4, "place 3": 4}
    assert await states(run, 3) == {"s2r1": "missing"}


async def test_the_budget_is_charged_for_each_page(
    run: Program, listed: ListedThing, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(run, 2, 5)
    monkeypatch.setattr(request_budget, "BURST", 3 * 60 / SLOW)  # three requests at once
    endpoints = ProviderEndpoints(run.database, RequestRates(SLOW), lambda: 0.0)
    observer = observer_of(run, listed, endpoints=endpoints)
    await observe(run, observer)
    assert len(listed.reads.pages) == 4 and await states(run, 2) == {}
    # The next list needs a request, and this one has used more than the budget has at once.
    await observe(run, observer)
    assert len(listed.reads.pages) == 4
    drift = await run.stack_request("GET", "s0", "/drift")
    assert drift["paused"][0]["resources"] == 5 and drift["observable_resources"] == 5


async def test_reported_resources_share_a_list(
    run: Program, world: World, listed: ListedThing
) -> None:
    await create(run, 2, 5)
    await observe(run, observer_of(run, listed))
    listed.reads.pages.clear()
    world.things[object_of(world, "s1r0")] = 2
    async with run.database.connection() as conn:
        changes = [(one, None) for one in world.things]
        await observation_schedule.report_changes(conn, run.project, changes)
    await observer_of(run, listed).observe_due()
    assert len(listed.reads.pages) == 4
    assert await states(run, 2) == {"s1r0": "changed"}
