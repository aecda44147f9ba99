"""headgate admin move-project: moves a project to another cell, step by step (ADR 16).

Each step is committed before the next one begins, so the command can be killed at any time: run
again, it continues; with `undo`, the project stays where it is.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from engine.errors import Conflict, HeadgateError, NotFound, Unavailable
from engine.store.access.token_copies import delete_tokens, read_copies
from engine.store.access.token_keys import key_check, read_token_keys
from engine.store.connection import Connection
from engine.store.encryption.secret_values import Keyring
from engine.store.fault_points import UNDO_POINT, reach
from engine.store.maintenance import moving_schemas as schemas
from engine.store.maintenance import project_moves as moves
from engine.store.maintenance.project_moves import MOVING, MoveRecord
from engine.store.maintenance.standbys import find_behind, read_log_position
from engine.store.schema.upgrade import check_current
from engine.words import MoveState
from hub.api.cells import PLACE, unavailable
from hub.checks.offline_database import connect
from hub.program.wiring import make_keyring
from hub.settings.settings import Settings

COMMAND = "move-project"
#: Seconds in which every API process notices that a project moves.
NOTICE_TIME = 10.0
#: Seconds between two looks at the operations under way.
POLL_INTERVAL = 0.2
#: Operations under way that a report names.
MAX_NAMED = 10
#: Seconds between two attempts to lock the rows: longer than the interval in which a dispatcher
#: looks for events to publish, which an attempt prevents.
LOCK_INTERVAL = 6.0

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ProjectMove:
    """source, target: the cells by name. finished: it has arrived or was undone, and something of
    it is left; target is the source if it was undone."""

    project: str
    source: str
    target: str
    finished: bool = False


async def move_project(
    settings: Settings, project: str, target: str, *, undo: bool, wait: float, report: Report
) -> ProjectMove:
    """Move a project, or continue; undo: end a move that has not arrived instead.

    wait: seconds to wait for operations under way, and for standbys of the new cell. Raises
    HeadgateError with the reason why the project is not moved.
    """
    _check_settings(settings, target, undo=undo)
    steps: _Steps | None = None
    try:
        async with AsyncExitStack() as stack:
            connections, away = await connect_cells(stack, settings, make_keyring(settings))
            states = {
                name: await moves.read_state(one, project) for name, one in connections.items()
            }
            move = await _find_move(connections, states, away, project, target, undo=undo)
            for name in (move.source, move.target):
                if name not in connections:
                    raise unavailable([name])
            await stack.enter_async_context(_exclude_others(settings, move))
            source, destination = connections[move.source], connections[move.target]
            await _check_cells(move, source, destination)
            if undo and move.finished:
                await schemas.drop_schema(source, project)
            elif undo:
                await _undo(move, source, destination)
            else:
                steps = _Steps(move, source, destination, make_keyring(settings), report)
                await steps.run(wait)
            return move
    except Unavailable as error:
        if steps is None or not steps.closed:
            raise
        raise Unavailable(
            f'{error.finding.reason}; changes of the project "{project}" are refused now',
            place=error.finding.place,
            remedy="Run the same command again, which continues the move, or put the project back"
            " with --undo",
        ) from error


def _check_settings(settings: Settings, target: str, *, undo: bool) -> None:
    names = [one.name for one in settings.cells.databases]
    if not names:
        raise Conflict(
            "these settings name no cells",
            place="[cells] databases",
            remedy="Use the settings of a process with the role api and [cells]",
        )
    if target not in names and not (undo and not target):
        raise NotFound(
            f'there is no cell "{target}"; the cells are {", ".join(names)}',
            place="--to",
            remedy="Name one of them, or add the cell to [cells] databases first",
            code="UnknownCell",
        )


async def connect_cells(
    stack: AsyncExitStack, settings: Settings, keyring: Keyring
) -> tuple[dict[str, Connection], list[str]]:
    """Connections to the cells, by name, and the names of those that are away. Raises Conflict if a
    database has another version, or is another cell."""
    connections: dict[str, Connection] = {}
    away: list[str] = []
    for one in settings.cells.databases:
        url = one.url.get_secret_value()
        try:
            conn = await stack.enter_async_context(connect(url, keyring=keyring))
        except Unavailable:
            away.append(one.name)
            continue
        try:
            await check_current(conn)
        except HeadgateError as error:
            raise Conflict(
                f'the cell "{one.name}": {error.finding.reason}',
                place=f'{PLACE} "{one.name}"',
                remedy="Upgrade all cells to the version of this program first",
                code="OtherVersion",
            ) from error
        await moves.check_cell(conn, one.name)
        connections[one.name] = conn
    return connections, away


async def _find_move(
    connections: Mapping[str, Connection],
    states: Mapping[str, MoveRecord | None],
    away: list[str],
    project: str,
    target: str,
    *,
    undo: bool,
) -> ProjectMove:
    """The move to begin or to continue. Raises HeadgateError."""
    if (move := _find_under_way(states, project, target)) is not None:
        return move
    here = [name for name, one in states.items() if one is not None and one.state is None]
    if away and (undo or not here):
        raise unavailable(away)
    if not here and (lost := await _find_lost(connections, states, project)) is not None:
        return _check_lost(lost, undo=undo)
    if undo and here and await schemas.has_schema(connections[here[0]], project):
        return ProjectMove(project, here[0], here[0], finished=True)
    if undo:
        where = f'; it is in the cell "{here[0]}"' if here else ""
        raise Conflict(
            f'the project "{project}" is not being moved{where}',
            place=COMMAND,
            remedy="Move it back with --to, if it has arrived in another cell",
            code="NoMove",
        )
    if not here:
        raise NotFound(
            f'no cell has the project "{project}"',
            place="PROJECT",
            remedy="Check its ID. A project is in a cell with its first change; name a new one in"
            " projects of [cells] databases",
            code="UnknownProject",
        )
    if here[0] != target:
        return ProjectMove(project, here[0], target)
    for name, conn in connections.items():
        if name != target and await moves.has_rows(conn, project):
            return ProjectMove(project, name, target, finished=True)
    raise Conflict(
        f'the project "{project}" is already in the cell "{target}"',
        place="--to",
        remedy="There is nothing to do",
        code="SameCell",
    )


def _find_under_way(
    states: Mapping[str, MoveRecord | None], project: str, target: str
) -> ProjectMove | None:
    """Raises Conflict if it has another target. target: "": any."""
    for name, state in states.items():
        if state is None or state.state not in MOVING:
            continue
        if target and state.moving_to != target:
            raise Conflict(
                f'the project "{project}" is being moved from "{name}" to "{state.moving_to}"',
                place=COMMAND,
                remedy=f"Continue with --to {state.moving_to}, or end this move with --undo",
                code="MoveUnderWay",
            )
        return ProjectMove(project, name, state.moving_to)
    return None


async def _find_lost(
    connections: Mapping[str, Connection], states: Mapping[str, MoveRecord | None], project: str
) -> ProjectMove | None:
    """A move that had ended, but whose target has no record of it, and whose source still has the
    rows: the target's database failed over to a standby that lacked the last commits."""
    for name, state in states.items():
        if (
            state is not None
            and state.state is MoveState.MOVED
            and states.get(state.moving_to, state) is None
            and await moves.has_rows(connections[name], project)
        ):
            return ProjectMove(project, name, state.moving_to)
    return None


