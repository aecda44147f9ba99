"""All events of a full stack, received over each channel and validated with the server's
/asyncapi.json.
"""

from collections.abc import AsyncIterator

import aiohttp
import jsonschema_rs
import orjson
import pytest

from engine.types.contract import Failed
from tests.integration.amqp.conftest import AmqpClient, running_client, subscribe
from tests.support.changes import put, thing, until_deleted, until_status
from tests.support.program import Json, Program, eventually, identity_headers, program
from tests.support.rabbit import Rabbit
from tests.support.receiver import Receiver, running_receiver
from tests.support.scripted_type import Thing, World


@pytest.fixture
async def amqp(rabbit: Rabbit) -> AsyncIterator[AmqpClient]:
    async with running_client(rabbit) as opened:
        yield opened


@pytest.fixture
async def run(
    database_url: str, rabbit: Rabbit, amqp: AmqpClient, world: World
) -> AsyncIterator[Program]:
    settings = {
        "channels.amqp.url": rabbit.url, "engine.poll": "1s", **amqp.settings,
        "channels.webhook.attempts": 1, "engine.first_retry": "1s",
    }  # fmt: skip
    async with program(database_url, settings, types=[Thing(world)]) as run:
        yield run


def hooks_on(*points: str, **more: Json) -> Json:
    return {"hooks": [{"at": "a", "on": list(points), **more}]}


async def only_hook(run: Program, name: str) -> Json:
    (hook,) = await run.waiting_hooks(name)
    return hook


async def hooks_of_every_kind(run: Program) -> None:
    rule = hooks_on("pre-create", approvals=2, answer_by=["user:ann", "user:bob"], remind="1s",
              escalate={"after": "1s", "to": ["role:admin"]})  # fmt: skip
    await run.create("people", {"a": thing()}, environment=rule)
    hook = await only_hook(run, "people")
    await run.signal(hook, "progress", user="ann", extend="2h")
    await run.call(
        "POST", f"/hooks/{hook['id']}/hand-over", {"to": "user:cy"}, headers=identity_headers("ann")
    )

    async def escalated() -> bool:
        _, now = await run.call("GET", f"/hooks/{hook['id']}")
        return now["escalated_at"] is not None and now["reminders"] > 0

    await eventually(escalated)
    await run.signal(hook, user="ann")
    await run.signal(hook, user="cy")
    assert await run.until_ended("people") == "CREATE_COMPLETE"
    await run.create("late", {"a": thing()}, environment=hooks_on("pre-create", timeout="1s"))
    assert await run.until_ended("late") == "CREATE_STOPPED"
    await run.create("over", {"a": thing()}, environment=hooks_on("pre-create"))
    await only_hook(run, "over")
    await put(run, "over", {"a": thing()}, hooks={"clear": ["*"]})
    assert await run.until_ended("over") == "UPDATE_COMPLETE"
    await run.create("notify", {"a": thing()}, environment=hooks_on("pre-create", mode="notify"))
    await run.create("halt", {"a": thing()}, environment=hooks_on("pre-create", mode="stop"))
    gates = {"hooks": [{"on": ["pre-stack-create"]}]}
    await run.create("gate", {"a": thing()}, environment=gates)
    await run.signal(await only_hook(run, "gate"), "reject", reason="no")
    assert await run.until_ended("gate") == "CREATE_FAILED"


async def run_full_stack(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(), "b": thing(depends_on="a")})
    await run.until_ended("s")
    world.script("update", "a", Failed("busy", retry=True))
    await put(run, "s", {"a": thing(2), "c": thing(place="there")})
    await run.until_ended("s")
    await put(run, "s", {"a": thing(2, place="there"), "c": thing()})
    await run.until_ended("s")
    for action in ("check", "suspend", "resume"):
        await run.act("s", action)
        await until_status(run, "s", f"{action.upper()}_COMPLETE")
    await run.stack_request("POST", "s", "/snapshots", {"name": "kept"})
    await until_status(run, "s", "SNAPSHOT_COMPLETE")
    await run.stack_request("POST", "s", "/resources/a/signal", {"ready": True})
    world.script("update", "a", Failed("no"))
    await run.update("s", "PUT", disable_rollback=False, template={
        "heat_template_version": "2018-08-31", "resources": {"a": thing(9, place="there")},
    })  # fmt: skip
    await until_status(run, "s", "ROLLBACK_COMPLETE")
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")


