"""Walks through the model, repeated on the real engine: after each move both must be the same.

So that neither can change without the other, mistakes are put into the store's statements, too.
"""

import random
from typing import NamedTuple

import pytest

from engine.store import accept
from engine.store.database import Database
from tests.model import sizes
from tests.model.explore import explored
from tests.model.replay import Diverged
from tests.model.walking import repeat, walk
from tests.model.world import Size

#: How many walks through each size; and at most until a mistake is seen.
WALKS, PATIENCE = 6, 200


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
    found = explored(size).violations
    for rule in size.known:
        await repeat(database, size, found[rule].sequence)


class Wrong(NamedTuple):
    """A mistake: `text` for `right` in a constant of engine.store.accept, or in `advance`."""

    what: str
    where: str
    right: str
    text: str
    size: Size


WRONG = (
    Wrong("settle does not count the claim up", "advance",
          "claim = n.claim + 1, -- what", "claim = n.claim, -- what", sizes.CHAIN),
    Wrong("settle does not look at the claim", "advance",
          "and n.id = s.node and n.claim = s.claim", "and n.id = s.node", sizes.CHAIN),
    Wrong("a claim is not counted up", "advance",
          "'running', claim = n.claim + 1", "'running', claim = n.claim", sizes.CHAIN),
    Wrong("waits are counted down twice", "advance",
          "waits = n.waits - f.times", "waits = n.waits - 2 * f.times", sizes.CHAIN),
    Wrong("the newer node is not let go", "advance",
          "select s.stack_id, s.current, s.successor, 1",
          "select s.stack_id, s.current, -1, 1", sizes.UPDATED),
    Wrong("what becomes ready is not counted", "advance",
          "stack_id, traversal, 1 from released", "stack_id, traversal, 0 from released",
          sizes.CHAIN),
    Wrong("what waited for an older operation stays counted", "advance",
          "select stack_id, current, -1 from step", "select stack_id, current, 0 from step",
          sizes.UPDATED),
    Wrong("a superseded traversal opens hooks", "advance",
          "case when t.state <> 'superseded' then s.hook end", "s.hook", sizes.HOOK_BEHIND),
    Wrong("each claim gives the operation a new key", "advance",
          "coalesce(n.operation_key, gen_random_uuid())", "gen_random_uuid()", sizes.CHAIN),
    Wrong("a failure lets go what waits", "advance",
          "where s.state = 'done' group by", "where s.state in ('done', 'failed') group by",
          sizes.CHAIN),
    Wrong("what is ready is not dropped", "SUPERSEDE_NODES",
          "n.phase = d.phase", "n.phase = d.phase and n.state <> 'ready'", sizes.UPDATED),
    Wrong("hooks of a superseded traversal wait on", "SUPERSEDE_HOOKS",
          "and state = 'waiting'", "and state = 'nothing'", sizes.HOOK_GIVEN_UP),
    Wrong("nobody is told whom the newer node waits for", "SET_SUCCESSORS",
          "set successor = s.successor", "set successor = null", sizes.UPDATED),
    Wrong("nodes that still act are forgotten", "FORGET_NODES",
          "and n.state not in ('running', 'parked', 'ready')", "", sizes.UPDATED),
    Wrong("a superseded traversal is not woken for what acts", "SUPERSEDE_TRAVERSAL",
          "(select min(wake_at) from node where stack_id = $1 and traversal = $2)", "null",
          sizes.UPDATED),
)  # fmt: skip


@pytest.fixture
async def wrong(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, database: Database
) -> Wrong:
    """The mistake, made: in the code for this test alone, and in this test's own database."""
    chosen: Wrong = request.param
    if chosen.where != "advance":
        right: str = getattr(accept, chosen.where)
        assert chosen.right in right
        monkeypatch.setattr(accept, chosen.where, right.replace(chosen.right, chosen.text))
        return chosen
    async with database.connection() as conn:
        right = await conn.fetchval("select pg_get_functiondef('advance'::regproc)")
        assert chosen.right in right
        await conn.execute(right.replace(chosen.right, chosen.text))
    return chosen


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: one.what, indirect=True)
async def test_a_mistake_in_a_statement_is_seen(database: Database, wrong: Wrong) -> None:
    chance = random.Random(wrong.what)
    with pytest.raises(Diverged) as seen:
        for _ in range(PATIENCE):
            await walk(database, wrong.size, chance)
    print(f"{wrong.what}: {seen.value}")
