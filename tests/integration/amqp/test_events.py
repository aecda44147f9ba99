"""Events over AMQP: exchanges, routing keys, and outages of the broker."""

import asyncio
from collections.abc import AsyncIterator

import aio_pika
import orjson
import pytest

from channels.amqp.broker import Broker, BrokerSettings, NotPublished
from engine.types.contract import Failed
from tests.integration.amqp.conftest import Post, post, subscribe
from tests.support.changes import thing
from tests.support.program import Program, eventually, program
from tests.support.rabbit import Rabbit, free_port, running_rabbit
from tests.support.things import Thing, World


async def test_each_event_is_a_persistent_message_in_order(run: Program, box: Post) -> None:
    await subscribe(run, box)
    await run.create("web.1", {"a": thing(), "b": thing(depends_on="a")})
    await run.until_ended("web.1")
    seen: list[int] = []
    kinds: list[str] = []
    while not kinds or kinds[-1] != "headgate.stack.create.completed":
        message = await box.next()
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


async def test_unrouted_messages_are_kept(run: Program, box: Post) -> None:
    await subscribe(run, box, events=["headgate.stack.*"])
    await box.queue.unbind(box.exchange, "headgate.#")
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    kept = await box.next(f"unrouted.{box.name}")
    assert kept.type == "headgate.stack.create.started"


async def test_a_deleted_exchange_is_declared_again(run: Program, box: Post) -> None:
    said = await subscribe(run, box, events=["headgate.stack.*"])
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await box.next_of("headgate.stack.create.completed")
    await box.channel.exchange_delete(box.exchange)
    await run.update("s", tags="later")

    async def settled() -> bool:
        _, found = await run.call("GET", f"/subscriptions/{said['id']}/deliveries")
        return all(one["state"] == "delivered" for one in found["deliveries"])

    await eventually(settled)
    assert (await box.next(f"unrouted.{box.name}")).type == "headgate.stack.update.started"


async def test_a_test_event_is_sent_at_once(run: Program, box: Post) -> None:
    said = await subscribe(run, box)

    async def sent() -> bool:
        status, result = await run.call("POST", f"/subscriptions/{said['id']}/test")
        assert status == 200, result
        away = result.get("reason") == "no connection to the broker: not connected yet"
        assert result["delivered"] or away, result
        return not away

    await eventually(sent)
    assert orjson.loads((await box.next()).body)["data"]["test"] is True


@pytest.mark.parametrize("target", ["amq.topic", "other", "", "headgate." + "x" * 300])
async def test_an_exchange_that_is_not_allowed(run: Program, target: str) -> None:
    body = {"channel": "amqp", "target": target}
    status, said = await run.call("POST", "/subscriptions", body)
    assert status == 400, said
    _, listed = await run.call("GET", "/subscriptions")
    assert listed["subscriptions"] == []


@pytest.fixture
async def without(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url) as made:
        yield made


async def test_without_a_broker_amqp_subscriptions_are_refused(without: Program) -> None:
    body = {"channel": "amqp", "target": "headgate"}
    status, said = await without.call("POST", "/subscriptions", body)
    assert status == 400
    assert '"amqp" is not set up on this server' in said["error"]["message"]
    assert "[channels.amqp] url" in said["error"]["remedy"]


async def test_the_next_of_several_brokers_is_used(
    database_url: str, rabbit: Rabbit, box: Post
) -> None:
    urls = f"amqp://guest:guest@127.0.0.1:{free_port()}/,{rabbit.url}"
    said = {"channels.amqp.url": urls, **box.settings}
    async with program(database_url, said, types=[Thing(World())]) as run:
        await subscribe(run, box)
        await run.create("s", {"a": thing()})
        await box.next_of("headgate.stack.create.completed")


async def test_an_unavailable_broker_does_not_delay_other_channels(
    database_url: str, world: World
) -> None:
    async with running_rabbit() as rabbit, post(rabbit) as box:
        said = {"channels.amqp.url": rabbit.url, **box.settings}
        async with program(database_url, said, types=[Thing(world)]) as run:
            await subscribe(run, box)
            await run.create("before", {"a": thing()})
            await box.next_of("headgate.stack.create.completed")
            await rabbit.stop()
            rules = {"hooks": [{"at": "a", "on": "pre-create"}]}
            await run.create("while", {"a": thing(), "b": thing()}, environment=rules)
            (hook,) = await run.waiting("while")
            await run.signal(hook)
            assert await run.until_ended("while") == "CREATE_COMPLETE"
            await run.update("before", tags="later")
            assert await run.until_ended("before") == "UPDATE_COMPLETE"
            rabbit.start()
            await rabbit.ready()
            async with post(rabbit) as later:
                later.queue = await later.channel.get_queue(box.queue.name)
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

    said = await eventually(reason)
    stop.set()
    await task
    assert "a-secret" not in said + capsys.readouterr().out


async def test_listeners_of_heat_get_its_notifications(
    database_url: str, rabbit: Rabbit, box: Post
) -> None:
    exchange = f"heat.{box.name}"
    said = {"channels.amqp.url": rabbit.url, **box.settings,
            "channels.amqp.heat_exchanges": [exchange]}  # fmt: skip
    await box.channel.declare_exchange(exchange, aio_pika.ExchangeType.TOPIC)
    for level in ("info", "error"):
        await box.queue.bind(exchange, f"notifications.{level}")
    world = World()
    world.will("create", "b", Failed("no"))
    async with program(database_url, said, types=[Thing(world)]) as run:
        body = {"channel": "heat", "target": exchange}
        assert (await run.call("POST", "/subscriptions", body))[0] == 201
        body = {"channel": "heat", "target": box.exchange}
        assert (await run.call("POST", "/subscriptions", body))[0] == 400
        await run.create("s", {"a": thing(), "b": thing()}, tags="prod,web")
        await run.until_ended("s")
        found = [await box.next(), await box.next()]
    sent = [orjson.loads(orjson.loads(message.body)["oslo.message"]) for message in found]
    assert [message.routing_key for message in found] == [
        "notifications.info",
        "notifications.error",
    ]
    assert [one["event_type"] for one in sent] == [
        "orchestration.stack.create.start", "orchestration.stack.create.error",
    ]  # fmt: skip
    assert sent[1]["payload"]["state"] == "CREATE_FAILED"
    assert sent[1]["payload"]["tags"] == ["prod", "web"]
    assert await box.queue.get(fail=False) is None
