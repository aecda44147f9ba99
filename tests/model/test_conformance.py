"""Walks through the model, repeated on the real engine: after each move both must be the same.

So that neither can change without the other, mistakes are put into the store's statements, too.
"""

import random
from typing import NamedTuple

import pytest

from engine.store import current_resources, traversal_end, traversal_start
from engine.store.database import Database
from tests.model import faults, sizes
from tests.model.explore import explored
from tests.model.faults import Fault, shortest
from tests.model.replay import Diverged
from tests.model.walking import repeat, walk
from tests.model.world import Size

#: How many walks through each size; and at most until a mistake is seen.
WALKS, PATIENCE = 4, 200


@pytest.mark.parametrize("size", sizes.ALL, ids=lambda size: size.name)
async def test_the_engine_does_what_the_model_does(database: Database, size: Size) -> None:
    chance = random.Random(size.name)
    steps = [await walk(database, size, chance) for _ in range(WALKS)]
    print(f"{size.name}: {sum(steps)} moves in {WALKS} walks")
    assert sum(steps) > 5 * WALKS


async def test_what_is_known_to_break_a_rule_does_so_in_the_engine(database: Database) -> None:
    for size in sizes.ALL:
        for rule in size.known:
            await repeat(database, size, explored(size).violations[rule].sequence)


ROUTINE = "select pg_get_functiondef(oid) from pg_proc where proname = $1"

#: As it once was: what is passed on is read from the steps as they came.
STALE_TOO = """from step s;
        select jsonb_agg(s -> 'resource' || jsonb_build_object('stack_id', s -> 'stack_id'))
                   filter (where s -> 'resource' ->> 'write' = 'remove'
                             and s -> 'resource' ->> 'replaced_by' is not null)
          into v_gone from jsonb_array_elements(p_steps) s;"""


class Wrong(NamedTuple):
    """A mistake: `text` for `right` in a constant of a module, or in a routine.

    like: the same mistake in the model, whose shortest way to be seen is gone here as well: chance
    would not find it.
    """

    what: str
    where: tuple[object, str] | str
    right: str
    text: str
    size: Size
    like: Fault | None = None


