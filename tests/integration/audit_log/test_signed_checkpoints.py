"""A database administrator rewrites the audit log with valid hashes; the signed checkpoints reveal
it.
"""

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from engine.hooks.hash_chain import Entry, chain_entries
from engine.store.audit.audit_log import read_log, record
from engine.store.connection import Connection
from engine.work.audit_signing import export_checkpoints, sign_heads
from hub.keys.audit_key import checkpoint_exporter, read_checkpoints, signer_of
from tests.support.command_line import completed
from tests.support.postgres import TestServer
from tests.support.program import Program, eventually, program, resource

HOOKS = {"hooks": [{"at": "*", "on": "pre-create"}]}


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "audit.key"


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "signed.jsonl"


async def create_and_answer(run: Program, name: str, user: str = "ann") -> UUID:
    stack_id = await run.create(name, {"a": resource()}, environment=HOOKS)
    (hook,) = await run.waiting_hooks(name)
    status, response = await run.signal(hook, user=user)
    assert status == 200, response
    assert await run.until_ended(name) == "CREATE_COMPLETE"
    return UUID(stack_id)


async def sign(conn: Connection, key_file: Path, log_file: Path) -> int:
    count = await sign_heads(conn, signer_of(key_file))
    await export_checkpoints(conn, checkpoint_exporter(log_file))
    return count


def verify(url: str, key_file: Path, log_file: Path, *more: str) -> tuple[int, str]:
    """Exit code and output of the verification, on a database that a server uses, too."""
    config = log_file.with_name("verify.toml")
    config.write_text(f'[database]\nurl = "{url}"\n')
    words = ("--config", str(config), "--signed", str(log_file), "--public-key", str(key_file))
    done = completed("admin", "verify-audit", *words, *more)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr


async def rewrite(conn: Connection, stack_id: UUID, by: str) -> None:
    """As an administrator who knows how entries are hashed."""
    entries = await read_log(conn, stack_id)
    forged = chain_entries([_by(one, by) for one in entries], {})
    await conn.execute("delete from decision where stack_id = $1", stack_id)
    await record(conn, forged)
    await conn.execute(
        "update hook set decided_by = $2, decided_by_id = $2 where stack_id = $1", stack_id, by
    )


def _by(entry: Entry, by: str) -> Entry:
    return replace(entry, by=by, principal=by, number=0, hash="")


async def test_a_rewritten_log_is_found(
    running: Program, database_url: str, key_file: Path, log_file: Path
) -> None:
    forged, honest = (
        await create_and_answer(running, "forged"),
        await create_and_answer(running, "honest"),
    )
    async with running.database.connection() as conn:
        assert await sign(conn, key_file, log_file) == 1
        assert await sign(conn, key_file, log_file) == 0  # no new entries
        code, output = verify(database_url, key_file, log_file)
        assert code == 0 and "checkpoints  ok 1" in output
        assert output.endswith("and 1 signed checkpoint: 0 problems\n")
        await rewrite(conn, forged, "eve")
    code, output = verify(database_url, key_file, log_file)
    assert code == 1, output
    right, checkpoints, wrong, summary = output.splitlines()
    assert right.startswith(f"{honest}  ok 1 entry") and checkpoints == "checkpoints  ok 1"
    assert wrong == f"{forged}  error: entry 1 is not the one that was signed"
    assert summary == (
        "checked 2 entries of 2 stacks in 1 project and 1 signed checkpoint: 1 problem"
    )


async def test_a_deleted_log_is_found_without_stack_and_hooks(
    running: Program, database_url: str, key_file: Path, log_file: Path
) -> None:
    stack_id = await create_and_answer(running, "gone")
    async with running.database.connection() as conn:
        await sign(conn, key_file, log_file)
        for table in ("decision", "hook"):
            await conn.execute(f"delete from {table} where stack_id = $1", stack_id)
    code, output = verify(database_url, key_file, log_file)
    assert code == 1 and f"{stack_id}  error: entry 1, which is signed, is missing" in output


