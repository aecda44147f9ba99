"""What the database of a cell stores: which cell it is, the revisions of the placement, and the
projects that are in it.

A new revision of the placement takes two steps. First, it is announced in the databases of all
cells: processes with an earlier revision add no more projects to them. Then the revisions of all
cells are put together and stored in each of them. From then on, each database alone says in which
cells a project can be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from engine import errors
from engine.cells import CellPlacement, read_placement
from engine.store.connection import Connection
from engine.store.schema.compatibility import IS_RUNNING
from engine.store.schema.upgrade import LOCK_KEY

CREATE = "insert into cell (name, id) values ($1, $2) on conflict (only_one) do nothing"
READ = "select name, id, announced, agreed, placements from cell"
#: Projects with something that a user has created.
LIST_PROJECTS = """
select project from (
    select project from stack
    union select project from software_config
    union select project from subscription
    union select project from observation_credential
    union select project from token
           where project <> '*' and revoked_at is null
             and (expires_at is null or expires_at > clock_timestamp())) p
 order by project
"""
ANNOUNCE = "update cell set announced = $1 where announced < $1"
AGREE = "update cell set agreed = $1, placements = $2 where announced = $1 and agreed < $1"
#: The share lock excludes `ANNOUNCE` until the project is recorded.
LOCK_REVISION = "select announced from cell for share"
HAS_PROJECT = "select exists (select from cell_project where project = $1)"
ADD_PROJECTS = """
insert into cell_project (project) select unnest($1::text[]) on conflict (project) do nothing
"""
#: Processes that register (engine/store/maintenance/processes.py) hold the same lock, shared.
LOCK = "select pg_advisory_xact_lock($1)"
#: Before a database is a cell, no process with [cells] is registered in it.
FIND_API_PROCESS = f"""
select p.id, p.host from process p
 where 'api' = any (p.roles) and {IS_RUNNING}
 order by p.id limit 1
"""  # noqa: S608 - of a constant
PLACE = "[cells] databases"
#: Shown projects in an error.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class CellRecord:
    """id: of this database as a cell. announced: the newest revision of which a process knows.
    agreed: the newest one of `history`, which has all revisions up to it, the newest first; 0:
    there is none."""

    name: str
    id: UUID
    announced: int
    agreed: int
    history: Sequence[CellPlacement]


async def identify_cell(
    conn: Connection, name: str, new_id: UUID, placement: CellPlacement
) -> CellRecord:
    """The record of a cell. A database without one becomes this cell, with the projects that it
    has.

    Call it before this process is registered. Raises Conflict if the database is another cell, has
    projects of other cells, or is used by a process with the role api that does not know cells.
    """
    async with conn.transaction():
        record = await read_cell(conn)
        if record is None:
            await conn.execute(LOCK, LOCK_KEY)
            record = await read_cell(conn)
        if record is None:
            await _check_processes(conn, name)
            projects = [row["project"] for row in await conn.fetch(LIST_PROJECTS)]
            _check_projects(projects, name, placement)
            await conn.execute(CREATE, name, new_id)
            await conn.execute(ADD_PROJECTS, projects)
            record = await read_cell(conn)
    if record is None or record.name != name:
        other = record.name if record else ""
        raise errors.Conflict(
            f'the database of the cell "{name}" is that of the cell "{other}"',
            place=f'{PLACE} "{name}"',
            remedy="Give each cell its own database, and keep its name",
            code="OtherCell",
        )
    return record


async def _check_processes(conn: Connection, name: str) -> None:
    """Raises Conflict if a process would go on to create projects in the database of a cell."""
    row = await conn.fetchrow(FIND_API_PROCESS)
    if row is not None:
        raise errors.Conflict(
            f"process {row['id']} on {row['host']} has the role api without [cells], and the"
            f' database of the cell "{name}"',
            place=f'{PLACE} "{name}" url',
            remedy="Stop it, and start it with [cells], or with other roles. A process that was"
            " killed counts as running for a minute",
            code="ApiWithoutCells",
        )


def _check_projects(projects: Sequence[str], name: str, placement: CellPlacement) -> None:
    """Raises Conflict if a database has projects that would be looked for in other cells."""
    elsewhere = [one for one in projects if placement.cell_of(one) != name]
    if elsewhere:
        shown = ", ".join(elsewhere[:SHOWN])
        raise errors.Conflict(
            f'the database of the cell "{name}" has projects of other cells, {len(elsewhere)} in'
            f" all: {shown}",
            place=f'{PLACE} "{name}"',
            remedy="Start with this cell alone, and add the others with the next revision; or name"
            " these projects in its projects",
            code="ProjectsOfOtherCells",
        )


async def read_cell(conn: Connection) -> CellRecord | None:
    """None: the database is no cell."""
    row = await conn.fetchrow(READ)
    if row is None:
        return None
    history = [read_placement(one) for one in row["placements"]]
    return CellRecord(row["name"], row["id"], row["announced"], row["agreed"], history)


async def check_no_cell(conn: Connection) -> None:
    """Raises Conflict if the database is a cell: only processes that know all cells may create
    projects in it."""
    record = await read_cell(conn)
    if record is not None:
        raise errors.Conflict(
            f'the database is the cell "{record.name}", and this process has the role api without'
            " [cells]",
            place="[database] url",
            remedy="Start it with --role engine, dispatch or purge; serve the API with [cells]",
            code="DatabaseIsCell",
        )


async def announce(conn: Connection, revision: int) -> None:
    """Waits for projects that processes with an earlier revision are adding."""
    await conn.execute(ANNOUNCE, revision)


async def agree(conn: Connection, history: Sequence[CellPlacement]) -> None:
    """Store all revisions, the newest first, unless a later one was announced. Call it after the
    newest was announced in all cells."""
    documents = [one.as_document() for one in history]
    await conn.execute(AGREE, history[0].revision, documents)


async def has_project(conn: Connection, project: str) -> bool:
    found: bool = await conn.fetchval(HAS_PROJECT, project)
    return found


async def add_project(conn: Connection, project: str, revision: int) -> None:
    """Record that a project is in this cell. Raises Unavailable if another revision of the
    placement was announced."""
    async with conn.transaction():
        current = await conn.fetchval(LOCK_REVISION)
        if current != revision:
            raise refuse_outdated(revision, current)
        await conn.execute(ADD_PROJECTS, [project])


def refuse_outdated(revision: int, announced: int) -> errors.Unavailable:
    """announced: another revision than that of this process."""
    return errors.Unavailable(
        f"this process has revision {revision} of [cells], and the cells have {announced}, so it"
        " creates no projects",
        place="[cells] revision",
        remedy="Restart the process with the current settings.",
        code="OutdatedPlacement",
    )
