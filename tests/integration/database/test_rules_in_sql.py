"""Functions in SQL that repeat a rule of Python, compared with it for all cases."""

from itertools import product

from engine.hooks.rule import Rule, encode_rule
from engine.node.node import ENDED
from engine.store.database import Database
from engine.store.traversals.advance import MAX_EXPIRED_LEASES, TOO_LARGE
from engine.words import Mode, State


async def test_a_stored_rule_blocks_as_the_rule_does(database: Database) -> None:
    rules = [
        Rule("pre-create", mode=mode, dry=dry, stepped=stepped, by_operator=by_operator)
        for mode in Mode
        for dry, stepped, by_operator in product((False, True), repeat=3)
    ]
    async with database.connection() as conn:
        rows = await conn.fetch(
            "select rule_blocks(rule) as blocks from unnest($1::jsonb[]) with ordinality r (rule, n)"
            " order by n",
            [encode_rule(rule) for rule in rules],
        )
    assert [row["blocks"] for row in rows] == [rule.blocks for rule in rules]


async def test_the_limits_of_claims_are_those_of_python(database: Database) -> None:
    async with database.connection() as conn:
        row = await conn.fetchrow("select max_expired_leases() as leases, too_large() as bytes")
    assert row is not None and dict(row) == {"leases": MAX_EXPIRED_LEASES, "bytes": TOO_LARGE}


async def test_the_ended_states_are_those_of_the_node_machine(database: Database) -> None:
    async with database.connection() as conn:
        rows = await conn.fetch(
            "select state, is_ended(state) as ended from unnest($1::text[]) s (state)", list(State)
        )
    assert {row["state"] for row in rows if row["ended"]} == ENDED
    assert len(rows) == len(State)
