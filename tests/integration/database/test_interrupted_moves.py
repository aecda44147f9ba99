"""Moves of projects in states that operators meet later: a key was rotated, a cell was restored or
upgraded, the project has moved on, or another command has worked at the same time."""

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest

from engine.cells import highest_ranked
from engine.errors import Conflict
from engine.store.access import tokens, trusts
from engine.store.access.token_keys import key_check
from engine.store.connection import connect
from engine.store.encryption.secret_values import KEY_BYTES, Keyring
from engine.store.fault_points import InjectedFault, inject_fault
from engine.store.maintenance import project_moves as moves
from engine.store.maintenance.reencryption import TABLES, reencrypt_table
from engine.store.schema.upgrade import migrate, read_migrations
from engine.words import MoveState
from engine.work.observer.batch_observer import BatchObserver
from hub.checks import offline_database
from hub.checks.database import CheckState
from hub.checks.moving_projects import check_moves
from hub.cli.commands import project_move
from hub.cli.commands.project_discard import discard_project, plan_discard
from hub.settings.settings import Settings
from tests.integration.database import test_drift_hooks_of_moving_projects as of_drift
from tests.integration.database import test_lost_moves as of_lost
from tests.integration.database import test_project_moves as of_moves
from tests.integration.database.test_lost_moves import content, end_locks, execute, restore_earlier
from tests.integration.database.test_project_moves import IN_A, TwoCells, fill, refusal, served
from tests.support.admin_command import CommandOutput, run_admin
from tests.support.cells import (
    api_of,
    cell,
    cells_settings,
    engine_of,
    new_token,
    of_project,
    projects_of,
    write_api_settings,
)
from tests.support.http_things import HTTP_SETTINGS, Things, thing
from tests.support.keys import key_file
from tests.support.postgres import TestServer
from tests.support.program import eventually, resource
from tests.support.receiver import running_receiver, until

no_notice, urls, cells, twice = of_moves.no_notice, of_moves.urls, of_moves.cells, of_lost.twice
things, short_notice = of_drift.things, of_drift.short_notice

KEYRING = Keyring(bytes(KEY_BYTES), random_bytes=os.urandom)
#: The URL of a database that does not respond.
AWAY = "postgresql://headgate@127.0.0.1:1/headgate"
INSERT_TRUST = "insert into trust (id, project, encrypted, due_at) values ($1, $2, $3, now())"


async def interrupt(cells: TwoCells, point: str, to: str = "b", project: str = IN_A) -> None:
    with inject_fault(f"{point}:1:raise"), pytest.raises(InjectedFault):
        await cells.move(to, project=project)


async def move(settings: Settings, project: str, target: str) -> None:
    await project_move.move_project(settings, project, target, undo=False, wait=1, report=print)


def settings_of(cells: TwoCells) -> Settings:
    return cells_settings(cells.databases)


