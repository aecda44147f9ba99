"""Answers over AMQP: handled like answers over other channels, and never lost."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import orjson
import pytest
from aio_pika.abc import AbstractIncomingMessage
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from channels.amqp.answers import Answers
from tests.integration.amqp.conftest import Post, subscribe
from tests.integration.conftest import Away
from tests.support.changes import put, thing
from tests.support.program import Json, Program, eventually, program
from tests.support.rabbit import Rabbit
from tests.support.receiver import until
from tests.support.things import Thing, World

ASKS = {"hooks": [{"at": "a", "on": "pre-create"}]}
WAITING = "headgate.hook.waiting"


async def trail(run: Program, hook: str) -> list[Json]:
    _, said = await run.call("GET", f"/hooks/{hook}/decisions")
    return [(one["kind"], one["by"], one["door"], one["reason"]) for one in said["decisions"]]


async def test_an_answer_to_a_notification_decides_the_hook(run: Program, box: Post) -> None:
    await subscribe(run, box, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=ASKS)
    notice = await box.next()
    (hook,) = await run.waiting("s")
    assert notice.correlation_id == hook["id"]
    assert notice.reply_to == f"answers.{box.name}"
    assert await box.answer(notice, reason="looks well") == {"taken": True, "reason": None}
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    ((kind, by, door, why),) = await trail(run, hook["id"])
    assert (kind, door, why) == ("continue", "amqp", "looks well")
    assert by.startswith("subscription ") and by.endswith(" of anonymous")


async def test_a_repeated_answer_is_accepted_and_a_different_one_refused(
    run: Program, box: Post
) -> None:
    await subscribe(run, box, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=ASKS)
    notice = await box.next()
    assert (await box.answer(notice, "reject"))["taken"]
    assert (await box.answer(notice, "reject"))["taken"]
    said = await box.answer(notice)
    assert said["taken"] is False
    assert "already answered: reject by subscription " in said["reason"]
    refused = await box.next(f"answers.{box.name}.refused")
    assert refused.headers["headgate-reason"] == said["reason"]
    assert orjson.loads(refused.body)["decision"] == "continue"


async def test_data_progress_and_patches(run: Program, box: Post, world: World) -> None:
    await subscribe(run, box, events=[WAITING])
    rule = {"at": "a", "on": "pre-create", "patch": ["size"], "timeout": "1h", "at_most": "5h"}
    await run.create("s", {"a": thing()}, environment={"hooks": [rule]})
    notice = await box.next()
    before = orjson.loads(notice.body)["data"]["hook"]["deadline"]
    assert (await box.answer(notice, "progress", extend="2h"))["taken"]
    (hook,) = await run.waiting("s")
    assert hook["deadline"] > before
    assert not (await box.answer(notice, "patch", properties={"place": "there"}))["taken"]
    assert (await box.answer(notice, "patch", properties={"size": 7}))["taken"]
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
        ({}, "decision: is missing"),
        ({"decision": "progress", "extend": "soon"}, '"soon" is not a valid time'),
    ],
)
async def test_an_invalid_answer_is_moved_to_the_refused_queue(
    run: Program, box: Post, body: bytes | Json, reason: str
) -> None:
    await subscribe(run, box, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=ASKS)
    notice = await box.next()
    if isinstance(body, dict):
        body = orjson.dumps(body | {"token": orjson.loads(notice.body)["data"]["token"]})
    await box.say(notice.correlation_id, body, reply=False)
    refused = await box.next(f"answers.{box.name}.refused")
    assert reason in str(refused.headers["headgate-reason"])
    assert refused.body == body
    (hook,) = await run.waiting("s")
    assert await trail(run, hook["id"]) == []
    assert (await box.answer(notice))["taken"]


@pytest.mark.parametrize(
    ("correlation", "reason"),
    [
        (None, "the correlation id is not the id of a hook"),
        ("web", "the correlation id is not the id of a hook"),
        (str(UUID(int=9)), "this is not the hook's token"),
    ],
)
async def test_an_answer_without_a_hook_is_moved_to_the_refused_queue(
    run: Program, box: Post, correlation: str | None, reason: str
) -> None:
    await box.channel.declare_queue(f"answers.{box.name}.refused", passive=False, durable=True,
                                    arguments={"x-queue-type": "quorum"})  # fmt: skip
    await box.channel.declare_queue(f"answers.{box.name}", durable=True,
                                    arguments={"x-queue-type": "quorum"})  # fmt: skip
    await box.say(correlation, {"decision": "continue", "token": "t"})
    said = orjson.loads((await box.next(box.replies)).body)
    assert said == {"taken": False, "reason": reason}
    refused = await box.next(f"answers.{box.name}.refused")
    assert refused.correlation_id == correlation


async def test_a_token_of_another_hook_is_refused(run: Program, box: Post) -> None:
    await subscribe(run, box, events=[WAITING])
    rules = {"hooks": [{"at": "*", "on": "pre-create"}]}
    await run.create("s", {"a": thing(), "b": thing()}, environment=rules)
    one, other = await box.next(), await box.next()
    token = orjson.loads(one.body)["data"]["token"]
    await box.say(other.correlation_id, {"decision": "continue", "token": token})
    said = orjson.loads((await box.next(box.replies)).body)
    assert said == {"taken": False, "reason": "this is not the hook's token"}
    assert len(await run.waiting("s", 2)) == 2


@pytest.fixture
async def guarded(
    database_url: str, rabbit: Rabbit, box: Post, world: World
) -> AsyncIterator[Program]:
    """A policy rule of the operator with answers over AMQP, in every project."""
    doors = ["pre-stack-create", "pre-stack-update"]
    said = {
        "channels.amqp.url": rabbit.url,
        **box.settings,
        "hooks.rules": [{"on": doors, "timeout": "1h", "on_timeout": "reject",
                         "answer_by": ["token"]}],
        "subscriptions": [{"name": "policy", "project": "*", "channel": "amqp", "target": box.exchange,
                           "events": [WAITING], "points": doors}],
    }  # fmt: skip
    async with program(database_url, said, types=[Thing(world)]) as made:
        yield made


async def test_a_policy_over_amqp_allows_denies_and_holds(
    guarded: Program, box: Post, world: World
) -> None:
    await guarded.create("s", {"a": thing(5)})
    notice = await box.next()
    data = orjson.loads(notice.body)["data"]
    assert data["hook"]["point"] == "pre-stack-create"
    assert data["change"]["plan"][0]["properties"]["size"] == 5
    assert (await box.answer(notice, "reject", reason="too big"))["taken"]
    assert await guarded.until_ended("s") == "CREATE_FAILED"
    reason = (await guarded.stack("s"))["stack_status_reason"]
    assert reason == "pre-stack-create rejected by subscription policy: too big"
    assert world.done == []
    await put(guarded, "s", {"a": thing(1)})
    notice = await box.next()
    assert (await box.answer(notice, "progress", extend="2h"))["taken"]
    assert (await guarded.stack("s"))["stack_status"] == "UPDATE_IN_PROGRESS"
    assert (await box.answer(notice))["taken"]
    assert await guarded.until_ended("s") == "UPDATE_COMPLETE"
    assert list(world.things.values()) == [1]


async def test_an_answer_waits_until_the_database_is_available(
    run: Program, box: Post, away: Away
) -> None:
    await subscribe(run, box, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=ASKS)
    notice = await box.next()
    token = orjson.loads(notice.body)["data"]["token"]
    with capture_logs() as logs:
        async with away():
            await box.say(notice.correlation_id, {"decision": "continue", "token": token})
            await until(lambda: any(one["event"] == "amqp.answer.waits" for one in logs))
    assert orjson.loads((await box.next(box.replies)).body)["taken"]
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_an_answer_with_an_internal_error_is_refused_once(
    run: Program, box: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    await subscribe(run, box, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=ASKS)
    notice = await box.next()

    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("no")

    with monkeypatch.context() as patch:
        patch.setattr(run.engine.hooks, "answer", broken)
        said = await box.answer(notice)
    assert not said["taken"]
    assert said["reason"].startswith("internal error ")
    assert (await box.next(f"answers.{box.name}.refused")).correlation_id == notice.correlation_id
    assert (await box.answer(notice))["taken"]


async def test_a_project_notification_of_an_operator_hook_has_no_token(
    guarded: Program, box: Post
) -> None:
    await subscribe(guarded, box, events=[WAITING])
    await guarded.create("s", {"a": thing()})
    notices = [await box.next(), await box.next()]
    data = [orjson.loads(one.body)["data"] for one in notices]
    (projects,) = [at for at, one in enumerate(data) if one["token"] is None]
    assert data[projects]["signal_url"] is None
    assert (notices[projects].reply_to, notices[projects].correlation_id) == (None, None)
    (hook,) = await guarded.waiting("s")
    await box.say(hook["id"], {"decision": "continue"})
    reply = orjson.loads((await box.next(box.replies)).body)
    assert reply["taken"] is False and reply["reason"].startswith("it has no `token`")
    assert (await box.answer(notices[1 - projects], "reject"))["taken"]
    assert await guarded.until_ended("s") == "CREATE_FAILED"


@pytest.mark.parametrize("stage", ["_reply", "_taken"])
async def test_a_message_with_an_internal_error_does_not_delay_others(
    run: Program, box: Post, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    await subscribe(run, box, events=[WAITING])
    for name in ("s", "t"):
        await run.create(name, {"a": thing()}, environment=ASKS)
    first, second = [await box.next(), await box.next()]
    inner = getattr(Answers, stage)

    async def broken(self: Answers, message: AbstractIncomingMessage, *more: Any) -> Any:
        if message.correlation_id == first.correlation_id:
            raise ZeroDivisionError("no")
        return await inner(self, message, *more)

    monkeypatch.setattr(Answers, stage, broken)
    with capture_logs() as logs:
        await box.say(first.correlation_id, {"token": "x", "decision": "continue"})
        assert (await box.answer(second))["taken"]
        refused = await box.next(f"answers.{box.name}.refused")
    assert refused.correlation_id == first.correlation_id
    (line,) = [one for one in logs if one["event"] == "amqp.answer.failed"]
    assert line["error_id"] in str(refused.headers["headgate-reason"])


async def noted(run: Program, subscription: Json) -> list[Json]:
    """Deliveries of notifications to a subscription, newest first."""
    _, found = await run.call("GET", f"/subscriptions/{subscription['id']}/deliveries")
    return [one for one in found["deliveries"] if one["type"] == WAITING]


async def test_the_delivery_history_shows_why_an_answer_was_refused(
    run: Program, box: Post
) -> None:
    mine = await subscribe(run, box, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=ASKS)
    notice = await box.next()
    token = orjson.loads(notice.body)["data"]["token"]
    await box.answer(notice, "contineu", reason=f"with {token}", data={"key": "secret"})
    (row,) = await noted(run, mine)
    assert row["error"].startswith("the answer was refused: ")
    assert 'Did you mean "continue"' in row["error"]
    kept = orjson.loads(row["answer"])
    assert kept == {"decision": "contineu", "reason": "with ******"}
    assert (await box.answer(notice, "reject"))["taken"]
    await run.until_ended("s")
    late = await box.answer(notice, reason="too late")
    (row,) = await noted(run, mine)
    assert row["error"] == f"the answer was refused: {late['reason']}"
    assert "already answered: reject by subscription " in row["error"]
    assert orjson.loads(row["answer"])["reason"] == "too late"
    assert token not in str(row) and "secret" not in str(row)
    _, shown = await run.call("GET", f"/hooks/{notice.correlation_id}")
    assert [one["error"] for one in shown["asked"]] == [row["error"]]


async def test_the_result_of_the_attempt_keeps_a_note(run: Program, box: Post) -> None:
    """An answer may arrive before the result of the notification's attempt is written."""
    mine = await subscribe(run, box, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=ASKS)
    notice = await box.next()
    assert not (await box.answer(notice, "contineu"))["taken"]
    (row,) = await noted(run, mine)
    assert row["error"]
    path = f"/subscriptions/{mine['id']}/redeliver"
    assert (await run.call("POST", path, {"delivery": row["id"]}))[0] in (200, 202)
    await box.next()

    async def settled() -> bool:
        return [one["state"] for one in await noted(run, mine)] == ["delivered"]

    await eventually(settled)
    assert (await noted(run, mine))[0]["error"] == row["error"]