WRONG = (
    Wrong("settle does not count the claim up", "apply_transitions",
          "claim = n.claim + 1, -- the same", "claim = n.claim, -- what", sizes.CHAIN),
    Wrong("settle does not look at the claim", "apply_transitions",
          "and n.id = s.node and n.claim = s.claim", "and n.id = s.node", sizes.CHAIN),
    Wrong("a claim is not counted up", "claim_due",
          "'running', claim = n.claim + 1", "'running', claim = n.claim", sizes.CHAIN),
    Wrong("waits are counted down twice", "wake_dependents",
          "waits = n.waits - f.times", "waits = n.waits - 2 * f.times", sizes.CHAIN),
    Wrong("the newer node is not let go", "wake_dependents",
          "select m.stack_id, m.current, m.successor, 1",
          "select m.stack_id, m.current, -1, 1", sizes.UPDATED),
    Wrong("who waited does not go on with the replacement", "wake_dependents",
          "coalesce(f.moved_to, n.resource_id)", "n.resource_id", sizes.REPLACED_GIVEN_UP),
    Wrong("what becomes ready is not counted", "update_clock",
          "select r.stack_id, r.traversal, false, 1, 0",
          "select r.stack_id, r.traversal, false, 0, 0",
          sizes.CHAIN),
    Wrong("what waited for an older operation stays counted", "update_clock",
          "select stack_id, current, false, -1, 0", "select stack_id, current, false, 0, 0",
          sizes.UPDATED),
    Wrong("what is held is not counted", "update_clock",
          "holds::integer - held::integer", "0 - held::integer", sizes.HOOKED),
    Wrong("a traversal that is over opens hooks", "apply_transitions",
          "t.state <> 'running' and s.hook is not null as refused", "false as refused",
          sizes.HOOK_BEHIND),
    Wrong("what a step that is refused made is written", "apply_transitions",
          "select * from arrived where not refused", "select * from arrived", sizes.HOOK_BEHIND),
    Wrong("each claim gives the operation a new key", "claim_due",
          "coalesce(n.operation_key, gen_random_uuid())", "gen_random_uuid()", sizes.CHAIN),
    Wrong("a replacement goes on under the key of the update", "apply_transitions",
          "when s.operation <> n.operation then gen_random_uuid()", "", sizes.UPDATED_TWICE),
    Wrong("a failure lets go what waits", "wake_dependents",
          "where m.state = 'done' group by", "where m.state in ('done', 'failed') group by",
          sizes.CHAIN),
    Wrong("users of what was replaced are not told", "apply_transitions",
          "array_replace(r.requires, g.id, g.replaced_by)", "r.requires", sizes.REPLACED_BEHIND),
    Wrong("a stale settle tells users of what was replaced", "apply_transitions",
          "from step s;", STALE_TOO, sizes.REPLACED_BEHIND, faults.STALE_TELLS),
    Wrong("an action in place takes a definition's digest away", "apply_transitions",
          "coalesce(s.resource ->> 'digest', r.digest)", "coalesce(s.resource ->> 'digest', '')",
          sizes.CHECKED),
    Wrong("the policy of what was applied is not kept", "apply_transitions",
          "deletion_policy = s.resource ->> 'deletion_policy'", "deletion_policy = 'Delete'",
          sizes.RETAINED),
    Wrong("a replacement that left something behind is not told of", "apply_transitions",
          "case s.resource ->> 'write' when 'leave' then 'FAILED' else r.status end", "r.status",
          sizes.LEAVING),
    Wrong("nobody counts how often it was tried", "apply_transitions",
          "attempts = s.attempts", "attempts = 0", sizes.RETRIED),
    Wrong("what only waits is not looked after", "advance",
          "then working_time_over_at(t.worked, t.working_since, t.time_limit) end",
          "then null::timestamptz end",
          sizes.TIMED_OUT),
    Wrong("time counts while all that is left waits at hooks", "working_time_since",
          "p_active > p_held", "p_active > 0", sizes.HOOKED),
    Wrong("time counts after the end", "working_time_since",
          "p_state = 'running' and ", "", sizes.UPDATED),
    Wrong("a time-out ends nothing", (traversal_end, "ENDING"),
          "t.time_limit) <= clock_timestamp()", "t.time_limit) > clock_timestamp()",
          sizes.TIMED_OUT),
    Wrong("the way back leads to what failed", (traversal_end, "LAST_COMPLETE"),
          "and state = 'complete'", "", sizes.ROLLED_BACK),
    Wrong("what is ready is not dropped", (traversal_end, "MOVE_NODES"),
          "n.phase = k.phase", "n.phase = k.phase and n.state <> 'ready'", sizes.UPDATED),
    Wrong("hooks of a superseded traversal wait on", (traversal_end, "SUPERSEDE_HOOKS"),
          "and state = 'waiting'", "and state = 'nothing'", sizes.HOOK_GIVEN_UP),
    Wrong("a superseded traversal is not woken for what acts", (traversal_end, "END_EARLY"),
          "(select min(wake_at) from node where stack_id = $1 and traversal = $2)", "null",
          sizes.UPDATED),
    Wrong("nobody is told whom the newer node waits for", (traversal_start, "SET_SUCCESSORS"),
          "set successor = s.successor", "set successor = null", sizes.UPDATED),
    Wrong("nodes that still act are forgotten", "archive_nodes",
          "n.state not in ('running', 'parked', 'ready')", "true", sizes.UPDATED),
    Wrong("what is made for a row that has gone is not seen", (current_resources, "READ_EXISTING"),
          "where n.replacement_id is not null", "where false", sizes.MADE_AND_DELETED),
)  # fmt: skip


@pytest.fixture
async def wrong(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, database: Database
) -> Wrong:
    """The mistake, made: in the code for this test alone, and in this test's own database."""
    chosen: Wrong = request.param
    if not isinstance(chosen.where, str):
        module, name = chosen.where
        right: str = getattr(module, name)
        assert chosen.right in right
        monkeypatch.setattr(module, name, right.replace(chosen.right, chosen.text))
        return chosen
    async with database.connection() as conn:
        right = await conn.fetchval(ROUTINE, chosen.where)
        assert chosen.right in right
        await conn.execute(right.replace(chosen.right, chosen.text))
    return chosen


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: one.what, indirect=True)
async def test_a_mistake_in_a_statement_is_seen(database: Database, wrong: Wrong) -> None:
    chance = random.Random(wrong.what)
    sequence = () if wrong.like is None else shortest(wrong.like)
    with pytest.raises(Diverged) as seen:
        await repeat(database, wrong.size, sequence)
        for _ in range(PATIENCE):
            await walk(database, wrong.size, chance)
    print(f"{wrong.what}: {seen.value}")
