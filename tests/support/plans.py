"""Plans of statements, without executing them: which tables they read from end to end."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from engine.store.connection import Connection
from tests.support.filled_tables import LARGE
from tests.support.plpgsql import Embedded, statements, variables, with_parameters

Json = Any
#: Values of parameters, by type, for plans that depend on values. Other types get null.
VALUES: Mapping[str, str] = {
    "uuid": f"'{LARGE}'", "int4": "1", "int8": "20", "text": "'p'", "bool": "true",
    "interval": "interval '1 minute'", "timestamptz": "now()", "jsonb": "'[]'", "float8": "1",
    "_uuid": f"array['{LARGE}', '{UUID(int=2)}']::uuid[]", "_int4": "array[1, 2]",
    "_int8": "array[1, 2]::bigint[]", "_text": "array['waiting']", "_bool": "array[true, false]",
    "_jsonb": "array['{}', '{}']::jsonb[]", "_timestamptz": "array[now(), now()]",
}  # fmt: skip
PREPARED_TYPES = """
select coalesce(array_agg(y.typname::text order by p.nth), '{}')
  from pg_prepared_statements s
 cross join unnest(s.parameter_types::oid[]) with ordinality p (id, nth)
  join pg_type y on y.oid = p.id
 where s.name = 'planned'
"""
ROUTINES = """
select p.proname as name, l.lanname as language, p.prosrc as body,
       coalesce(p.proconfig, '{}') as settings, coalesce(p.proargnames, '{}') as names,
       array(select format_type(t, null)
               from unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]))
                    with ordinality a (t, nth) order by nth) as types,
       coalesce(p.proargmodes::text[], array_fill('i'::text, array[p.pronargs::integer])) as modes
  from pg_proc p join pg_language l on l.oid = p.prolang
 where l.lanname in ('plpgsql', 'sql') and p.pronamespace = 'public'::regnamespace
   and p.prorettype <> 'trigger'::regtype
 order by 1
"""
_PLANNED = re.compile(r"\s*(?:--[^\n]*\n\s*)*(?:select|with|insert|update|delete)\s", re.IGNORECASE)
#: A comparison of a row's key in a condition of a plan.
_KEY = re.compile(r"(?<![\w$])(?:id|hook_id) = ")
#: Nodes between a limit and a scan that need no more rows than the limit.
_PASSING = frozenset({"Limit", "LockRows", "Subquery Scan", "Nested Loop", "Result"})


class EmbeddedStatement(NamedTuple):
    """A statement in a routine. settings: planner settings of the routine."""

    routine: str
    line: int
    text: str
    settings: list[str]


async def routine_statements(conn: Connection) -> list[EmbeddedStatement]:
    """Those that read or write a table."""
    found = []
    for row in await conn.fetch(ROUTINES):
        arguments = zip(row["names"], row["types"], row["modes"], strict=True)
        types = {name: kind for name, kind, mode in arguments if mode != "t"}
        if row["language"] == "sql":
            parts = [Embedded(1, row["body"].strip().removesuffix(";"))]
        else:
            types |= variables(row["body"])
            parts = statements(row["body"])
        for one in parts:
            text, _ = with_parameters(one.text, types)
            found.append(EmbeddedStatement(row["name"], one.line, text, row["settings"]))
    return found


def can_be_planned(text: str) -> bool:
    return _PLANNED.match(text) is not None


async def plan(conn: Connection, text: str, mode: str, *, verbose: bool = False) -> Json:
    """mode: generic: for any values; custom: for VALUES. verbose: with the computed columns."""
    await conn.execute(f"set plan_cache_mode = force_{mode}_plan")
    await conn.execute(f"prepare planned as {text}")
    try:
        types = await conn.fetchval(PREPARED_TYPES)
        values = ", ".join(VALUES.get(name, "null") for name in types)
        call = f"planned ({values})" if values else "planned"
        found = await conn.fetchval(f"explain (format json, verbose {verbose}) execute {call}")
        return orjson.loads(found) if isinstance(found, str) else found
    finally:
        await conn.execute("deallocate planned")


async def rows_examined(conn: Connection, text: str, *values: Any) -> int:
    """Execute a statement; return how many rows of tables it reads, with those that it discards."""
    found = await conn.fetchval(f"explain (analyze, format json) {text}", *values)
    document = orjson.loads(found) if isinstance(found, str) else found
    return round(sum(_rows_of_tables(document[0]["Plan"])))


def _rows_of_tables(node: Json) -> Iterator[float]:
    if "Relation Name" in node:
        discarded = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
        rows = node["Actual Rows"] + sum(node.get(name, 0) for name in discarded)
        yield rows * node["Actual Loops"]
    for inner in node.get("Plans", ()):
        yield from _rows_of_tables(inner)


def full_scans(document: Json, tables: Collection[str]) -> list[str]:
    """The parts of a plan that read one of the tables, or one of its indexes, from end to end. A
    scan of an index in its order, without a filter, ends at a limit."""
    return list(_full_scans(document[0]["Plan"], tables, table="", limited=False))


def _full_scans(node: Json, tables: Collection[str], *, table: str, limited: bool) -> Iterator[str]:
    kind = node["Node Type"]
    table = node.get("Relation Name", table if kind.startswith("Bitmap") else "")
    ordered = kind in ("Index Scan", "Index Only Scan") and "Filter" not in node
    reads = kind in ("Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Index Scan")
    if reads and table in tables and "Index Cond" not in node and not (limited and ordered):
        yield f"{kind} on {table} {node.get('Index Name', '')}".strip()
    limited = kind == "Limit" or (limited and kind in _PASSING)
    for inner in node.get("Plans", ()):
        yield from _full_scans(inner, tables, table=table, limited=limited)


def keys_in_filters(document: Json, tables: Collection[str]) -> list[str]:
    """The scans of tables that compare a key of a row with each row that they read, instead of
    searching for it."""
    return list(_keys_in_filters(document[0]["Plan"], tables))


def _keys_in_filters(node: Json, tables: Collection[str]) -> Iterator[str]:
    if node.get("Relation Name") in tables and _KEY.search(node.get("Filter", "")):
        index = node.get("Index Name", node["Node Type"])
        yield f"{node['Relation Name']} by {index}: {node['Filter']}"
    for inner in node.get("Plans", ()):
        yield from _keys_in_filters(inner, tables)
