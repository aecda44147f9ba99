"""Graphs of current and past traversals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from engine.errors import NotFound
from engine.node.node import ENDED
from engine.store.connection import Connection
from engine.store.records import NodeRecord, TraversalRecord
from engine.store.traversals import graphs
from engine.store.traversals.graphs import (
    StackTraversal,
    read_archived_nodes,
    read_current_traversals,
    read_earlier_traversals,
)


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
        return await _read(conn, await read_current_traversals(conn, stack_id, nested=nested))
    past = await read_earlier_traversals(conn, stack_id, traversal, nested=nested)
    found = await _read(conn, past)
    if not found or found[0].stack_id != stack_id:
        raise _not_found(f"there is no traversal {traversal}")
    own, *children = found
    if not own.kept:
        raise _not_found(f"the graph of traversal {traversal} has been purged")
    return [own, *(one for one in children if one.kept)]


async def _read(conn: Connection, found: Sequence[StackTraversal]) -> list[StackGraph]:
    """The graphs in the order of their paths: parents before nested stacks."""
    keys = [(one.id, one.traversal) for one in found]
    traversals = await graphs.read_traversals_of(conn, keys)
    past = await read_archived_nodes(conn, keys)
    nodes: dict[UUID, list[NodeRecord]] = {one.id: list(past.get(one.id, ())) for one in found}
    earlier = {one.id for one in found if not one.current}
    for node in await graphs.read_nodes(conn, keys):
        shown = _as_archived(node) if node.stack_id in earlier and node.state in ENDED else node
        nodes[node.stack_id].append(shown)
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


def _as_archived(node: NodeRecord) -> NodeRecord:
    """A node of an earlier traversal looks the same before it is archived."""
    return replace(
        node, rules=None, wake_at=None, started_at=None, ended_at=None, pending_dependencies=0,
        signal_resource_name=None, nested_stack_id=None,
    )  # fmt: skip


def _not_found(reason: str) -> NotFound:
    remedy = "GET .../history shows its events while they are retained."
    return NotFound(reason, place="traversal", remedy=remedy, code="TraversalNotFound")
