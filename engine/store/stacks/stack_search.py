"""Finds names of stacks that stand near another one in their order, in two ranges of an index."""

from engine.store.connection import Connection

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
