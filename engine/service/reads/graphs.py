"""Graphs of current and past traversals."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.errors import NotFound
from engine.store import stack_queries
from engine.store.archived_graphs import read_archived_traversals, read_past_nodes
from engine.store.connection import Connection
from engine.store.records import NodeRecord, TraversalRecord
from engine.store.stack_tree import Walk, read_traversal_states


@dataclass(frozen=True, slots=True)
class StackGraph:
    """A traversal of a stack and its nodes. path: of the stack, from the root stack. sequence: of
    the stack's last event when the nodes were read. kept: False if the nodes have been purged."""

    stack_id: UUID
    name: str
    path: str
    sequence: int
    traversal: TraversalRecord
    nodes: Sequence[NodeRecord]
    kept: bool = True


async def read_graphs(
    conn: Connection, stack_id: UUID, traversal: int | None, *, nested: bool
) -> list[StackGraph]:
    """The graph of a traversal; with nested, also of the nested traversals, after their parents.

    conn: of a database snapshot. traversal: None for the current one. Raises NotFound
    (TraversalNotFound).
    """
    if traversal is None:
        return await _read(conn, await read_traversal_states(conn, stack_id, nested=nested))
    past = await read_archived_traversals(conn, stack_id, traversal, nested=nested)
    found = await _read(conn, past)
    if not found or found[0].stack_id != stack_id:
        raise _not_found(f"there is no traversal {traversal}")
    own, *children = found
    if not own.kept:
        raise _not_found(f"the graph of traversal {traversal} has been purged")
    return [own, *(one for one in children if one.kept)]


async def _read(conn: Connection, found: Sequence[Walk]) -> list[StackGraph]:
    """The graphs in the order of their paths: parents before nested stacks."""
    keys = [(one.id, one.traversal) for one in found]
    traversals = await stack_queries.read_traversals_of(conn, keys)
    past = await read_past_nodes(conn, keys)
    nodes: dict[UUID, list[NodeRecord]] = {one.id: list(past.get(one.id, ())) for one in found}
    for node in await stack_queries.read_nodes(conn, keys):
        nodes[node.stack_id].append(node)
    return [
        StackGraph(
            stack_id=one.id,
            name=one.name,
            path=one.path,
            sequence=one.sequence,
            traversal=traversals[one.id],
            nodes=sorted(nodes[one.id], key=lambda node: node.id),
            kept=one.current or one.id in past or bool(nodes[one.id]),
        )
        for one in sorted(found, key=lambda one: one.path.split("/"))
        if one.id in traversals
    ]


def _not_found(reason: str) -> NotFound:
    remedy = "GET .../history shows its events while they are retained."
    return NotFound(reason, remedy=remedy, code="TraversalNotFound")
