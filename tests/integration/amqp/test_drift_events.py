"""Drift from the observation to the answer: the same events over AMQP and the stream."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson

from tests.integration.amqp.conftest import AmqpClient, subscribe
from tests.support.changes import observed, thing, until_status
from tests.support.program import Json, Program, eventually
from tests.support.scripted_type import World

POLICY = {"convergence": {"observe": {"every": "1h"}, "on_drift": "hold"}}
PREFIXES = ("headgate.resource.drift.", "headgate.hook.")


@asynccontextmanager
async def streamed(run: Program) -> AsyncIterator[list[Json]]:
    """The events about drift and hooks that the stream of the project sends."""
    found: list[Json] = []

    async def read() -> None:
        async with run.session.get(
            f"{run.url}/v1/p/events/stream", headers={"Last-Event-ID": "0-0"}
        ) as response:
            async for line in response.content:
                if not line.startswith(b"data: "):
                    continue
                event = orjson.loads(line[6:])
                if event["type"].startswith(PREFIXES):
                    found.append(event)

    reading = asyncio.create_task(read())
    try:
        yield found
    finally:
        reading.cancel()
        await asyncio.wait([reading])


async def test_drift_is_sent_and_answered_over_amqp_and_shown_in_the_stream(
    run: Program, amqp: AmqpClient, world: World
) -> None:
    await subscribe(run, amqp, events=[f"{one}*" for one in PREFIXES])
    async with streamed(run) as seen:
        await run.create("s", {"a": thing(), "b": thing()}, environment=POLICY)
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        lost = (await run.resources("s"))["a"]["physical_resource_id"]
        del world.things[lost]
        await observed(run)
        detected = orjson.loads((await amqp.next()).body)
        notice = await amqp.next()
        waiting = orjson.loads(notice.body)
        assert detected["type"] == "headgate.resource.drift.detected"
        drift = detected["data"]["drift"]
        assert (detected["subject"], drift["state"], drift["differences"]) == ("a", "missing", [])
        assert notice.routing_key == "headgate.hook.waiting.p.s"
        assert waiting["data"]["hook"]["point"] == "drift"
        assert waiting["data"]["resource"]["drift"]["state"] == "missing"
        # The token of the message answers, and the answer repairs.
        result = await amqp.answer(notice, reason="deleted by mistake")
        assert (result["accepted"], result["reason"]) == (True, None)
        await until_status(run, "s", "UPDATE_COMPLETE")
        assert len(world.things) == 2 and lost not in world.things
        await observed(run)
        later = [orjson.loads((await amqp.next()).body) for _ in range(2)]
        sent = [detected, waiting, *later]
        assert [one["type"].removeprefix("headgate.") for one in sent] == [
            "resource.drift.detected", "hook.waiting", "hook.answered", "resource.drift.resolved",
        ]  # fmt: skip

        async def is_complete() -> bool:
            return len(seen) >= len(sent)

        await eventually(is_complete)
    assert [_shared(one) for one in seen] == [_shared(one) for one in sent]
    assert all(not one["data"].get("token") for one in seen), "the stream has no hook tokens"


def _shared(event: Json) -> Json:
    """The part of an event that is the same for all receivers."""
    data = event["data"]
    parts = (data.get("drift"), (data.get("hook") or {}).get("id"), data.get("decision"))
    return event["id"], event["type"], event["sequence"], event["subject"], parts
