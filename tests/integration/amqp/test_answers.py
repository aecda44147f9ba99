"""Answers over AMQP are handled as over other channels, and are never lost."""

import struct
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar
from uuid import UUID

import aiormq
import orjson
import pytest
import pytest_asyncio
from aio_pika.abc import AbstractIncomingMessage
from pamqp.commands import Basic
from pamqp.common import FieldTable
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from channels.amqp.answer_queue import Answers
from tests.integration.amqp.conftest import AmqpClient, running_client, subscribe, until_consumed
from tests.integration.conftest import DatabaseOutage
from tests.support.changes import put, thing
from tests.support.program import Json, Program, eventually, program
from tests.support.rabbit import Rabbit
from tests.support.receiver import until
from tests.support.scripted_type import Thing, World

RULE = {"hooks": [{"at": "a", "on": "pre-create"}]}
WAITING = "headgate.hook.waiting"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_amqp(rabbit: Rabbit) -> AsyncIterator[AmqpClient]:
    """For tests that leave no message in its queues."""
    async with running_client(rabbit) as opened:
        yield opened


@pytest.fixture(scope="module")
def things_settings(rabbit: Rabbit, shared_amqp: AmqpClient) -> Mapping[str, Any]:
    return {"channels.amqp.url": rabbit.url, "engine.poll": "1s", **shared_amqp.settings}


@pytest.fixture
def shared_run(things_in_own_project: Program) -> Program:
    return things_in_own_project


async def audit_log(run: Program, hook: str) -> list[Json]:
    _, response = await run.call("GET", f"/hooks/{hook}/decisions")
    return [
        (one["kind"], one["by"], one["channel"], one["reason"]) for one in response["decisions"]
    ]


async def test_an_answer_to_a_notification_decides_the_hook(run: Program, amqp: AmqpClient) -> None:
    await subscribe(run, amqp, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=RULE)
    notice = await amqp.next()
    (hook,) = await run.waiting_hooks("s")
    assert notice.correlation_id == hook["id"]
    assert notice.reply_to == f"answers.{amqp.name}"
    reply = await amqp.answer(notice, reason="looks well")
    assert reply.pop("message_id") and reply.pop("deadline")
    assert reply == {"accepted": True, "reason": None, "status": None, "type": None}
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    ((kind, by, channel, why),) = await audit_log(run, hook["id"])
    assert (kind, channel, why) == ("continue", "amqp", "looks well")
    assert by.startswith("subscription ") and by.endswith(" of anonymous")


async def test_a_repeated_answer_is_accepted_and_a_different_one_refused(
    run: Program, amqp: AmqpClient
) -> None:
    await subscribe(run, amqp, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=RULE)
    notice = await amqp.next()
    assert (await amqp.answer(notice, "reject"))["accepted"]
    assert (await amqp.answer(notice, "reject"))["accepted"]
    reply = await amqp.answer(notice)
    assert reply["accepted"] is False
    assert "already answered: reject by subscription " in reply["reason"]
    assert (reply["status"], reply["type"]) == (409, "HookAlreadyAnswered")
    refused = await amqp.next(f"answers.{amqp.name}.refused")
    assert refused.headers["headgate-reason"] == reply["reason"]
    assert orjson.loads(refused.body)["decision"] == "continue"


