"""Events over AMQP: exchanges, routing keys, and outages of the broker."""

import asyncio
from collections.abc import AsyncIterator

import aio_pika
import orjson
import pytest

from channels.amqp.broker import Broker, BrokerSettings, NotPublished
from engine.types.contract import Failed
from tests.integration.amqp.conftest import AmqpClient, running_client, subscribe
from tests.support.changes import thing
from tests.support.ports import free_port
from tests.support.program import Program, eventually, program
from tests.support.rabbit import Rabbit, running_rabbit
from tests.support.scripted_type import Thing, World


async def test_each_event_is_a_persistent_message_in_order(run: Program, amqp: AmqpClient) -> None:
    await subscribe(run, amqp)
    await run.create("web.1", {"a": thing(), "b": thing(depends_on="a")})
    await run.until_ended("web.1")
    seen: list[int] = []
    kinds: list[str] = []
    while not kinds or kinds[-1] != "headgate.stack.create.completed":
        message = await amqp.next()
        event = orjson.loads(message.body)
        assert message.routing_key == f"{event['type']}.p.web_1"
        assert (message.message_id, message.type) == (event["id"], event["type"])
        assert message.delivery_mode == aio_pika.DeliveryMode.PERSISTENT
        assert message.content_type == "application/cloudevents+json"
        assert (message.reply_to, message.correlation_id) == (None, None)
        seen.append(event["sequence"])
        kinds.append(event["type"])
    assert seen == list(range(1, len(seen) + 1))
    assert kinds.count("headgate.resource.create.completed") == 2


async def test_unrouted_messages_are_stored(run: Program, amqp: AmqpClient) -> None:
    await subscribe(run, amqp, events=["headgate.stack.*"])
    await amqp.queue.unbind(amqp.exchange, "headgate.#")
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    kept = await amqp.next(f"unrouted.{amqp.name}")
    assert kept.type == "headgate.stack.create.started"


async def test_a_deleted_exchange_is_declared_again(run: Program, amqp: AmqpClient) -> None:
    subscription = await subscribe(run, amqp, events=["headgate.stack.*"])
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await amqp.next_of("headgate.stack.create.completed")
    await amqp.channel.exchange_delete(amqp.exchange)
    await run.update("s", tags="later")

    async def is_delivered() -> bool:
        _, response = await run.call("GET", f"/subscriptions/{subscription['id']}/deliveries")
        return all(one["state"] == "delivered" for one in response["deliveries"])

    await eventually(is_delivered)
    assert (await amqp.next(f"unrouted.{amqp.name}")).type == "headgate.stack.update.started"


async def test_a_test_event_is_sent_at_once(run: Program, amqp: AmqpClient) -> None:
    subscription = await subscribe(run, amqp)

    async def send_test_event() -> bool:
        status, result = await run.call("POST", f"/subscriptions/{subscription['id']}/test")
        assert status == 200, result
        away = result.get("reason") == "no connection to the broker: not connected yet"
        assert result["delivered"] or away, result
        return not away

    await eventually(send_test_event)
    assert orjson.loads((await amqp.next()).body)["data"]["test"] is True


@pytest.mark.parametrize("target", ["amq.topic", "other", "", "headgate." + "x" * 300])
async def test_an_exchange_that_is_not_allowed(run: Program, target: str) -> None:
    body = {"channel": "amqp", "target": target}
    status, response = await run.call("POST", "/subscriptions", body)
    assert status == 400, response
    _, listed = await run.call("GET", "/subscriptions")
    assert listed["subscriptions"] == []


@pytest.fixture
async def run_without_broker(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url) as run:
        yield run


async def test_without_a_broker_amqp_subscriptions_are_refused(run_without_broker: Program) -> None:
    body = {"channel": "amqp", "target": "headgate"}
    status, response = await run_without_broker.call("POST", "/subscriptions", body)
    assert status == 400
    assert '"amqp" is not set up on this server' in response["error"]["message"]
    assert "[channels.amqp] url" in response["error"]["remedy"]


async def test_the_next_of_several_brokers_is_used(
    database_url: str, rabbit: Rabbit, amqp: AmqpClient
) -> None:
    urls = f"amqp://guest:guest@127.0.0.1:{free_port()}/,{rabbit.url}"
    settings = {"channels.amqp.url": urls, **amqp.settings}
    async with program(database_url, settings, types=[Thing(World())]) as run:
        await subscribe(run, amqp)
        await run.create("s", {"a": thing()})
        await amqp.next_of("headgate.stack.create.completed")