async def test_a_changed_checkpoint_file_is_found(
    running: Program, database_url: str, key_file: Path, log_file: Path
) -> None:
    await create_and_answer(running, "one")
    async with running.database.connection() as conn:
        await sign(conn, key_file, log_file)
        await create_and_answer(running, "two")
        await sign(conn, key_file, log_file)
    first, second = log_file.read_text().splitlines(keepends=True)
    log_file.write_text(second)
    code, output = verify(database_url, key_file, log_file)
    assert code == 1 and "a checkpoint before checkpoint 2 of project p is missing" in output
    log_file.write_text(first + second.replace('"number": 2', '"number": 3'))
    code, output = verify(database_url, key_file, log_file)
    assert code == 1 and "was changed after it was signed" in output
    # A crash truncated a line, which was written again after it.
    log_file.write_text(first[:40])
    checkpoint_exporter(log_file)(read_checkpoints(_with(log_file, first + second)))
    assert verify(database_url, key_file, log_file)[0] == 0


def _with(beside: Path, text: str) -> Path:
    whole = beside.with_name("whole.jsonl")
    whole.write_text(text)
    return whole


async def test_another_key_is_named(
    running: Program, database_url: str, key_file: Path, log_file: Path
) -> None:
    await create_and_answer(running, "s")
    async with running.database.connection() as conn:
        await sign(conn, key_file, log_file)
    other = key_file.with_name("other.key")
    signer_of(other)
    code, output = verify(database_url, other, log_file)
    assert code == 1 and "which was not given" in output
    other.write_text("no key")
    code, output = verify(database_url, other, log_file)
    assert code == 1 and "is not an Ed25519 key in PEM" in output
    assert (key_file.stat().st_mode & 0o777, log_file.stat().st_mode & 0o777) == (0o600, 0o600)


async def test_a_server_signs_checkpoints_and_sends_an_event(
    postgres: TestServer, key_file: Path, log_file: Path
) -> None:
    settings = {
        "audit.key_file": str(key_file),
        "audit.checkpoints_file": str(log_file),
        "audit.sign_every": "1s",
    }
    async with postgres.new_database() as url, program(url, settings) as run:
        stack_id = await create_and_answer(run, "s")

        async def signed() -> bool:
            return log_file.exists() and str(stack_id) in log_file.read_text()

        await eventually(signed)
        async with run.database.connection() as conn:
            data = await conn.fetchval(
                "select data from event where type = 'headgate.audit.signed'"
            )
        (line,) = read_checkpoints(log_file)
        assert data["signature"] == line.signature
        assert verify(url, key_file, log_file)[0] == 0


COPY = """
insert into decision
select (jsonb_populate_record(null::decision, to_jsonb(d) || jsonb_build_object('stack_id', $2::uuid))).*
  from decision d where stack_id = $1
"""


async def test_one_log_is_verified_by_a_prefix_of_the_id_of_its_stack(
    running: Program, database_url: str, key_file: Path, log_file: Path
) -> None:
    stack_id, other = (
        await create_and_answer(running, "one"),
        await create_and_answer(running, "other"),
    )
    async with running.database.connection() as conn:
        await sign(conn, key_file, log_file)
        code, output = verify(database_url, key_file, log_file, str(stack_id)[:13].upper())
        assert code == 0 and f"{stack_id}  ok 1 entry" in output and str(other) not in output
        similar = UUID(f"{str(stack_id)[:13]}{str(UUID(int=0))[13:]}")
        await conn.execute(COPY, stack_id, similar)
    code, output = verify(database_url, key_file, log_file, str(stack_id)[:13])
    assert code == 1 and "is the beginning of 2 IDs" in output
    assert str(stack_id) in output and str(similar) in output
    code, output = verify(database_url, key_file, log_file, str(UUID(int=1))[:13])
    assert code == 1 and "no stack with an audit log has an ID that begins with it" in output
