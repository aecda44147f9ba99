"""event_sinks of an environment: subscriptions with the lifetime of their stack."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from engine.words import Json
from tests.support.changes import until_deleted
from tests.support.program import Program, eventually, resource, template
from tests.support.receiver import Receiver, running_receiver, until

FAILING_RESOURCE = {"type": "OS::Heat::TestResource", "properties": {"value": "x", "fail": True}}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


@pytest_asyncio.fixture(loop_scope="session")
async def receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def other_receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as one:
        yield one


def sink(target: str, **more: Json) -> dict[str, Any]:
    return {"type": "webhook", "target": target, **more}


async def subscribed(running: Program) -> list[Json]:
    _, response = await running.call("GET", "/subscriptions")
    return list(response["subscriptions"])


def kinds(receiver: Receiver) -> list[str]:
    return [event["type"].removeprefix("headgate.") for event in receiver.events]


async def test_sinks_receive_the_first_and_the_last_event_of_a_stack(
    running: Program, receiver: Receiver
) -> None:
    sinks = [sink(receiver.url, events=["headgate.stack.*"])]
    await running.create("one", {"a": resource()}, environment={"event_sinks": sinks})
    await running.create("other", {"a": resource()})
    await running.until_ended("one")
    await running.until_ended("other")
    await running.stack_request("DELETE", "one")
    await until_deleted(running, "one")
    await until(lambda: len(receiver.events) == 4)
    assert kinds(receiver) == [
        "stack.create.started", "stack.create.completed",
        "stack.delete.started", "stack.delete.completed",
    ]  # fmt: skip
    assert {event["data"]["stack"]["name"] for event in receiver.events} == {"one"}
    await until(lambda: _none(running))


async def _none(running: Program) -> bool:
    """Sinks of deleted stacks are not listed."""
    return not await subscribed(running)


async def test_a_sink_is_a_subscription_of_the_api(running: Program, receiver: Receiver) -> None:
    sinks = [sink(receiver.url, points="pre-*", resource_types=["OS::Heat::*"], ordered=False)]
    stack_id = await running.create("one", {"a": resource()}, environment={"event_sinks": sinks})
    await running.until_ended("one")
    (made,) = await eventually(lambda: subscribed(running))
    assert {name: made[name] for name in ("origin", "stack_id", "channel", "target", "points",
                                          "types", "ordered", "state")} == {
        "origin": "environment", "stack_id": stack_id, "channel": "webhook",
        "target": receiver.url, "points": ["pre-*"], "types": ["OS::Heat::*"], "ordered": False,
        "state": "enabled",
    }  # fmt: skip
    _, response = await running.call("POST", f"/subscriptions/{made['id']}/rotate")
    assert response["secret"].startswith("whsec_")
    status, response = await running.call("POST", f"/subscriptions/{made['id']}/test")
    assert (status, response["delivered"]) == (200, True)


NIGHT = {"from": "22:00", "to": "07:00", "timezone": "Europe/Berlin", "days": ["mon-wed"]}


@pytest.mark.parametrize(
    ("name", "declared", "stored"),
    [
        ("quiet_hours", NIGHT, NIGHT | {"days": ["mon", "tue", "wed"]}),
        ("digest", "15m", {"every": "15m", "at": None, "timezone": None}),
        ("digest", {"every": "daily", "at": "08:00"},
         {"every": "daily", "at": "08:00", "timezone": "UTC"}),
    ],
    ids=["quiet hours", "period", "daily"],
)  # fmt: skip
async def test_a_sink_for_people_can_hold_its_notifications(
    running: Program, receiver: Receiver, name: str, declared: Json, stored: Json
) -> None:
    """Without quiet hours or a digest, the same declaration is another sink."""
    people = sink(receiver.url, events=["no.such"]) | {"type": "slack", name: declared}
    await running.create("one", {"a": resource()}, environment={"event_sinks": [people]})
    await running.until_ended("one")
    (made,) = await eventually(lambda: subscribed(running))
    assert (made[name], made["ordered"]) == (stored, False)
    awake = {key: value for key, value in people.items() if key != name}
    await running.update("one", "PUT", template=template({"a": resource()}),
                         environment={"event_sinks": [awake]})  # fmt: skip
    await running.until_ended("one")

    async def replaced() -> Json | None:
        found = await subscribed(running)
        return found if [one[name] for one in found] == [None] else None

    ((other,),) = [await eventually(replaced)]
    assert other["id"] != made["id"] and other["ordered"] is True


@pytest.mark.parametrize(
    ("changed", "place", "reason"),
    [
        ({"type": "webhook"}, "event_sinks[0].quiet_hours", 'for the channel "webhook"'),
        ({"ordered": True}, "event_sinks[0].quiet_hours", "ordered deliveries"),
        (
            {"quiet_hours": NIGHT | {"from": "late"}},
            "event_sinks[0].quiet_hours.from",
            "is not a time of day",
        ),
        ({"quiet_hours": None, "digest": "15m", "type": "webhook"}, "event_sinks[0].digest",
         'for the channel "webhook"'),
        ({"quiet_hours": None, "digest": "15m", "ordered": True}, "event_sinks[0].digest",
         "ordered deliveries"),
        ({"digest": "20m"}, "event_sinks[0].digest", '"20m" is not a period'),
        ({"digest": {"every": "1h", "at": "08:00"}}, "event_sinks[0].digest.at",
         "is for a daily digest only"),
    ],
    ids=["channel", "order", "time", "digest channel", "digest order", "period", "digest time"],
)  # fmt: skip
async def test_what_a_sink_cannot_hold_is_refused(
    running: Program, receiver: Receiver, changed: Json, place: str, reason: str
) -> None:
    people = sink(receiver.url, quiet_hours=NIGHT) | {"type": "slack"} | changed
    body = {
        "stack_name": "one",
        "template": template({"a": resource()}),
        "environment": {"event_sinks": [people]},
    }
    status, response = await running.call("POST", "/stacks", body)
    assert status == 400
    (found,) = response["error"]["findings"]
    assert found["place"] == place
    assert reason in found["reason"]


async def test_an_update_changes_sinks_and_a_rollback_restores_them(
    running: Program, receiver: Receiver, other_receiver: Receiver
) -> None:
    only = {"events": ["headgate.stack.*"]}
    before = {"event_sinks": [sink(receiver.url, **only)]}
    after = {"event_sinks": [sink(other_receiver.url, **only)]}
    await running.create("one", {"a": resource()}, environment=before)
    await running.until_ended("one")
    failing = template({"a": resource(), "b": FAILING_RESOURCE})
    await running.update("one", "PUT", template=failing, environment=after, disable_rollback=False)

    async def rolled_back() -> bool:
        return bool((await running.stack("one"))["stack_status"] == "ROLLBACK_COMPLETE")

    await eventually(rolled_back)
    await until(lambda: "stack.rollback.completed" in kinds(receiver))
    await until(lambda: len(other_receiver.events) == 2)
    assert kinds(other_receiver) == ["stack.update.started", "stack.update.failed"]
    assert kinds(receiver)[-2:] == ["stack.rollback.started", "stack.rollback.completed"]

    async def only_the_first_sink_is_left() -> bool:
        found = await subscribed(running)
        states = {one["target"]: (one["state"], one["reason"]) for one in found}
        return states == {receiver.url: ("enabled", "")}

    await eventually(only_the_first_sink_is_left)


async def test_an_unchanged_sink_keeps_its_deliveries(running: Program, receiver: Receiver) -> None:
    sinks = {"event_sinks": [sink(receiver.url)]}
    await running.create("one", {"a": resource()}, environment=sinks)
    await running.until_ended("one")
    (before,) = await eventually(lambda: subscribed(running))
    await running.update("one", template=template({"a": resource(value="2")}))
    await running.until_ended("one")
    (after,) = await subscribed(running)
    assert after == before


async def test_equivalent_sinks_are_one_subscription(running: Program, receiver: Receiver) -> None:
    only = {"events": ["headgate.stack.create.*"]}
    twice = [sink(receiver.url, **only), sink(receiver.url, events=only["events"][0], ordered=True)]
    await running.create("one", {"a": resource()}, environment={"event_sinks": twice})
    await until(lambda: "stack.create.completed" in kinds(receiver))
    assert len(await subscribed(running)) == 1
    assert kinds(receiver) == ["stack.create.started", "stack.create.completed"]


async def test_sinks_of_all_environment_files_receive_events(
    running: Program, receiver: Receiver, other_receiver: Receiver
) -> None:
    files = {
        "a.yaml": f"event_sinks: [{{type: webhook, target: '{receiver.url}'}}]",
        "b.yaml": f"event_sinks: [{{type: webhook, target: '{other_receiver.url}'}}]",
    }
    more = {"files": files, "environment_files": ["a.yaml", "b.yaml"]}
    await running.create("one", {"a": resource()}, **more)
    for one in (receiver, other_receiver):
        await until(lambda one=one: "stack.create.completed" in kinds(one))


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (
            {"type": "zaqar-queue", "target": "q", "ttl": 3600},
            'event_sinks[0].ttl: is not a known key',
        ),
        ({"type": "zaqar-queue", "target": "q"}, '"zaqar-queue" is not set up on this server'),
        (sink("http://10.0.0.1/"), "event_sinks[0].target"),
        (sink("nonsense"), "event_sinks[0].target"),
        (sink("http://127.0.0.1:1/", evnts=["x"]), "Did you mean"),
        ({"type": "amqp", "target": "headgate"}, "[channels.amqp] url"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("way", ["create", "file", "preview", "validate"])
async def test_an_invalid_sink_is_refused_before_anything_is_stored(
    running: Program, wrong: dict[str, Any], expected: str, way: str
) -> None:
    body: dict[str, Any] = {"stack_name": "one", "template": template({"a": resource()})}
    if way == "file":
        body |= {"environment_files": ["e"], "files": {"e": json.dumps({"event_sinks": [wrong]})}}
    else:
        body |= {"environment": {"event_sinks": [wrong]}}
    path = {"preview": "/stacks/preview", "validate": "/validate"}.get(way, "/stacks")
    status, response = await running.call("POST", path, body)
    assert status == 400
    assert expected in json.dumps(response).replace('\\"', '"'), response
    assert (await running.call("GET", "/stacks"))[1]["stacks"] == []
    assert await subscribed(running) == []


async def test_an_update_with_an_invalid_sink_changes_nothing(
    running: Program,
) -> None:
    await running.create("one", {"a": resource()})
    await running.until_ended("one")
    stack = await running.stack("one")
    body = {"environment": {"event_sinks": [sink("http://169.254.169.254/")]}}
    status, response = await running.call("PATCH", f"/stacks/one/{stack['id']}", body)
    assert (status, "169.254" in str(response)) == (400, True)
    assert (await running.stack("one"))["updated_time"] == stack["updated_time"]
