"""Notifications of providers over AMQP: they cause observations, and assert no state."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import aio_pika
import orjson
import pytest
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import DeliveryError
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from channels.amqp import notification_listener
from channels.amqp.notification_listener import ProviderNotificationListener
from engine.work.claim_loop import POLL
from tests.integration.amqp.conftest import until_consumed
from tests.integration.conftest import DatabaseOutage
from tests.support.changes import thing
from tests.support.completions import WAITING, building, finish, until_waiting
from tests.support.http_things import HTTP_SETTINGS, serve_things
from tests.support.program import Json, Program, eventually, program
from tests.support.rabbit import Rabbit, running_rabbit
from tests.support.receiver import until
from tests.support.scripted_type import Thing, World

#: The rule of these tests, for the objects of `World`.
RULES = [{"events": ["thing.*.end"], "ids": ["/thing/id"], "types": ["Test::Thing"]}]


@dataclass
class Provider:
    """A service that sends notifications to an exchange of its own."""

    channel: AbstractChannel
    name: str

    @property
    def exchange(self) -> str:
        return f"nova.{self.name}"

    @property
    def queue(self) -> str:
        return f"observations.{self.name}"

    def settings(self, rabbit: Rabbit, **more: Any) -> dict[str, Any]:
        amqp = {
            "url": rabbit.url, "exchanges": [self.exchange], "queue": self.queue, "rules": RULES,
        }  # fmt: skip
        return {f"observer.amqp.{name}": value for name, value in (amqp | more).items()}

    async def declare(self) -> None:
        """As oslo.messaging does by default: the exchange is not durable."""
        await self.channel.declare_exchange(self.exchange, aio_pika.ExchangeType.TOPIC)

    async def send(self, event_type: str, payload: Json, topic: str = "notifications") -> None:
        message = {"event_type": event_type, "payload": payload, "priority": "INFO"}
        envelope = {"oslo.version": "2.0", "oslo.message": orjson.dumps(message).decode()}
        await self.send_raw(orjson.dumps(envelope), topic)

    async def send_raw(self, body: bytes, topic: str = "notifications") -> None:
        """Publish when the queue is bound: a message that no queue gets is returned."""
        exchange = await self.channel.get_exchange(self.exchange, ensure=False)

        async def is_routed() -> bool:
            try:
                await exchange.publish(aio_pika.Message(body), f"{topic}.info", mandatory=True)
            except DeliveryError:
                return False
            return True

        await eventually(is_routed)


async def open_provider(connection: aio_pika.abc.AbstractConnection, name: str = "") -> Provider:
    channel = await connection.channel(on_return_raises=True)
    return Provider(channel, name or uuid4().hex[:8])


@pytest.fixture
async def provider(rabbit: Rabbit) -> AsyncIterator[Provider]:
    async with await aio_pika.connect(rabbit.url) as connection:
        opened = await open_provider(connection)
        await opened.declare()
        yield opened


@pytest.fixture
async def notified(
    database_url: str, rabbit: Rabbit, provider: Provider, world: World
) -> AsyncIterator[Program]:
    async with program(database_url, provider.settings(rabbit), types=[Thing(world)]) as run:
        yield run


async def counts(run: Program) -> dict[str, float]:
    """The number of notifications by outcome."""
    status, text = await run.call("GET", "//metrics")
    assert status == 200
    return {
        sample.labels["outcome"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "headgate_provider_notifications_total"
    }


async def until_counted(run: Program, outcome: str, count: int = 1) -> None:
    async def reached() -> bool:
        return (await counts(run)).get(outcome, 0) >= count

    await eventually(reached)


async def create(run: Program, *names: str) -> dict[str, str]:
    """Create a stack; return the physical ID of each resource."""
    await run.create("s", {name: thing() for name in names})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    found = await run.resources("s")
    return {name: one["physical_resource_id"] for name, one in found.items()}


async def until_missing(run: Program, name: str) -> None:
    async def shown() -> bool:
        drift = await run.stack_request("GET", "s", "/drift")
        states = {one["resource_name"]: one["state"] for one in drift["resources"]}
        return states == {name: "missing"}

    await eventually(shown)


async def test_a_notification_has_its_resource_observed(
    notified: Program, provider: Provider, world: World
) -> None:
    ids = await create(notified, "a", "b")
    world.things.clear()  # both are gone, and the notification names one of them
    await provider.send("thing.delete.end", {"thing": {"id": ids["a"]}})
    await until_missing(notified, "a")
    status = await notified.stack("s")
    assert status["stack_status"] == "CREATE_COMPLETE"


async def test_what_a_notification_claims_is_not_believed(
    notified: Program, provider: Provider, world: World
) -> None:
    ids = await create(notified, "a", "b")
    del world.things[ids["b"]]
    claims = {"thing": {"id": ids["a"], "state": "deleted"}, "state": "missing"}
    await provider.send("thing.delete.end", claims)
    await provider.send("thing.delete.end", {"thing": {"id": ids["b"]}})
    await until_missing(notified, "b")


async def test_a_notification_of_nova_has_the_awaited_list_read_at_once(
    database_url: str, rabbit: Rabbit, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next request is due in an hour, and the loop does not look at its schedule by itself."""
    monkeypatch.setattr("engine.work.claim_loop.POLL", 360 * POLL)
    settings = HTTP_SETTINGS | provider.settings(rabbit)
    async with serve_things() as things, program(database_url, settings) as run:
        await run.create("s", {"a": building(things)})
        await until_waiting(run, 1)
        (known,) = things.objects
        await eventually(
            lambda: run.database.pool.fetchval("select sent > 0 from completion_request")
        )
        far = (
            "update completion_request set next_at = now() + interval '1h' where claimed_at is null"
        )
        await run.database.pool.execute(far)
        finish(things)
        payload = {"nova_object.data": {"uuid": known, "state": "error"}}
        await provider.send("instance.create.end", payload, "versioned_notifications")
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        assert await run.database.pool.fetchval(WAITING) == 0