def once(
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    action: Callable[[], Any],
    after: Any = None,
) -> None:
    """Do something before the next call of a function, or after the next one with an argument."""
    original, pending = getattr(module, name), [name]

    async def call(*values: Any) -> Any:
        if pending and after is None:
            pending.clear()
            await action()
        result = await original(*values)
        if pending and after in values:
            pending.clear()
            await action()
        return result

    monkeypatch.setattr(module, name, call)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A new encryption key."""
    file = tmp_path / "new.key"
    file.write_bytes(os.urandom(KEY_BYTES))
    file.chmod(0o600)
    return file


async def rotate(url: str, key: Path, fault: str = "") -> CommandOutput:
    config = key.with_name("engine.toml")
    config.write_text(
        f'[database]\nurl = "{url}"\n[credentials]\nkey_file = "{key}"\n'
        f'fallback_key_files = ["{key_file()}"]\n'
    )
    await execute(url, "delete from process")
    return await run_admin(
        "rotate-encryption-key", "--config", str(config), **({"FAULT": fault} if fault else {})
    )


@asynccontextmanager
async def filled(urls: list[str]) -> AsyncIterator[TwoCells]:
    """Two cells whose processes have ended."""
    async with running_receiver() as receiver, served(urls, receiver) as cells:
        await fill(cells)
    yield cells


@pytest.mark.parametrize("point", ["move.arrived", "move.switched"])
async def test_a_move_ends_after_the_key_of_the_new_cell_was_rotated(
    urls: list[str], no_notice: None, key: Path, point: str
) -> None:
    """Its rows have arrived; the key of the former cell cannot be rotated before the move ends."""
    async with filled(urls) as cells:
        before = await content(cells, 0)
        await interrupt(cells, point)
        assert (await rotate(urls[1], key)).code == 0
        refused = await rotate(urls[0], key)
        assert refused.code == 1 and f"move-project {IN_A} --to b" in refused.err
        await cells.move()
        assert (await content(cells, 0), await content(cells, 1)) == ({}, before)
        assert (await rotate(urls[0], key)).code == 0


@pytest.mark.parametrize("table", ["subscription", "trust"])
async def test_a_project_does_not_move_while_its_rows_have_two_keys(
    urls: list[str], no_notice: None, key: Path, table: str
) -> None:
    """A rotation was interrupted; the processes of the other cell may lack the new key."""
    new = Keyring(key.read_bytes(), random_bytes=os.urandom, fallbacks=[key_file().read_bytes()])
    async with filled(urls) as cells:
        async with offline_database.connect(urls[0], keyring=new) as conn:
            if table == "trust":
                encrypted = new.encrypt(trusts.scope(IN_A, UUID(int=1)), "x")
                await conn.execute(INSERT_TRUST, UUID(int=1), IN_A, encrypted)
            else:
                (of_table,) = [one for one in TABLES if one.name == table]
                assert (await reencrypt_table(conn, new, of_table)).rows == 1
        before = await content(cells, 0)
        error = await refusal(cells.move())
        assert error.code == "OtherKey" and f'the table "{table}" of the cell "a"' in str(error)
        assert "rotate-encryption-key" in error.finding.remedy
        assert await content(cells, 0) == before
        assert (await check_moves(settings_of(cells)))[0].state is CheckState.OK
        for url in urls:
            assert (await rotate(url, key)).code == 0
        with_key = {"credentials.key_file": str(key)}
        await move(cells_settings(cells.databases, with_key), IN_A, "b")
        assert await content(cells, 1) == before


async def test_a_project_does_not_move_with_settings_that_lack_the_key(
    urls: list[str], no_notice: None, key: Path
) -> None:
    async with filled(urls) as cells:
        before = await content(cells, 0)
        settings = cells_settings(cells.databases, {"credentials.key_file": str(key)})
        error = await refusal(move(settings, IN_A, "b"))
        assert error.code == "OtherKey" and "not configured" in str(error)
        assert await content(cells, 0) == before
        assert (await check_moves(settings))[0].state is CheckState.OK


async def test_the_only_rows_of_a_project_are_not_discarded(
    cells: TwoCells, no_notice: None
) -> None:
    """The database of b was restored from a backup in which the project is there, from before it
    had moved to a. Its rows in a are no copies."""
    await fill(cells)
    before = await content(cells, 0)
    await interrupt(cells, "move.switched")
    settings = settings_of(cells)
    error = await refusal(plan_discard(settings, IN_A, "a"))
    assert error.code == "MoveLeftovers" and "--to b" in error.finding.remedy
    earlier = dict.fromkeys(("moving_to", "move_state", "arrived_from", "move_id"))
    await restore_earlier(cells.urls[1], earlier)
    assert (await refusal(cells.move())).code == "MoveLost"
    for work in (plan_discard(settings, IN_A, "a"), _discard(settings, "a")):
        error = await refusal(work)
        assert error.code == "MoveLeftovers" and "--undo" in error.finding.remedy
    await cells.move(undo=True, to="")
    assert await content(cells, 0) == before
    await discard_project(settings, IN_A, "b", report=print)
    assert await content(cells, 0) == before
    await eventually(lambda: of_moves._succeeds(cells.http))


async def _discard(settings: Settings, cell: str) -> None:
    await discard_project(settings, IN_A, cell, report=print)


async def test_copies_are_described_before_they_are_discarded(
    cells: TwoCells, no_notice: None
) -> None:
    await fill(cells)
    left = "insert into moving_row (project, source_table, content) values ($1, 'stack', '()')"
    await execute(cells.urls[1], left, IN_A)
    plan = await plan_discard(settings_of(cells), IN_A, "b")
    assert plan.facts[0].startswith("a, which stays: ")
    assert plan.facts[1:] == ["b, which is deleted: 1 copies of rows"]


@pytest.mark.parametrize("table", ["stack", "software_config"])
async def test_doctor_names_an_interrupted_discard(
    twice: TwoCells, table: str, tmp_path: Path
) -> None:
    """Engines still act on the rows of the discarded cell."""
    if table != "stack":
        conn = await connect(twice.urls[1])
        await conn.execute(moves.EMPTY["stack"], IN_A)
        row = {"id": str(UUID(int=1)), "project": IN_A, "name": "x", "group": "script",
               "config": "", "inputs": [], "outputs": [], "options": {},
               "created_at": "2026-01-01"}  # fmt: skip
        insert = f"insert into {table} select * from jsonb_populate_record(null::{table}, $1)"
        await conn.execute(insert, row)
        for other in ("subscription", "software_deployment", "trust", "observation_credential"):
            await conn.execute(moves.EMPTY[other], IN_A)
        await conn.close()
    settings = settings_of(twice)
    with inject_fault("move.switched:1:raise"), pytest.raises(InjectedFault):
        await discard_project(settings, IN_A, "b", report=print)
    assert table in await twice.counts(1)
    (found,) = await check_moves(settings)
    assert found.state is CheckState.WARNING and f"move-project {IN_A} --to a" in found.remedy
    error = await refusal(twice.move("b"))
    assert error.code == "MoveLeftovers" and "--to a" in error.finding.remedy
    assert await _changes_are_refused(settings) is False
    await twice.move("a")
    assert (await content(twice, 1), await twice.counts(1)) == ({}, {})
    assert (await check_moves(settings))[0].state is CheckState.OK


async def _changes_are_refused(settings: Settings) -> bool:
    """In the cell a."""
    conn = await connect(settings.cells.databases[0].url.get_secret_value())
    try:
        state = await moves.read_state(conn, IN_A)
    finally:
        await conn.close()
    return state is None or state.state is not None


@pytest.mark.parametrize("table", moves.BACKGROUND)
async def test_a_project_returns_to_a_cell_that_has_counted_something_of_it_since(
    cells: TwoCells, no_notice: None, table: str
) -> None:
    """An observation that began before the move writes its requests after it."""
    await cells.http.create("done", {"web": resource()})
    assert await cells.http.until_ended("done") == "CREATE_COMPLETE"
    await cells.move()
    before = await cells.counts(1)
    conn = await connect(cells.urls[0])
    try:
        await conn.execute("create table kept as select $1::text as project", IN_A)
        columns = await conn.fetch(COLUMNS, table)
        names = ", ".join(f'"{row["name"]}"' for row in columns)
        values = ", ".join(
            f"'{IN_A}'" if row["name"] == "project" else VALUES[row["type"]] for row in columns
        )
        await conn.execute(f"insert into {table} ({names}) values ({values})")
    finally:
        await conn.close()
    await cells.move("a")
    after = await cells.counts(0)
    assert {one: after.get(one) for one in ("stack", "resource", "event")} == {
        one: before.get(one) for one in ("stack", "resource", "event")
    }


#: Of a table, those that must have a value.
COLUMNS = """
select attname as name, atttypid::regtype::text as type from pg_attribute
 where attrelid = $1::text::regclass and attnum > 0 and attnotnull and attidentity = ''
   and attgenerated = '' and not atthasdef
