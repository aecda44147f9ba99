"""Operations of one type in two regions, which the observer completes by a list of each."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import timedelta

import pytest
import pytest_asyncio

from engine.hot.schema.type_schema import TypeSchema
from engine.types.completion import AcceptedOperation, ObjectsUnknown
from engine.types.contract import Call, Done, Outcome, ResourceType, Wait
from engine.types.regions import listed_region, name_in_region, region_definition
from engine.words import Json
from engine.work.observer.completion_observer import CompletionObserver
from tests.integration.engine.test_stack_regions import KnownRegion, region
from tests.support.completions import pause_completion_observers, send_now, until_waiting
from tests.support.program import Program
from tests.support.receiver import until

TWO = "RegionTwo"
OBJECT = "the same ID in both regions"


class Listed(ResourceType):
    """states: of the object, by region. listed: the regions of the lists that were read. busy: the
    regions whose service requests a pause."""

    schema = TypeSchema("Test::Listed")

    def __init__(self) -> None:
        self.constraints = (KnownRegion(),)
        self.states: dict[str, str] = {}
        self.listed: list[str] = []
        self.busy: set[str] = set()

    async def create(self, call: Call) -> Outcome:
        assert self.completions is not None
        accepted = AcceptedOperation(
            call.project, call.stack_id, call.operation_key, "Test::Listed",
            name_in_region("all", call.region), OBJECT, region_definition(call.region), 5.0,
        )  # fmt: skip
        if await self.completions.wait(accepted) is not None:
            return Done(OBJECT)
        return Wait(call.now + timedelta(hours=1), {})

    def delete(self, call: Call) -> Outcome:
        return Done(None)

    def objects_endpoint(self, definition: Mapping[str, Json]) -> str:
        return "Nova"

    async def read_objects(
        self, project: str, definition: Mapping[str, Json]
    ) -> AsyncIterator[Mapping[str, Json]]:
        name = listed_region(definition)
        self.listed.append(name)
        if name in self.busy:
            raise ObjectsUnknown("too many requests", 3600.0)
        yield {OBJECT: self.states.get(name, "building")}

    def is_complete(self, definition: Mapping[str, Json], found: Json) -> bool:
        return bool(found == "ready")


@pytest.fixture(scope="module")
def observers() -> Iterator[list[CompletionObserver]]:
    with pause_completion_observers() as paused:
        yield paused


@pytest.fixture(scope="module")
def shared_types(observers: list[CompletionObserver]) -> Sequence[Listed]:
    return [Listed()]


@pytest.fixture
def lists(shared_types: Sequence[Listed]) -> Listed:
    (only,) = shared_types
    only.states.clear()
    only.listed.clear()
    only.busy.clear()
    return only


@pytest_asyncio.fixture(loop_scope="session")
async def observer(
    in_own_project: Program, observers: list[CompletionObserver]
) -> CompletionObserver:
    await until(lambda: bool(observers))
    return observers[0]


async def build(run: Program, name: str, where: str = "") -> None:
    environment = region(where) if where else {}
    await run.create(name, {"a": {"type": "Test::Listed"}}, environment=environment)


async def status(run: Program, name: str) -> str:
    return str((await run.stack(name))["stack_status"])


async def test_a_list_completes_the_operations_of_its_region_only(
    in_own_project: Program, observer: CompletionObserver, lists: Listed
) -> None:
    run = in_own_project
    await build(run, "one")
    await build(run, "two", TWO)
    await until_waiting(run, 2)
    lists.states[TWO] = "ready"
    await send_now(run, observer)
    assert sorted(lists.listed) == ["", TWO]
    assert await run.until_ended("two") == "CREATE_COMPLETE"
    await send_now(run, observer)
    assert await status(run, "one") == "CREATE_IN_PROGRESS"
    lists.states[""] = "ready"
    await send_now(run, observer)
    assert await run.until_ended("one") == "CREATE_COMPLETE"


async def test_a_pause_that_one_region_requests_does_not_delay_another(
    in_own_project: Program, observer: CompletionObserver, lists: Listed
) -> None:
    run = in_own_project
    lists.busy = {TWO}
    await build(run, "two", TWO)
    await until_waiting(run, 1)
    await send_now(run, observer)
    assert lists.listed == [TWO]
    lists.states[""] = "ready"
    await build(run, "one")
    await until_waiting(run, 2)
    await send_now(run, observer)
    assert lists.listed == [TWO, ""]  # the busy region is not asked again
    assert await run.until_ended("one") == "CREATE_COMPLETE"
    assert await status(run, "two") == "CREATE_IN_PROGRESS"