async def test_messages_that_cannot_be_used_are_counted_and_delay_no_others(
    database_url: str, rabbit: Rabbit, provider: Provider, world: World
) -> None:
    bodies = [b"", b"[]", b"\xff\xfe", b'{"oslo.message": "{"}', b"{}", b'{"event_type": 7}']
    with capture_logs() as logs:
        async with program(database_url, provider.settings(rabbit), types=[Thing(world)]) as run:
            ids = await create(run, "a")
            for body in bodies:
                await provider.send_raw(body)
            await provider.send("thing.update.end", {"thing": {"id": "a\0"}})
            await provider.send("thing.update.start", {"thing": {"id": ids["a"]}})
            await provider.send("thing.update.end", {"thing": {"id": "unknown"}})
            world.things.clear()
            await provider.send("thing.update.end", {"thing": {"id": ids["a"]}})
            await until_missing(run, "a")
            await until_counted(run, "reported", 2)
            found = await counts(run)
    assert found == {"invalid": len(bodies) + 1, "ignored": 1, "reported": 2}
    invalid = [one for one in logs if one["event"] == "observer.amqp.invalid"]
    assert len(invalid) == 1, "at most one a minute"
    assert invalid[0]["exchange"] == provider.exchange and "not JSON" in invalid[0]["reason"]
    # All were acknowledged: the broker has none to deliver again.
    queue = await provider.channel.get_queue(provider.queue, ensure=False)
    assert await queue.get(fail=False) is None