"""
VALUES = {
    "text": "'x'",
    "uuid": "gen_random_uuid()",
    "integer": "1",
    "bigint": "1",
    "date": "current_date",
    "timestamp with time zone": "now()",
    "interval": "'1 s'",
    "jsonb": "'{}'",
    "bytea": "'x'",
    "boolean": "true",
    "text[]": "'{}'",
    "uuid[]": "'{}'",
}


async def test_a_project_is_read_where_it_is_although_an_earlier_move_was_never_finished(
    urls: list[str], postgres: TestServer, no_notice: None
) -> None:
    """The former cell was away when the project had arrived, and the project moved on."""
    async with postgres.new_database() as third:
        databases = [cell(name, url) for name, url in zip("abc", [*urls, third], strict=True)]
        settings, project = cells_settings(databases), projects_of("abc")["a"][0]
        async with api_of(databases) as everything:
            http = of_project(everything, project)
            await http.create("s", {})
            with inject_fault("move.arrived:1:raise"), pytest.raises(InjectedFault):
                await move(settings, project, "b")
            await move(cells_settings([cell("a", AWAY), *databases[1:]]), project, "c")
            await eventually(lambda: of_moves._creates(http))
            for path in ("/stacks", "/stacks?global_tenant=true"):
                status, page = await http.call("GET", path)
                assert status == 200
                assert sorted(one["stack_name"] for one in page["stacks"]) == ["new", "s"], path
            # Also while the project moves again, to the cell of the unfinished move.
            with inject_fault("move.taken:1:raise"), pytest.raises(InjectedFault):
                await move(cells_settings([cell("a", AWAY), *databases[1:]]), project, "b")

            async def is_read() -> bool:
                status, page = await http.call("GET", "/stacks")
                return bool(status == 200 and len(page["stacks"]) == 2)

            assert await is_read()
            await move(cells_settings([cell("a", AWAY), *databases[1:]]), project, "b")
            assert await is_read()
            await move(settings, project, "b")  # ends the first move
            assert (await check_moves(settings))[0].state is CheckState.OK


async def test_a_command_names_the_reason_why_a_cell_is_away(
    cells: TwoCells, no_notice: None, tmp_path: Path
) -> None:
    await cells.http.create("s", {})
    databases = [cell("a", cells.urls[0]), cell("b", AWAY)]
    settings = cells_settings(databases)
    for work in (move(settings, IN_A, "b"), _discard(settings, "a")):
        error = await refusal(work)
        assert error.code == "CellUnavailable" and 'the cell "b" is not available: ' in str(error)
        assert "Connect call failed" in str(error) and "Retry-After" not in str(error)
    (found,) = await check_moves(settings)
    assert found.state is CheckState.WARNING and found.reason.endswith(": b")


@pytest.mark.parametrize("project", ["-x", "a b", "$(touch x)", "a'b", "ü", "%", '"', "`id`"])
async def test_the_command_that_doctor_names_finishes_the_move(
    cells: TwoCells, no_notice: None, tmp_path: Path, project: str
) -> None:
    """For a shell, also if the ID of the project has special characters."""
    await of_project(cells.http, quote(project, safe="")).create("s", {})
    source = highest_ranked(project, "ab")
    target = "b" if source == "a" else "a"
    await interrupt(cells, "move.taken", target, project)
    (found,) = await check_moves(settings_of(cells))
    command = found.remedy.partition("`headgate admin ")[2].rpartition("`, or")[0]
    config = tmp_path / "api.toml"
    write_api_settings(config, cells.databases)
    first, *words = shlex.split(command)
    done = await run_admin(first, "--config", str(config), *words)
    assert done.code == 0 and f"{project} is in the cell {target}" in done.out


async def test_a_database_is_not_upgraded_while_rows_are_between_two_cells(
    cells: TwoCells, no_notice: None, tmp_path: Path
) -> None:
    """They would not fit their tables any more, neither in the new cell nor in the former one."""
    await fill(cells)
    before = await content(cells, 0)
    for one in read_migrations():
        (tmp_path / one.name).write_text(one.text)
    (tmp_path / "9998_next.sql").write_text("alter table stack add column later integer")
    await interrupt(cells, "move.copied")
    for url in cells.urls:
        with pytest.raises(Conflict) as caught:
            await migrate(url, tmp_path)
        assert caught.value.code == "MoveUnderWay" and f'"{IN_A}"' in str(caught.value)
        assert await migrate(url) == []  # processes of this version start
    await cells.move()
    assert await content(cells, 1) == before
    for url in cells.urls:
        assert await migrate(url, tmp_path) == ["9998_next.sql"]


@pytest.mark.parametrize("undo", [False, True])
async def test_rows_of_another_schema_are_refused(
    cells: TwoCells, no_notice: None, undo: bool
) -> None:
    await fill(cells)
    await interrupt(cells, "move.taken")
    for url in cells.urls:
        await execute(url, "alter table stack add column later integer")
    error = await refusal(cells.move(undo=True, to="") if undo else cells.move())
    assert error.code == "MoveDiffers" and "schema" in str(error)
    for url in cells.urls:
        await execute(url, "alter table stack drop column later")
    assert set(await cells.counts(0)) == {"moving_row"}


async def test_a_command_that_waited_deletes_no_token_of_a_project_that_has_returned(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(cells)
    conn = await connect(cells.urls[0])
    try:
        await tokens.create(conn, new_token(IN_A)[0])

        async def return_project() -> None:
            await end_locks(cells)
            await cells.move()
            await cells.move("a")

        once(monkeypatch, project_move, "take_all", return_project, after=MoveState.MOVED)
        assert (await refusal(cells.move())).code == "MoveUnderWay"
        assert await conn.fetchval("select count(*) from token where project = $1", IN_A) == 1
    finally:
        await conn.close()


async def test_an_undo_that_waited_deletes_no_row_that_moves_back(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that wait in the cell b were copies, and now are the only ones."""
    await fill(cells)
    before = await content(cells, 0)
    await interrupt(cells, "move.copied")

    async def move_again() -> None:
        await end_locks(cells)
        await cells.move(undo=True, to="")
        await cells.move()
        await interrupt(cells, "move.taken", "a")

    once(monkeypatch, moves, "delete_copies", move_again)
    assert (await refusal(cells.move(undo=True, to=""))).code == "MoveUnderWay"
    await cells.move("a")
    assert await content(cells, 0) == before


