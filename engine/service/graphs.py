"""Graphs of traversals, those that are under way and those that are over."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.errors import NotFound
from engine.store import read
from engine.store.connection import Connection
from engine.store.kin import Walk, read_walks
from engine.store.past_graphs import read_past_nodes, read_past_walks
from engine.store.records import NodeRecord, TraversalRecord


@dataclass(frozen=True, slots=True)
class StackGraph:
    """A stack's traversal and its nodes. path: of the stack, from the outermost one. sequence: of
    the stack's last event when they were read. kept: its nodes, or what they were, are there."""

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
    """Of a traversal, None: the current one, and then of those in stacks inside. conn: of a
    snapshot. NotFound (code TraversalNotFound)."""
    if traversal is None:
        return await _read(conn, await read_walks(conn, stack_id, nested=nested))
    past = await read_past_walks(conn, stack_id, traversal, nested=nested)
    found = await _read(conn, past)
    if not found or found[0].stack_id != stack_id:
        raise _forgotten(f"there is no traversal {traversal}")
    own, *inside = found
    if not own.kept:
        raise _forgotten(f"the graph of traversal {traversal} is not kept")
    return [own, *(one for one in inside if one.kept)]


async def _read(conn: Connection, found: Sequence[Walk]) -> list[StackGraph]:
    """In the order of their paths: the stack around comes before those inside."""
    told = [(one.id, one.traversal) for one in found]
    traversals = await read.read_traversals_of(conn, told)
    past = await read_past_nodes(conn, told)
    nodes: dict[UUID, list[NodeRecord]] = {one.id: list(past.get(one.id, ())) for one in found}
    for node in await read.read_nodes(conn, told):
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


def _forgotten(reason: str) -> NotFound:
    remedy = "GET .../history tells what happened, as long as its events are kept."
    return NotFound(reason, remedy=remedy, code="TraversalNotFound")
