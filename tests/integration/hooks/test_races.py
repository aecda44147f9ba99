"""Concurrent answers: exactly one decision counts, and every sender learns it."""

import asyncio
import random
from collections import Counter
from uuid import UUID

from engine.errors import AnswerRefused, HeadgateError
from engine.principal import principal_of_name
from engine.service import Answer
from engine.words import AnswerChannel, Decision
from tests.support.changes import put, thing
from tests.support.program import Json, Program, eventually
from tests.support.scripted_type import World

CONFLICTS = {"HookAlreadyAnswered", "HookExpired", "HookSuperseded", "StackStopped"}


async def test_one_of_hundreds_of_conflicting_answers_decides(run: Program, world: World) -> None:
    """Over the API and unset_hook, concurrently with deadlines and a superseding update."""
    chance = random.Random(7)
    hooks = 12
    resources = {f"r{number}": thing() for number in range(hooks)}
    rule = {"at": "*", "on": "pre-create", "timeout": "2s", "on_timeout": "continue"}
    await run.create("s", resources, environment={"hooks": [rule]})
    waiting = await run.waiting_hooks("s", hooks)
    statuses: dict[str, Counter[str]] = {hook["id"]: Counter() for hook in waiting}

    async def answer(hook: Json, number: int) -> None:
        await asyncio.sleep(chance.random() * 2)
        decision = chance.choice(["continue", "reject", "run", "step"])
        status, response = await run.signal(hook, decision, user=f"u{number}")
        if status == 200:
            statuses[hook["id"]][response["decision"]] += 1
            assert response["decision"] == decision
        else:
            assert (status, response["error"]["type"] in CONFLICTS) == (409, True), response
            if response["error"]["decision"]:
                statuses[hook["id"]][f"other {response['error']['decision']}"] += 1

    async def some_are_answered() -> bool:
        return sum(map(Counter.total, statuses.values())) >= 100

    async def change() -> None:
        await eventually(some_are_answered)
        changed = {name: one for name, one in resources.items() if name != "r0"}
        await put(run, "s", changed, environment={"hooks": []}, hooks={"clear": ["*"]})

    async with asyncio.TaskGroup() as group:
        for number in range(300):
            group.create_task(answer(waiting[number % hooks], number))
        group.create_task(change())
    assert await run.until_ended("s") in ("UPDATE_COMPLETE", "UPDATE_FAILED")
    _, listed = await run.call("GET", "/hooks?stack=s&limit=1000")
    for hook in listed["hooks"]:
        if hook["id"] not in statuses:
            continue  # a hook of a step
        response = statuses[hook["id"]]
        accepted = {decision for decision in response if not decision.startswith("other")}
        reported = {one.removeprefix("other ") for one in response if one.startswith("other")}
        assert len(accepted) <= 1, (hook, response)
        assert reported <= {hook["decision"]}, (hook, response)
        if hook["state"] == "answered":
            assert accepted == {hook["decision"]} or hook["decided_by"] not in ("", None)
        _, audit_log = await run.call("GET", f"/hooks/{hook['id']}/decisions")
        assert len(audit_log["decisions"]) == (hook["state"] != "superseded"), audit_log
    assert max(Counter(name for _, name in world.done).values()) <= 2


async def test_one_answer_over_all_channels_decides(run: Program, world: World) -> None:
    """Fifty concurrent answers to one hook, through four channels."""
    await run.create("s", {"a": thing()}, environment={"hooks": [{"at": "a", "on": "pre-create"}]})
    (hook,) = await run.waiting_hooks("s")
    record = await run.engine.reads.hook(hook_id := UUID(hook["id"]), project="p")
    channels = [
        AnswerChannel.API,
        AnswerChannel.TOKEN,
        AnswerChannel.WEBHOOK,
        AnswerChannel.UNSET_HOOK,
    ]
    outcomes: Counter[str] = Counter()

    async def answer(number: int) -> None:
        decision = Decision.CONTINUE if number % 2 else Decision.REJECT
        hook_answer = Answer(decision, principal_of_name(f"u{number}"), channels[number % 4])
        try:
            if hook_answer.channel is AnswerChannel.UNSET_HOOK and decision is Decision.CONTINUE:
                await run.engine.hooks.unset("p", record.stack_id, "a", "pre-create", hook_answer)
            else:
                await run.engine.hooks.answer(hook_id, hook_answer, project="p")
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
    _, audit_log = await run.call("GET", f"/hooks/{hook['id']}/decisions")
    assert len(audit_log["decisions"]) == 1
    assert await run.until_ended("s") in ("CREATE_COMPLETE", "CREATE_FAILED")
    assert len(world.done) <= 1


async def test_hooks_never_expire_before_their_deadline(run: Program) -> None:
    """Three hundred hooks expire while other stacks are created."""
    resources = {f"r{number:03}": thing() for number in range(300)}
    rule = {"at": "*", "on": "pre-create", "timeout": "2s", "on_timeout": "continue"}
    await run.create("s", resources, environment={"hooks": [rule]})

    async def run_other_stack(number: int) -> None:
        await run.create(f"busy{number}", {f"x{n}": thing() for n in range(20)})
        await run.until_ended(f"busy{number}")

    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(run_other_stack(number))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    async with run.database.connection() as conn:
        rows = await conn.fetch(
            "select extract(epoch from decided_at - deadline)::float8 as late from hook"
            " where state = 'expired'"
        )
    late = sorted(float(row["late"]) for row in rows)
    print(f"late: median {late[len(late) // 2]:.3f} s, most {late[-1]:.3f} s")
    assert len(late) == 300 and late[0] >= 0


async def test_reminders_are_sent_and_an_escalation_adds_approvers(run: Program) -> None:
    rule = {"at": "a", "on": "pre-create", "answer_by": ["user:ann"], "remind": "1s",
            "escalate": {"after": "2s", "to": ["role:admin"]}}  # fmt: skip
    await run.create("s", {"a": thing()}, environment={"hooks": [rule]})
    (hook,) = await run.waiting_hooks("s")
    assert (await run.signal(hook, roles="admin"))[0] == 403

    async def escalated() -> bool:
        _, now = await run.call("GET", f"/hooks/{hook['id']}")
        return now["escalated_at"] is not None and now["reminders"] >= 2

    await eventually(escalated)
    assert (await run.signal(hook, roles="admin"))[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    reasons = [one["resource_status_reason"] for one in await run.events("s")]
    assert "Hook pre-create of a is still waiting for an answer" in reasons
    assert any("role:admin may answer it now" in reason for reason in reasons)
