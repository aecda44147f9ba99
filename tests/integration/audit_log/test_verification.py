"""The verification of the audit log by its hashes, with intact and changed rows."""

from dataclasses import replace
from uuid import UUID

import pytest

from engine.hooks.hash_chain import NOTHING
from engine.service.reads.audit_verification import KnownEntry, LogCheck, check_all_logs, check_log
from tests.support.program import Program, resource

HOOKS = {"hooks": [{"at": "*", "on": "pre-create", "approvals": 2}]}
LAST = "(select max(number) from decision)"


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


async def create_and_answer(running: Program, name: str = "s") -> UUID:
    """A stack with a hook that was handed over and approved by two principals."""
    stack_id = await running.create(name, {"a": resource()}, environment=HOOKS)
    (hook,) = await running.waiting_hooks(name)
    for user in ("ann", "bob"):
        headers = {"X-Auth-User": user}
        if user == "ann":
            path, body = f"/hooks/{hook['id']}/hand-over", {"to": "user:bob"}
            assert (await running.call("POST", path, body, headers=headers))[0] == 200
        path, body = f"/hooks/{hook['id']}/signal", {"decision": "continue"}
        status, response = await running.call("POST", path, body, headers=headers)
        assert status == 200, response
    assert await running.until_ended(name) == "CREATE_COMPLETE"
    return UUID(stack_id)


async def verify(
    running: Program, stack_id: UUID, known_entry: KnownEntry | None = None
) -> LogCheck:
    async with running.database.connection() as conn:
        return await check_log(conn, stack_id, known_entry)


async def execute(running: Program, statement: str) -> None:
    async with running.database.connection() as conn:
        assert await conn.execute(statement) in ("INSERT 0 1", "UPDATE 1", "DELETE 1", "DELETE 3")


async def last_hash(running: Program, stack_id: UUID) -> str:
    return (await verify(running, stack_id)).last


async def test_an_intact_log_is_verified_up_to_its_last_hash(running: Program) -> None:
    stack_id = await create_and_answer(running)
    found = await verify(running, stack_id)
    hashes = [
        one["hash"] for one in (await running.stack_request("GET", "s", "/decisions"))["decisions"]
    ]
    assert found == LogCheck(stack_id, 3, hashes[-1], None)
    for number, last_hash in enumerate(hashes, start=1):
        assert (await verify(running, stack_id, KnownEntry(number, last_hash))).error is None


@pytest.mark.parametrize(
    ("statement", "wrong"),
    [
        (
            "update decision set by = 'eve' where number = 2",
            "entry 2 or the entry before it was modified",
        ),
        (
            "update decision set data = '{}' where number = 1",
            "entry 1 or the entry before it was modified",
        ),
        ("update decision set number = 4 where number = 3", "entry 3 is missing"),
        ("delete from decision where number = 2", "entry 2 is missing"),
        ("delete from decision where number = 1", "entry 1 is missing"),
        ("delete from decision where number = 3", "was decided, but has no entry"),
        ("delete from decision", "was decided, but has no entry"),
        ("update hook set decision = 'reject'", "was decided, but has no entry"),
        ("update hook set decided_by = 'eve'", "was decided, but has no entry"),
    ],
)
async def test_changed_rows_of_the_audit_log_are_found(
    running: Program, statement: str, wrong: str
) -> None:
    stack_id, other = await create_and_answer(running), await create_and_answer(running, "other")
    where = f"stack_id = '{stack_id}'"
    joined = f"{statement} and {where}" if " where " in statement else f"{statement} where {where}"
    await execute(running, joined)
    assert wrong in str((await verify(running, stack_id)).error)
    async with running.database.connection() as conn:
        all_of_them = {one.stack_id: one for one in await check_all_logs(conn)}
    assert all_of_them.keys() == {stack_id, other}
    assert wrong in str(all_of_them[stack_id].error)
    assert all_of_them[other].error is None


async def test_a_truncated_log_is_found_with_a_known_entry(running: Program) -> None:
    stack_id = await create_and_answer(running)
    known_entry = KnownEntry(3, await last_hash(running, stack_id))
    # With the hook changed to look as if a rule had decided, the log alone shows nothing.
    await execute(running, "delete from decision where number = 3")
    await execute(running, "update hook set channel = 'rule'")
    assert (await verify(running, stack_id)).error is None
    message = "entry 3 is missing: the log ends at entry 2"
    assert (await verify(running, stack_id, known_entry)).error == message
    other_number = (await verify(running, stack_id, replace(known_entry, number=1))).error
    assert str(other_number).startswith("entry 1 has another hash: ")


async def test_hooks_answered_before_the_audit_log_existed_need_no_entry(
    run: Program,
) -> None:
    stack_id = await create_and_answer(run)
    await execute(run, "delete from decision")
    # A database of an earlier version has a row for the migration that added the audit log.
    await execute(run, "insert into migration (name, applied_at) values ('0005_hooks.sql', now())")
    await execute(run, "update hook set decided_at = decided_at - interval '1 day'")
    assert (await verify(run, stack_id)).error is None


async def test_an_unknown_stack_is_reported(running: Program) -> None:
    missing = await verify(running, UUID(int=1))
    assert missing == LogCheck(
        UUID(int=1), 0, NOTHING, "there is no stack and no audit log with this id"
    )
    stack_id = UUID(await running.create("s", {"a": resource()}))
    assert (await verify(running, stack_id)).error is None
    async with running.database.connection() as conn:
        assert await check_all_logs(conn) == []
