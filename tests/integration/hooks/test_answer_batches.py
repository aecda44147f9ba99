"""Concurrent answers are decided in one transaction, each with its own result; those to a locked
stack in one of the stack's own."""

import asyncio
import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest

from engine.errors import Unavailable
from engine.principal import principal_of_name
from engine.service import Answer
from engine.service.hooks.answer_batches import (
    BATCH,
    AnswerBatch,
    AnswerBatches,
    PendingAnswer,
    next_batch,
)
from engine.store import connection
from engine.store.connection import SET_SESSION, Connection, connect
from engine.store.records import HookRecord
from engine.words import AnswerChannel, Decision
from tests.support.changes import thing
from tests.support.program import Json, Program, eventually, program
from tests.support.scripted_type import Thing, World

HOOKS = 40
LOCK = "select 1 from stack where name = 's' for update"
WAITING_FOR_LOCKS = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock'
"""
TRANSACTIONS = "select count(distinct xmin::text) from hook where state = 'answered'"
RULE = {"at": "*", "on": "pre-create"}


@pytest.fixture
async def run(
    database_url: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Program]:
    """The pool has so few connections that waiting answers would use all of them. Its sessions have
    no timeouts, so only a limit of the transaction itself ends a wait."""
    monkeypatch.setattr(connection, "SET_SESSION", re.sub("'[0-9]+s'", "'0'", SET_SESSION))
    settings = {"engine.poll": "1s", "database.pool": 8}
    async with program(database_url, settings, types=[Thing(world)]) as run:
        yield run


@asynccontextmanager
async def locked_stack(url: str) -> AsyncIterator[Connection]:
    """Lock the row of stack `s` in another session, which the block receives."""
    holder, observer = await connect(url), await connect(url)
    try:
        async with holder.transaction():
            await holder.execute(LOCK)
            yield observer
    finally:
        await holder.close()
        await observer.close()


async def waiting(run: Program, count: int = HOOKS, **rule: Json) -> list[Json]:
    resources = {f"r{number}": thing() for number in range(count)}
    await run.create("s", resources, environment={"hooks": [RULE | rule]})
    return await run.waiting_hooks("s", count)


async def all_queued(run: Program, count: int) -> None:
    """Wait until the batches hold this many answers."""

    async def queued() -> bool:
        queues = run.engine.hooks._batches._queues
        return sum(map(len, queues.values())) == count

    await eventually(queued)


async def until_queue(run: Program, observer: Connection) -> None:
    """Wait until the queue of a locked stack has one answer, whose transaction waits for the
    lock."""

    async def waits() -> bool:
        lengths = [len(queue) for queue in run.engine.hooks._batches._queues.values()]
        return lengths == [0] and await is_locked_out(observer, 1)

    await eventually(waits)


async def test_concurrent_answers_use_one_connection_and_one_transaction(
    run: Program, database_url: str
) -> None:
    """The one that waits for the stack's lock also decides those that arrive meanwhile."""
    hooks = await waiting(run)
    async with locked_stack(database_url) as observer:
        first = asyncio.create_task(run.signal(hooks[0]))
        await until_queue(run, observer)
        others = [asyncio.create_task(run.signal(hook)) for hook in hooks[1:]]
        await all_queued(run, HOOKS - 1)
        assert await is_locked_out(observer, 1)
        # other stacks still get connections
        await run.create("other", {"a": thing()})
        assert await run.until_ended("other") == "CREATE_COMPLETE"
        assert await is_locked_out(observer, 1)
        assert not first.done()
    assert Counter(status for status, _ in await asyncio.gather(first, *others)) == {200: HOOKS}
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    conn = await connect(database_url)
    try:
        assert await conn.fetchval(TRANSACTIONS) == 1
    finally:
        await conn.close()


async def is_locked_out(observer: Connection, sessions: int) -> bool:
    found: int = await observer.fetchval(WAITING_FOR_LOCKS)
    return found == sessions