async def test_data_progress_and_patches(run: Program, amqp: AmqpClient, world: World) -> None:
    await subscribe(run, amqp, events=[WAITING])
    rule = {"at": "a", "on": "pre-create", "patch": ["size"], "timeout": "1h", "at_most": "5h"}
    await run.create("s", {"a": thing()}, environment={"hooks": [rule]})
    notice = await amqp.next()
    before = orjson.loads(notice.body)["data"]["hook"]["deadline"]
    reply = await amqp.answer(notice, "progress", extend="2h")
    (hook,) = await run.waiting_hooks("s")
    assert reply["accepted"] and reply["deadline"] == hook["deadline"] > before
    refused = await amqp.answer(notice, "patch", properties={"place": "there"})
    assert (refused["accepted"], refused["status"]) == (False, 400)
    assert (await amqp.answer(notice, "patch", properties={"size": 7}))["accepted"]
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert list(world.things.values()) == [7]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the body is not JSON"),
        (b"\xff\xfe", "the body is not JSON"),
        (b"[]", "the body is not an object"),
        (b'{"decision": "continue"}', "it has no `token`"),
        (b'{"decision": "continue", "token": 5}', "it has no `token`"),
        (b'{"decision": "continue", "token": "wrong"}', "this is not the hook's token"),
        (b" " * 300_000, "it is longer than"),
        ({"decision": "contineu"}, 'Did you mean "continue"'),
        ({"decision": "continue", "colour": "red"}, "colour: is not a known key"),
        ({"decision": "continue", "reason": "a\0"}, "reason: text with a NUL character"),
        ({"decision": "continue", "data": {"a\0": 1}}, "data: text with a NUL character"),
        ({}, "decision: is missing"),
        ({"decision": "progress", "extend": "soon"}, '"soon" is not a valid time'),
    ],
)
async def test_an_invalid_answer_is_moved_to_the_refused_queue(
    shared_run: Program, shared_amqp: AmqpClient, body: bytes | Json, reason: str
) -> None:
    await subscribe(shared_run, shared_amqp, events=[WAITING])
    await shared_run.create("s", {"a": thing()}, environment=RULE)
    notice = await shared_amqp.next()
    if isinstance(body, dict):
        body = orjson.dumps(body | {"token": orjson.loads(notice.body)["data"]["token"]})
    await shared_amqp.publish(notice.correlation_id, body, reply=False)
    refused = await shared_amqp.next(f"answers.{shared_amqp.name}.refused")
    assert reason in str(refused.headers["headgate-reason"])
    assert refused.body == body
    (hook,) = await shared_run.waiting_hooks("s")
    assert await audit_log(shared_run, hook["id"]) == []
    assert (await shared_amqp.answer(notice))["accepted"]


@pytest.mark.parametrize(
    ("correlation", "reason", "status", "kind"),
    [
        (None, "the correlation id is not the id of a hook", 400, "Invalid"),
        ("web", "the correlation id is not the id of a hook", 400, "Invalid"),
        (str(UUID(int=9)), "this is not the hook's token", 401, "Unauthorized"),
    ],
)
async def test_an_answer_without_a_hook_is_moved_to_the_refused_queue(
    run: Program, amqp: AmqpClient, correlation: str | None, reason: str, status: int, kind: str
) -> None:
    await amqp.channel.declare_queue(f"answers.{amqp.name}.refused", passive=False, durable=True,
                                    arguments={"x-queue-type": "quorum"})  # fmt: skip
    await amqp.channel.declare_queue(f"answers.{amqp.name}", durable=True,
                                    arguments={"x-queue-type": "quorum"})  # fmt: skip
    await amqp.publish(correlation, {"decision": "continue", "token": "t"}, message_id="m-1")
    reply = orjson.loads((await amqp.next(amqp.replies)).body)
    assert reply == {
        "accepted": False,
        "reason": reason,
        "status": status,
        "type": kind,
        "deadline": None,
        "message_id": "m-1",
    }
    refused = await amqp.next(f"answers.{amqp.name}.refused")
    assert refused.correlation_id == correlation


class EncodedProperties(Basic.Properties):
    """Properties that a client sends as they are, also if they cannot be decoded."""

    encoded: ClassVar[bytes] = b""

    def marshal(self) -> bytes:
        return self.encoded


