"""Functions and views of the database, and their version.

Routines (``routines/*.sql``) contain no data, so an upgrade creates all of them again. There are no
downgrades. ``routines/VERSIONS`` has the version and the digest of each released set of routines.
Files that differ from the last released set belong to the next version.
"""

import functools
import hashlib
import importlib.resources
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import total_ordering
from importlib.resources.abc import Traversable

from engine.store.connection import Connection

PRESENT = "select to_regclass('routines') is not null"
#: Through jsonb, because the table had no column `version` in earlier schemas.
READ = """
select coalesce((to_jsonb(r) ->> 'version')::integer, 0) as version,
       coalesce((to_jsonb(r) ->> 'released')::boolean, false) as released, r.digest
  from routines r
"""
RECORD = """
insert into routines (version, released, digest) values ($1, $2, $3)
on conflict (only_one) do update
   set version = excluded.version, released = excluded.released, digest = excluded.digest
"""


@dataclass(frozen=True, slots=True)
class SqlFile:
    name: str
    text: str


@total_ordering
@dataclass(frozen=True, slots=True)
class RoutineVersion:
    """released: False: an unreleased state of this version, which is older than the released
    one."""

    number: int
    released: bool
    digest: str

    def __lt__(self, other: "RoutineVersion") -> bool:
        return (self.number, self.released) < (other.number, other.released)

    def __str__(self) -> str:
        return f"version {self.number}{'' if self.released else ' (not released)'}"


def _directory() -> Traversable:
    return importlib.resources.files("engine.store") / "routines"


def read_sql(directory: Traversable) -> list[SqlFile]:
    """The SQL files of a directory, in the order of their names."""
    return sorted(
        (
            SqlFile(entry.name, entry.read_text(encoding="utf-8"))
            for entry in directory.iterdir()
            if entry.name.endswith(".sql")
        ),
        key=lambda file: file.name,
    )


@functools.cache
def routines() -> Sequence[SqlFile]:
    """The functions and views of this program, in the order in which they are created."""
    return tuple(read_sql(_directory()))


def digest_of(files: Iterable[SqlFile]) -> str:
    return hashlib.sha256("\0".join(one.text for one in files).encode()).hexdigest()


def released_versions() -> list[RoutineVersion]:
    """The versions in ``routines/VERSIONS``, oldest first."""
    text = (_directory() / "VERSIONS").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return [RoutineVersion(int(number), True, digest) for number, digest in lines]


def version_of(files: Sequence[SqlFile], released: Sequence[RoutineVersion]) -> RoutineVersion:
    """The version of a set of routines: the last released one, or the one after it."""
    digest = digest_of(files)
    if released and released[-1].digest == digest:
        return released[-1]
    return RoutineVersion(released[-1].number + 1 if released else 1, False, digest)


def own_version() -> RoutineVersion:
    """The version of this program's routines."""
    return version_of(routines(), released_versions())


async def database_version(connection: Connection) -> RoutineVersion | None:
    """The version of the routines in the database; None: it has no routines."""
    if not await connection.fetchval(PRESENT):
        return None
    row = await connection.fetchrow(READ)
    return RoutineVersion(row["version"], row["released"], row["digest"]) if row else None


async def record_version(connection: Connection, version: RoutineVersion) -> None:
    await connection.execute(RECORD, version.number, version.released, version.digest)
