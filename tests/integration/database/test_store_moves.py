"""The moves that routines make without a decision are those that the node machine lists."""

from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import uuid4

import pytest

from engine.node.machine import STORE_MOVES, TABLE, Place
from engine.node.node import ENDED
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.traversals.advance import Work, advance
from engine.words import GATES, Operation, Phase, State
from engine.work.nodes.hook_opening import ACTION_OF
from engine.work.nodes.transition_encoder import started_event

INSERT_STACK = """
insert into stack (id, project, name, owner, version, traversal) values ($1, 'p', 's', 'me', 1, 2)
"""
INSERT_TRAVERSALS = """
insert into traversal (stack_id, number, project, action, version, state, reason, digest, active_nodes,
                       wake_at, requested_by)
select $1, number, 'p', 'CREATE', 1, state, '', '', 1, now(), 'me'
  from (values (1, 'superseded'), (2, 'running')) t (number, state)
"""
#: dependents: node 1 waits for a node of the same traversal.
INSERT_NODES = """
insert into node (stack_id, traversal, id, resource_id, name, type, operation, direction, state, phase,
                  pending_dependencies, dependents, requires, reads, definition, breakpoints_hit, claim,
                  wake_at, bytes)
select $1, 2, p.id, gen_random_uuid(), 'r' || p.id, 'OS::Heat::Value', $2, 'forward', p.state, p.phase,
       1, '{}', '{}', '{}', '{}', '{}', 0,
       case when p.due then clock_timestamp() end, 0
  from unnest($3::text[], $4::text[], $5::boolean[]) with ordinality p (state, phase, due, id)
"""
READ_NODES = "select id, state, phase from node where stack_id = $1 order by id"
CLAIM = """
select claim_due('w', '1 minute', clock_timestamp(), 1000, '', 1000000, true, '{}', '{""}', '{}')
"""
#: The nodes wait for node 0, which has ended in this traversal or in the one before.
WAKE = """
select wake_dependents(clock_timestamp(), array_agg(row (
           $1::uuid, case when $4 then 1 else 2 end, 0, $3::text, 'update', false, false,
           case when $4 then '{}' else array[id] end, case when $4 then id end, 2, null, false
       )::changed_node))
  from unnest($2::integer[]) n (id)
"""

#: Their workers have ended, or one claims them for the first time.
START = "update node set started_at = clock_timestamp(), worker = 'gone' where stack_id = $1"
READ_EVENTS = """
select type, resource_name, resource_type, physical_id, action, status, reason, data from event
 where stack_id = $1 order by sequence
"""

#: All places of a node.
PLACES = sorted({Place(State(state), phase) for state, phase, _ in TABLE}
                | {to for row in TABLE.values() for to in row.leads_to})  # fmt: skip


def is_timed(place: Place) -> bool:
    """Whether rows of nodes in this place have a time: they are due, held, or wait for a timer."""
    if place.state is State.PARKED:
        return place.phase is Phase.EXECUTE
    return place.state in (State.READY, State.RUNNING)


@pytest.fixture
async def conn(database: Database) -> AsyncIterator[Connection]:
    async with database.transaction() as conn:
        yield conn


async def _moves(
    conn: Connection, operation: Operation, statement: str, *args: object
) -> set[tuple[Place, Place]]:
    """The moves that a statement makes with a node in each place."""
    stack = uuid4()
    states, phases = zip(*PLACES, strict=True)
    await conn.execute("delete from node")
    await conn.execute(INSERT_STACK, stack)
    await conn.execute(INSERT_TRAVERSALS, stack)
    await conn.execute(INSERT_NODES, stack, operation, states, phases, list(map(is_timed, PLACES)))
    await conn.execute(
        statement, *((stack, list(range(1, len(PLACES) + 1)), *args) if args else ())
    )
    rows = await conn.fetch(READ_NODES, stack)
    await conn.execute("delete from stack where id = $1", stack)
    after = [Place(State(row["state"]), Phase(row["phase"])) for row in rows]
    assert len(after) == len(PLACES)
    return {move for move in zip(PLACES, after, strict=True) if move[0] != move[1]}


@pytest.mark.parametrize("operation", list(Operation))
async def test_a_claim_moves_nodes_as_listed(conn: Connection, operation: Operation) -> None:
    listed = {(one.origin, one.to) for one in STORE_MOVES if one.to.state is State.RUNNING}
    assert await _moves(conn, operation, CLAIM) == listed


@pytest.mark.parametrize(("state", "earlier"), list(product(State, (False, True))))
async def test_the_end_of_a_dependency_moves_nodes_as_listed(
    conn: Connection, state: State, earlier: bool
) -> None:
    """A node of the same traversal must be done. An operation of an earlier one must have ended."""
    listed = {(one.origin, one.to) for one in STORE_MOVES if one.to.state is State.READY}
    satisfied = state in ENDED if earlier else state is State.DONE
    moves = await _moves(conn, Operation.UPDATE, WAKE, state, earlier)
    assert moves == (listed if satisfied else set())


def test_every_listed_move_is_one_of_these() -> None:
    assert {one.to.state for one in STORE_MOVES} == {State.RUNNING, State.READY}


async def _claimed(
    conn: Connection, operation: Operation, *, started: bool
) -> tuple[list[Work], list[dict[str, Any]]]:
    """A claim of one node in phase `execute`, and the events that it records."""
    stack, state = uuid4(), State.RUNNING if started else State.READY
    await conn.execute(INSERT_STACK, stack)
    await conn.execute(INSERT_TRAVERSALS, stack)
    await conn.execute(INSERT_NODES, stack, operation, [state], [Phase.EXECUTE], [True])
    if started:
        await conn.execute(START, stack)
    result = await advance(conn, "w", timedelta(minutes=1), 10, [])
    return result.work, [dict(row) for row in await conn.fetch(READ_EVENTS, stack)]


@pytest.mark.parametrize("operation", sorted(set(Operation) - GATES))
async def test_a_claim_records_the_event_of_the_operation_that_it_starts(
    conn: Connection, operation: Operation
) -> None:
    """As the worker records it for the later nodes of a run."""
    (work,), (event,) = await _claimed(conn, operation, started=False)
    expected = started_event(work)
    assert event == expected | {"data": expected["data"] | {"traversal": 2, "node": 1}}


@pytest.mark.parametrize("operation", sorted(set(Operation) - GATES))
async def test_a_claim_that_calls_an_operation_again_records_its_action(
    conn: Connection, operation: Operation
) -> None:
    (work,), (event,) = await _claimed(conn, operation, started=True)
    assert work.restarted
    assert (event["type"], event["action"]) == (
        f"headgate.resource.{operation}.restarted",
        ACTION_OF[operation],
    )


@pytest.mark.parametrize("operation", sorted(GATES))
async def test_a_claim_of_a_gate_that_has_begun_records_no_event(
    conn: Connection, operation: Operation
) -> None:
    (work,), events = await _claimed(conn, operation, started=True)
    assert not work.restarted and events == []