async def test_each_answer_of_a_batch_has_its_own_result(run: Program, database_url: str) -> None:
    """A batch with decisions, a missing reason, a wrong digest and an unknown property."""
    hooks = await waiting(run, 6)
    async with locked_stack(database_url) as observer:
        first = asyncio.create_task(run.signal(hooks[0]))
        await until_queue(run, observer)
        answers = [
            run.signal(hooks[1]),
            run.signal(hooks[2], "reject", reason="no"),
            run.signal(hooks[3], digest="0" * 64),
            run.signal(hooks[4], "patch", properties={"colour": "red"}),
            run.signal(hooks[5]),
        ]
        tasks = [asyncio.create_task(one) for one in answers]
        await all_queued(run, 5)
    results = [status for status, _ in await asyncio.gather(first, *tasks)]
    assert results == [200, 200, 200, 409, 400, 200]
    listed = (await run.call("GET", "/hooks?stack=s"))[1]["hooks"]
    states = {hook["resource_name"]: (hook["state"], hook.get("decision")) for hook in listed}
    assert [states[hook["resource_name"]] for hook in hooks] == [
        ("answered", "continue"), ("answered", "continue"), ("answered", "reject"),
        ("waiting", None), ("waiting", None), ("answered", "continue"),
    ]  # fmt: skip
    for hook in hooks:
        _, response = await run.call("GET", f"/hooks/{hook['id']}/decisions")
        decided = hook["resource_name"] not in (
            hooks[3]["resource_name"],
            hooks[4]["resource_name"],
        )
        assert len(response["decisions"]) == decided, hook


async def test_two_approvals_in_a_batch_count_as_two(run: Program, database_url: str) -> None:
    (hook,) = await waiting(run, 1, approvals=2)
    async with locked_stack(database_url) as observer:
        ann = asyncio.create_task(run.signal(hook, user="ann"))
        await until_queue(run, observer)
        others = [asyncio.create_task(run.signal(hook, user=name)) for name in ("ann", "bob")]
        await all_queued(run, 2)
    assert {status for status, _ in await asyncio.gather(ann, *others)} == {200}
    _, response = await run.call("GET", f"/hooks/{hook['id']}/decisions")
    assert [(one["by"], one["kind"]) for one in response["decisions"]] == [
        ("ann", "continue"), ("bob", "continue"),
    ]  # fmt: skip
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_an_answer_that_raises_fails_alone(
    run: Program, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = await waiting(run, 4)
    bad = UUID(hooks[2]["id"])
    judge = type(run.engine.hooks)._judge

    async def broken(self: object, conn: Connection, locked: object) -> object:
        if locked.hook.id == bad:  # type: ignore[attr-defined]
            await conn.execute("select 1 / 0")
        return await judge(self, conn, locked)  # type: ignore[arg-type]

    async with locked_stack(database_url) as observer:
        first = asyncio.create_task(run.signal(hooks[0]))
        await until_queue(run, observer)
        monkeypatch.setattr(type(run.engine.hooks), "_judge", broken)
        others = [asyncio.create_task(run.signal(hook)) for hook in hooks[1:]]
        await all_queued(run, 3)
    results = [status for status, _ in await asyncio.gather(first, *others)]
    assert results == [200, 200, 500, 200]
    monkeypatch.undo()
    assert (await run.signal(hooks[2]))[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def stays_locked(batch: AnswerBatch) -> Sequence[HookRecord | Exception]:
    raise Unavailable("a stack is locked")


async def test_a_batch_for_which_the_database_is_unavailable_is_not_split() -> None:
    """A lock that is held too long delays all answers of the batch once, not one after
    the other.
    """
    sizes: list[int] = []

    async def decide(batch: AnswerBatch) -> Sequence[HookRecord | Exception]:
        sizes.append(len(batch.answers))
        raise Unavailable("the stack is locked")

    batches = AnswerBatches(decide, stays_locked)
    stack, answer = uuid4(), Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)
    pending = [PendingAnswer(stack, uuid4(), answer, "p", False, None) for _ in range(5)]
    results = await asyncio.gather(*map(batches.decide, pending), return_exceptions=True)
    assert [type(one) for one in results] == [Unavailable] * 5
    assert sizes == [5]


async def test_an_answer_of_a_disconnected_client_counts(run: Program, database_url: str) -> None:
    hooks = await waiting(run, 3)
    async with locked_stack(database_url) as observer:
        first = asyncio.create_task(run.signal(hooks[0]))
        await until_queue(run, observer)
        answer = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)
        gone = asyncio.create_task(
            run.engine.hooks.answer(UUID(hooks[1]["id"]), answer, project="p")
        )
        await all_queued(run, 1)
        last = asyncio.create_task(run.signal(hooks[2]))
        await all_queued(run, 2)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
    assert {status for status, _ in await asyncio.gather(first, last)} == {200}
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert run.engine.hooks._batches._queues == {}


