"""Replays moves of the model of a stack tree on the real engine, as replay.py does for a stack, and
compares all stacks of the tree."""

import random
from collections.abc import Sequence
from inspect import isawaitable

from engine.errors import HeadgateError
from engine.store.database import Database
from engine.work.archive import archive_graphs
from engine.work.nodes.operation_call import judge, start
from tests.model.comparison import check_equal
from tests.model.explore import describe_tree
from tests.model.random_walks import REQUEST_DELAY_PROBABILITY
from tests.model.replay import RETRYING, Divergence, Replay
from tests.model.stack_tree import (
    ROOT,
    TreeMove,
    TreeScenario,
    TreeState,
    initial_state,
    moves,
    positions_of,
)

NESTED_STACK = """
select id from stack where parent_id = $1 and parent_resource = any ($2) and deleted_at is null
"""
STEP_INTO = "select traversal, id from node where stack_id = $1 and step_into"


class TreeReplay:
    """The stacks of a tree in a database, each with its own replay, on one engine."""

    def __init__(self, database: Database, scenario: TreeScenario) -> None:
        self.database = database
        self.positions = positions_of(scenario)
        self.stacks = [Replay(database, scenario.root) for _ in self.positions]
        for replay in self.stacks[1:]:
            replay.engine = self.stacks[ROOT].engine

    async def perform(self, tree_move: TreeMove, before: TreeState, after: TreeState) -> None:
        number, move = tree_move
        if move.kind == "call" and move.input is None:
            await self._call_nested(tree_move)
        else:
            await self.stacks[number].perform(move, before.stack(number), after.stack(number))
        if [one[1:3] for one in before.stacks] != [one[1:3] for one in after.stacks]:
            await archive_graphs(self.database)
        for nested, system in enumerate(after.stacks):
            if nested != ROOT and system.current != before.stacks[nested].current:
                if not before.stacks[nested].current:
                    await self._find(nested)
                await self.stacks[nested]._map_new_nodes(system)

    async def _call_nested(self, tree_move: TreeMove) -> None:
        replay = self.stacks[tree_move.stack]
        claim = replay._engine_claim(tree_move.move.worker)
        prepared = claim.job.prepared
        assert prepared is not None
        if claim.step is not None:
            raise Divergence("the model calls an operation, and the worker has a step to commit")
        outcome = start(prepared, run_nested=replay.engine.nested.run_operation)
        result = await outcome if isawaitable(outcome) else outcome
        replay._encode(claim, judge(prepared, result, RETRYING))

    async def _find(self, nested: int) -> None:
        """Find the nested stack that a move has created."""
        parent = self.stacks[self.positions[nested].parent]
        async with self.database.connection() as conn:
            rows = await conn.fetch(NESTED_STACK, parent.stack, [*parent.rows.values()])
        others = {replay.stack for replay in self.stacks}
        (self.stacks[nested].stack,) = {row["id"] for row in rows} - others

    async def check_equal(self, tree: TreeState) -> None:
        """Raise Divergence if the database and the model differ."""
        for number, (replay, system) in enumerate(zip(self.stacks, tree.stacks, strict=True)):
            if not system.current:
                continue
            try:
                await check_equal(replay, system)
            except Divergence as error:
                raise Divergence(f"stack {number}: {error}") from error
            async with self.database.connection() as conn:
                rows = await conn.fetch(STEP_INTO, replay.stack)
            expected = {
                (traversal, replay.nodes[traversal, node])
                for stack, traversal, node in tree.step_into
                if stack == number and system.node(traversal, node) is not None
            }
            if (found := {tuple(row) for row in rows}) != expected:
                raise Divergence(f"stack {number}: step_into of {found}, not of {expected}")


async def random_tree_walk(database: Database, scenario: TreeScenario, rng: random.Random) -> int:
    """Take random moves until none is enabled, and return their number. Raises Divergence."""
    replay, tree, trace = TreeReplay(database, scenario), initial_state(scenario), list[TreeMove]()
    while enabled := list(moves(scenario, tree)):
        move, after = choose(enabled, rng)
        tree = await _step(replay, tree, move, after, trace)
    return len(trace)


async def replay_tree_trace(
    database: Database, scenario: TreeScenario, trace: Sequence[TreeMove]
) -> None:
    """Take the moves of a trace. Raises Divergence."""
    replay, tree, trace_so_far = (
        TreeReplay(database, scenario), initial_state(scenario), list[TreeMove](),
    )  # fmt: skip
    for move in trace:
        tree = await _step(replay, tree, move, dict(moves(scenario, tree))[move], trace_so_far)


def choose(
    enabled: list[tuple[TreeMove, TreeState]], rng: random.Random
) -> tuple[TreeMove, TreeState]:
    """As in random_walks.py; and steps twice as often as other answers."""
    kinds = sorted({move.kind for move, _ in enabled})
    if len(kinds) > 1 and "request" in kinds and rng.random() < REQUEST_DELAY_PROBABILITY:
        kinds.remove("request")
    kind = rng.choice(kinds)
    chosen = [one for one in enabled if one[0].kind == kind]
    return rng.choice([*chosen, *(one for one in chosen if one[0].move.how != "over")])


async def _step(
    replay: TreeReplay, tree: TreeState, move: TreeMove, after: TreeState, trace: list[TreeMove]
) -> TreeState:
    """Take one move on both sides. Raises Divergence with the trace that leads to it."""
    trace.append(move)
    try:
        await replay.perform(move, tree, after)
        await replay.check_equal(after)
    except (Divergence, HeadgateError, LookupError) as error:
        raise Divergence(f"{error!r}\n{describe_tree(trace, after)}") from error
    return after