async def test_an_answer_without_a_valid_token_overwrites_no_note(run: Program, box: Post) -> None:
    mine = await subscribe(run, box, events=[WAITING])
    for name in ("s", "t"):
        await run.create(name, {"a": thing()}, environment=ASKS)
    for body, reason in (
        (b"{", "the answer was ignored: the body is not JSON"),
        (b'{"token": "wrong"}', "the answer was ignored: this is not the hook's token"),
    ):
        notice = await box.next()
        await box.say(notice.correlation_id, body)
        await box.next(box.replies)
        (row,) = [one for one in await noted(run, mine) if one["event_id"] == notice.message_id]
        assert row["error"].startswith(reason) and row["answer"] is None
        await box.say(notice.correlation_id, b"[]")
        await box.next(box.replies)
        assert row in await noted(run, mine)
        await box.answer(notice, "contineu")
        (now,) = [one for one in await noted(run, mine) if one["id"] == row["id"]]
        assert now["error"].startswith("the answer was refused: ")


async def test_the_history_of_a_project_subscription_names_the_operator_rule(
    guarded: Program, box: Post
) -> None:
    mine = await subscribe(guarded, box, events=[WAITING])
    await guarded.create("s", {"a": thing()})
    notices = [await box.next(), await box.next()]
    (hook,) = await guarded.waiting("s")
    await box.say(hook["id"], {"decision": "continue"})
    await box.next(box.replies)
    (row,) = await noted(guarded, mine)
    assert row["error"] == (
        "the answer was ignored: the operator's rule holds it: only subscriptions of the server's"
        " settings answer it"
    )
    (valid,) = [one for one in notices if one.reply_to]
    assert (await box.answer(valid, "reject"))["taken"]
    assert await guarded.until_ended("s") == "CREATE_FAILED"


