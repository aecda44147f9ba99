"""Moves of projects whose command loses its lock, and whose databases lose commits: no row of the
project is lost, and none is deleted unless the other cell has it."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from engine.errors import Conflict
from engine.store.connection import Connection, connect
from engine.store.encryption.secret_values import KEY_BYTES
from engine.store.fault_points import MOVE_POINTS, InjectedFault, inject_fault
from engine.store.maintenance import moving_schemas
from engine.store.maintenance import project_moves as moves
from engine.store.maintenance.project_moves import MOVED
from hub.checks.database import CheckState
from hub.checks.moving_projects import check_moves
from hub.cli.commands import project_move
from hub.cli.commands.project_discard import discard_project, plan_discard
from tests.integration.database import test_project_moves as of_moves
from tests.integration.database.test_project_moves import (
    ARRIVED,
    IN_A,
    TwoCells,
    check_moved,
    fill,
    refusal,
    served,
)
from tests.support.admin_command import run_admin
from tests.support.cells import (
    api_of,
    cell,
    cells_settings,
    of_project,
    running_node,
    url_of,
    write_api_settings,
)
from tests.support.keys import key_file
from tests.support.page_commands import page_command
from tests.support.ports import free_port
from tests.support.postgres import TestServer
from tests.support.program import eventually, resource
from tests.support.receiver import running_receiver
from tests.support.replication import running_pair

no_notice, urls, cells = of_moves.no_notice, of_moves.urls, of_moves.cells

DISCARD_COMMAND = "headgate admin move-project 5ad1ebf9a2b64b9db7a4c0f4d7a3a1c2 --discard"
#: The sessions that hold the lock of a move.
END_LOCKS = """
select pg_terminate_backend(pid) from pg_stat_activity
 where state = 'idle in transaction' and query like '%pg_try_advisory_xact_lock%'
   and datname = current_database()
"""
KEPT = ("stack", "resource", "event", "subscription", "hook")


async def execute(url: str, statement: str, *values: Any) -> Any:
    conn = await connect(url)
    try:
        return await conn.fetch(statement, *values)
    finally:
        await conn.close()


async def content(cells: TwoCells, number: int) -> dict[str, int]:
    counts = await cells.counts(number)
    return {table: counts[table] for table in KEPT if table in counts}


def after_step(
    monkeypatch: pytest.MonkeyPatch, point: str, action: Callable[[], Awaitable[None]]
) -> None:
    """Do something once, after a step of the move has been committed and before the next one."""
    pending, steps = [point], {
        "move.announced": (moving_schemas, "create_schema"),
        "move.closed": (moves, "take_rows"),
        "move.taken": (moves, "copy_page"),
        "move.copied": (moves, "arrive"),
        "move.arrived": (moves, "set_moved"),
        "move.switched": (moves, "delete_taken"),
    }  # fmt: skip
    module, name = steps[point]
    original = getattr(module, name)

    async def step(*values: Any, **more: Any) -> Any:
        if pending:
            pending.clear()
            await action()
        return await original(*values, **more)

    monkeypatch.setattr(module, name, step)


async def end_locks(cells: TwoCells) -> None:
    for url in cells.urls:
        await execute(url, END_LOCKS)


@pytest.mark.parametrize("point", [one for one in MOVE_POINTS if one != "move.deleted"])
async def test_a_second_command_that_undoes_the_move_loses_no_row(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """The session with the lock was ended, so the second command runs beside the first one."""
    await fill(cells)
    before = await content(cells, 0)

    async def undo() -> None:
        await end_locks(cells)
        if point in ARRIVED:
            assert (await refusal(cells.move(undo=True, to=""))).code in ("MoveArrived", "NoMove")
        else:
            await cells.move(undo=True, to="")

    after_step(monkeypatch, point, undo)
    if point in ARRIVED:
        await asyncio.gather(cells.move(), return_exceptions=True)
        assert await content(cells, 1) == before
        await asyncio.gather(cells.move(), return_exceptions=True)
        assert await content(cells, 0) == {}
        return
    assert isinstance(await refusal(cells.move()), Conflict)
    assert await content(cells, 0) == before
    assert await content(cells, 1) == {}


@pytest.mark.parametrize("point", [one for one in MOVE_POINTS if one != "move.deleted"])
async def test_a_second_command_that_continues_the_move_loses_no_row(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    url, token = await fill(cells)
    before = await content(cells, 0)

    async def move() -> None:
        await end_locks(cells)
        await cells.move()

    after_step(monkeypatch, point, move)
    await asyncio.gather(cells.move(), return_exceptions=True)
    assert await content(cells, 1) == before
    await check_moved(cells, url, token)


async def test_a_command_that_waited_deletes_nothing_of_a_project_that_has_returned(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(cells)
    before = await content(cells, 0)

    async def return_project() -> None:
        await end_locks(cells)
        await cells.move()
        await cells.move("a")

    after_step(monkeypatch, "move.arrived", return_project)
    assert (await refusal(cells.move())).code == "MoveUnderWay"
    assert await content(cells, 0) == before


async def test_a_command_does_not_continue_a_later_move(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(cells)
    before = await content(cells, 0)

    async def begin_again() -> None:
        await end_locks(cells)
        await cells.move(undo=True, to="")
        with inject_fault("move.announced:1:raise"), pytest.raises(InjectedFault):
            await cells.move()

    after_step(monkeypatch, "move.announced", begin_again)
    assert (await refusal(cells.move())).code == "MoveUnderWay"
    assert await content(cells, 0) == before
    await cells.move()
    assert await content(cells, 1) == before


async def test_a_move_whose_undo_was_interrupted_does_not_arrive(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new cell has only decided that it is undone."""
    await fill(cells)
    before = await content(cells, 0)

    async def decide() -> None:
        source, target = [await connect(url) for url in cells.urls]
        try:
            state = await moves.read_state(source, IN_A)
            assert state is not None and state.id is not None
            assert not await moves.decide_outcome(target, state.id, arrived=False)
        finally:
            await source.close()
            await target.close()

    after_step(monkeypatch, "move.copied", decide)
    assert (await refusal(cells.move())).code == "MoveUnderWay"
    error = await refusal(cells.move())
    assert "is being undone" in str(error) and "--undo" in error.finding.remedy
    await cells.move(undo=True, to="")
    assert await content(cells, 0) == before
    assert await content(cells, 1) == {}


