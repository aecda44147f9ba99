"""Every statement in every PL/pgSQL routine is prepared against the schema.

PostgreSQL checks routines in SQL when they are created, but not those in PL/pgSQL.
"""

import asyncpg
import pytest

from engine.store.connection import Connection
from engine.store.database import Database
from tests.support.plpgsql import Unreadable, statements, variables, with_parameters

ROUTINES = """
select p.oid::regprocedure::text as name, p.proname as short, p.prosrc as body,
       pg_get_functiondef(p.oid) as definition,
       coalesce(p.proargnames, '{}') as names,
       array(select format_type(t, null) from unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]))
             with ordinality a (t, nth) order by nth) as types,
       coalesce(p.proargmodes::text[], array_fill('i'::text, array[p.pronargs::integer])) as modes,
       (select t.tgrelid::regclass::text from pg_trigger t where t.tgfoid = p.oid limit 1) as relation
  from pg_proc p join pg_language l on l.oid = p.prolang
 where l.lanname = 'plpgsql' and p.pronamespace = 'public'::regnamespace
 order by 1
"""


async def wrong(conn: Connection) -> tuple[int, list[str]]:
    """The number of prepared statements, and their errors."""
    count, found = 0, []
    for routine in await conn.fetch(ROUTINES):
        arguments = list(zip(routine["names"], routine["types"], routine["modes"], strict=True))
        types = {name: kind for name, kind, mode in arguments if mode != "t"}
        types |= variables(routine["body"])
        if routine["relation"]:  # a trigger function
            types |= {"new": routine["relation"], "old": routine["relation"]}
        columns = [kind for _, kind, mode in arguments if mode == "t"]
        for one in statements(routine["body"]):
            count += 1
            text, _ = with_parameters(one.text, types)
            place = f"{routine['short']}, line {one.line}"
            try:
                attributes = (await conn.prepare(text)).get_attributes()
            except asyncpg.PostgresError as error:
                found.append(f"{place}: {error}")
                continue
            if one.targets not in (None, len(attributes)):
                found.append(f"{place}: {len(attributes)} columns for {one.targets} variables")
            if one.returned and columns and len(attributes) != len(columns):
                found.append(f"{place}: returns {len(attributes)} columns, not {len(columns)}")
    return count, found


async def test_each_statement_fits_the_schema(database: Database) -> None:
    async with database.connection() as conn:
        count, found = await wrong(conn)
    print(f"{count} statements")
    assert count > 15
    assert found == []


@pytest.mark.parametrize(
    ("right", "typo", "error"),
    [
        ("from unnest(r.requires) with", "from unnest(r.requiers) with", "requiers"),
        (
            "perform detach_stacks(v_detached)",
            "perform leave_bhind(v_detached)",
            "leave_bhind",
        ),
        (
            "perform delete_unused_credentials(v_stacks)",
            "perform delete_unused_credentials(v_more)",
            "boolean",
        ),
        ("into v_changed, v_events, v_refused", "into v_changed, v_events", "columns for"),
        ("if v_last_project is not null", "if v_last_projct is not null", "v_last_projct"),
        ("return v_ready", "return v_redy", "v_redy"),
        ("another cell', new.project using", "another cell', new.projct using", "projct"),
        (
            "select c.stack_id, c.sequence, c.subscription_id, c.claim, c.id from",
            "select c.stack_id, c.sequence, c.subscription_id, c.id from",
            "returns 4",
        ),
    ],
)
async def test_a_wrong_statement_in_a_routine_is_found(
    database: Database, right: str, typo: str, error: str
) -> None:
    """PostgreSQL creates the routine without an error."""
    async with database.connection() as conn:
        texts = [one["definition"] for one in await conn.fetch(ROUTINES)]
        text = next(one for one in texts if right in one)
        await conn.execute(text.replace(right, typo))
        _, found = await wrong(conn)
    assert len(found) == 1 and error in found[0]


def test_a_statement_that_cannot_be_parsed_is_an_error() -> None:
    with pytest.raises(Unreadable, match="line 2: execute"):
        statements("begin\nexecute 'select 1';\nend;")
