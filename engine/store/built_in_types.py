"""Connections that do not ask the server about array types that PostgreSQL has built in.

asyncpg knows the scalar types of PostgreSQL, but asks the server about every array type that a
statement has, once per type and connection. That query costs the server about three times as much
as to open the connection (9 ms of CPU time next to 3 ms), and a new connection uses several.
asyncpg has no public setting for it, so `_introspect_types` is overridden; a test fails if
asyncpg no longer calls it.
"""

from collections.abc import Iterable
from typing import ClassVar, Final, NamedTuple, TypeAlias

import asyncpg

#: OIDs below are assigned in the sources of PostgreSQL, and equal on all servers
#: (https://www.postgresql.org/docs/current/system-catalog-initial-data.html).
FIRST_UNASSIGNED_OID: Final = 10_000

#: What asyncpg reads about a type.
TypeRow: TypeAlias = asyncpg.Record


class NoStatement(NamedTuple):
    """In place of the prepared statement that asked: none was, so the caller's is still valid."""

    name: str = "no statement"


class BuiltInTypesConnection(asyncpg.Connection):
    """A connection that reads each built-in array type once per process."""

    __slots__ = ()
    #: By OID.
    known: ClassVar[dict[int, TypeRow]] = {}

    async def _introspect_types(
        self,
        typeoids: Iterable[int],
        timeout: float | None,  # noqa: ASYNC109 - as in asyncpg
    ) -> tuple[list[TypeRow], object]:
        """The rows that describe the types, and the statement that has read them."""
        asked = list(typeoids)
        if all(oid in self.known for oid in asked):
            return [self.known[oid] for oid in asked], NoStatement()
        rows, statement = await super()._introspect_types(asked, timeout)  # type: ignore[misc]
        self.known.update(
            (row["oid"], row)
            for row in rows
            if row["oid"] < FIRST_UNASSIGNED_OID and _is_array(row)
        )
        return rows, statement


def _is_array(row: TypeRow) -> bool:
    """Whether it is an array of scalars, whose description needs that of no other type."""
    return row["kind"] == b"b" and bool(row["elemtype"])
