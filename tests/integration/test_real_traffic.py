"""Every event of a life with everything in it, as it comes over each channel, held against the
document that the server itself gives: /asyncapi.json.
"""

from collections.abc import AsyncIterator

import aiohttp
import jsonschema_rs
import orjson
import pytest

from engine.types.contract import Failed
from tests.integration.amqp.conftest import Post, post, subscribe
from tests.support.changes import ended_as, gone, put, thing
from tests.support.program import Json, Program, eventually, program, who
from tests.support.rabbit import Rabbit
from tests.support.receiver import Receiver, receiving
from tests.support.things import Thing, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def box(rabbit: Rabbit) -> AsyncIterator[Post]:
    async with post(rabbit) as made:
        yield made


@pytest.fixture
async def run(database_url: str, rabbit: Rabbit, box: Post, world: World) -> AsyncIterator[Program]:
    said = {
        "channels.amqp.url": rabbit.url, "engine.poll": "1s", **box.settings,
        "channels.webhook.attempts": 1, "engine.first_retry": "1s",
    }  # fmt: skip
    async with program(database_url, said, types=[Thing(world)]) as made:
        yield made


def on(*points: str, **more: Json) -> Json:
    return {"hooks": [{"at": "a", "on": list(points), **more}]}


async def one(run: Program, name: str) -> Json:
    (hook,) = await run.waiting(name)
    return hook


async def hooks_of_every_kind(run: Program) -> None:
    rule = on("pre-create", approvals=2, answer_by=["user:ann", "user:bob"], remind="1s",
              escalate={"after": "1s", "to": ["role:admin"]})  # fmt: skip
    await run.create("people", {"a": thing()}, environment=rule)
    hook = await one(run, "people")
    await run.signal(hook, "progress", user="ann", extend="2h")
    await run.call("POST", f"/hooks/{hook['id']}/hand-over", {"to": "user:cy"}, headers=who("ann"))

    async def escalated() -> bool:
        _, now = await run.call("GET", f"/hooks/{hook['id']}")
        return now["escalated_at"] is not None and now["reminders"] > 0

    await eventually(escalated)
    await run.signal(hook, user="ann")
    await run.signal(hook, user="cy")
    assert await run.until_ended("people") == "CREATE_COMPLETE"
    await run.create("late", {"a": thing()}, environment=on("pre-create", timeout="1s"))
    assert await run.until_ended("late") == "CREATE_STOPPED"
    await run.create("over", {"a": thing()}, environment=on("pre-create"))
    await one(run, "over")
    await put(run, "over", {"a": thing()}, hooks={"clear": ["*"]})
    assert await run.until_ended("over") == "UPDATE_COMPLETE"
    await run.create("told", {"a": thing()}, environment=on("pre-create", mode="notify"))
    await run.create("halt", {"a": thing()}, environment=on("pre-create", mode="stop"))
    gates = {"hooks": [{"on": ["pre-stack-create"]}]}
    await run.create("gate", {"a": thing()}, environment=gates)
    await run.signal(await one(run, "gate"), "reject", reason="no")
    assert await run.until_ended("gate") == "CREATE_FAILED"


async def a_whole_life(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(), "b": thing(depends_on="a")})
    await run.until_ended("s")
    world.will("update", "a", Failed("busy", retry=True))
    await put(run, "s", {"a": thing(2), "c": thing(place="there")})
    await run.until_ended("s")
    await put(run, "s", {"a": thing(2, place="there"), "c": thing()})
    await run.until_ended("s")
    for action in ("check", "suspend", "resume"):
        await run.act("s", action)
        await ended_as(run, "s", f"{action.upper()}_COMPLETE")
    await run.at("POST", "s", "/snapshots", {"name": "kept"})
    await ended_as(run, "s", "SNAPSHOT_COMPLETE")
    await run.at("POST", "s", "/resources/a/signal", {"ready": True})
    world.will("update", "a", Failed("no"))
    await run.update("s", "PUT", disable_rollback=False, template={
        "heat_template_version": "2018-08-31", "resources": {"a": thing(9, place="there")},
    })  # fmt: skip
    await ended_as(run, "s", "ROLLBACK_COMPLETE")
    await run.at("DELETE", "s")
    await gone(run, "s")


EXPECTED = {
    *(f"headgate.stack.{action}.{moment}" for action, moment in (
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


async def test_everything_that_is_sent_fits_what_is_said_of_it(
    run: Program, box: Post, world: World
) -> None:
    async with aiohttp.ClientSession() as session:
        document = await (await session.get(f"{run.url}/asyncapi.json")).json()
    schemas = {
        message["name"]: jsonschema_rs.validator_for(message["payload"], validate_formats=True)
        for message in document["components"]["messages"].values()
    }
    async with receiving() as receiver, receiving() as deaf:
        deaf.answers(500)
        await subscribe(run, box)
        await eventually(lambda: published(run))
        assert (await run.call("POST", "/subscriptions", {"target": receiver.url}))[0] == 201
        await eventually(lambda: published(run))
        stays = await a_subscription(run, deaf)
        await hooks_of_every_kind(run)
        await a_whole_life(run, world)
        again = await run.call("POST", f"/subscriptions/{stays}/redeliver", {"state": "dead"})
        assert again[0] == 202
        by_webhook = await everything(run, receiver)
    # Nobody hears of itself, and the queue's subscription was there first.
    first = orjson.loads((await box.next()).body)
    assert first["data"]["subscription"]["target"].startswith("http://")
    by_amqp = [orjson.loads((await box.next()).body) for _ in by_webhook]
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


async def a_subscription(run: Program, deaf: Receiver) -> str:
    """All that can become of one, and one that stays and is given up again and again."""
    dead = {"target": deaf.url, "events": ["headgate.stack.create.started"]}
    _, stays = await run.call("POST", "/subscriptions", dead)
    _, made = await run.call("POST", "/subscriptions", dead)
    path = f"/subscriptions/{made['id']}"
    for state in ("disabled", "enabled"):
        assert (await run.call("PATCH", path, {"state": state}))[0] == 200
    assert (await run.call("PATCH", path, {"points": ["pre-*"]}))[0] == 200
    assert (await run.call("POST", f"{path}/rotate"))[0] == 200
    assert (await run.call("DELETE", path))[0] == 204
    return str(stays["id"])


ALL_OUT = """
select not exists (select 1 from outbox where position is null)
   and not exists (select 1 from delivery where state = 'pending')
"""


async def published(run: Program) -> bool:
    async with run.database.connection() as conn:
        return bool(await conn.fetchval(ALL_OUT))


async def everything(run: Program, receiver: Receiver) -> list[Json]:
    """All that was published, when all of it has arrived."""

    async def all_there() -> bool:
        seen = await published(run)
        async with run.database.connection() as conn:
            # Of the first two subscriptions it is not told: of the one before it, and of itself.
            count = await conn.fetchval("select count(*) - 2 from event")
        return bool(seen and len({event["id"] for event in receiver.events}) == count)

    await eventually(all_there)
    return list({event["id"]: event for event in receiver.events}.values())
