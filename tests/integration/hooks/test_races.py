"""Whatever arrives at the same time, exactly one decision stands, and everybody is told the same."""

import asyncio
import random
from collections import Counter
from uuid import UUID

from engine.errors import AnswerRefused, HeadgateError
from engine.principal import named
from engine.service import Answer
from engine.words import Decision, Door
from tests.support.changes import put, thing
from tests.support.program import Json, Program, eventually
from tests.support.things import World

WRONG = {"HookAlreadyAnswered", "HookExpired", "HookSuperseded", "StackStopped"}


async def test_hundreds_of_conflicting_answers_make_one_decision(
    run: Program, world: World
) -> None:
    """By HTTP and by Heat's way, with deadlines and superseding updates among them."""
    chance = random.Random(7)
    hooks = 12
    resources = {f"r{number}": thing() for number in range(hooks)}
    rule = {"at": "*", "on": "pre-create", "timeout": "2s", "on_timeout": "continue"}
    await run.create("s", resources, environment={"hooks": [rule]})
    waiting = await run.waiting("s", hooks)
    said: dict[str, Counter[str]] = {hook["id"]: Counter() for hook in waiting}

    async def answer(hook: Json, number: int) -> None:
        await asyncio.sleep(chance.random() * 2)
        decision = chance.choice(["continue", "reject", "run", "step"])
        status, told = await run.signal(hook, decision, user=f"u{number}")
        if status == 200:
            said[hook["id"]][told["decision"]] += 1
            assert told["decision"] == decision
        else:
            assert (status, told["error"]["type"] in WRONG) == (409, True), told
            if told["error"]["decision"]:
                said[hook["id"]][f"told {told['error']['decision']}"] += 1

    async def change() -> None:
        await asyncio.sleep(1)
        changed = {name: one for name, one in resources.items() if name != "r0"}
        await put(run, "s", changed, environment={"hooks": []}, hooks={"clear": ["*"]})

    async with asyncio.TaskGroup() as group:
        for number in range(300):
            group.create_task(answer(waiting[number % hooks], number))
        group.create_task(change())
    assert await run.until_ended("s") in ("UPDATE_COMPLETE", "UPDATE_FAILED")
    _, listed = await run.call("GET", "/hooks?stack=s&limit=1000")
    for hook in listed["hooks"]:
        if hook["id"] not in said:
            continue  # of a step that somebody asked for
        told = said[hook["id"]]
        taken = {decision for decision in told if not decision.startswith("told")}
        heard = {one.removeprefix("told ") for one in told if one.startswith("told")}
        assert len(taken) <= 1, (hook, told)
        assert heard <= {hook["decision"]}, (hook, told)
        if hook["state"] == "answered":
            assert taken == {hook["decision"]} or hook["decided_by"] not in ("", None)
        _, trail = await run.call("GET", f"/hooks/{hook['id']}/decisions")
        assert len(trail["decisions"]) == (hook["state"] != "superseded"), trail
    assert max(Counter(name for _, name in world.done).values()) <= 2


async def test_all_doors_lead_to_one_decision(run: Program, world: World) -> None:
    """Fifty answers to one hook, at once, each through another door."""
    await run.create("s", {"a": thing()}, environment={"hooks": [{"at": "a", "on": "pre-create"}]})
    (hook,) = await run.waiting("s")
    record = await run.engine.reads.hook(hook_id := UUID(hook["id"]), project="p")
    doors = [Door.API, Door.TOKEN, Door.WEBHOOK, Door.UNSET_HOOK]
    outcomes: Counter[str] = Counter()

    async def answer(number: int) -> None:
        decision = Decision.CONTINUE if number % 2 else Decision.REJECT
        given = Answer(decision, named(f"u{number}"), doors[number % 4])
        try:
            if given.door is Door.UNSET_HOOK and decision is Decision.CONTINUE:
                await run.engine.hooks.unset("p", record.stack_id, "a", "pre-create", given)
            else:
                await run.engine.hooks.answer(hook_id, given, project="p")
            outcomes[decision] += 1
        except AnswerRefused as refused:
            outcomes[refused.code] += 1
        except HeadgateError as error:
            outcomes[error.code] += 1

    async with asyncio.TaskGroup() as group:
        for number in range(50):
            group.create_task(answer(number))
    assert (outcomes["continue"] == 0) != (outcomes["reject"] == 0), outcomes
    assert outcomes["HookAlreadyAnswered"] + outcomes["InvalidBreakPointHook"] >= 20
    _, trail = await run.call("GET", f"/hooks/{hook['id']}/decisions")
    assert len(trail["decisions"]) == 1
    assert await run.until_ended("s") in ("CREATE_COMPLETE", "CREATE_FAILED")
    assert len(world.done) <= 1


async def test_deadlines_are_never_early_and_soon(run: Program) -> None:
    """Three hundred hooks that expire while others are answered and other stacks are made."""
    resources = {f"r{number:03}": thing() for number in range(300)}
    rule = {"at": "*", "on": "pre-create", "timeout": "2s", "on_timeout": "continue"}
    await run.create("s", resources, environment={"hooks": [rule]})

    async def busy(number: int) -> None:
        await run.create(f"busy{number}", {f"x{n}": thing() for n in range(20)})
        await run.until_ended(f"busy{number}")

    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(busy(number))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    async with run.database.connection() as conn:
        rows = await conn.fetch(
            "select extract(epoch from decided_at - deadline)::float8 as late from hook"
            " where state = 'expired'"
        )
    late = sorted(float(row["late"]) for row in rows)
    print(f"late: median {late[len(late) // 2]:.3f} s, most {late[-1]:.3f} s")
    assert len(late) == 300 and late[0] >= 0


async def test_reminders_and_escalation_come_and_let_others_answer(run: Program) -> None:
    rule = {"at": "a", "on": "pre-create", "answer_by": ["user:ann"], "remind": "1s",
            "escalate": {"after": "2s", "to": ["role:admin"]}}  # fmt: skip
    await run.create("s", {"a": thing()}, environment={"hooks": [rule]})
    (hook,) = await run.waiting("s")
    assert (await run.signal(hook, roles="admin"))[0] == 403

    async def escalated() -> bool:
        _, now = await run.call("GET", f"/hooks/{hook['id']}")
        return now["escalated_at"] is not None and now["reminders"] >= 2

    await eventually(escalated)
    assert (await run.signal(hook, roles="admin"))[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    reasons = [one["resource_status_reason"] for one in await run.events("s")]
    assert "Hook pre-create of a still waits for an answer" in reasons
    assert any("role:admin may answer it now" in reason for reason in reasons)