async def test_a_batch_has_one_answer_per_hook_and_an_answer_for_a_tree_is_alone() -> None:
    stack, a, b = uuid4(), uuid4(), uuid4()
    queue = deque(
        pending_answer(stack, hook, tree)
        for hook, tree in ((a, False), (b, False), (a, False), (b, True), (a, False), (b, False))
    )
    sizes = []
    while queue:
        sizes.append(len(next_batch(queue)))
    assert sizes == [2, 1, 1, 2]
    many = deque(pending_answer(stack) for _ in range(BATCH + 1))
    assert [len(next_batch(many)), len(next_batch(many))] == [BATCH, 1]


async def test_a_batch_takes_the_answers_that_have_arrived_at_its_stacks() -> None:
    """Not a second answer to a hook, nor one after an answer for a tree; the others keep their
    order."""
    stack, other, hook = uuid4(), uuid4(), uuid4()
    queue = deque([
        pending_answer(stack, hook), pending_answer(other), pending_answer(stack),
        pending_answer(stack, hook), pending_answer(stack, tree=True), pending_answer(stack),
    ])  # fmt: skip
    arrived = list(queue)
    batch = AnswerBatch([queue.popleft()], queue)
    batch.add_arrived()
    assert batch.answers == [arrived[0], arrived[2]]
    assert list(queue) == [arrived[1], *arrived[3:]]


async def test_a_batch_for_a_tree_and_a_full_one_take_no_more_answers() -> None:
    stack = uuid4()
    for first in ([pending_answer(stack, tree=True)], [pending_answer(stack)] * BATCH):
        queue = deque([pending_answer(stack)])
        batch = AnswerBatch(first, queue)
        batch.add_arrived()
        assert (batch.answers, len(queue)) == (first, 1)


def pending_answer(stack: UUID, hook: UUID | None = None, tree: bool = False) -> PendingAnswer:
    answer = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)
    return PendingAnswer(stack, hook or uuid4(), answer, "p", tree, None)


@asynccontextmanager
async def held_batch(run: Program, hook: Json, at: str = "_judge") -> AsyncIterator[None]:
    """Answer a hook, and hold its transaction until the block ends, so that the answers that
    arrive in the block are decided together."""
    hooks = type(run.engine.hooks)
    function, entered, release = getattr(hooks, at), asyncio.Event(), asyncio.Event()

    async def held(self: object, *arguments: object) -> object:
        if not entered.is_set():
            entered.set()
            await release.wait()
        return await function(self, *arguments)

    setattr(hooks, at, held)
    try:
        answer = asyncio.create_task(run.signal(hook))
        await entered.wait()
        yield
        release.set()
        assert (await answer)[0] == 200
    finally:
        setattr(hooks, at, function)


async def arrived(run: Program, count: int) -> None:
    await eventually(lambda: has_arrived(run, count))


async def has_arrived(run: Program, count: int) -> bool:
    return len(run.engine.hooks._batches._arrived) == count


async def stacks_with_hook(run: Program, count: int, **rule: Json) -> list[Json]:
    """One waiting hook in each of several stacks: of r0 in s0, r1 in s1, ..."""
    for number in range(count):
        environment = {"hooks": [RULE | rule]}
        await run.create(f"s{number}", {f"r{number}": thing()}, environment=environment)
    return [(await run.waiting_hooks(f"s{number}", 1))[0] for number in range(count)]


async def test_answers_to_many_stacks_are_decided_in_one_transaction(
    run: Program, database_url: str
) -> None:
    hooks = await stacks_with_hook(run, 9)
    async with held_batch(run, hooks[0]):
        tasks = [asyncio.create_task(run.signal(hook)) for hook in hooks[1:]]
        await arrived(run, 8)
    assert {status for status, _ in await asyncio.gather(*tasks)} == {200}
    for number in range(9):
        assert await run.until_ended(f"s{number}") == "CREATE_COMPLETE"
    conn = await connect(database_url)
    try:
        assert await conn.fetchval(TRANSACTIONS) == 2
    finally:
        await conn.close()