EXPECTED = {
    *(f"headgate.stack.{action}.{kind}" for action, kind in (
        ("create", "started"), ("create", "completed"), ("create", "failed"),
        ("create", "stopped"), ("update", "completed"), ("update", "failed"),
        ("rollback", "completed"), ("check", "completed"), ("suspend", "completed"),
        ("resume", "completed"), ("snapshot", "completed"), ("delete", "completed"),
    )),
    *(f"headgate.resource.{operation}.completed" for operation in (
        "create", "update", "replace", "delete", "check", "suspend", "resume", "snapshot", "signal",
    )),
    "headgate.resource.update.retrying", "headgate.resource.update.failed",
    *(f"headgate.hook.{what}" for what in (
        "waiting", "answered", "expired", "superseded", "approved", "progress", "handed-over",
        "reminder", "escalated",
    )),
    "headgate.delivery.dead", "headgate.delivery.delivered",
    *(f"headgate.subscription.{what}" for what in (
        "enabled", "disabled", "changed", "rotated", "deleted", "redelivered",
    )),
}  # fmt: skip


async def streamed(session: aiohttp.ClientSession, url: str, count: int) -> list[Json]:
    found: list[Json] = []
    headers = {"Last-Event-ID": "0-0"}
    async with session.get(f"{url}/v1/p/events/stream", headers=headers) as answer:
        async for line in answer.content:
            if line.startswith(b"data: "):
                found.append(orjson.loads(line[6:]))
            if len(found) == count:
                break
    return found


async def test_all_events_match_the_asyncapi_document(
    run: Program, amqp: AmqpClient, world: World
) -> None:
    async with aiohttp.ClientSession() as session:
        document = await (await session.get(f"{run.url}/asyncapi.json")).json()
    schemas = {
        message["name"]: jsonschema_rs.validator_for(message["payload"], validate_formats=True)
        for message in document["components"]["messages"].values()
    }
    async with running_receiver() as receiver, running_receiver() as failing:
        failing.respond_with_statuses(500)
        await subscribe(run, amqp)
        await eventually(lambda: all_delivered(run))
        assert (await run.call("POST", "/subscriptions", {"target": receiver.url}))[0] == 201
        await eventually(lambda: all_delivered(run))
        remaining = await change_subscription(run, failing)
        await hooks_of_every_kind(run)
        await run_full_stack(run, world)
        repeated = await run.call(
            "POST", f"/subscriptions/{remaining}/redeliver", {"state": "dead"}
        )
        assert repeated[0] == 202
        by_webhook = await all_events(run, receiver)
    # No subscription gets events about itself, and the queue's subscription was created first.
    first = orjson.loads((await amqp.next()).body)
    assert first["data"]["subscription"]["target"].startswith("http://")
    by_amqp = [orjson.loads((await amqp.next()).body) for _ in by_webhook]
    async with aiohttp.ClientSession() as session:
        by_stream = (await streamed(session, run.url, 2 + len(by_webhook)))[2:]
    wrong = [
        f"{event['type']}: {error.message} at {list(error.instance_path)}"
        for event in (*by_webhook, *by_amqp, *by_stream)
        for error in schemas[event["type"]].iter_errors(event)
    ]
    assert wrong == []
    kinds = {event["type"] for event in by_webhook}
    assert EXPECTED - kinds == set()
    ids = {event["id"] for event in by_webhook}
    assert ids == {event["id"] for event in by_amqp} == {event["id"] for event in by_stream}
    print(f"{len(ids)} events of {len(kinds)} types, three times each")


async def change_subscription(run: Program, failing: Receiver) -> str:
    """Change a subscription in every way; create another one whose deliveries die repeatedly."""
    dead = {"target": failing.url, "events": ["headgate.stack.create.started"]}
    _, remaining = await run.call("POST", "/subscriptions", dead)
    _, response = await run.call("POST", "/subscriptions", dead)
    path = f"/subscriptions/{response['id']}"
    for state in ("disabled", "enabled"):
        assert (await run.call("PATCH", path, {"state": state}))[0] == 200
    assert (await run.call("PATCH", path, {"points": ["pre-*"]}))[0] == 200
    assert (await run.call("POST", f"{path}/rotate"))[0] == 200
    assert (await run.call("DELETE", path))[0] == 204
    return str(remaining["id"])


ALL_DELIVERED = """
select not exists (select 1 from outbox where position is null)
   and not exists (select 1 from delivery where state = 'pending')
"""


async def all_delivered(run: Program) -> bool:
    async with run.database.connection() as conn:
        return bool(await conn.fetchval(ALL_DELIVERED))


async def all_events(run: Program, receiver: Receiver) -> list[Json]:
    """Wait until all published events have arrived; return them."""

    async def all_arrived() -> bool:
        seen = await all_delivered(run)
        async with run.database.connection() as conn:
            # Without the event of the earlier subscription, and without that of its own.
            count = await conn.fetchval("select count(*) - 2 from event")
        return bool(seen and len({event["id"] for event in receiver.events}) == count)

    await eventually(all_arrived)
    return list({event["id"]: event for event in receiver.events}.values())