async def test_a_discard_that_waited_deletes_no_row_that_moves_back(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(cells)
    before = await content(cells, 0)
    left = "insert into moving_row (project, source_table, content) values ($1, 'stack', '()')"
    await execute(cells.urls[1], left, IN_A)
    settings = settings_of(cells)

    async def move_again() -> None:
        await end_locks(cells)
        await _discard(settings, "b")
        await cells.move()
        await interrupt(cells, "move.taken", "a")

    once(monkeypatch, moves, "delete_copies", move_again)
    assert (await refusal(_discard(settings, "b"))).code == "MoveUnderWay"
    await cells.move("a")
    assert await content(cells, 0) == before


@pytest.mark.parametrize("ended", [False, True])
async def test_a_project_is_not_discarded_in_both_cells(
    twice: TwoCells, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    """By two commands at once, the first of which has lost its lock. ended: the second one ends
    before the first one continues."""
    settings, before = settings_of(twice), [await content(twice, number) for number in (0, 1)]

    async def discard_other() -> None:
        await end_locks(twice)
        if ended:
            await _discard(settings, "a")
        else:
            await interrupt_discard()

    async def interrupt_discard() -> None:
        with inject_fault("move.switched:1:raise"), pytest.raises(InjectedFault):
            await _discard(settings, "a")

    once(monkeypatch, moves, "set_discarded", discard_other)
    assert (await refusal(_discard(settings, "b"))).code == "MoveUnderWay"
    assert await content(twice, 1) == before[1]
    if not ended:
        await twice.move("b")
    assert await content(twice, 0) == {}
    assert (await check_moves(settings))[0].state is CheckState.OK


async def test_a_project_is_found_while_the_cell_is_away_in_which_it_was_discarded(
    twice: TwoCells,
) -> None:
    """Also by a process that has started since, and although the project belongs there by its
    name."""
    await execute(twice.urls[1], "update cell_project set arrived_from = null")
    await _discard(settings_of(twice), "a")
    async with api_of([cell("a", AWAY), twice.databases[1]]) as http:
        assert await of_moves._succeeds(of_project(http, IN_A))


@pytest.fixture
async def observing(urls: list[str]) -> AsyncIterator[TwoCells]:
    """Two cells with resources that a service has."""
    databases = [cell(name, url) for name, url in zip("ab", urls, strict=True)]
    async with (
        running_receiver() as receiver,
        api_of(databases, HTTP_SETTINGS) as http,
        engine_of(urls[0], http.url, **HTTP_SETTINGS),
        engine_of(urls[1], http.url, **HTTP_SETTINGS),
    ):
        yield TwoCells(urls, of_project(http, IN_A), receiver)


async def test_a_project_returns_to_a_cell_where_an_observation_ended_after_it_had_left(
    observing: TwoCells, things: Things, short_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The former cell counts the requests of the observation."""
    cells = observing
    await cells.http.create("s", {"a": thing(things)})
    assert await cells.http.until_ended("s") == "CREATE_COMPLETE"
    moved = asyncio.Event()

    async def leave() -> None:
        await cells.move()
        moved.set()

    once(monkeypatch, BatchObserver, "_write", leave)
    await eventually(lambda: of_drift._is_observed(cells.http, "s"))
    await until(moved.is_set)

    async def is_counted() -> bool:
        return "observer_usage" in await cells.counts(0)

    await until(is_counted)
    await cells.move("a")
    assert (await content(cells, 0))["stack"] == 1


async def test_each_step_compares_the_move(cells: TwoCells) -> None:
    """Also those after which other checks would find the difference."""
    await cells.http.create("s", {})
    own, other = uuid4(), uuid4()
    conn = await connect(cells.urls[0])

    async def state() -> MoveState | None:
        found = await moves.read_state(conn, IN_A)
        return None if found is None else found.state

    try:
        await moves.announce_move(conn, IN_A, "b", own)
        for step in (
            moves.close_project(conn, IN_A, other),
            moves.announce_move(conn, IN_A, "b", other),
        ):
            assert (await refusal(step)).code == "MoveUnderWay"
        assert not await moves.end_announced(conn, IN_A, other)
        assert await state() is MoveState.ANNOUNCED
        await moves.close_project(conn, IN_A, own)
        assert (await refusal(moves.set_moved(conn, IN_A, other))).code == "MoveUnderWay"
        assert not await moves.end_announced(conn, IN_A, own)
        assert await state() is MoveState.TAKEN
        arrival = moves.arrive(
            conn, IN_A, "b", move=other, rows=0, check=await key_check(conn), digests={},
            position=0, keys=[], tokens=[], keyring=KEYRING,
        )  # fmt: skip
        error = await refusal(arrival)
        assert error.code == "MoveDiffers" and "has the project, too" in str(error)
        assert await state() is MoveState.TAKEN
    finally:
        await conn.close()


async def test_an_undo_decides_in_the_new_cell_before_it_changes_a_row(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(cells)
    await interrupt(cells, "move.copied")
    found: list[bool] = []

    async def read() -> None:
        rows = await execute(cells.urls[1], "select has_arrived from move_outcome")
        found.extend(row["has_arrived"] for row in rows)

    once(monkeypatch, moves, "delete_copies", read)
    await cells.move(undo=True, to="")
    assert found == [False]
