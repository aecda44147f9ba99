"""What is under way while a stack is changed again: neither lost, nor cut off, nor passed over.

Workers are moved by hand; the sequences were found by the model in tests/model.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from engine.principal import named
from engine.service import Answer, Engine
from engine.service.requests.requests import StackRequest
from engine.store.database import Database
from engine.types.contract import Failed, Wait
from engine.words import Decision, Door, Json
from tests.support.front import a_front, a_registry
from tests.support.hands import Hands
from tests.support.things import Thing, World

PROJECT = "p"
ANN = Answer(Decision.CONTINUE, named("ann"), Door.UNSET_HOOK)
#: Called again at once.
ONCE_MORE = Wait(datetime(2020, 1, 1, tzinfo=UTC), {})
NEVER = Wait(datetime(2100, 1, 1, tzinfo=UTC), {})
ASKS = {"hooks": [{"at": "a", "on": "pre-delete"}]}


def thing(place: str = "here", **more: Json) -> Json:
    return {"type": "Test::Thing", "properties": {"place": place}, **more}


def asked(resources: Json, environment: Json = None) -> StackRequest:
    template = {"heat_template_version": "2018-08-31", "resources": resources}
    return StackRequest(name="s", template=template, environment=environment)


@dataclass
class Bench:
    """One stack, and hands that work on it when told."""

    world: World
    front: Engine
    hands: Hands
    stack: UUID = field(default_factory=uuid4)

    async def create(self, resources: Json) -> None:
        self.stack = (await self.front.stacks.create(PROJECT, asked(resources))).id
        await self.work()

    async def update(self, resources: Json, environment: Json = None) -> None:
        await self.front.stacks.update(PROJECT, self.stack, asked(resources, environment))

    async def delete(self) -> None:
        await self.front.stacks.delete(PROJECT, self.stack, named("ann"))

    async def begin(self) -> None:
        """Go on until an operation is to be called."""
        while not self.hands.jobs:
            assert await self.hands.claim(10)

    async def work(self) -> None:
        """Go on until nothing is to be done."""
        while self.hands.jobs or await self.hands.claim(10):
            while self.hands.jobs:
                self.hands.operate(0)


@pytest.fixture
def bench(database: Database) -> Bench:
    world = World()
    front = a_front(database, Thing(world))
    hands = Hands(database, a_registry(Thing(world)), front.stacks.end_traversal, uuid4)
    return Bench(world, front, hands)


async def made_again(bench: Bench, resource: Json) -> None:
    """A resource wanted again while it is being deleted: when its new node begins, its row is gone."""
    await bench.create({"a": thing()})
    await bench.update({})
    await bench.begin()
    await bench.update({"a": resource})


async def test_what_a_create_without_a_row_left_behind_is_cleared_away(bench: Bench) -> None:
    await made_again(bench, thing())
    bench.world.things["half"] = "half"
    bench.world.will("create", "a", Failed("no", physical_id="half"))
    await bench.work()
    assert set(bench.world.things) == {"half"}
    await bench.update({"a": thing()})
    await bench.work()
    assert len(bench.world.things) == 1 and "half" not in bench.world.things


async def test_what_is_made_without_a_row_is_retained_as_declared(bench: Bench) -> None:
    await made_again(bench, thing(deletion_policy="Retain"))
    await bench.work()
    await bench.delete()
    await bench.work()
    assert len(bench.world.things) == 1


async def test_what_is_made_without_a_row_is_retained_as_declared_meanwhile(bench: Bench) -> None:
    await made_again(bench, thing())
    bench.hands.operate(0)
    await bench.begin()
    await bench.update({"a": thing(deletion_policy="Retain")})
    await bench.work()
    await bench.delete()
    await bench.work()
    assert len(bench.world.things) == 1


async def test_a_replacement_asks_as_was_declared_while_it_was_made(bench: Bench) -> None:
    await bench.create({"a": thing()})
    await bench.update({"a": thing("there")})
    await bench.begin()
    await bench.update({"a": thing("there")}, ASKS)
    await bench.work()
    await bench.front.hooks.unset(PROJECT, bench.stack, "a", "pre-delete", ANN)
    await bench.work()
    assert len(bench.world.things) == 1
    await bench.delete()
    await bench.work()
    assert len(bench.world.things) == 1


async def test_who_uses_a_replacement_goes_before_it_though_the_change_was_cancelled(
    bench: Bench,
) -> None:
    await bench.create({"a": thing()})
    old = set(bench.world.things)
    bench.world.will("delete", "a", NEVER)
    await bench.update({"a": thing("there"), "b": thing(depends_on="a")})
    await bench.work()
    await bench.front.stacks.cancel(PROJECT, bench.stack, named("ann"), rollback=False)
    new = set(bench.world.things) - old
    bench.world.will("delete", "b", NEVER)
    await bench.delete()
    await bench.work()
    assert len(new) == 2 and new <= set(bench.world.things)


async def test_what_is_made_when_the_change_is_cancelled_goes_before_what_it_uses(
    bench: Bench,
) -> None:
    await bench.create({"a": thing(), "b": thing()})
    await bench.update({"a": thing(), "b": thing("there", depends_on="a")})
    await bench.begin()
    await bench.front.stacks.cancel(PROJECT, bench.stack, named("ann"), rollback=False)
    bench.world.will("delete", "b", ONCE_MORE)
    await bench.delete()
    await bench.work()
    deletes = [name for operation, name in bench.world.done if operation == "delete"]
    assert deletes[-1] == "a" and not bench.world.things


async def test_protection_comes_too_late_for_a_replacement_under_way(bench: Bench) -> None:
    await bench.create({"a": thing()})
    bench.world.will("create", "a", ONCE_MORE)
    await bench.update({"a": thing("there")})
    await bench.begin()
    bench.hands.operate(0)
    await bench.front.resource_health.protect(PROJECT, bench.stack, "a", protected=True, by="ann")
    await bench.work()
    assert bench.world.operations("a") == ["create", "create", "create"]
    async with bench.hands.database.connection() as conn:
        assert await conn.fetchval("select count(*) from resource") == len(bench.world.things)
