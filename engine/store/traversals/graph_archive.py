"""Moves the graphs that newer changes have replaced from `node` to `archived_graph`.

A change only queues the graph that it replaces. Readers of an earlier graph combine the archived
nodes with those that are not archived yet. A graph with nodes whose operation still runs stays in
the queue until they have ended.
"""

from dataclasses import dataclass
from uuid import UUID

from engine.store.connection import Connection

#: $1, $2: the key after which the page starts. $3: graphs of a page. $4: nodes to archive. The lock
#: of a stack orders this with its changes; stacks that are being changed are left for later.
ARCHIVE_PAGE = """
with page as materialized (
    select q.stack_id, q.traversal
      from archive_queue q join stack s on s.id = q.stack_id
     where (q.stack_id, q.traversal) > ($1::uuid, $2::integer)
     order by q.stack_id, q.traversal limit $3 for no key update of s skip locked
), ended as materialized (
    select n.stack_id, n.traversal, n.id
      from page p join node n on n.stack_id = p.stack_id and n.traversal = p.traversal
     where n.state not in ('running', 'parked', 'ready') limit $4
), deleted as materialized (
    delete from node n using ended e
     where n.stack_id = e.stack_id and n.traversal = e.traversal and n.id = e.id
    returning n.stack_id, n.traversal, n.id, n.name, n.type, n.operation, n.direction, n.state,
              n.phase, n.reason, n.dependents
), archived as (
    insert into archived_graph (stack_id, traversal, part, ids, names, types, operations,
                                directions, states, phases, reasons, dependents)
    select stack_id, traversal, min(id), array_agg(id), array_agg(name), array_agg(type),
           array_agg(operation), array_agg(direction), array_agg(state), array_agg(phase),
           array_agg(reason), array_agg(dependents::text)
      from deleted group by stack_id, traversal
), finished as (
    delete from archive_queue q using page p
     where q.stack_id = p.stack_id and q.traversal = p.traversal
       and (select count(*) from ended) < $4
       and not exists (select from node n
                        where n.stack_id = p.stack_id and n.traversal = p.traversal
                          and n.state in ('running', 'parked', 'ready'))
    returning q.stack_id, q.traversal
), without_nodes as ( -- also get a row, so that readers know that they were not purged
    insert into archived_graph (stack_id, traversal)
    select f.stack_id, f.traversal from finished f
     where not exists (select from deleted d
                        where d.stack_id = f.stack_id and d.traversal = f.traversal)
    on conflict do nothing
)
select (select count(*) from deleted) as nodes, (select count(*) from page) as graphs, p.stack_id,
       p.traversal
  from page p order by p.stack_id desc, p.traversal desc limit 1
"""

#: The graph that a page of one graph begins with.
NEXT_GRAPH = """
select q.stack_id, q.traversal from archive_queue q join stack s on s.id = q.stack_id
 where (q.stack_id, q.traversal) > ($1::uuid, $2::integer)
 order by q.stack_id, q.traversal limit 1 for no key update of s skip locked
"""

#: Graphs and nodes of one transaction. It locks their stacks.
PAGE = 100
BATCH = 2_000
FIRST = (UUID(int=0), 0)


@dataclass(frozen=True, slots=True)
class ArchivedPage:
    """nodes: number that were archived. reached: the last graph of the page. more: there may be
    further nodes in the page; graphs: further graphs after it."""

    nodes: int
    reached: tuple[UUID, int]
    more: bool
    graphs: bool


async def archive_page(
    conn: Connection, after: tuple[UUID, int] = FIRST, batch: int = BATCH, graphs: int = PAGE
) -> ArchivedPage | None:
    """Archive ended nodes of the graphs in the queue after a key. None: there is no graph after it.

    The number of nodes and of graphs is limited; a further call continues.
    """
    row = await conn.fetchrow(ARCHIVE_PAGE, *after, graphs, batch)
    if row is None:
        return None
    return ArchivedPage(
        row["nodes"],
        (row["stack_id"], row["traversal"]),
        more=row["nodes"] >= batch,
        graphs=row["graphs"] >= graphs,
    )


async def next_graph(conn: Connection, after: tuple[UUID, int]) -> tuple[UUID, int] | None:
    """Return the key of the first graph of the next page; None: there is none."""
    row = await conn.fetchrow(NEXT_GRAPH, *after)
    return None if row is None else (row["stack_id"], row["traversal"])
