"""A listener that consumes a queue of a real RabbitMQ."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import aio_pika
import orjson
import pytest
from yarl import URL

import headgate
from headgate.listener.amqp import QueueSender
from headgate.listener.notification import AnswerInvalid
from headgate.testing import notification
from tests.integration.amqp.conftest import AmqpClient, running_client, subscribe, until_consumed
from tests.support.changes import thing
from tests.support.program import Json, Program, eventually, program, resource
from tests.support.rabbit import Rabbit
from tests.support.relay import running_relay
from tests.support.scripted_type import Thing, World


@pytest.fixture
async def amqp(rabbit: Rabbit) -> AsyncIterator[AmqpClient]:
    async with running_client(rabbit) as opened:
        yield opened


@pytest.fixture
async def run(database_url: str, rabbit: Rabbit, amqp: AmqpClient) -> AsyncIterator[Program]:
    settings = {"channels.amqp.url": rabbit.url, "engine.poll": "1s", **amqp.settings}
    async with program(database_url, settings, types=[Thing(World())]) as opened:
        yield opened


def queue_of(amqp: AmqpClient, rabbit: Rabbit) -> headgate.AmqpQueue:
    return headgate.AmqpQueue(rabbit.url, f"listener.{amqp.name}", amqp.exchange)


def rules(**rule: Json) -> Json:
    return {"hooks": [{"at": "*", "on": "pre-create", **rule}]}


async def hooks_of(run: Program, name: str = "s") -> list[Json]:
    _, response = await run.call("GET", f"/hooks?stack={name}")
    return list(response["hooks"])


async def test_handlers_answer_over_amqp(run: Program, amqp: AmqpClient, rabbit: Rabbit) -> None:
    app = headgate.Listener()

    @app.hook("pre-create", at="a")
    async def patch(hook: headgate.HookNotification) -> headgate.HookAnswer:
        await hook.progress("half")
        return headgate.Patch({"size": 7}, "larger")

    @app.hook("pre-create")
    async def refuse(hook: headgate.HookNotification) -> headgate.HookAnswer:
        return headgate.Patch({"colour": "red"})

    await subscribe(run, amqp)
    async with app.serving(queue_of(amqp, rabbit)):
        things = {"a": thing(), "b": thing()}
        await run.create("s", things, environment=rules(patch=True))
        assert await run.until_ended("s") == "CREATE_FAILED"
    found = {one["path"]: one for one in await hooks_of(run)}
    assert (found["a"]["decision"], found["a"]["channel"]) == ("patch", "amqp")
    _, response = await run.call("GET", f"/hooks/{found['a']['id']}/decisions")
    assert [one["kind"] for one in response["decisions"]] == ["progress", "patch"]
    assert "Headgate refused its answer patch" in found["b"]["reason"]


async def test_a_message_that_is_delivered_again_calls_no_second_handler(
    run: Program, amqp: AmqpClient, rabbit: Rabbit
) -> None:
    app, calls, redelivered = headgate.Listener(), list[str](), asyncio.Event()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        calls.append(hook.id)
        await redelivered.wait()
        return headgate.Continue()

    @app.event("headgate.stack.create.started")
    async def note(event: Json) -> None:
        calls.append(event["type"])

    subscription = await subscribe(run, amqp)
    source = queue_of(amqp, rabbit)
    source.binding = "#"
    async with app.serving(source):
        await run.create("s", {"a": resource()}, environment=rules())

        async def is_called() -> bool:
            return len(calls) == 2

        await eventually(is_called)
        path = f"/subscriptions/{subscription['id']}"

        async def delivered() -> list[Json]:
            """The deliveries, when the results of both are recorded."""
            _, response = await run.call("GET", f"{path}/deliveries?state=delivered")
            found = list(response["deliveries"])
            return found if len(found) >= 2 else []

        for one in await eventually(delivered):
            body = {"delivery": one["id"]}
            assert (await run.call("POST", f"{path}/redeliver", body))[0] < 300

        async def is_called_again() -> bool:
            return calls.count("headgate.stack.create.started") == 2

        await eventually(is_called_again)
        redelivered.set()
        assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert len(calls) == 3


@pytest.mark.parametrize("answers", ["while it is away", "after it is back"])
async def test_a_listener_survives_a_lost_connection(
    run: Program,
    amqp: AmqpClient,
    rabbit: Rabbit,
    caplog: pytest.LogCaptureFixture,
    answers: str,
) -> None:
    app, started, goes_on = headgate.Listener(), asyncio.Event(), asyncio.Event()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        started.set()
        await goes_on.wait()
        return headgate.Continue()

    await subscribe(run, amqp)
    async with running_relay(rabbit.url) as relay:
        source = queue_of(amqp, rabbit)
        source.url = str(URL(rabbit.url).with_port(relay.port))
        async with app.serving(source):
            await run.create("s", {"a": resource()}, environment=rules())
            async with asyncio.timeout(60):
                await started.wait()
            relay.cut()
            if answers == "while it is away":
                goes_on.set()

                async def is_sent_again() -> bool:
                    return "the answer is sent again" in caplog.text

                await eventually(is_sent_again)
            relay.restore()
            goes_on.set()
            assert await run.until_ended("s") == "CREATE_COMPLETE"
            await run.create("t", {"a": resource()}, environment=rules())
            assert await run.until_ended("t") == "CREATE_COMPLETE"


async def test_a_listener_survives_the_deletion_of_its_queue(
    run: Program, amqp: AmqpClient, rabbit: Rabbit
) -> None:
    app = headgate.Listener()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        return headgate.Continue()

    await subscribe(run, amqp)
    source = queue_of(amqp, rabbit)
    async with app.serving(source):
        await until_consumed(rabbit.url, source.queue)
        await amqp.channel.queue_delete(source.queue)
        await until_consumed(rabbit.url, source.queue)
        await run.create("s", {"a": resource()}, environment=rules())
        assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_superseded_hook_cancels_its_handler(
    run: Program, amqp: AmqpClient, rabbit: Rabbit
) -> None:
    app = headgate.Listener()
    started, superseded = asyncio.Event(), asyncio.Event()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        if superseded.is_set():
            return headgate.Continue()
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            superseded.set()
            raise
        raise AssertionError

    await subscribe(run, amqp)
    async with app.serving(queue_of(amqp, rabbit)):
        await run.create("s", {"a": resource()}, environment=rules())
        async with asyncio.timeout(60):
            await started.wait()
            await run.update("s", tags="changed")
            await superseded.wait()
        await run.until_ended("s")
    assert [one["state"] for one in await hooks_of(run)] == ["superseded", "answered"]


async def test_the_deadline_is_extended_once_per_half_of_the_time(
    run: Program, amqp: AmqpClient, rabbit: Rabbit
) -> None:
    app = headgate.Listener()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        opened = hook.deadline

        async def is_over() -> bool:
            assert opened is not None
            return datetime.now(UTC) > opened

        await eventually(is_over)
        return headgate.Continue()

    await subscribe(run, amqp)
    async with app.serving(queue_of(amqp, rabbit)):
        await run.create("s", {"a": resource()}, environment=rules(timeout="6s"))
        assert await run.until_ended("s") == "CREATE_COMPLETE"
    (hook,) = await hooks_of(run)
    _, response = await run.call("GET", f"/hooks/{hook['id']}/decisions")
    kinds = [one["kind"] for one in response["decisions"]]
    assert kinds[-1] == "continue"
    assert kinds.count("progress") <= 3, kinds


async def test_an_answer_after_that_of_a_person_ends_the_handler(
    run: Program, amqp: AmqpClient, rabbit: Rabbit, caplog: pytest.LogCaptureFixture
) -> None:
    app, started, answered = headgate.Listener(), asyncio.Event(), asyncio.Event()
    caplog.set_level(logging.INFO, "headgate.listener")

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        started.set()
        await answered.wait()
        return headgate.Continue("late")

    # Without events about answers, the listener learns of the person from the result only.
    await subscribe(run, amqp, events=["headgate.hook.waiting"])
    async with app.serving(queue_of(amqp, rabbit)):
        await run.create("s", {"a": resource()}, environment=rules())
        async with asyncio.timeout(60):
            await started.wait()
        (hook,) = await run.waiting_hooks("s")
        assert (await run.signal(hook, "reject"))[0] == 200
        answered.set()

        async def is_over() -> bool:
            return "already answered" in caplog.text

        await eventually(is_over)
    assert "no answer: decision: " in caplog.text
    assert "Headgate refused" not in caplog.text


async def test_each_answer_of_a_hook_gets_its_own_result(amqp: AmqpClient) -> None:
    sender = QueueSender(amqp.channel, amqp.replies.name)
    await amqp.replies.consume(sender.take_result)
    event = notification()
    hook = headgate.HookNotification(event, sender, amqp.queue.name)

    async def report(accepted: bool) -> None:
        """The result of the next answer."""
        answer = await amqp.next()
        refusal = {"reason": "too late", "status": 409, "type": "HookExpired"}
        result = {"accepted": accepted, "message_id": answer.message_id}
        await amqp.channel.default_exchange.publish(
            aio_pika.Message(
                orjson.dumps(result | ({} if accepted else refusal)),
                correlation_id=answer.correlation_id,
            ),
            answer.reply_to or "",
        )

    def send(decision: str) -> asyncio.Task[None]:
        return asyncio.create_task(hook.send({"decision": decision}))

    async with asyncio.timeout(60):
        first, second = send("progress"), send("continue")
        await report(True)
        await first
        third = send("progress")
        await report(False)
        await report(True)
        with pytest.raises(headgate.HookClosed, match="too late"):
            await second
        await third
        # A result that arrives late belongs to no later answer.
        cancelled = send("progress")
        late = await amqp.next()
        cancelled.cancel()
        await asyncio.wait({cancelled})
        answer = send("continue")
        await amqp.channel.default_exchange.publish(
            aio_pika.Message(
                orjson.dumps({"accepted": True, "message_id": late.message_id}),
                correlation_id=late.correlation_id,
            ),
            late.reply_to or "",
        )
        await report(False)
        with pytest.raises(headgate.HookClosed, match="too late"):
            await answer


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, AnswerInvalid),
        (401, headgate.HookClosed),
        (409, headgate.HookClosed),
        (500, headgate.ServerError),
    ],
)
async def test_a_refusal_means_the_same_as_over_http(
    amqp: AmqpClient, status: int, error: type[Exception]
) -> None:
    sender = QueueSender(amqp.channel, amqp.replies.name)
    await amqp.replies.consume(sender.take_result)
    hook = headgate.HookNotification(notification(), sender, amqp.queue.name)
    sending = asyncio.create_task(hook.send({"decision": "continue"}))
    answer = await amqp.next()
    result = {"accepted": False, "reason": "because", "status": status, "type": "X"}
    body = orjson.dumps(result | {"message_id": answer.message_id})
    await amqp.channel.default_exchange.publish(aio_pika.Message(body), answer.reply_to or "")
    with pytest.raises(error, match="because"):
        await sending


async def test_a_message_that_is_no_event_is_discarded(
    run: Program, amqp: AmqpClient, rabbit: Rabbit
) -> None:
    app = headgate.Listener()

    @app.hook()
    async def decide(hook: headgate.HookNotification) -> headgate.HookAnswer:
        return headgate.Continue()

    await subscribe(run, amqp)
    source = queue_of(amqp, rabbit)
    bodies = [b"x", b"[1]", b'{"type":1}', b'{"type":"headgate.hook.waiting"}']
    async with app.serving(source):
        for body in bodies:
            await amqp.publish("x", body, to=source.queue)
        await run.create("s", {"a": resource()}, environment=rules())
        assert await run.until_ended("s") == "CREATE_COMPLETE"

    # The broker delivers again what the listener has not acknowledged. Events that were published
    # after its end can be there, too.
    queue = await amqp.channel.get_queue(source.queue, ensure=False)
    while (left := await queue.get(fail=False, no_ack=True)) is not None:
        assert left.body not in bodies


async def test_a_broker_that_is_away_is_an_error() -> None:
    with pytest.raises(ConnectionError):
        async with headgate.Listener().serving(headgate.AmqpQueue("amqp://127.0.0.1:9/")):
            raise AssertionError
