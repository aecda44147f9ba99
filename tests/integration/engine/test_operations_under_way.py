"""Operations that are in progress when the stack changes again.

A test moves the worker by hand; the model in tests/model found the traces.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from engine.principal import principal_of_name
from engine.service import Answer, Engine
from engine.service.requests.requests import StackRequest
from engine.store.database import Database
from engine.types.contract import Failed, Wait
from engine.words import AnswerChannel, Decision, Json
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import ManualWorker
from tests.support.scripted_type import Thing, World

PROJECT = "p"
ANN = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.UNSET_HOOK)
#: Wait until a time in the past: the operation is called again at once.
CALL_AGAIN = Wait(datetime(2020, 1, 1, tzinfo=UTC), {})
LONG_WAIT = Wait(datetime(2100, 1, 1, tzinfo=UTC), {})
DELETE_HOOK = {"hooks": [{"at": "a", "on": "pre-delete"}]}


def thing(place: str = "here", **more: Json) -> Json:
    return {"type": "Test::Thing", "properties": {"place": place}, **more}


def request_of(resources: Json, environment: Json = None) -> StackRequest:
    template = {"heat_template_version": "2018-08-31", "resources": resources}
    return StackRequest(name="s", template=template, environment=environment)


@dataclass
class Bench:
    """One stack, and a worker that a test moves."""

    world: World
    engine: Engine
    worker: ManualWorker
    stack: UUID = field(default_factory=uuid4)

    async def create(self, resources: Json) -> None:
        self.stack = (await self.engine.stacks.create(PROJECT, request_of(resources))).id
        await self.worker.work()

    async def update(self, resources: Json, environment: Json = None) -> None:
        await self.engine.stacks.update(PROJECT, self.stack, request_of(resources, environment))

    async def delete(self) -> None:
        await self.engine.stacks.delete(PROJECT, self.stack, principal_of_name("ann"))


@pytest.fixture
def bench(database: Database) -> Bench:
    world = World()
    engine = idle_engine(database, Thing(world))
    worker = ManualWorker(database, make_registry(Thing(world)), engine.stacks.end_traversal, uuid4)
    return Bench(world, engine, worker)


async def recreate_during_deletion(bench: Bench, resource: Json) -> None:
    """Request a resource again while it is being deleted: when its new node starts, its row no
    longer exists.
    """
    await bench.create({"a": thing()})
    await bench.update({})
    await bench.worker.until_job()
    await bench.update({"a": resource})


async def test_a_failed_create_without_a_row_is_cleaned_up_by_the_next_update(bench: Bench) -> None:
    await recreate_during_deletion(bench, thing())
    bench.world.things["half"] = "half"
    bench.world.script("create", "a", Failed("no", physical_id="half"))
    await bench.worker.work()
    assert set(bench.world.things) == {"half"}
    await bench.update({"a": thing()})
    await bench.worker.work()
    assert len(bench.world.things) == 1 and "half" not in bench.world.things


async def test_a_create_without_a_row_follows_its_deletion_policy(bench: Bench) -> None:
    await recreate_during_deletion(bench, thing(deletion_policy="Retain"))
    await bench.worker.work()
    await bench.delete()
    await bench.worker.work()
    assert len(bench.world.things) == 1


async def test_a_create_without_a_row_follows_a_deletion_policy_that_changed_meanwhile(
    bench: Bench,
) -> None:
    await recreate_during_deletion(bench, thing())
    bench.worker.operate(0)
    await bench.worker.until_job()
    await bench.update({"a": thing(deletion_policy="Retain")})
    await bench.worker.work()
    await bench.delete()
    await bench.worker.work()
    assert len(bench.world.things) == 1


async def test_a_delete_hook_that_was_added_during_a_replacement_opens(bench: Bench) -> None:
    await bench.create({"a": thing()})
    await bench.update({"a": thing("there")})
    await bench.worker.until_job()
    await bench.update({"a": thing("there")}, DELETE_HOOK)
    await bench.worker.work()
    await bench.engine.hooks.unset(PROJECT, bench.stack, "a", "pre-delete", ANN)
    await bench.worker.work()
    assert len(bench.world.things) == 1
    await bench.delete()
    await bench.worker.work()
    assert len(bench.world.things) == 1


async def test_dependents_of_a_cancelled_replacement_are_deleted_before_it(
    bench: Bench,
) -> None:
    await bench.create({"a": thing()})
    old = set(bench.world.things)
    bench.world.script("delete", "a", LONG_WAIT)
    await bench.update({"a": thing("there"), "b": thing(depends_on="a")})
    await bench.worker.work()
    await bench.engine.stacks.cancel(PROJECT, bench.stack, principal_of_name("ann"), rollback=False)
    new = set(bench.world.things) - old
    bench.world.script("delete", "b", LONG_WAIT)
    await bench.delete()
    await bench.worker.work()
    assert len(new) == 2 and new <= set(bench.world.things)


async def test_a_replacement_that_ends_after_a_cancel_is_deleted_before_its_dependencies(
    bench: Bench,
) -> None:
    await bench.create({"a": thing(), "b": thing()})
    await bench.update({"a": thing(), "b": thing("there", depends_on="a")})
    await bench.worker.until_job()
    await bench.engine.stacks.cancel(PROJECT, bench.stack, principal_of_name("ann"), rollback=False)
    bench.world.script("delete", "b", CALL_AGAIN)
    await bench.delete()
    await bench.worker.work()
    deletes = [name for operation, name in bench.world.done if operation == "delete"]
    assert deletes[-1] == "a" and not bench.world.things


async def test_protection_does_not_stop_a_replacement_in_progress(bench: Bench) -> None:
    await bench.create({"a": thing()})
    bench.world.script("create", "a", CALL_AGAIN)
    await bench.update({"a": thing("there")})
    await bench.worker.until_job()
    bench.worker.operate(0)
    await bench.engine.resource_health.protect(PROJECT, bench.stack, "a", protected=True, by="ann")
    await bench.worker.work()
    assert bench.world.operations("a") == ["create", "create", "create"]
    async with bench.worker.database.connection() as conn:
        assert await conn.fetchval("select count(*) from resource") == len(bench.world.things)