async def test_the_lock_outlives_the_limit_of_transactions(
    cells: TwoCells, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second command is refused, however long the first one takes."""
    for url in cells.urls:
        conn = await connect(url)
        try:
            if await conn.fetchval("select current_setting('transaction_timeout', true)") is None:
                pytest.skip("this server has no limit of transactions")
            name = await conn.fetchval("select current_database()")
            await conn.execute(f"alter database {name} set transaction_timeout = '300ms'")
        finally:
            await conn.close()
    ended = "select pg_sleep(0.6)"
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            project_move.exclude_others(cells_settings(cells.databases), IN_A, ["a", "b"])
        )
        await execute(cells.urls[0], "set transaction_timeout = 0")
        conn = await connect(cells.urls[0])
        try:
            await conn.execute("set transaction_timeout = 0")
            await conn.fetch(ended)
            async with conn.transaction():
                assert not await moves.lock_move(conn, IN_A)
        finally:
            await conn.close()


async def test_rows_that_are_missing_at_the_arrival_are_noticed(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(cells)
    with inject_fault("move.taken:1:raise"), pytest.raises(InjectedFault):
        await cells.move()
    await execute(cells.urls[0], "create table kept as select * from moving_row")
    await execute(cells.urls[0], "delete from moving_row")
    error = await refusal(cells.move())
    assert error.code == "MoveDiffers" and "0 rows instead of" in str(error)
    assert (await refusal(cells.move(undo=True, to=""))).code == "MoveDiffers"
    await execute(
        cells.urls[0], "insert into moving_row overriding system value select * from kept"
    )
    await cells.move(undo=True, to="")
    assert (await content(cells, 0))["stack"] == 2


async def restore_earlier(url: str, entry: Any) -> None:
    """Make a database as its standby has it: without the rows that have arrived since."""
    conn = await connect(url)
    try:
        async with conn.transaction():
            for table, condition in MOVED.items():
                await conn.execute(f"delete from {table} t where {condition}", IN_A)
            await conn.execute(
                "update cell_project set moving_to = $2, move_state = $3, arrived_from = $4,"
                " move_id = $5 where project = $1",
                IN_A, entry["moving_to"], entry["move_state"], entry["arrived_from"],
                entry["move_id"],
            )  # fmt: skip
            await conn.execute(
                "delete from move_outcome where decided_at = (select max(decided_at) from"
                " move_outcome)"
            )
    finally:
        await conn.close()


async def test_an_arrival_that_was_lost_in_a_cell_that_had_the_project_before_is_put_back(
    cells: TwoCells, no_notice: None
) -> None:
    await fill(cells)
    before = await content(cells, 0)
    await cells.move("b")
    await cells.move("a")
    (entry,) = await execute(cells.urls[1], "select * from cell_project where project = $1", IN_A)
    with inject_fault("move.switched:1:raise"), pytest.raises(InjectedFault):
        await cells.move("b")
    await restore_earlier(cells.urls[1], entry)
    for target in "ab":
        assert (await refusal(cells.move(target))).code == "MoveLost"
    await cells.move(undo=True, to="")
    assert await content(cells, 0) == before
    await cells.move("b")
    assert await content(cells, 1) == before


@pytest.fixture
async def twice(cells: TwoCells, no_notice: None) -> TwoCells:
    """A project that is in both cells, because the database of b was restored from a backup that
    lacks the departure. The one in a is newer."""
    await fill(cells)
    await cells.move("b")
    await eventually(lambda: of_moves._succeeds(cells.http))
    tables = [*reversed([*MOVED])]
    conn = await connect(cells.urls[1])
    try:
        for table in tables:
            await conn.execute(
                f"create table kept_{table} as select * from {table} t where {MOVED[table]}", IN_A
            )
        await cells.move("a")
        async with conn.transaction():
            await conn.execute(
                "update cell_project set moving_to = null, move_state = null, move_id = null"
                " where project = $1",
                IN_A,
            )
            for table in tables:
                await conn.execute(
                    f"insert into {table} overriding system value select * from kept_{table}"
                )
                await conn.execute(f"drop table kept_{table}")
    finally:
        await conn.close()
    return cells


@pytest.mark.parametrize("options", [{"to": "a"}, {"to": "b"}, {"to": "", "undo": True}])
async def test_a_project_in_two_cells_is_not_moved(twice: TwoCells, options: Any) -> None:
    before = [await content(twice, number) for number in (0, 1)]
    error = await refusal(twice.move(**options))
    assert error.code == "ProjectInTwoCells"
    assert '"a" (' in str(error) and '"b" (' in str(error) and "last changed at" in str(error)
    assert "--discard" in error.finding.remedy
    assert [await content(twice, number) for number in (0, 1)] == before


async def test_a_move_does_not_end_in_a_cell_that_has_got_the_project_meanwhile(
    cells: TwoCells, no_notice: None
) -> None:
    """The database of the new cell was restored from a backup that has the project."""
    await fill(cells)
    before = await content(cells, 0)
    with inject_fault("move.closed:1:raise"), pytest.raises(InjectedFault):
        await cells.move()
    await execute(cells.urls[1], "insert into cell_project (project) values ($1)", IN_A)
    assert (await refusal(cells.move())).code == "ProjectInTwoCells"
    await cells.move(undo=True, to="")
    assert await content(cells, 0) == before


@pytest.mark.parametrize("discarded", [0, 1])
async def test_one_of_two_projects_is_discarded_after_a_confirmation(
    twice: TwoCells, tmp_path: Path, discarded: int
) -> None:
    config, name = tmp_path / "api.toml", "ab"[discarded]
    write_api_settings(config, twice.databases)
    before = [await content(twice, number) for number in (0, 1)]
    written = page_command("docs/how-to/run-at-scale.md", DISCARD_COMMAND)
    words = {"5ad1ebf9a2b64b9db7a4c0f4d7a3a1c2": IN_A, "b": name, "api.toml": str(config)}
    command = [words.get(word, word) for word in written.split()[2:]]
    asked = await run_admin(*command)
    assert asked.code == 1 and "nothing was changed" in asked.err
    assert [await content(twice, number) for number in (0, 1)] == before
    plan = await plan_discard(cells_settings(twice.databases), IN_A, name)
    assert any(one.startswith(f"{name}, which is deleted: ") for one in plan.facts)
    killed = await run_admin(*command, "--yes", FAULT="move.switched:1:kill")
    assert killed.code not in (0, 1)
    await twice.move("ab"[1 - discarded])  # continues
    assert await content(twice, discarded) == {}
    assert await content(twice, 1 - discarded) == before[1 - discarded]
    assert (await refusal(twice.move("ab"[1 - discarded]))).code == "SameCell"
    await eventually(lambda: of_moves._succeeds(twice.http))


async def test_only_one_of_two_is_discarded(cells: TwoCells, no_notice: None) -> None:
    await cells.http.create("s", {"web": resource()})
    settings = cells_settings(cells.databases)
    for name in "ab":
        error = await refusal(discard_project(settings, IN_A, name, report=print))
        assert error.code == "NoMove"
    error = await refusal(discard_project(settings, IN_A, "c", report=print))
    assert error.code == "UnknownCell"


async def test_rows_that_are_left_in_the_new_cell_are_found_before_the_move(
    cells: TwoCells, no_notice: None
) -> None:
    await fill(cells)
    left = "insert into moving_row (project, source_table, content) values ($1, 'stack', '()')"
    await execute(cells.urls[1], left, IN_A)
    error = await refusal(cells.move())
    assert error.code == "MoveLeftovers" and "--discard b" in error.finding.remedy
    assert (await refusal(cells.move(undo=True, to=""))).code == "NoMove"
    await discard_project(cells_settings(cells.databases), IN_A, "b", report=print)
    await cells.move()


async def test_a_project_does_not_return_to_a_cell_that_has_its_former_rows(
    cells: TwoCells, no_notice: None
) -> None:
    await fill(cells)
    with inject_fault("move.switched:1:raise"), pytest.raises(InjectedFault):
        await cells.move()
    error = await refusal(cells.move("a"))
    assert error.code == "MoveLeftovers" and "--to b" in error.finding.remedy
    await cells.move()
    await cells.move("a")


async def test_an_announced_move_is_undone_without_the_new_cell(
    urls: list[str], no_notice: None
) -> None:
    async with running_node("b") as node:
        databases = [cell("a", urls[0]), cell("b", url_of(node))]
        async with api_of(databases) as http:
            await of_project(http, IN_A).create("s", {})
        settings = cells_settings(databases)

        def move(**how: Any) -> Any:
            return project_move.move_project(settings, IN_A, wait=1, report=print, **how)

        with inject_fault("move.announced:1:raise"), pytest.raises(InjectedFault):
            await move(target="b", undo=False)
        node.kill()
        assert (await refusal(move(target="b", undo=False))).code == "CellUnavailable"
        await move(target="", undo=True)
        conn: Connection = await connect(urls[0])
        try:
            state = await moves.read_state(conn, IN_A)
        finally:
            await conn.close()
        assert state is not None and state.state is None


async def test_the_encryption_key_is_not_rotated_while_rows_move(
    urls: list[str], no_notice: None, tmp_path: Path
) -> None:
    """They are not encrypted again. Both cells refuse it, and name the command to finish the move."""
    async with running_receiver() as receiver, served(urls, receiver) as cells:
        await fill(cells)
    key = tmp_path / "new.key"
    key.write_bytes(os.urandom(KEY_BYTES))
    key.chmod(0o600)
    configs = [tmp_path / f"{name}.toml" for name in "ab"]
    for config, url in zip(configs, urls, strict=True):
        config.write_text(
            f'[database]\nurl = "{url}"\n[credentials]\nkey_file = "{key}"\n'
            f'fallback_key_files = ["{key_file()}"]\n'
        )
        await execute(url, "delete from process")

    async def rotate(config: Path) -> Any:
        return await run_admin("rotate-encryption-key", "--config", str(config))

    for point in ("move.announced", "move.copied", "move.switched"):
        with inject_fault(f"{point}:1:raise"), pytest.raises(InjectedFault):
            await cells.move()
        refused = [0] if point == "move.announced" else [0, 1] if point == "move.copied" else [0]
        for number in refused:
            done = await rotate(configs[number])
            assert done.code == 1, (point, number, done)
            assert f"headgate admin move-project {IN_A} --to b" in done.err
    await cells.move()
    for config in configs:
        assert (await rotate(config)).code == 0


async def test_a_move_and_a_rotation_exclude_each_other(cells: TwoCells, no_notice: None) -> None:
    await fill(cells)
    conn = await connect(cells.urls[1])
    try:
        assert await moves.lock_key(conn)
        error = await refusal(cells.move())
        assert error.code == "OtherKey" and 'cell "b" is being rotated' in str(error)
        await moves.unlock_key(conn)
        lock = project_move.exclude_others(cells_settings(cells.databases), IN_A, ["a", "b"])
        async with lock:
            assert not await moves.lock_key(conn)
    finally:
        await conn.close()


async def test_a_project_does_not_arrive_with_another_key(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(cells)

    async def rotate() -> None:
        await execute(cells.urls[1], "update instance set key_check = 'x'")

    after_step(monkeypatch, "move.copied", rotate)
    error = await refusal(cells.move())
    assert error.code == "MoveDiffers" and "the encryption keys differ" in str(error)
    await cells.move(undo=True, to="")
    assert (await content(cells, 0))["stack"] == 2


@pytest.mark.parametrize("point", ["move.announced", "move.taken", "move.switched"])
async def test_doctor_names_an_unfinished_move(
    cells: TwoCells, no_notice: None, tmp_path: Path, point: str
) -> None:
    await fill(cells)
    settings = cells_settings(cells.databases)
    (found,) = await check_moves(settings)
    assert found.state is CheckState.OK
    with inject_fault(f"{point}:1:raise"), pytest.raises(InjectedFault):
        await cells.move()
    (found,) = await check_moves(settings)
    assert found.state is CheckState.WARNING
    assert f'the project "{IN_A}" from "a" to "b"' in found.reason and " since 20" in found.reason
    assert f"headgate admin move-project {IN_A} --to b" in found.remedy
    assert ("--undo" in found.remedy) == (point != "move.switched")
    config = tmp_path / "api.toml"
    write_api_settings(config, cells.databases)
    assert found.reason in (await run_admin("doctor", "--config", str(config))).out
    await cells.move()
    assert [one.state for one in await check_moves(settings)] == [CheckState.OK]


async def test_doctor_names_a_project_in_two_cells(twice: TwoCells) -> None:
    (found,) = await check_moves(cells_settings(twice.databases))
    assert (found.state, found.reason) == (
        CheckState.ERROR, f'the project "{IN_A}" is in the cells a and b',
    )  # fmt: skip
    assert "--discard" in found.remedy


async def test_changes_of_a_project_in_two_cells_are_refused(twice: TwoCells) -> None:
    body = {"stack_name": "more", "template": {"heat_template_version": "2021-04-16"}}
    # It does not know of any move.
    await execute(twice.urls[1], "update cell_project set arrived_from = null")

    async def refused() -> bool:
        status, answer = await twice.http.call("POST", "/stacks", body)
        if status == 201:
            await twice.http.call("DELETE", "/stacks/more")
            return False
        return bool((status, answer["error"]["type"]) == (409, "ProjectInTwoCells"))

    await eventually(refused)
    assert (await twice.http.call("GET", "/stacks"))[0] == 200
    await discard_project(cells_settings(twice.databases), IN_A, "b", report=print)

    await eventually(lambda: of_moves._creates(twice.http))


async def test_metrics_count_moving_projects_and_those_in_two_cells(
    cells: TwoCells, no_notice: None
) -> None:
    await fill(cells)
    with inject_fault("move.closed:1:raise"), pytest.raises(InjectedFault):
        await cells.move()
    address = f"127.0.0.1:{free_port()}"
    async with api_of(cells.databases, {"metrics.address": address}) as http:

        async def is_counted() -> bool:
            async with http.session.get(f"http://{address}/metrics") as response:
                text = await response.text()
            return (
                'headgate_projects_moving{cell="a"} 1.0' in text
                and "headgate_projects_in_two_cells 0.0" in text
            )

        await eventually(is_counted)


async def test_a_project_does_not_arrive_before_the_standbys_of_its_former_cell_know(
    postgres: TestServer, no_notice: None
) -> None:
    """A failover of the former cell to one that lacks the departure leaves it in one cell."""
    async with (
        running_receiver() as receiver,
        running_pair(synchronous=False) as pair,
        postgres.new_database() as second,
        served([pair.url, second], receiver) as cells,
    ):
        await eventually(lambda: of_moves._creates(cells.http))
        await eventually(lambda: pair.first.execute(of_moves.CAUGHT_UP))
        pair.link.silence()
        error = await refusal(cells.move(wait=0.5))
        assert error.code == "StandbysBehind" and '"a"' in str(error) and "second" in str(error)
        pair.first.kill()
        await pair.second.promote()

        async def is_discarded() -> bool:
            error = await refusal(cells.move(wait=0.5))
            return error.code == "MoveLeftovers"

        await eventually(is_discarded)
        assert set(await cells.counts(1)) == {"moving_row"}
        await discard_project(cells_settings(cells.databases), IN_A, "b", report=print)
        assert await cells.counts(1) == {}
        await eventually(lambda: of_moves._succeeds(cells.http))
