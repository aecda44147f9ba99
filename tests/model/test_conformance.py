"""Walks through the model, repeated on the real engine: after each move both must be the same."""

import random

import pytest

from engine.store.database import Database
from tests.model import sizes
from tests.model.compared import check_equal
from tests.model.explore import explore
from tests.model.protocol import Move, moves, start
from tests.model.replay import Replay, choose
from tests.model.words import told_in_words
from tests.model.world import Size, World

#: How many walks through each size.
WALKS = 8


async def follow(replay: Replay, world: World, move: Move, after: World, told: list[Move]) -> World:
    """One move on both sides; what differs is told with all that led to it."""
    told.append(move)
    try:
        await replay.do(move, world, after)
        await check_equal(replay, after)
    except Exception as error:
        pytest.fail(f"{error}\n{told_in_words(told, after)}")
    return after


async def walk(database: Database, size: Size, chance: random.Random) -> int:
    replay, world, told = Replay(database, size), start(size), list[Move]()
    while offered := list(moves(size, world)):
        move, after = choose(offered, chance)
        world = await follow(replay, world, move, after, told)
    return len(told)


@pytest.mark.parametrize("size", sizes.REAL, ids=lambda size: size.name)
async def test_the_engine_does_what_the_model_does(database: Database, size: Size) -> None:
    chance = random.Random(size.name)
    steps = [await walk(database, size, chance) for _ in range(WALKS)]
    print(f"{size.name}: {sum(steps)} moves in {WALKS} walks")
    assert sum(steps) > 5 * WALKS


@pytest.mark.parametrize("size", [size for size in sizes.REAL if size.known], ids=lambda s: s.name)
async def test_what_is_known_to_break_a_rule_does_so_in_the_engine(
    database: Database, size: Size
) -> None:
    found = explore(size)
    for rule in size.known:
        replay, world, told = Replay(database, size), start(size), list[Move]()
        for move in found.violations[rule].sequence:
            after = dict(moves(size, world))[move]
            world = await follow(replay, world, move, after, told)
