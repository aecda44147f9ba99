"""Random walks and traces, on the model and on the engine, compared after each move."""

import random
from collections.abc import Sequence

from engine.errors import HeadgateError
from engine.store.database import Database
from tests.model.comparison import check_equal
from tests.model.descriptions import describe
from tests.model.protocol import Move, initial_state, moves
from tests.model.replay import Divergence, Replay
from tests.model.system_state import Scenario, SystemState


async def random_walk(database: Database, scenario: Scenario, rng: random.Random) -> int:
    """Take random moves until none is enabled, and return their number. Raises Divergence."""
    replay, system, trace = Replay(database, scenario), initial_state(scenario), list[Move]()
    while enabled := list(moves(scenario, system)):
        move, after = choose(enabled, rng)
        system = await step(replay, system, move, after, trace)
    return len(trace)


async def replay_trace(database: Database, scenario: Scenario, trace: Sequence[Move]) -> None:
    """Take the moves of a trace. Raises Divergence."""
    replay, system, trace_so_far = Replay(database, scenario), initial_state(scenario), list[Move]()
    for move in trace:
        system = await step(replay, system, move, dict(moves(scenario, system))[move], trace_so_far)


#: The probability that another move precedes an enabled request, so that requests are spread.
REQUEST_DELAY_PROBABILITY = 0.7


def choose(enabled: list[tuple[Move, SystemState]], rng: random.Random) -> tuple[Move, SystemState]:
    """Choose a kind, then a move of that kind, so that rare kinds occur, too."""
    kinds = sorted({move.kind for move, _ in enabled})
    if len(kinds) > 1 and "request" in kinds and rng.random() < REQUEST_DELAY_PROBABILITY:
        kinds.remove("request")
    kind = rng.choice(kinds)
    return rng.choice([one for one in enabled if one[0].kind == kind])


async def step(
    replay: Replay, system: SystemState, move: Move, after: SystemState, trace: list[Move]
) -> SystemState:
    """Take one move on both sides. Raises Divergence with the trace that leads to it."""
    trace.append(move)
    try:
        await replay.perform(move, system, after)
        await check_equal(replay, after)
    except (Divergence, HeadgateError, LookupError) as error:
        raise Divergence(f"{error!r}\n{describe(trace, after)}") from error
    return after