def _check_lost(lost: ProjectMove, *, undo: bool) -> ProjectMove:
    """Return a move that was lost, to undo it. Raises Conflict if the command continues moves."""
    if undo:
        return lost
    raise Conflict(
        f'the project "{lost.project}" had arrived in the cell "{lost.target}", whose database does'
        f' not have it any more; its rows are in "{lost.source}"',
        place=COMMAND,
        remedy=f"Put it back in {lost.source} with --undo",
        code="MoveLost",
    )


@asynccontextmanager
async def _exclude_others(settings: Settings, move: ProjectMove) -> AsyncIterator[None]:
    """Raises Conflict if another command moves the project."""
    urls = {one.name: one.url.get_secret_value() for one in settings.cells.databases}
    async with AsyncExitStack() as stack:
        for name in sorted({move.source, move.target}):
            conn = await stack.enter_async_context(connect(urls[name]))
            await stack.enter_async_context(conn.transaction())
            if not await moves.lock_move(conn, move.project):
                raise Conflict(
                    f'another command is moving the project "{move.project}"',
                    place=COMMAND,
                    remedy="Wait until it ends",
                    code="MoveUnderWay",
                )
        yield


async def _check_cells(move: ProjectMove, source: Connection, target: Connection) -> None:
    """Raises Conflict if the cells cannot exchange rows."""
    if await moves.read_schema(source) != await moves.read_schema(target):
        raise Conflict(
            f'the cells "{move.source}" and "{move.target}" have different schemas',
            place=PLACE,
            remedy="Upgrade both to the same version, then move the project",
            code="OtherVersion",
        )
    if await key_check(source) != await key_check(target):
        raise Conflict(
            f'the cells "{move.source}" and "{move.target}" have different encryption keys',
            place="[credentials] key_file",
            remedy="Give both the same key with `headgate admin rotate-encryption-key`, with the"
            " settings of an engine of the cell",
            code="OtherKey",
        )


