"""The audit trail of real decisions, checked by its hashes; and what somebody did to its rows."""

from dataclasses import replace
from uuid import UUID

import pytest

from engine.hooks.hash_chain import NOTHING
from engine.service.reads.audit_verification import KnownEntry, LogCheck, check_all_logs, check_log
from tests.support.program import Program, resource

HOOKS = {"hooks": [{"at": "*", "on": "pre-create", "approvals": 2}]}
LAST = "(select max(number) from decision)"


async def decided(running: Program, name: str = "s") -> UUID:
    """A stack with a hook that was handed over and that two people let go on."""
    made = await running.create(name, {"a": resource()}, environment=HOOKS)
    (hook,) = await running.waiting(name)
    for who in ("ann", "bob"):
        headers = {"X-Auth-User": who}
        if who == "ann":
            path, body = f"/hooks/{hook['id']}/hand-over", {"to": "user:bob"}
            assert (await running.call("POST", path, body, headers=headers))[0] == 200
        path, body = f"/hooks/{hook['id']}/signal", {"decision": "continue"}
        status, said = await running.call("POST", path, body, headers=headers)
        assert status == 200, said
    assert await running.until_ended(name) == "CREATE_COMPLETE"
    return UUID(made)


async def checked(running: Program, stack_id: UUID, written: KnownEntry | None = None) -> LogCheck:
    async with running.database.connection() as conn:
        return await check_log(conn, stack_id, written)


async def do(running: Program, statement: str) -> None:
    async with running.database.connection() as conn:
        assert await conn.execute(statement) in ("INSERT 0 1", "UPDATE 1", "DELETE 1", "DELETE 3")


async def last(running: Program, stack_id: UUID) -> str:
    return (await checked(running, stack_id)).last


async def test_a_good_trail_is_told_with_its_last_hash(running: Program) -> None:
    stack_id = await decided(running)
    found = await checked(running, stack_id)
    hashes = [one["hash"] for one in (await running.at("GET", "s", "/decisions"))["decisions"]]
    assert found == LogCheck(stack_id, 3, hashes[-1], None)
    for number, said in enumerate(hashes, start=1):
        assert (await checked(running, stack_id, KnownEntry(number, said))).wrong is None


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
async def test_what_somebody_did_to_the_rows_shows(
    running: Program, statement: str, wrong: str
) -> None:
    stack_id, other = await decided(running), await decided(running, "other")
    where = f"stack_id = '{stack_id}'"
    joined = f"{statement} and {where}" if " where " in statement else f"{statement} where {where}"
    await do(running, joined)
    assert wrong in str((await checked(running, stack_id)).wrong)
    async with running.database.connection() as conn:
        all_of_them = {one.stack_id: one for one in await check_all_logs(conn)}
    assert all_of_them.keys() == {stack_id, other}
    assert wrong in str(all_of_them[stack_id].wrong)
    assert all_of_them[other].wrong is None


async def test_what_was_cut_off_shows_in_an_entry_that_was_written_down(running: Program) -> None:
    stack_id = await decided(running)
    written = KnownEntry(3, await last(running, stack_id))
    # With the hook made to look as if a rule had decided, nothing else is left to tell.
    await do(running, "delete from decision where number = 3")
    await do(running, "update hook set door = 'rule'")
    assert (await checked(running, stack_id)).wrong is None
    said = "entry 3 is missing: the log ends at entry 2"
    assert (await checked(running, stack_id, written)).wrong == said
    another = (await checked(running, stack_id, replace(written, number=1))).wrong
    assert str(another).startswith("entry 1 has another hash: ")


async def test_a_hook_that_was_decided_before_there_was_a_trail_is_not_missed(
    running: Program,
) -> None:
    stack_id = await decided(running)
    await do(running, "delete from decision")
    # A database that an earlier version made has the migration that brought the audit log.
    await do(running, "insert into migration (name, applied_at) values ('0005_hooks.sql', now())")
    await do(running, "update hook set decided_at = decided_at - interval '1 day'")
    assert (await checked(running, stack_id)).wrong is None


async def test_what_is_not_there_is_not_called_well(running: Program) -> None:
    nothing = await checked(running, UUID(int=1))
    assert nothing == LogCheck(
        UUID(int=1), 0, NOTHING, "there is no stack and no audit log with this id"
    )
    made = UUID(await running.create("s", {"a": resource()}))
    assert (await checked(running, made)).wrong is None
    async with running.database.connection() as conn:
        assert await check_all_logs(conn) == []
