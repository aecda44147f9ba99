"""headgate admin move-project: moves a project to another cell, step by step (ADR 16).

Each step is committed before the next one begins, so the command can be killed at any time: run
again, it continues; with `undo`, the project stays where it is.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from engine.errors import Conflict, HeadgateError, NotFound, Unavailable
from engine.store.access.token_copies import delete_tokens, read_copies
from engine.store.access.token_keys import key_check, read_token_keys
from engine.store.connection import Connection
from engine.store.encryption.secret_values import Keyring
from engine.store.fault_points import UNDO_POINT, reach
from engine.store.maintenance import moving_schemas as schemas
from engine.store.maintenance import project_moves as moves
from engine.store.maintenance.keys_in_use import check_keys_in_use
from engine.store.maintenance.project_moves import MOVING, MoveRecord
from engine.store.maintenance.standbys import find_behind, read_log_position
from engine.store.schema.upgrade import check_current
from engine.words import MoveState
from hub.api.cells import PLACE
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
#: The cells that are away, and the reasons.
AwayCells = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProjectMove:
    """source, target: the cells by name. finished: it has arrived or was undone, and something of
    it is left; target is the source if it was undone. id: None: it is not announced, or an earlier
    version began it."""

    project: str
    source: str
    target: str
    finished: bool = False
    id: UUID | None = None


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
            await stack.enter_async_context(exclude_others(settings, project, connections))
            states = {
                name: await moves.read_state(one, project) for name, one in connections.items()
            }
            move = await _find_move(connections, states, away, project, target, undo=undo)
            state = states.get(move.source)
            # What was only announced has not left its cell.
            is_announced = state is not None and state.state is MoveState.ANNOUNCED
            for name in (move.source, move.target):
                if name not in connections and not (undo and is_announced and name == move.target):
                    raise refuse_away(away, [name])
            source = connections[move.source]
            if undo and move.finished:
                await schemas.drop_schema(source, project)
            elif undo:
                await _undo(move, source, connections.get(move.target), away)
            else:
                destination = connections[move.target]
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
            code=error.code,
        ) from error


def _check_settings(settings: Settings, target: str, *, undo: bool) -> None:
    """target: "": any, if the move is undone."""
    check_cell_name(settings, target if target or not undo else None, "--to")


def check_cell_name(settings: Settings, cell: str | None, option: str) -> None:
    """Raises HeadgateError unless the settings name the cell. None: only any cells."""
    names = [one.name for one in settings.cells.databases]
    if not names:
        raise Conflict(
            "these settings name no cells",
            place="[cells] databases",
            remedy="Use the settings of a process with the role api and [cells]",
        )
    if cell is not None and cell not in names:
        raise NotFound(
            f'there is no cell "{cell}"; the cells are {", ".join(names)}',
            place=option,
            remedy="Name one of them, or add the cell to [cells] databases first",
            code="UnknownCell",
        )


async def connect_cells(
    stack: AsyncExitStack, settings: Settings, keyring: Keyring
) -> tuple[dict[str, Connection], AwayCells]:
    """Connections to the cells, by name, and those that are away. Raises Conflict if a database has
    another version, or is another cell."""
    connections: dict[str, Connection] = {}
    away: dict[str, str] = {}
    for one in settings.cells.databases:
        url = one.url.get_secret_value()
        try:
            conn = await stack.enter_async_context(connect(url, keyring=keyring))
        except Unavailable as error:
            away[one.name] = error.finding.reason
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


def refuse_away(away: AwayCells, names: Sequence[str]) -> Unavailable:
    """names: of the cells that a command needs."""
    reasons = [
        f'the cell "{name}" is not available: {away.get(name, "[cells] databases lacks it")}'
        for name in names
    ]
    return Unavailable(
        "; ".join(reasons),
        place=PLACE,
        remedy="Run the same command again as soon as its database accepts connections",
        code="CellUnavailable",
    )


async def _find_move(
    connections: Mapping[str, Connection],
    states: Mapping[str, MoveRecord | None],
    away: AwayCells,
    project: str,
    target: str,
    *,
    undo: bool,
) -> ProjectMove:
    """The move to begin or to continue. Raises HeadgateError."""
    here = find_here(states)
    if len(here) > 1:
        raise await refuse_two_cells(connections, here, project)
    if (move := _find_under_way(states, project, target)) is not None:
        return move
    if away and (undo or not here):
        raise refuse_away(away, [*away])
    lost = await _find_lost(connections, states, project)
    if lost is not None and here in ([], [lost.target]):
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
    if (leftover := await _find_leftover(connections, states, away, project, target)) is not None:
        return leftover
    raise Conflict(
        f'the project "{project}" is already in the cell "{target}"',
        place="--to",
        remedy="There is nothing to do",
        code="SameCell",
    )


def find_here(states: Mapping[str, MoveRecord | None]) -> list[str]:
    """The cells that have the project."""
    return [name for name, one in states.items() if one is not None and one.state is None]


async def refuse_two_cells(
    connections: Mapping[str, Connection], cells: Sequence[str], project: str
) -> Conflict:
    """What to raise if several cells have the project."""
    found = [f'"{name}" ({await moves.summarize(connections[name], project)})' for name in cells]
    return Conflict(
        f'the project "{project}" is in more than one cell: {" and ".join(found)}; one of the'
        " databases failed over to a standby that lacked a move, or was restored from a backup",
        place=COMMAND,
        remedy="Compare the stacks in the cells. Then remove the project from the cell with the"
        " older rows with --discard CELL",
        code="ProjectInTwoCells",
    )


def refuse_copies(project: str, cell: str) -> Conflict:
    return Conflict(
        f'the cell "{cell}" has rows of a move of the project "{project}" that has ended',
        place=COMMAND,
        remedy=f"They are copies; remove them with --discard {cell}",
        code="MoveLeftovers",
    )


async def _find_leftover(
    connections: Mapping[str, Connection],
    states: Mapping[str, MoveRecord | None],
    away: AwayCells,
    project: str,
    target: str,
) -> ProjectMove | None:
    """Rows that are to be deleted, because the project is in the cell `target`. Raises Conflict if
    they are not known to be there."""
    for name, conn in connections.items():
        if name != target and await moves.has_rows(conn, project):
            if not await _has_arrived(connections, states[name], away, project, name):
                raise refuse_copies(project, name)
            return ProjectMove(project, name, target, finished=True)
    return None


async def _has_arrived(
    connections: Mapping[str, Connection],
    record: MoveRecord | None,
    away: AwayCells,
    project: str,
    source: str,
) -> bool:
    """Whether the rows that are left in the cell `source` are in another cell."""
    if record is None or record.state is not MoveState.MOVED:
        return False
    if (target := connections.get(record.moving_to)) is None:
        raise refuse_away(away, [record.moving_to])
    return bool(await moves.read_outcome(target, project, source, record))


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
        return ProjectMove(project, name, state.moving_to, id=state.id)
    return None


async def _find_lost(
    connections: Mapping[str, Connection], states: Mapping[str, MoveRecord | None], project: str
) -> ProjectMove | None:
    """A move that had ended, but whose target does not know that it has arrived, and whose source
    still has the rows: the target's database failed over to a standby that lacked the last commits.
    """
    for name, state in states.items():
        if (
            state is not None
            and state.state is MoveState.MOVED
            and (target := connections.get(state.moving_to)) is not None
            and await moves.has_rows(connections[name], project)
        ):
            if state.id is None:  # an earlier version has moved it
                lost = states[state.moving_to] is None
            else:
                lost = not await moves.read_outcome(target, project, name, state)
            if lost:
                return ProjectMove(project, name, state.moving_to, id=state.id)
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
async def exclude_others(
    settings: Settings, project: str, cells: Collection[str]
) -> AsyncIterator[None]:
    """Raises Conflict if another command moves the project. This spares the other command an error;
    no row is lost without it, because each step compares the ID of the move."""
    urls = {one.name: one.url.get_secret_value() for one in settings.cells.databases}
    async with AsyncExitStack() as stack:
        for name in sorted(cells):
            conn = await stack.enter_async_context(connect(urls[name]))
            # The end of the connection ends it, also if the server has ended that before.
            await conn.execute("begin")
            if not await moves.share_key(conn):
                raise Conflict(
                    f'the encryption key of the cell "{name}" is being rotated',
                    place=COMMAND,
                    remedy="Wait until `headgate admin rotate-encryption-key` ends",
                    code="OtherKey",
                )
            if not await moves.lock_move(conn, project):
                raise Conflict(
                    f'another command is moving the project "{project}"',
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
        #: Of the move, as soon as it is announced.
        self._id: UUID | None = None
        #: How many rows have left their tables.
        self._rows: int | None = None

    async def run(self, wait: float) -> None:
        project = self._move.project
        if not self._move.finished:
            # Read again, because another command may have ended since.
            state = await moves.read_state(self._source, project)
            if state is None or state.state is MoveState.MOVED:
                raise moves.refuse_other(project)
            self.closed = state.state is MoveState.TAKEN
            arrived = await moves.read_outcome(self._target, project, self._move.source, state)
            if arrived is False:
                raise Conflict(
                    f'the move of the project "{project}" is being undone',
                    place=COMMAND,
                    remedy="Finish this with --undo",
                    code="MoveUnderWay",
                )
            if not arrived:
                await _check_cells(self._move, self._source, self._target)
                await self._check_target()
            if not self.closed:
                await check_keys_in_use(self._source, self._move.source, project, self._keyring)
                await self._announce(wait, state)
                await moves.close_project(self._source, project, self._id)
                self.closed = True
                reach("move.closed")
            elif not arrived:
                await self._identify(state)
            if not arrived:
                count = await self._take(MoveState.TAKEN, schemas.fill_schema)
                self._report(f"{count} rows left the tables of {self._move.source}")
                reach("move.taken")
                await self._copy()
                reach("move.copied")
                # A standby without the departure would have the project, too, after a failover.
                await self._await_standbys(
                    self._source, self._move.source, wait, "it has not left this cell completely"
                )
                await self._arrive()
                self.closed = False
                reach("move.arrived")
            await moves.set_moved(self._source, project, self._id or state.id)
            reach("move.switched")
        await self._await_standbys(
            self._target,
            self._move.target,
            wait,
            f'it has arrived; the cell "{self._move.source}" keeps its rows',
        )
        await delete_moved(self._source, self._move.source, project, self._report)
        reach("move.deleted")

    async def _check_target(self) -> None:
        """Raises Conflict if the new cell cannot get the project."""
        move = self._move
        known = await moves.read_state(self._target, move.project)
        if known is not None and known.state is None:
            cells = {move.source: self._source, move.target: self._target}
            raise await refuse_two_cells(cells, [*cells], move.project)
        if move.id is not None:  # continued: the copies are those of this move
            return
        for name, conn in ((move.source, self._source), (move.target, self._target)):
            if await moves.has_copies(conn, move.project):
                if known is None or known.state is not MoveState.MOVED:
                    raise refuse_copies(move.project, name)
                raise Conflict(
                    f'the cell "{name}" still has rows of the project "{move.project}", which has'
                    " moved to another cell",
                    place=COMMAND,
                    remedy=f"Finish that move first with --to {move.source}, which deletes them",
                    code="MoveLeftovers",
                )

    async def _identify(self, state: MoveRecord) -> None:
        """Continue a move that has left its cell, also one that an earlier version began."""
        if state.id is None:
            await moves.set_id(self._source, self._move.project, uuid4())
            again = await moves.read_state(self._source, self._move.project)
            state = state if again is None else again
        self._id, self._rows = state.id, state.rows

    async def _announce(self, wait: float, state: MoveRecord) -> None:
        """Refuse changes of the project, and wait for operations under way. Raises Conflict if the
        database refuses the schema in which it is read."""
        move = self._move
        if state.state is None:
            self._id = uuid4()
            await moves.announce_move(self._source, move.project, move.target, self._id)
        else:
            await self._identify(state)
        reach("move.announced")
        try:
            await schemas.create_schema(self._source, move.project, secrets.token_hex(8))
        except Conflict:
            await moves.end_announced(self._source, move.project, self._id)
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

    async def _take(
        self, state: MoveState, *taken: Callable[[Connection, str], Awaitable[None]]
    ) -> int:
        return await take_all(
            self._source, self._move.project, self._id, state, self._report, *taken
        )

    async def _copy(self) -> None:
        """Copy the rows, and compare their digests. Raises Conflict."""
        project = self._move.project
        state = await moves.read_state(self._source, project)
        if state is None or state.id != self._id:
            raise moves.refuse_other(project)
        self._rows = state.rows
        after: tuple[str, int] | None = ("", 0)
        while after is not None:
            after = await moves.copy_page(self._source, self._target, project, after)
        sent = await moves.digest_moving(self._source, project)
        moves.check_count(sent, self._rows)
        received = await moves.digest_moving(self._target, project)
        for table in sorted({*sent, *received}):
            if sent.get(table) != received.get(table):
                raise moves.refuse_difference(table, "the copy differs")
        self._report(f"copied to {self._move.target}; the digests of {len(sent)} tables agree")

    async def _arrive(self) -> None:
        if self._id is None:
            raise moves.refuse_other(self._move.project)
        await moves.arrive(
            self._target,
            self._move.project,
            self._move.source,
            move=self._id,
            rows=self._rows,
            check=await key_check(self._source),
            digests=await moves.digest_moving(self._source, self._move.project),
            position=await moves.read_position(self._source),
            keys=await read_token_keys(self._source, self._keyring),
            tokens=await read_copies(self._source, self._move.project),
            keyring=self._keyring,
        )
        self._report(f"{self._move.project} is in {self._move.target}")

    async def _await_standbys(self, conn: Connection, cell: str, wait: float, state: str) -> None:
        """Wait until the standbys of a cell have what its database has committed. Raises
        Unavailable. state: of the project."""
        project, position = self._move.project, await read_log_position(conn)
        behind = await find_behind(conn, position)
        if behind.names:
            self._report(f"waiting for the standbys of {cell}")
        for _ in range(int(wait / POLL_INTERVAL)):
            if not behind.names:
                break
            await asyncio.sleep(POLL_INTERVAL)
            behind = await find_behind(conn, position)
        if behind.names:
            raise Unavailable(
                f'standbys of the cell "{cell}" have not received the move of the project'
                f' "{project}" yet: {", ".join(behind.names)}; {state}',
                place=f'{PLACE} "{cell}"',
                remedy="Run the same command again when they have caught up: it continues."
                " Drop the replication slot of a standby that no longer exists",
                code="StandbysBehind",
            )
        if behind.hidden:
            self._report(
                f"the account may not see whether {behind.hidden} standbys of {cell}"
                " have the project: grant it pg_read_all_stats, so that a move waits for them"
            )


async def take_all(
    conn: Connection,
    project: str,
    move: UUID | None,
    state: MoveState,
    report: Report,
    *taken: Callable[[Connection, str], Awaitable[None]],
) -> int:
    """Take all rows, as soon as no other transaction has locked one; the number of rows.
    state, taken: see `take_rows`."""
    count, waits = 0, False
    while (rows := await moves.take_rows(conn, project, move, state, *taken)) != 0:
        if rows is not None:
            count += rows
            continue
        if not waits:
            report(f"another transaction has locked rows of {project}; waiting for it")
        waits = True
        await asyncio.sleep(LOCK_INTERVAL)
    return count


async def delete_moved(conn: Connection, cell: str, project: str, report: Report) -> None:
    """Delete the rows in the cell that the project has left, with what its processes have added
    since. Raises Conflict if it has not left."""
    state = await moves.read_state(conn, project)
    if state is None or state.state is not MoveState.MOVED:
        raise moves.refuse_other(project)
    if late := await take_all(conn, project, state.id, MoveState.MOVED, report):
        report(f"{late} rows were still in the tables of {cell}")
    async with moves.during_move(conn, project, state.id, {MoveState.MOVED}):
        await delete_tokens(conn, project)
        await schemas.drop_schema(conn, project)
    await moves.delete_taken(conn, project, state.id)
    report(f"deleted in {cell}")


async def _undo(
    move: ProjectMove, source: Connection, target: "Connection | None", away: AwayCells
) -> None:
    """End a move that has not arrived, or that the target has lost. target: None: it is away, and
    the move was only announced. Raises Conflict if it has arrived."""
    project = move.project
    if await moves.end_announced(source, project, move.id):
        reach(UNDO_POINT)
        await schemas.drop_schema(source, project)
        return
    if target is None:
        raise refuse_away(away, [move.target])
    state = await moves.read_state(source, project)
    if state is None or state.id != move.id or state.state is None:
        raise moves.refuse_other(project)
    arrived = await moves.read_outcome(target, project, move.source, state)
    if arrived is None:
        # The new cell decides: the other command may be about to end the move there.
        identified = state.id or uuid4()
        if state.id is None:
            await moves.set_id(source, project, identified)
            again = await moves.read_state(source, project)
            identified = (again and again.id) or identified
        state = replace(state, id=identified)
        arrived = await moves.decide_outcome(target, identified, arrived=False)
    if arrived:
        raise Conflict(
            f'the project "{project}" has arrived in the cell "{move.target}"',
            place="--undo",
            remedy=f"Finish the move with --to {move.target}; then move it back with --to"
            f" {move.source}",
            code="MoveArrived",
        )
    await moves.delete_copies(target, project)
    await moves.restore_rows(source, project, state.id)
    reach(UNDO_POINT)
    await schemas.drop_schema(source, project)
