"""From the outbox to a receiver: what arrives, in which order, how often."""

import asyncio

import pytest
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from channels.retry import RetryPolicy
from channels.store import deliveries, subscriptions
from channels.store.records import SubscriptionChange, SubscriptionState
from tests.integration.channels.conftest import Answers, Dispatching
from tests.support.events import Scene, resource_event, stack_event
from tests.support.receiver import Received, Receiver, until


async def test_an_event_arrives_signed_and_as_a_cloud_event(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack("web")
    chosen = await scene.subscription(f"{receiver.url}/hook?key=1")
    async with dispatching():
        await scene.record(stack, stack_event("create", "started", "IN_PROGRESS"))
        await until(lambda: receiver.received)
    one = receiver.received[0]
    assert one.headers["Content-Type"] == "application/cloudevents+json"
    assert one.headers["webhook-id"] == one.event["id"]
    assert one.event["source"] == f"/v1/demo/stacks/web/{stack.id}"
    assert Webhook(chosen.secret).verify(one.body, one.headers) == one.event
    with pytest.raises(WebhookVerificationError):
        Webhook(chosen.secret).verify(one.body + b" ", one.headers)
    row = (await scene.deliveries())[0]
    assert (row["state"], row["attempts"], row["code"]) == ("delivered", 1, 200)


async def test_both_secrets_sign_while_a_rotation_lasts(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    chosen = await scene.subscription(receiver.url)
    new = "whsec_" + "QUFB" * 8
    async with scene.database.connection() as conn:
        assert await subscriptions.rotate(conn, "demo", chosen.id, new, "ann")
    async with dispatching():
        await scene.record(stack, resource_event("a"))
        await until(lambda: receiver.received)
    one = receiver.received[0]
    for secret in (new, chosen.secret):
        Webhook(secret).verify(one.body, one.headers)


async def test_order_is_kept_per_stack_and_the_id_on_every_attempt(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stacks = [await scene.stack() for _ in range(3)]
    await scene.subscription(receiver.url)
    receiver.answers(500, 200, 500, 500, 200)
    for number in range(4):
        for stack in stacks:
            await scene.record(stack, resource_event(f"r{number}"), resource_event(f"s{number}"))
    async with dispatching():
        await until(lambda: _all_settled(scene, 24))
    for stack in stacks:
        mine = [e for e in receiver.events if str(stack.id) in e["source"]]
        firsts = list(dict.fromkeys(event["sequence"] for event in mine))
        assert firsts == list(range(1, 9))
        assert [e["sequence"] for e in mine] == sorted(e["sequence"] for e in mine)
        assert len({(e["sequence"], e["id"]) for e in mine}) == 8
    assert len(receiver.received) == 27
    assert max(row["attempts"] for row in await scene.deliveries()) > 1


async def test_unordered_deliveries_do_not_wait_for_each_other(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url, ordered=False)
    receiver.hangs()
    await scene.record(stack, *(resource_event(f"r{number}") for number in range(5)))
    async with dispatching(drain=0.05):
        await until(lambda: receiver.most_under_way == 5)


async def test_a_receiver_gets_what_it_asked_for_and_nothing_else(
    scene: Scene, receiver: Receiver, other_receiver: Receiver, dispatching: Dispatching
) -> None:
    mine, theirs = await scene.stack("web-1"), await scene.stack("db-1")
    foreign = await scene.stack("web-9", project="other")
    await scene.subscription(receiver.url, stacks=["web-*"], events=["headgate.resource.*"])
    await scene.subscription(other_receiver.url, project="*", resources=["b"])
    for stack in (mine, theirs, foreign):
        await scene.record(
            stack, resource_event("a"), stack_event("create", "failed", "FAILED"),
            resource_event("b"),
        )  # fmt: skip
    async with dispatching():
        await until(lambda: _all_settled(scene, 5))
    assert [event["subject"] for event in receiver.events] == ["a", "b"]
    assert {event["source"].split("/")[4] for event in other_receiver.events} == {
        "web-1", "db-1", "web-9",
    }  # fmt: skip


async def test_what_is_given_up_is_dead_and_tells_the_others(
    scene: Scene, receiver: Receiver, other_receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    dead = await scene.subscription(receiver.url + "/secret-path")
    await scene.subscription(other_receiver.url, events=["headgate.delivery.*"])
    receiver.answers(500)
    async with dispatching():
        await scene.record(stack, resource_event("a"))
        await until(lambda: other_receiver.received)
        await until(lambda: _all_settled(scene, 2))
    assert [event["type"] for event in receiver.events] == ["headgate.resource.create.started"] * 3
    told = other_receiver.events[0]
    assert told["type"] == "headgate.delivery.dead"
    assert told["sequence"] == 2
    assert told["data"]["subscription"]["id"] == str(dead.id)
    assert told["data"]["delivery"]["attempts"] == 3
    assert "secret-path" not in str(told)
    row = (await scene.deliveries())[0]
    assert (row["state"], row["code"]) == ("dead", 500)
    assert row["error"] == "it answered 500; 3 attempts failed"


async def test_two_dead_listeners_do_not_tell_each_other_for_ever(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    for _ in range(2):
        await scene.subscription(receiver.url)
    receiver.answers(500)
    await scene.record(stack, resource_event("a"))
    async with dispatching(disable_after=100):
        await until(lambda: _all_settled(scene, 4))
    rows = await scene.deliveries()
    assert {row["state"] for row in rows} == {"dead"}
    assert await scene.value("select count(*) from event") == 3
    assert await scene.value("select count(*) from outbox where position is null") == 0


async def test_gone_is_final_and_disables(
    scene: Scene, receiver: Receiver, other_receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    gone = await scene.subscription(receiver.url)
    await scene.subscription(other_receiver.url, events=["headgate.subscription.*"])
    receiver.answers(410)
    async with dispatching():
        await scene.record(stack, resource_event("a"))
        await until(lambda: other_receiver.received)
    assert len(receiver.received) == 1
    assert other_receiver.events[0]["type"] == "headgate.subscription.disabled"
    async with scene.database.connection() as conn:
        now = await subscriptions.get(conn, "demo", gone.id)
    assert now is not None
    assert (now.state, now.reason) == (
        "disabled",
        "its endpoint answered that it is permanently gone",
    )


async def test_an_endpoint_that_keeps_failing_is_disabled_and_gets_what_it_missed(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    before = await scene.now()
    chosen = await scene.subscription(receiver.url, events=["headgate.resource.*"])
    receiver.answers(500)
    async with dispatching(disable_after=2):
        await scene.record(stack, resource_event("a"), resource_event("b"))
        await until(lambda: scene.value("select state = 'disabled' from subscription"))
        await scene.record(stack, resource_event("c"))
        await until(lambda: _published(scene))
        receiver.answers(200)
        receiver.received.clear()
        async with scene.database.connection() as conn:
            change = SubscriptionChange(state=SubscriptionState.ENABLED)
            await subscriptions.update(conn, "demo", chosen.id, change, "ann")
            count = await deliveries.redeliver_since(
                conn, "demo", chosen.id, before, horizon=lambda _: 1.0
            )
            assert count == 3
        await until(lambda: len(receiver.received) == 3)
        await until(lambda: _all_settled(scene, 3))
        assert [event["subject"] for event in receiver.events] == ["a", "b", "c"]
        async with scene.database.connection() as conn:
            again = await deliveries.redeliver_since(
                conn, "demo", chosen.id, before, horizon=lambda _: 1.0
            )
        assert again == 0


async def test_retry_after_is_waited_for(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    receiver.answers(429, headers={"Retry-After": "3600"})
    await scene.record(stack, resource_event("a"))
    policy = RetryPolicy(attempts=3, first=0.02, longest=1000, attempt_timeout=1.0)
    async with dispatching(retry=policy):
        await until(lambda: scene.value("select 1 from delivery where code = 429"))
    wait = await scene.value(
        "select extract(epoch from next_at - clock_timestamp())::float8 from delivery"
    )
    # What was asked for, up to the policy's longest; by itself it would be a fraction of a second.
    assert 900 < wait <= 1000


async def test_redelivery_of_one_and_of_the_dead(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stack = await scene.stack()
    chosen = await scene.subscription(receiver.url, events=["headgate.resource.*"])
    receiver.answers(200, 500)
    async with dispatching():
        await scene.record(stack, resource_event("a"), resource_event("b"))
        await until(lambda: _all_settled(scene, 2))
        receiver.answers(200)
        receiver.received.clear()
        first, second = await scene.deliveries()
        assert (first["state"], second["state"]) == ("delivered", "dead")
        async with scene.database.connection() as conn:
            assert await deliveries.redeliver_dead(conn, chosen.id) == 1
            await until(lambda: len(receiver.received) == 1)
            await until(lambda: _all_settled(scene, 2))
            assert await deliveries.redeliver_one(conn, chosen.id, first["id"])
            assert not await deliveries.redeliver_one(conn, first["event_id"], first["id"])
        await until(lambda: len(receiver.received) == 2)
        await until(lambda: _all_settled(scene, 2))
    assert [event["subject"] for event in receiver.events] == ["b", "a"]
    async with scene.database.connection() as conn:
        page = await deliveries.list_page(conn, chosen.id, state=None, marker=None, limit=1)
        rest = await deliveries.list_page(conn, chosen.id, state=None, marker=page[0].id, limit=9)
    assert {page[0].id, *(row.id for row in rest)} == {first["id"], second["id"]}


async def test_two_dispatchers_double_nothing(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    stacks = [await scene.stack() for _ in range(5)]
    await scene.subscription(receiver.url)
    await scene.subscription(receiver.url, ordered=False)
    async with dispatching(), dispatching(), asyncio.TaskGroup() as group:
        for stack in stacks:
            for number in range(10):
                group.create_task(scene.record(stack, resource_event(f"r{number}")))
        await until(lambda: _all_settled(scene, 100))
    assert len(receiver.received) == 100
    positions = await scene.value("select array_agg(position order by id) from outbox")
    assert sorted(positions) == list(range(1, 51))
    assert {row["attempts"] for row in await scene.deliveries()} == {1}


async def test_a_test_event_is_sent_once_and_stored_nowhere(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    chosen = await scene.subscription(receiver.url)
    async with dispatching() as dispatcher:
        async with scene.database.connection() as conn:
            record = await subscriptions.get(conn, "demo", chosen.id)
        assert record is not None
        outcome = await dispatcher.test_fire(record, chosen.id)
    assert outcome.code == 200
    one = receiver.received[0]
    assert Webhook(chosen.secret).verify(one.body, one.headers)["data"]["test"] is True
    assert await scene.deliveries() == []


async def test_stopping_lets_what_is_under_way_end(
    scene: Scene, receiver: Receiver, dispatching: Dispatching, answers: Answers
) -> None:
    stack = await scene.stack()
    await scene.subscription(receiver.url)
    go = asyncio.Event()

    async def slow(_: Received) -> web.StreamResponse:
        await go.wait()
        return web.Response()

    receiver.handle = slow
    await scene.record(stack, resource_event("a"))
    async with dispatching():
        await until(lambda: receiver.under_way)
        asyncio.get_running_loop().call_later(0.05, go.set)
    assert [row["state"] for row in await scene.deliveries()] == ["delivered"]


async def _all_settled(scene: Scene, count: int) -> bool:
    rows = await scene.deliveries()
    return len(rows) == count and all(row["state"] != "pending" for row in rows)


async def _published(scene: Scene) -> bool:
    return bool(
        await scene.value("select not exists (select 1 from outbox where position is null)")
    )


async def test_a_rate_is_held_and_everything_comes(
    scene: Scene, receiver: Receiver, dispatching: Dispatching
) -> None:
    came: list[float] = []

    async def note(_: Received) -> web.StreamResponse:
        came.append(asyncio.get_running_loop().time())
        return web.Response()

    receiver.handle = note
    await scene.subscription(receiver.url, ordered=False)
    stack = await scene.stack()
    await scene.record(stack, *(resource_event(f"r{number}") for number in range(12)))
    async with dispatching(rates={"webhook": 5.0}, each=5):
        await until(lambda: len(receiver.received) == 12)
    # Five at once, and then five a second: whatever the machine does, never sooner.
    assert all(came[place] - came[0] >= (place - 5) / 5.0 - 0.05 for place in range(6, 12)), came