class _Steps:
    def __init__(
        self,
        move: ProjectMove,
        source: Connection,
        target: Connection,
        keyring: Keyring,
        report: Report,
    ) -> None:
        self._move, self._keyring, self._report = move, keyring, report
        self._source, self._target = source, target
        #: The project has left its cell, and is not in the new one yet: it is only read.
        self.closed = False

    async def run(self, wait: float) -> None:
        project = self._move.project
        if not self._move.finished:
            # Read again, because another command may have ended since.
            state = await moves.read_state(self._source, project)
            if state is None or state.state is MoveState.MOVED:
                raise Conflict(
                    f'the project "{project}" was moved by another command',
                    place=COMMAND,
                    remedy="Run the command again to see where it is",
                    code="MoveUnderWay",
                )
            self.closed = state.state is MoveState.TAKEN
            if not self.closed:
                await self._announce(wait)
                await moves.close_project(self._source, project)
                self.closed = True
                reach("move.closed")
            if await moves.read_state(self._target, project) != MoveRecord("", None):
                count = await self._take(schemas.fill_schema)
                self._report(f"{count} rows left the tables of {self._move.source}")
                reach("move.taken")
                await self._copy()
                reach("move.copied")
                await self._arrive()
                self.closed = False
                reach("move.arrived")
            await moves.set_moved(self._source, project)
            reach("move.switched")
        await self._await_standbys(wait)
        await self._delete()
        reach("move.deleted")

    async def _announce(self, wait: float) -> None:
        """Refuse changes of the project, and wait for operations under way. Raises Conflict if the
        database refuses the schema in which it is read."""
        move = self._move
        await moves.announce_move(self._source, move.project, move.target)
        reach("move.announced")
        try:
            await schemas.create_schema(self._source, move.project, secrets.token_hex(8))
        except Conflict:
            await moves.end_move(self._source, move.project)
            raise
        self._report(f"changes of {move.project} are refused; waiting for operations under way")
        await asyncio.sleep(NOTICE_TIME)
        running = await moves.list_running(self._source, move.project)
        for _ in range(int(wait / POLL_INTERVAL)):
            if not running:
                return
            await asyncio.sleep(POLL_INTERVAL)
            running = await moves.list_running(self._source, move.project)
        if running:
            named = [str(one) for one in running[:MAX_NAMED]]
            if more := len(running) - len(named):
                named.append(f"{more} more")
            self._report(
                "operations are under way, which the new cell calls again with the same operation"
                f" keys: {', '.join(named)}"
            )

    async def _take(self, *taken: Callable[[Connection, str], Awaitable[None]]) -> int:
        """Take all rows, as soon as no other transaction has locked one; the number of rows.
        taken: see `take_rows`."""
        count, waits = 0, False
        while (rows := await moves.take_rows(self._source, self._move.project, *taken)) != 0:
            if rows is not None:
                count += rows
                continue
            if not waits:
                self._report(
                    f"another transaction has locked rows of {self._move.project}; waiting for it"
                )
            waits = True
            await asyncio.sleep(LOCK_INTERVAL)
        return count

    async def _copy(self) -> None:
        """Copy the rows, and compare their digests. Raises Conflict."""
        project = self._move.project
        after: tuple[str, int] | None = ("", 0)
        while after is not None:
            after = await moves.copy_page(self._source, self._target, project, after)
        sent = await moves.digest_moving(self._source, project)
        received = await moves.digest_moving(self._target, project)
        for table in sorted({*sent, *received}):
            if sent.get(table) != received.get(table):
                raise moves.refuse_difference(table, "the copy differs")
        self._report(f"copied to {self._move.target}; the digests of {len(sent)} tables agree")

    async def _arrive(self) -> None:
        await moves.arrive(
            self._target,
            self._move.project,
            self._move.source,
            digests=await moves.digest_moving(self._source, self._move.project),
            position=await moves.read_position(self._source),
            keys=await read_token_keys(self._source, self._keyring),
            tokens=await read_copies(self._source, self._move.project),
            keyring=self._keyring,
        )
        self._report(f"{self._move.project} is in {self._move.target}")

    async def _await_standbys(self, wait: float) -> None:
        """Wait until the standbys of the new cell have the project: until then, the rows in the
        former cell are the only ones that outlive a failover. Raises Unavailable."""
        position = await read_log_position(self._target)
        behind = await find_behind(self._target, position)
        if behind.names:
            self._report(f"waiting for the standbys of {self._move.target}")
        for _ in range(int(wait / POLL_INTERVAL)):
            if not behind.names:
                break
            await asyncio.sleep(POLL_INTERVAL)
            behind = await find_behind(self._target, position)
        if behind.names:
            raise Unavailable(
                f'{self._move.project} is in the cell "{self._move.target}", but standbys of its'
                f" database have not received it yet: {', '.join(behind.names)}; the cell"
                f' "{self._move.source}" keeps its rows',
                place=f'{PLACE} "{self._move.target}"',
                remedy="Run the same command again when they have caught up: it deletes the rows."
                " Drop the replication slot of a standby that no longer exists",
                code="StandbysBehind",
            )
        if behind.hidden:
            self._report(
                f"the account may not see whether {behind.hidden} standbys of {self._move.target}"
                " have the project: grant it pg_read_all_stats, so that a move waits for them"
            )

    async def _delete(self) -> None:
        """Delete the rows in the former cell, with what its processes have added since."""
        if late := await self._take():
            self._report(f"{late} rows were written in {self._move.source} after the copy")
        await delete_tokens(self._source, self._move.project)
        await schemas.drop_schema(self._source, self._move.project)
        while await moves.delete_page(self._source, self._move.project):
            pass
        self._report(f"deleted in {self._move.source}")


async def _undo(move: ProjectMove, source: Connection, target: Connection) -> None:
    """End a move that has not arrived, or that the target has lost. Raises Conflict if it has
    arrived."""
    state = await moves.read_state(source, move.project)
    arrived = await moves.read_state(target, move.project)
    if arrived == MoveRecord("", None) or (
        arrived is not None and state is not None and state.state not in MOVING
    ):
        raise Conflict(
            f'the project "{move.project}" has arrived in the cell "{move.target}"',
            place="--undo",
            remedy=f"Finish the move with --to {move.target}; then move it back with --to"
            f" {move.source}",
            code="MoveArrived",
        )
    while await moves.delete_page(target, move.project):
        pass
    await moves.restore_rows(source, move.project)
    reach(UNDO_POINT)
    await schemas.drop_schema(source, move.project)
