"""Walks: one move after another, on the model and on the engine, compared after each."""

import random
from collections.abc import Sequence

from engine.errors import HeadgateError
from engine.store.database import Database
from tests.model.compared import check_equal
from tests.model.protocol import Move, moves, start
from tests.model.replay import Diverged, Replay
from tests.model.words import told_in_words
from tests.model.world import Size, World


async def walk(database: Database, size: Size, chance: random.Random) -> int:
    """Any moves, to the end; how many there were. Raises Diverged."""
    replay, world, told = Replay(database, size), start(size), list[Move]()
    while offered := list(moves(size, world)):
        move, after = choose(offered, chance)
        world = await follow(replay, world, move, after, told)
    return len(told)


async def repeat(database: Database, size: Size, sequence: Sequence[Move]) -> None:
    """These moves. Raises Diverged."""
    replay, world, told = Replay(database, size), start(size), list[Move]()
    for move in sequence:
        world = await follow(replay, world, move, dict(moves(size, world))[move], told)


#: How likely a request waits a little, if it could come: else they would all come at once.
PATIENT = 0.7


def choose(offered: list[tuple[Move, World]], chance: random.Random) -> tuple[Move, World]:
    """One of the moves; first one of their kinds, so that the rare ones come up as well."""
    kinds = sorted({move.kind for move, _ in offered})
    if len(kinds) > 1 and "request" in kinds and chance.random() < PATIENT:
        kinds.remove("request")
    kind = chance.choice(kinds)
    return chance.choice([one for one in offered if one[0].kind == kind])


async def follow(replay: Replay, world: World, move: Move, after: World, told: list[Move]) -> World:
    """One move on both sides. What differs is told with all that led to it."""
    told.append(move)
    try:
        await replay.do(move, world, after)
        await check_equal(replay, after)
    except (Diverged, HeadgateError, LookupError) as error:
        raise Diverged(f"{error!r}\n{told_in_words(told, after)}") from error
    return after