@pytest.mark.parametrize(
    "encoded",
    [
        struct.pack(">HB", Basic.Properties.flags["correlation_id"], 2) + b"\xff\xfe",
        struct.pack(">HQ", Basic.Properties.flags["timestamp"], 2**63),
        struct.pack(">HIB", Basic.Properties.flags["headers"], 7, 1) + b"\xffS\0\0\0\0",
    ],
    ids=["text", "time", "headers"],
)
async def test_a_message_that_cannot_be_decoded_stops_no_other(
    shared_run: Program,
    shared_amqp: AmqpClient,
    rabbit: Rabbit,
    encoded: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await subscribe(shared_run, shared_amqp, events=[WAITING])
    await shared_run.create("s", {"a": thing()}, environment=RULE)
    notice = await shared_amqp.next()
    monkeypatch.setattr(EncodedProperties, "encoded", encoded)
    connection = await aiormq.connect(rabbit.url)
    try:
        channel = await connection.channel()
        await channel.basic_publish(
            b"{}", routing_key=notice.reply_to or "", properties=EncodedProperties()
        )
    finally:
        await connection.close()
    refused = await shared_amqp.next(f"answers.{shared_amqp.name}.refused")
    assert refused.headers["headgate-reason"] == "the correlation id is not the id of a hook"
    assert (await shared_amqp.answer(notice))["accepted"]
    assert await shared_run.until_ended("s") == "CREATE_COMPLETE"


async def test_queues_that_exist_with_other_arguments_are_used_as_they_are(
    database_url: str, rabbit: Rabbit, amqp: AmqpClient, world: World
) -> None:
    """A setting of a queue changed, or an earlier version declared it."""
    quorum: FieldTable = {"x-queue-type": "quorum"}
    for name in (f"answers.{amqp.name}.refused", f"unrouted.{amqp.name}"):
        await amqp.channel.declare_queue(name, durable=True, arguments=quorum)
    settings = {"channels.amqp.url": rabbit.url, **amqp.settings}
    async with program(database_url, settings, types=[Thing(world)]) as run:
        await subscribe(run, amqp, events=[WAITING])
        await run.create("s", {"a": thing()}, environment=RULE)
        assert (await amqp.answer(await amqp.next()))["accepted"]
        assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_token_of_another_hook_is_refused(run: Program, amqp: AmqpClient) -> None:
    await subscribe(run, amqp, events=[WAITING])
    rules = {"hooks": [{"at": "*", "on": "pre-create"}]}
    await run.create("s", {"a": thing(), "b": thing()}, environment=rules)
    one, other = await amqp.next(), await amqp.next()
    token = orjson.loads(one.body)["data"]["token"]
    await amqp.publish(other.correlation_id, {"decision": "continue", "token": token})
    reply = orjson.loads((await amqp.next(amqp.replies)).body)
    assert (reply["accepted"], reply["reason"]) == (False, "this is not the hook's token")
    assert len(await run.waiting_hooks("s", 2)) == 2


@pytest.fixture
async def run_with_rule(
    database_url: str, rabbit: Rabbit, amqp: AmqpClient, world: World
) -> AsyncIterator[Program]:
    """A policy rule of the operator with answers over AMQP, in every project."""
    points = ["pre-stack-create", "pre-stack-update"]
    settings = {
        "channels.amqp.url": rabbit.url,
        **amqp.settings,
        "hooks.rules": [{"on": points, "timeout": "1h", "on_timeout": "reject",
                         "answer_by": ["token"]}],
        "subscriptions": [{"name": "policy", "project": "*", "channel": "amqp", "target": amqp.exchange,
                           "events": [WAITING], "points": points}],
    }  # fmt: skip
    async with program(database_url, settings, types=[Thing(world)]) as run:
        yield run


async def test_a_policy_program_over_amqp_approves_rejects_and_waits(
    run_with_rule: Program, amqp: AmqpClient, world: World
) -> None:
    await run_with_rule.create("s", {"a": thing(5)})
    notice = await amqp.next()
    data = orjson.loads(notice.body)["data"]
    assert data["hook"]["point"] == "pre-stack-create"
    assert data["change"]["plan"][0]["properties"]["size"] == 5
    assert (await amqp.answer(notice, "reject", reason="too big"))["accepted"]
    assert await run_with_rule.until_ended("s") == "CREATE_FAILED"
    reason = (await run_with_rule.stack("s"))["stack_status_reason"]
    assert reason == "pre-stack-create rejected by subscription policy: too big"
    assert world.done == []
    await put(run_with_rule, "s", {"a": thing(1)})
    notice = await amqp.next()
    assert (await amqp.answer(notice, "progress", extend="2h"))["accepted"]
    assert (await run_with_rule.stack("s"))["stack_status"] == "UPDATE_IN_PROGRESS"
    assert (await amqp.answer(notice))["accepted"]
    assert await run_with_rule.until_ended("s") == "UPDATE_COMPLETE"
    assert list(world.things.values()) == [1]


async def test_answers_are_received_after_the_broker_has_cancelled_the_consumer(
    run: Program, amqp: AmqpClient, rabbit: Rabbit
) -> None:
    """It does so when the queue is deleted, which is then declared again."""
    answers = f"answers.{amqp.name}"
    await until_consumed(rabbit.url, answers)
    await amqp.channel.queue_delete(answers)
    await until_consumed(rabbit.url, answers)
    await subscribe(run, amqp, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=RULE)
    assert (await amqp.answer(await amqp.next()))["accepted"]
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_an_answer_waits_until_the_database_is_available(
    run: Program, amqp: AmqpClient, database_outage: DatabaseOutage
) -> None:
    await subscribe(run, amqp, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=RULE)
    notice = await amqp.next()
    token = orjson.loads(notice.body)["data"]["token"]
    with capture_logs() as logs:
        async with database_outage():
            await amqp.publish(notice.correlation_id, {"decision": "continue", "token": token})
            await until(lambda: any(one["event"] == "amqp.answer.deferred" for one in logs))
    assert orjson.loads((await amqp.next(amqp.replies)).body)["accepted"]
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_an_answer_with_an_internal_error_is_refused_once(
    run: Program, amqp: AmqpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await subscribe(run, amqp, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=RULE)
    notice = await amqp.next()

    async def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("no")

    with monkeypatch.context() as patch:
        patch.setattr(run.engine.hooks, "answer", fail)
        reply = await amqp.answer(notice)
    assert not reply["accepted"]
    assert reply["reason"].startswith("internal error ")
    assert (await amqp.next(f"answers.{amqp.name}.refused")).correlation_id == notice.correlation_id
    assert (await amqp.answer(notice))["accepted"]


async def test_a_project_notification_of_an_operator_hook_has_no_token(
    run_with_rule: Program, amqp: AmqpClient
) -> None:
    await subscribe(run_with_rule, amqp, events=[WAITING])
    await run_with_rule.create("s", {"a": thing()})
    notices = [await amqp.next(), await amqp.next()]
    data = [orjson.loads(one.body)["data"] for one in notices]
    (projects,) = [at for at, one in enumerate(data) if one["token"] is None]
    assert data[projects]["signal_url"] is None
    assert (notices[projects].reply_to, notices[projects].correlation_id) == (None, None)
    (hook,) = await run_with_rule.waiting_hooks("s")
    await amqp.publish(hook["id"], {"decision": "continue"})
    reply = orjson.loads((await amqp.next(amqp.replies)).body)
    assert reply["accepted"] is False and reply["reason"].startswith("it has no `token`")
    assert (await amqp.answer(notices[1 - projects], "reject"))["accepted"]
    assert await run_with_rule.until_ended("s") == "CREATE_FAILED"


@pytest.mark.parametrize("stage", ["_reply", "_submit"])
async def test_a_message_with_an_internal_error_does_not_delay_others(
    run: Program, amqp: AmqpClient, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    await subscribe(run, amqp, events=[WAITING])
    for name in ("s", "t"):
        await run.create(name, {"a": thing()}, environment=RULE)
    first, second = [await amqp.next(), await amqp.next()]
    inner = getattr(Answers, stage)

    async def fail(self: Answers, message: AbstractIncomingMessage, *more: Any) -> Any:
        if message.correlation_id == first.correlation_id:
            raise ZeroDivisionError("no")
        return await inner(self, message, *more)

    monkeypatch.setattr(Answers, stage, fail)
    with capture_logs() as logs:
        await amqp.publish(first.correlation_id, {"token": "x", "decision": "continue"})
        assert (await amqp.answer(second))["accepted"]
        refused = await amqp.next(f"answers.{amqp.name}.refused")
    assert refused.correlation_id == first.correlation_id
    (line,) = [one for one in logs if one["event"] == "amqp.answer.failed"]
    assert line["error_id"] in str(refused.headers["headgate-reason"])


async def notification_deliveries(run: Program, subscription: Json) -> list[Json]:
    """Deliveries of notifications to a subscription, newest first."""
    _, response = await run.call("GET", f"/subscriptions/{subscription['id']}/deliveries")
    return [one for one in response["deliveries"] if one["type"] == WAITING]


async def test_the_delivery_history_shows_why_an_answer_was_refused(
    run: Program, amqp: AmqpClient
) -> None:
    subscription = await subscribe(run, amqp, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=RULE)
    notice = await amqp.next()
    token = orjson.loads(notice.body)["data"]["token"]
    await amqp.answer(notice, "contineu", reason=f"with {token}", data={"key": "secret"})
    (row,) = await notification_deliveries(run, subscription)
    assert row["error"].startswith("the answer was refused: ")
    assert 'Did you mean "continue"' in row["error"]
    kept = orjson.loads(row["response"])
    assert kept == {"decision": "contineu", "reason": "with ******"}
    assert (await amqp.answer(notice, "reject"))["accepted"]
    await run.until_ended("s")
    late = await amqp.answer(notice, reason="too late")
    (row,) = await notification_deliveries(run, subscription)
    assert row["error"] == f"the answer was refused: {late['reason']}"
    assert "already answered: reject by subscription " in row["error"]
    assert orjson.loads(row["response"])["reason"] == "too late"
    assert token not in str(row) and "secret" not in str(row)
    _, response = await run.call("GET", f"/hooks/{notice.correlation_id}")
    assert [one["error"] for one in response["asked"]] == [row["error"]]


async def test_the_result_of_the_attempt_keeps_the_note_of_the_answer(
    run: Program, amqp: AmqpClient
) -> None:
    """An answer may arrive before the result of the notification's attempt is written."""
    subscription = await subscribe(run, amqp, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=RULE)
    notice = await amqp.next()
    assert not (await amqp.answer(notice, "contineu"))["accepted"]
    (row,) = await notification_deliveries(run, subscription)
    assert row["error"]
    path = f"/subscriptions/{subscription['id']}/redeliver"
    assert (await run.call("POST", path, {"delivery": row["id"]}))[0] in (200, 202)
    await amqp.next()

    async def is_recorded() -> bool:
        return [one["state"] for one in await notification_deliveries(run, subscription)] == [
            "delivered"
        ]

    await eventually(is_recorded)
    assert (await notification_deliveries(run, subscription))[0]["error"] == row["error"]


async def test_an_answer_without_a_valid_token_overwrites_no_note(
    run: Program, amqp: AmqpClient
) -> None:
    subscription = await subscribe(run, amqp, events=[WAITING])
    for name in ("s", "t"):
        await run.create(name, {"a": thing()}, environment=RULE)
    for body, reason in (
        (b"{", "the answer was ignored: the body is not JSON"),
        (b'{"token": "wrong"}', "the answer was ignored: this is not the hook's token"),
    ):
        notice = await amqp.next()
        await amqp.publish(notice.correlation_id, body)
        await amqp.next(amqp.replies)
        (row,) = [
            one
            for one in await notification_deliveries(run, subscription)
            if one["event_id"] == notice.message_id
        ]
        assert row["error"].startswith(reason) and row["response"] is None
        await amqp.publish(notice.correlation_id, b"[]")
        await amqp.next(amqp.replies)
        assert row in await notification_deliveries(run, subscription)
        await amqp.answer(notice, "contineu")
        (now,) = [
            one
            for one in await notification_deliveries(run, subscription)
            if one["id"] == row["id"]
        ]
        assert now["error"].startswith("the answer was refused: ")


async def test_the_history_of_a_project_subscription_names_the_operator_rule(
    run_with_rule: Program, amqp: AmqpClient
) -> None:
    subscription = await subscribe(run_with_rule, amqp, events=[WAITING])
    await run_with_rule.create("s", {"a": thing()})
    notices = [await amqp.next(), await amqp.next()]
    (hook,) = await run_with_rule.waiting_hooks("s")
    await amqp.publish(hook["id"], {"decision": "continue"})
    await amqp.next(amqp.replies)
    (row,) = await notification_deliveries(run_with_rule, subscription)
    assert row["error"] == (
        "the answer was ignored: an operator rule blocks the node: only subscriptions in the"
        " settings may answer"
    )
    (valid,) = [one for one in notices if one.reply_to]
    assert (await amqp.answer(valid, "reject"))["accepted"]
    assert await run_with_rule.until_ended("s") == "CREATE_FAILED"


async def test_a_note_waits_until_the_database_is_available(
    run: Program, amqp: AmqpClient, database_outage: DatabaseOutage
) -> None:
    subscription = await subscribe(run, amqp, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=RULE)
    notice = await amqp.next()
    with capture_logs() as logs:
        async with database_outage():
            await amqp.publish(notice.correlation_id, b"[]")
            await until(lambda: any(one["event"] == "amqp.answer.deferred" for one in logs))
    assert not orjson.loads((await amqp.next(amqp.replies)).body)["accepted"]
    (row,) = await notification_deliveries(run, subscription)
    assert row["error"] == "the answer was ignored: the body is not an object"


async def test_ignored_answers_are_counted_by_reason(run: Program, amqp: AmqpClient) -> None:
    await subscribe(run, amqp, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=RULE)
    notice = await amqp.next()
    assert (await amqp.answer(notice, "reject"))["accepted"]
    assert not (await amqp.answer(notice))["accepted"]
    assert not (await amqp.answer(notice, token="another"))["accepted"]
    assert not (await amqp.answer(notice, token=""))["accepted"]

    async def counts() -> dict[str, float] | None:
        _, text = await run.call("GET", "//metrics")
        found = {
            sample.labels["reason"]: sample.value
            for family in text_string_to_metric_families(str(text))
            for sample in family.samples
            if sample.name == "headgate_amqp_answers_ignored_total"
        }
        return found if len(found) == 3 else None

    expected = {"refused": 1.0, "invalid_token": 1.0, "malformed": 1.0}
    assert await eventually(counts) == expected
