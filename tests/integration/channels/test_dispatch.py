"""From the outbox to the receiver: content, order and number of deliveries."""

import asyncio

import pytest
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from channels.retry import RetryPolicy
from channels.store import deliveries, secret_rotation, subscriptions
from channels.store.records import SubscriptionChange, SubscriptionState
from tests.integration.channels.conftest import RecordedAnswers, RunDispatcher
from tests.support.engine_rows import EngineRows, resource_event, stack_event
from tests.support.receiver import Received, Receiver, until


async def test_an_event_is_delivered_as_a_signed_cloud_event(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack("web")
    chosen = await engine_rows.subscription(f"{receiver.url}/hook?key=1")
    async with run_dispatcher():
        await engine_rows.record(stack, stack_event("create", "started", "IN_PROGRESS"))
        await until(lambda: receiver.received)
    one = receiver.received[0]
    assert one.headers["Content-Type"] == "application/cloudevents+json"
    assert one.headers["webhook-id"] == one.event["id"]
    assert one.event["source"] == f"/v1/demo/stacks/web/{stack.id}"
    assert Webhook(chosen.secret).verify(one.body, one.headers) == one.event
    with pytest.raises(WebhookVerificationError):
        Webhook(chosen.secret).verify(one.body + b" ", one.headers)
    row = (await engine_rows.deliveries())[0]
    assert (row["state"], row["attempts"], row["code"]) == ("delivered", 1, 200)


async def test_both_secrets_sign_during_a_rotation(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    chosen = await engine_rows.subscription(receiver.url)
    new = "whsec_" + "QUFB" * 8
    async with engine_rows.database.connection() as conn:
        assert await secret_rotation.rotate(conn, "demo", chosen.id, new, "ann")
    async with run_dispatcher():
        await engine_rows.record(stack, resource_event("a"))
        await until(lambda: receiver.received)
    one = receiver.received[0]
    for secret in (new, chosen.secret):
        Webhook(secret).verify(one.body, one.headers)


async def test_deliveries_are_ordered_per_stack_and_attempts_have_the_same_id(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stacks = [await engine_rows.stack() for _ in range(3)]
    await engine_rows.subscription(receiver.url)
    receiver.respond_with_statuses(500, 200, 500, 500, 200)
    for number in range(4):
        for stack in stacks:
            await engine_rows.record(
                stack, resource_event(f"r{number}"), resource_event(f"s{number}")
            )
    async with run_dispatcher():
        await until(lambda: _all_ended(engine_rows, 24))
    for stack in stacks:
        mine = [e for e in receiver.events if str(stack.id) in e["source"]]
        firsts = list(dict.fromkeys(event["sequence"] for event in mine))
        assert firsts == list(range(1, 9))
        assert [e["sequence"] for e in mine] == sorted(e["sequence"] for e in mine)
        assert len({(e["sequence"], e["id"]) for e in mine}) == 8
    assert len(receiver.received) == 27
    assert max(row["attempts"] for row in await engine_rows.deliveries()) > 1


async def test_unordered_deliveries_do_not_wait_for_each_other(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url, ordered=False)
    receiver.never_respond()
    await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(5)))
    async with run_dispatcher(drain=0.05):
        await until(lambda: receiver.max_in_progress == 5)


async def test_a_receiver_gets_selected_events_only(
    engine_rows: EngineRows,
    receiver: Receiver,
    other_receiver: Receiver,
    run_dispatcher: RunDispatcher,
) -> None:
    mine, theirs = await engine_rows.stack("web-1"), await engine_rows.stack("db-1")
    foreign = await engine_rows.stack("web-9", project="other")
    await engine_rows.subscription(receiver.url, stacks=["web-*"], events=["headgate.resource.*"])
    await engine_rows.subscription(other_receiver.url, project="*", resources=["b"])
    for stack in (mine, theirs, foreign):
        await engine_rows.record(
            stack, resource_event("a"), stack_event("create", "failed", "FAILED"),
            resource_event("b"),
        )  # fmt: skip
    async with run_dispatcher():
        await until(lambda: _all_ended(engine_rows, 5))
    assert [event["subject"] for event in receiver.events] == ["a", "b"]
    assert {event["source"].split("/")[4] for event in other_receiver.events} == {
        "web-1", "db-1", "web-9",
    }  # fmt: skip


async def test_a_delivery_after_the_last_attempt_is_dead_and_an_event(
    engine_rows: EngineRows,
    receiver: Receiver,
    other_receiver: Receiver,
    run_dispatcher: RunDispatcher,
) -> None:
    stack = await engine_rows.stack()
    dead = await engine_rows.subscription(receiver.url + "/secret-path")
    await engine_rows.subscription(other_receiver.url, events=["headgate.delivery.*"])
    receiver.respond_with_statuses(500)
    async with run_dispatcher():
        await engine_rows.record(stack, resource_event("a"))
        await until(lambda: other_receiver.received)
        await until(lambda: _all_ended(engine_rows, 2))
    assert [event["type"] for event in receiver.events] == ["headgate.resource.create.started"] * 3
    dead_event = other_receiver.events[0]
    assert dead_event["type"] == "headgate.delivery.dead"
    assert dead_event["sequence"] == 2
    assert dead_event["data"]["subscription"]["id"] == str(dead.id)
    assert dead_event["data"]["delivery"]["attempts"] == 3
    assert "secret-path" not in str(dead_event)
    row = (await engine_rows.deliveries())[0]
    assert (row["state"], row["code"]) == ("dead", 500)
    assert row["error"] == "it answered 500; 3 attempts failed"


async def test_dead_deliveries_of_two_receivers_cause_no_endless_events(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    for _ in range(2):
        await engine_rows.subscription(receiver.url)
    receiver.respond_with_statuses(500)
    await engine_rows.record(stack, resource_event("a"))
    async with run_dispatcher(disable_after=100):
        await until(lambda: _all_ended(engine_rows, 4))
    rows = await engine_rows.deliveries()
    assert {row["state"] for row in rows} == {"dead"}
    assert await engine_rows.value("select count(*) from event") == 3
    assert await engine_rows.value("select count(*) from outbox where position is null") == 0


async def test_a_410_disables_the_subscription(
    engine_rows: EngineRows,
    receiver: Receiver,
    other_receiver: Receiver,
    run_dispatcher: RunDispatcher,
) -> None:
    stack = await engine_rows.stack()
    gone = await engine_rows.subscription(receiver.url)
    await engine_rows.subscription(other_receiver.url, events=["headgate.subscription.*"])
    receiver.respond_with_statuses(410)
    async with run_dispatcher():
        await engine_rows.record(stack, resource_event("a"))
        await until(lambda: other_receiver.received)
    assert len(receiver.received) == 1
    assert other_receiver.events[0]["type"] == "headgate.subscription.disabled"
    async with engine_rows.database.connection() as conn:
        now = await subscriptions.get(conn, "demo", gone.id)
    assert now is not None
    assert (now.state, now.reason) == (
        "disabled",
        "its endpoint answered that it is permanently gone",
    )


async def test_a_failing_endpoint_is_disabled_and_can_get_the_missed_events(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    before = await engine_rows.now()
    chosen = await engine_rows.subscription(receiver.url, events=["headgate.resource.*"])
    receiver.respond_with_statuses(500)
    async with run_dispatcher(disable_after=2):
        await engine_rows.record(stack, resource_event("a"), resource_event("b"))
        await until(lambda: engine_rows.value("select state = 'disabled' from subscription"))
        await engine_rows.record(stack, resource_event("c"))
        await until(lambda: _published(engine_rows))
        receiver.respond_with_statuses(200)
        receiver.received.clear()
        async with engine_rows.database.connection() as conn:
            change = SubscriptionChange(state=SubscriptionState.ENABLED)
            await subscriptions.update(conn, "demo", chosen.id, change, "ann")
            count = await deliveries.redeliver_since(
                conn, "demo", chosen.id, before, horizon=lambda _: 1.0
            )
            assert count == 3
        await until(lambda: len(receiver.received) == 3)
        await until(lambda: _all_ended(engine_rows, 3))
        assert [event["subject"] for event in receiver.events] == ["a", "b", "c"]
        async with engine_rows.database.connection() as conn:
            repeated = await deliveries.redeliver_since(
                conn, "demo", chosen.id, before, horizon=lambda _: 1.0
            )
        assert repeated == 0


async def test_retry_after_is_respected(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    receiver.respond_with_statuses(429, headers={"Retry-After": "3600"})
    await engine_rows.record(stack, resource_event("a"))
    policy = RetryPolicy(attempts=3, first=0.02, max_pause=1000, attempt_timeout=1.0)
    async with run_dispatcher(retry=policy):
        await until(lambda: engine_rows.value("select 1 from delivery where code = 429"))
    wait = await engine_rows.value(
        "select extract(epoch from next_at - clock_timestamp())::float8 from delivery"
    )
    # The requested time, limited by the policy's maximum; the policy's own wait would be a fraction
    # of a second.
    assert 900 < wait <= 1000


async def test_one_delivery_and_all_dead_ones_can_be_resent(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stack = await engine_rows.stack()
    chosen = await engine_rows.subscription(receiver.url, events=["headgate.resource.*"])
    receiver.respond_with_statuses(200, 500)
    async with run_dispatcher():
        await engine_rows.record(stack, resource_event("a"), resource_event("b"))
        await until(lambda: _all_ended(engine_rows, 2))
        receiver.respond_with_statuses(200)
        receiver.received.clear()
        first, second = await engine_rows.deliveries()
        assert (first["state"], second["state"]) == ("delivered", "dead")
        async with engine_rows.database.connection() as conn:
            assert await deliveries.redeliver_dead(conn, chosen.id) == 1
            await until(lambda: len(receiver.received) == 1)
            await until(lambda: _all_ended(engine_rows, 2))
            assert await deliveries.redeliver_one(conn, chosen.id, first["id"])
            assert not await deliveries.redeliver_one(conn, first["event_id"], first["id"])
        await until(lambda: len(receiver.received) == 2)
        await until(lambda: _all_ended(engine_rows, 2))
    assert [event["subject"] for event in receiver.events] == ["b", "a"]
    async with engine_rows.database.connection() as conn:
        page = await deliveries.list_page(conn, chosen.id, state=None, marker=None, limit=1)
        rest = await deliveries.list_page(conn, chosen.id, state=None, marker=page[0].id, limit=9)
    assert {page[0].id, *(row.id for row in rest)} == {first["id"], second["id"]}


async def test_two_dispatchers_deliver_each_event_once(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    stacks = [await engine_rows.stack() for _ in range(5)]
    await engine_rows.subscription(receiver.url)
    await engine_rows.subscription(receiver.url, ordered=False)
    async with run_dispatcher(), run_dispatcher(), asyncio.TaskGroup() as group:
        for stack in stacks:
            for number in range(10):
                group.create_task(engine_rows.record(stack, resource_event(f"r{number}")))
        await until(lambda: _all_ended(engine_rows, 100))
    assert len(receiver.received) == 100
    positions = await engine_rows.value("select array_agg(position order by id) from outbox")
    assert sorted(positions) == list(range(1, 51))
    assert {row["attempts"] for row in await engine_rows.deliveries()} == {1}


async def test_a_test_event_is_sent_once_and_not_stored(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    chosen = await engine_rows.subscription(receiver.url)
    async with run_dispatcher() as dispatcher:
        async with engine_rows.database.connection() as conn:
            record = await subscriptions.get(conn, "demo", chosen.id)
        assert record is not None
        outcome = await dispatcher.test_fire(record, chosen.id)
    assert outcome.code == 200
    one = receiver.received[0]
    assert Webhook(chosen.secret).verify(one.body, one.headers)["data"]["test"] is True
    assert await engine_rows.deliveries() == []


async def test_a_stopping_dispatcher_waits_for_attempts_in_progress(
    engine_rows: EngineRows,
    receiver: Receiver,
    run_dispatcher: RunDispatcher,
    answers: RecordedAnswers,
) -> None:
    stack = await engine_rows.stack()
    await engine_rows.subscription(receiver.url)
    go = asyncio.Event()

    async def slow(_: Received) -> web.StreamResponse:
        await go.wait()
        return web.Response()

    receiver.handle = slow
    await engine_rows.record(stack, resource_event("a"))
    async with run_dispatcher():
        await until(lambda: receiver.in_progress)
        asyncio.get_running_loop().call_later(0.05, go.set)
    assert [row["state"] for row in await engine_rows.deliveries()] == ["delivered"]


async def _all_ended(engine_rows: EngineRows, count: int) -> bool:
    rows = await engine_rows.deliveries()
    return len(rows) == count and all(row["state"] != "pending" for row in rows)


async def _published(engine_rows: EngineRows) -> bool:
    return bool(
        await engine_rows.value("select not exists (select 1 from outbox where position is null)")
    )


async def test_a_rate_limit_holds_and_every_event_arrives(
    engine_rows: EngineRows, receiver: Receiver, run_dispatcher: RunDispatcher
) -> None:
    came: list[float] = []

    async def note(_: Received) -> web.StreamResponse:
        came.append(asyncio.get_running_loop().time())
        return web.Response()

    receiver.handle = note
    await engine_rows.subscription(receiver.url, ordered=False)
    stack = await engine_rows.stack()
    await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(12)))
    async with run_dispatcher(rates={"webhook": 5.0}, each=5):
        await until(lambda: len(receiver.received) == 12)
    # A burst of five, then at most five per second, whatever the speed of the machine.
    assert all(came[place] - came[0] >= (place - 5) / 5.0 - 0.05 for place in range(6, 12)), came