async def test_a_note_waits_until_the_database_is_available(
    run: Program, box: Post, away: Away
) -> None:
    mine = await subscribe(run, box, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=ASKS)
    notice = await box.next()
    with capture_logs() as logs:
        async with away():
            await box.say(notice.correlation_id, b"[]")
            await until(lambda: any(one["event"] == "amqp.answer.waits" for one in logs))
    assert not orjson.loads((await box.next(box.replies)).body)["taken"]
    (row,) = await noted(run, mine)
    assert row["error"] == "the answer was ignored: the body is not an object"


async def test_ignored_answers_are_counted_by_reason(run: Program, box: Post) -> None:
    await subscribe(run, box, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=ASKS)
    notice = await box.next()
    assert (await box.answer(notice, "reject"))["taken"]
    assert not (await box.answer(notice))["taken"]
    assert not (await box.answer(notice, token="another"))["taken"]
    assert not (await box.answer(notice, token=""))["taken"]

    async def counted() -> dict[str, float] | None:
        _, text = await run.call("GET", "//metrics")
        found = {
            sample.labels["reason"]: sample.value
            for family in text_string_to_metric_families(str(text))
            for sample in family.samples
            if sample.name == "headgate_amqp_answers_ignored_total"
        }
        return found if len(found) == 3 else None

    expected = {"refused": 1.0, "invalid_token": 1.0, "malformed": 1.0}
    assert await eventually(counted) == expected
