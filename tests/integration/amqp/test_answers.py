"""Answers over AMQP: through the same door as all others, and nothing that is sent gets lost."""

from collections.abc import AsyncIterator
from uuid import UUID

import orjson
import pytest
from structlog.testing import capture_logs

from tests.integration.amqp.conftest import Post, subscribe
from tests.integration.conftest import Away
from tests.support.changes import put, thing
from tests.support.program import Json, Program, program
from tests.support.rabbit import Rabbit
from tests.support.receiver import until
from tests.support.things import Thing, World

ASKS = {"hooks": [{"at": "a", "on": "pre-create"}]}
WAITING = "headgate.hook.waiting"


async def trail(run: Program, hook: str) -> list[Json]:
    _, said = await run.call("GET", f"/hooks/{hook}/decisions")
    return [(one["kind"], one["by"], one["door"], one["reason"]) for one in said["decisions"]]


async def test_a_notice_says_how_to_answer_and_the_answer_decides(run: Program, box: Post) -> None:
    await subscribe(run, box, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=ASKS)
    notice = await box.next()
    (hook,) = await run.waiting("s")
    assert notice.correlation_id == hook["id"]
    assert notice.reply_to == f"answers.{box.name}"
    assert await box.answer(notice, reason="looks well") == {"taken": True, "reason": None}
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert await trail(run, hook["id"]) == [("continue", "token", "amqp", "looks well")]


async def test_the_same_again_is_taken_and_another_is_refused(run: Program, box: Post) -> None:
    await subscribe(run, box, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=ASKS)
    notice = await box.next()
    assert (await box.answer(notice, "reject"))["taken"]
    assert (await box.answer(notice, "reject"))["taken"]
    said = await box.answer(notice)
    assert said["taken"] is False
    assert "already answered: reject by token" in said["reason"]
    refused = await box.next(f"answers.{box.name}.refused")
    assert refused.headers["headgate-reason"] == said["reason"]
    assert orjson.loads(refused.body)["decision"] == "continue"


async def test_data_progress_and_patches_come_this_way_too(
    run: Program, box: Post, world: World
) -> None:
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
        ({"decision": "continue", "colour": "red"}, "colour: is not known here"),
        ({}, "decision: is missing"),
        ({"decision": "progress", "extend": "soon"}, '"soon" is no time'),
    ],
)
async def test_what_is_no_answer_is_set_aside_with_the_reason(
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
async def test_an_answer_to_nothing_is_set_aside(
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
    """A policy door of the operator's, over AMQP, in every project."""
    doors = ["pre-stack-create", "pre-stack-update"]
    said = {
        "channels.amqp.url": rabbit.url,
        **box.settings,
        "hooks.rules": [{"on": doors, "timeout": "1h", "on_timeout": "reject",
                         "answer_by": ["token"]}],
        "subscriptions": [{"project": "*", "channel": "amqp", "target": box.exchange,
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
    assert reason == "pre-stack-create rejected by token: too big"
    assert world.done == []
    await put(guarded, "s", {"a": thing(1)})
    notice = await box.next()
    assert (await box.answer(notice, "progress", extend="2h"))["taken"]
    assert (await guarded.stack("s"))["stack_status"] == "UPDATE_IN_PROGRESS"
    assert (await box.answer(notice))["taken"]
    assert await guarded.until_ended("s") == "UPDATE_COMPLETE"
    assert list(world.things.values()) == [1]


async def test_an_answer_waits_for_a_database_that_is_away(
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


async def test_an_answer_that_breaks_us_is_set_aside_and_comes_no_more(
    run: Program, box: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    await subscribe(run, box, events=[WAITING])
    await run.create("s", {"a": thing()}, environment=ASKS)
    notice = await box.next()

    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("no")

    with monkeypatch.context() as patch:
        patch.setattr(run.engine, "answer", broken)
        said = await box.answer(notice)
    assert said == {
        "taken": False, "reason": "an error of ours: ZeroDivisionError; the log has more",
    }  # fmt: skip
    assert (await box.next(f"answers.{box.name}.refused")).correlation_id == notice.correlation_id
    assert (await box.answer(notice))["taken"]