async def test_a_locked_stack_does_not_delay_answers_to_other_stacks(
    run: Program, database_url: str
) -> None:
    held, locked, free = await stacks_with_hook(run, 2) + await waiting(run, 1)
    locked, free = free, locked
    async with held_batch(run, held):
        tasks = [asyncio.create_task(run.signal(hook)) for hook in (locked, free)]
        await arrived(run, 2)
        holder = locked_stack(database_url)
        observer = await holder.__aenter__()
    try:
        assert (await tasks[1])[0] == 200
        assert await run.until_ended("s1") == "CREATE_COMPLETE"
        await eventually(lambda: is_locked_out(observer, 1))
        assert not tasks[0].done()
    finally:
        await holder.__aexit__(None, None, None)
    assert (await tasks[0])[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_an_answer_that_raises_does_not_fail_those_to_other_stacks(
    run: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = await stacks_with_hook(run, 5)
    judge = type(run.engine.hooks)._judge
    bad = UUID(hooks[2]["id"])

    async def broken(self: object, conn: Connection, locked: object) -> object:
        if locked.hook.id == bad:  # type: ignore[attr-defined]
            await conn.execute("select 1 / 0")
        return await judge(self, conn, locked)  # type: ignore[arg-type]

    monkeypatch.setattr(type(run.engine.hooks), "_judge", broken)
    async with held_batch(run, hooks[0]):
        tasks = [asyncio.create_task(run.signal(hook)) for hook in hooks[1:]]
        await arrived(run, 4)
    results = [status for status, _ in await asyncio.gather(*tasks)]
    assert results == [200, 500, 200, 200]
    monkeypatch.undo()
    assert (await run.signal(hooks[2]))[0] == 200
    for number in range(5):
        assert await run.until_ended(f"s{number}") == "CREATE_COMPLETE"


async def test_answers_to_many_stacks_have_their_own_results_and_audit_logs(run: Program) -> None:
    hooks = await stacks_with_hook(run, 4)
    async with held_batch(run, hooks[0]):
        answers = [
            run.signal(hooks[1], "reject", reason="no", user="ann"),
            run.signal(hooks[2], digest="0" * 64, user="bob"),
            run.signal(hooks[3], user="eve"),
        ]
        tasks = [asyncio.create_task(one) for one in answers]
        await arrived(run, 3)
    assert [status for status, _ in await asyncio.gather(*tasks)] == [200, 409, 200]
    decisions = [
        (await run.call("GET", f"/hooks/{hook['id']}/decisions"))[1]["decisions"] for hook in hooks
    ]
    assert [[(one["by"], one["kind"]) for one in log] for log in decisions[1:]] == [
        [("ann", "reject")], [], [("eve", "continue")],
    ]  # fmt: skip


async def test_an_answer_after_a_disconnected_client_is_decided(run: Program) -> None:
    hooks = await stacks_with_hook(run, 3)
    answer = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)
    async with held_batch(run, hooks[0]):
        gone = asyncio.create_task(
            run.engine.hooks.answer(UUID(hooks[1]["id"]), answer, project="p")
        )
        last = asyncio.create_task(run.signal(hooks[2]))
        await arrived(run, 2)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
    assert (await last)[0] == 200
    for number in range(3):
        assert await run.until_ended(f"s{number}") == "CREATE_COMPLETE"


async def test_each_change_continues_with_the_credential_of_its_own_answer(
    run: Program, world: World
) -> None:
    hooks = await stacks_with_hook(run, 4)
    async with held_batch(run, hooks[0]):
        tasks = [
            asyncio.create_task(
                run.call(
                    "POST", f"/hooks/{hook['id']}/signal", {"decision": "continue"}, headers=token
                )
            )
            for hook, token in zip(
                hooks[1:], ({"X-Auth-Token": "anns"}, {"X-Auth-Token": "bobs"}, {}), strict=True
            )
        ]
        await arrived(run, 3)
    assert [status for status, _ in await asyncio.gather(*tasks)] == [200, 200, 200]
    for number in range(4):
        assert await run.until_ended(f"s{number}") == "CREATE_COMPLETE"
    used = {call.resource_name: call.credential for call in world.calls}
    assert used == {"r0": "", "r1": "anns", "r2": "bobs", "r3": ""}