async def test_an_internal_error_fails_one_notification_alone(
    notified: Program, provider: Provider, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await create(notified, "a")
    report = notified.engine.observations.report

    async def fail(project: str | None, changes: Any) -> Any:
        if any(physical_id == "planted" for physical_id, _ in changes):
            raise ZeroDivisionError("no")
        return await report(project, changes)

    monkeypatch.setattr(notified.engine.observations, "report", fail)
    world.things.clear()
    with capture_logs() as logs:
        for name in ("planted", ids["a"], "planted"):
            await provider.send("thing.update.end", {"thing": {"id": name}})
        await until_missing(notified, "a")
        await until_counted(notified, "failed", 2)
    failed = [one for one in logs if one["event"] == "observer.amqp.notification.failed"]
    assert len(failed) == 2 and all(one["error_id"] for one in failed)


async def test_an_exchange_that_a_service_declares_later_is_bound_then(
    database_url: str, rabbit: Rabbit, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification_listener, "REBIND", 0.05)
    async with await aio_pika.connect(rabbit.url) as connection:
        provider = await open_provider(connection)
        with capture_logs() as logs:
            settings = provider.settings(rabbit)
            async with program(database_url, settings, types=[Thing(world)]) as run:
                event = "observer.amqp.exchange_missing"
                await until(lambda: any(one["event"] == event for one in logs))
                await (
                    provider.declare()
                )  # as the service: it would fail if Headgate had declared it
                ids = await create(run, "a")
                world.things.clear()
                await provider.send("thing.delete.end", {"thing": {"id": ids["a"]}})
                await until_missing(run, "a")
    assert sum(one["event"] == event for one in logs) == 1


async def test_notifications_wait_in_the_queue_while_the_database_is_unavailable(
    notified: Program, provider: Provider, world: World, database_outage: DatabaseOutage
) -> None:
    ids = await create(notified, "a")
    world.things.clear()
    with capture_logs() as logs:
        async with database_outage():
            await provider.send("thing.delete.end", {"thing": {"id": ids["a"]}})
            await until(lambda: any(one["event"] == "observer.amqp.deferred" for one in logs))
    await until_missing(notified, "a")


async def test_the_listener_returns_after_the_broker_has_restarted(
    database_url: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification_listener, "REBIND", 0.2)
    async with running_rabbit() as rabbit:
        name = uuid4().hex[:8]
        async with await aio_pika.connect(rabbit.url) as connection:
            provider = await open_provider(connection, name)
            await provider.declare()
            settings = provider.settings(rabbit)
            async with program(database_url, settings, types=[Thing(world)]) as run:
                ids = await create(run, "a")
                await provider.send("thing.update.end", {"thing": {"id": ids["a"]}})
                await until_counted(run, "reported")
                await rabbit.stop()
                rabbit.start()
                await rabbit.ready()
                world.things.clear()
                async with await aio_pika.connect(rabbit.url) as again:
                    provider = await open_provider(again, name)
                    await provider.declare()
                    await provider.send("thing.delete.end", {"thing": {"id": ids["a"]}})
                    await until_missing(run, "a")


async def test_the_listener_returns_after_the_broker_has_cancelled_its_consumer(
    notified: Program, provider: Provider, rabbit: Rabbit, world: World
) -> None:
    """It does so when the queue is deleted, which is then declared and bound again."""
    ids = await create(notified, "a")
    await until_consumed(rabbit.url, provider.queue)
    await provider.channel.queue_delete(provider.queue)
    await until_consumed(rabbit.url, provider.queue)
    world.things.clear()
    await provider.send("thing.delete.end", {"thing": {"id": ids["a"]}})
    await until_missing(notified, "a")


async def test_several_processes_share_the_notifications(
    database_url: str, rabbit: Rabbit, provider: Provider
) -> None:
    settings = provider.settings(rabbit, prefetch=5)
    count = 200
    async with (
        program(database_url, settings, types=[Thing(World())]) as one,
        program(database_url, settings, types=[Thing(World())]) as other,
    ):

        async def both_consume() -> bool:
            queue = await provider.channel.declare_queue(provider.queue, passive=True)
            return queue.declaration_result.consumer_count == 2

        await eventually(both_consume)
        for number in range(count):
            await provider.send("thing.update.end", {"thing": {"id": f"unknown-{number}"}})

        async def reported() -> list[float] | None:
            found = [(await counts(run)).get("reported", 0) for run in (one, other)]
            return found if sum(found) >= count else None

        shares = await eventually(reported)
        assert sum(shares) == count and min(shares) > 0, shares


async def test_no_more_objects_are_reported_than_the_rate_allows(
    database_url: str, rabbit: Rabbit, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the rate stands still, so exactly the first second's objects are reported."""
    made = ProviderNotificationListener.__init__
    monkeypatch.setattr(
        ProviderNotificationListener, "__init__",
        lambda self, *given, **named: made(self, *given, **(named | {"clock": lambda: 0.0})),
    )  # fmt: skip
    settings = provider.settings(rabbit, rate=10)
    async with program(database_url, settings, types=[Thing(World())]) as run:
        for number in range(40):
            await provider.send("thing.update.end", {"thing": {"id": f"unknown-{number}"}})
        await until_counted(run, "reported", 10)
        assert 10 <= (await counts(run))["reported"] <= 20


async def test_a_stop_does_not_wait_for_the_rate(
    database_url: str, rabbit: Rabbit, provider: Provider
) -> None:
    settings = provider.settings(rabbit, rate=0.001)
    async with asyncio.timeout(60):
        async with program(database_url, settings, types=[Thing(World())]) as run:
            for number in range(3):
                await provider.send("thing.update.end", {"thing": {"id": f"unknown-{number}"}})
            await until_counted(run, "reported")
    queue = await provider.channel.get_queue(provider.queue, ensure=False)
    left = [await queue.get(fail=False), await queue.get(fail=False)]
    assert all(left), "the others wait in the queue"
