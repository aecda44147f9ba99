"""Finds names of stacks that a mistyped one can mean, by the index of names alone.

A name with one wrong character can stand anywhere in the order of names. So names with one change
are looked up, and without a match those that stand near it.
"""

import re
from collections.abc import Iterator

from engine.store.connection import Connection

#: Maximum number of names that are looked up, and of their characters: some milliseconds.
MAX_CANDIDATES, MAX_LENGTH = 5_500, 128
#: Characters of most names of stacks.
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789-_."
#: The root stacks that exist with one of these names.
WITH_NAMES = """
select s.name from stack s
 where s.project = $1 and s.deleted_at is null and s.name = any($2::text[])
   and s.parent_id is null
 order by s.name
"""

#: Names before and after one in the order of the index, at most this number of each.
MAX_NEIGHBOURS = 200
#: Of root stacks that exist: the ones that follow and precede a name.
NEIGHBOURS = """
select n.name
  from ((select s.name, s.parent_id from stack s
          where s.project = $1 and s.deleted_at is null and s.name < $2
          order by s.name desc limit $3)
        union all
        (select s.name, s.parent_id from stack s
          where s.project = $1 and s.deleted_at is null and s.name > $2
          order by s.name limit $3)) n
 where n.parent_id is null
 order by n.name
"""


async def read_neighbours(conn: Connection, project: str, name: str) -> list[str]:
    """The names of root stacks that stand near a name in their order, which a mistyped name can
    mean; all of them if there are few."""
    rows = await conn.fetch(NEIGHBOURS, project, name, MAX_NEIGHBOURS)
    return [row["name"] for row in rows]


async def read_similar(conn: Connection, project: str, name: str) -> list[str]:
    """Names of root stacks, among which the nearest one is what a mistyped name can mean."""
    candidates = similar_names(name)
    rows = await conn.fetch(WITH_NAMES, project, candidates)
    return [row["name"] for row in rows] or await read_neighbours(conn, project, name)


def similar_names(name: str) -> list[str]:
    """At most MAX_CANDIDATES names that differ in case, in separators or in one place; none for a
    name that is longer than MAX_LENGTH. Up to 64 characters, all places are changed. Pure."""
    if len(name) > MAX_LENGTH:
        return []
    found: dict[str, None] = {}
    for one in _change_each_place(name):
        if len(found) >= MAX_CANDIDATES:
            break
        found[one] = None
    found.pop(name, None)
    return [*found]


def _change_each_place(name: str) -> Iterator[str]:
    """The likely changes first."""
    yield from (name.lower(), name.upper(), name.capitalize())
    for one in (name, name.lower()):
        yield from (re.sub(r"[-_. ]", separator, one) for separator in ("-", "_", ".", ""))
    cuts = range(len(name) + 1)
    yield from (name[:at] + name[at + 1 :] for at in cuts)
    yield from (
        name[:at] + name[at + 1 : at + 2] + name[at : at + 1] + name[at + 2 :] for at in cuts
    )
    for width in (1, 0):  # in place of a character, and before it
        for at in cuts:
            yield from (name[:at] + one + name[at + width :] for one in CHARACTERS)