async def test_an_unavailable_broker_does_not_delay_other_channels(
    database_url: str, world: World
) -> None:
    async with running_rabbit() as rabbit, running_client(rabbit) as amqp:
        settings = {"channels.amqp.url": rabbit.url, **amqp.settings}
        async with program(database_url, settings, types=[Thing(world)]) as run:
            await subscribe(run, amqp)
            await run.create("before", {"a": thing()})
            await amqp.next_of("headgate.stack.create.completed")
            rabbit.kill()
            rules = {"hooks": [{"at": "a", "on": "pre-create"}]}
            await run.create("while", {"a": thing(), "b": thing()}, environment=rules)
            (hook,) = await run.waiting_hooks("while")
            await run.signal(hook)
            assert await run.until_ended("while") == "CREATE_COMPLETE"
            await run.update("before", tags="later")
            assert await run.until_ended("before") == "UPDATE_COMPLETE"
            rabbit.start()
            await rabbit.ready()
            async with running_client(rabbit) as later:
                later.queue = await later.channel.get_queue(amqp.queue.name)
                kinds = {"while": [0], "before": [0]}
                ends = {"headgate.stack.create.completed", "headgate.stack.update.completed"}
                while ends:
                    event = orjson.loads((await later.next()).body)
                    kinds[event["data"]["stack"]["name"]].append(event["sequence"])
                    ends.discard(event["type"])
    assert kinds["while"] == list(range(len(kinds["while"])))
    assert kinds["before"][1:] == sorted(set(kinds["before"][1:]))


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("amqp://guest:guest@127.0.0.1:{closed}/", "cannot connect"),
        ("amqp://guest:a-secret@127.0.0.1:{port}/", "cannot connect"),
    ],
)
async def test_the_error_of_a_broker_that_refuses_connections(
    rabbit: Rabbit, url: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = BrokerSettings([url.format(closed=free_port(), port=rabbit.port)])
    broker, stop = Broker(settings), asyncio.Event()
    task = asyncio.create_task(broker.run(stop))

    async def reason() -> str | None:
        try:
            await broker.publish("headgate", "key", aio_pika.Message(b""))
        except NotPublished as error:
            return str(error) if why in str(error) else None
        return None

    message = await eventually(reason)
    stop.set()
    await task
    assert "a-secret" not in message + capsys.readouterr().out


async def test_listeners_of_heat_get_its_notifications(
    database_url: str, rabbit: Rabbit, amqp: AmqpClient
) -> None:
    exchange = f"heat.{amqp.name}"
    settings = {"channels.amqp.url": rabbit.url, **amqp.settings,
            "channels.amqp.heat_exchanges": [exchange]}  # fmt: skip
    await amqp.channel.declare_exchange(exchange, aio_pika.ExchangeType.TOPIC)
    for level in ("info", "error"):
        await amqp.queue.bind(exchange, f"notifications.{level}")
    world = World()
    world.script("create", "b", Failed("no"))
    async with program(database_url, settings, types=[Thing(world)]) as run:
        body = {"channel": "heat", "target": exchange}
        assert (await run.call("POST", "/subscriptions", body))[0] == 201
        body = {"channel": "heat", "target": amqp.exchange}
        assert (await run.call("POST", "/subscriptions", body))[0] == 400
        await run.create("s", {"a": thing(), "b": thing()}, tags="prod,web")
        await run.until_ended("s")
        found = [await amqp.next(), await amqp.next()]
    send_test_event = [
        orjson.loads(orjson.loads(message.body)["oslo.message"]) for message in found
    ]
    assert [message.routing_key for message in found] == [
        "notifications.info",
        "notifications.error",
    ]
    assert [one["event_type"] for one in send_test_event] == [
        "orchestration.stack.create.start", "orchestration.stack.create.error",
    ]  # fmt: skip
    assert send_test_event[1]["payload"]["state"] == "CREATE_FAILED"
    assert send_test_event[1]["payload"]["tags"] == ["prod", "web"]
    assert await amqp.queue.get(fail=False) is None
