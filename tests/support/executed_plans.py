"""Executes statements without keeping what they write, and counts the rows that their plans read
and discard."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import asyncpg
import orjson

from engine.store.connection import Connection
from tests.support.sample_arguments import SampleArguments

Json = Any
#: What a node of a plan reads and does not return.
_REMOVED = (
    "Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck",
)  # fmt: skip
_CONDITIONS = ("Filter", "Join Filter", "Hash Cond", "Merge Cond", "Recheck Cond")
#: Nodes between a limit and a sort.
_PASSING = frozenset(
    {"Limit", "LockRows", "Subquery Scan", "Result", "Incremental Sort", "Nested Loop", "Append"}
)
#: Checks would refuse sample arguments, and so would foreign keys, which the setting ignores.
CHECKS = """
select format('alter table %I drop constraint %I', c.relname, k.conname) as statement
  from pg_constraint k join pg_class c on c.oid = k.conrelid
 where k.contype = 'c' and c.relnamespace = 'public'::regnamespace
"""


class RowCounts(NamedTuple):
    """Of one execution. discarded: rows that were read, but are not in the result, by the part of
    the plan that removes them. read: rows of tables. returned: rows returned and written. unused:
    tables of which no row was found. templates: rows of the table `template`, each of which is
    decompressed."""

    discarded: Counter[str]
    read: int
    returned: int
    unused: frozenset[str]
    templates: int


async def accept_sample_arguments(conn: Connection) -> None:
    """Accept what no program writes, in this database and session."""
    for row in await conn.fetch(CHECKS):
        await conn.execute(row["statement"])
    await conn.execute("set session_replication_role = replica")


async def count_rows(
    conn: Connection,
    text: str,
    arguments: SampleArguments,
    *,
    mode: str,
    settings: Sequence[str] = (),
    given: Mapping[int, str] | None = None,
) -> RowCounts:
    """mode: generic: a plan for any arguments; custom: for these. settings:
    ``enable_seqscan=off``."""
    transaction = conn.transaction()
    await transaction.start()
    try:
        for one in (*settings, f"plan_cache_mode=force_{mode}_plan"):
            name, _, value = one.partition("=")
            await conn.execute("select set_config($1, $2, true)", name, value)
        await conn.execute(f"prepare planned as {text}")
        values = await arguments.of_prepared(text, given or {})
        call = f"planned ({', '.join(values)})" if values else "planned"
        found = await conn.fetchval(
            f"explain (analyze, timing off, costs off, format json) execute {call}"
        )
        document = orjson.loads(found) if isinstance(found, str) else found
        return row_counts(document[0]["Plan"])
    finally:
        await transaction.rollback()
        with suppress(asyncpg.InvalidSQLStatementNameError):  # it could not be prepared
            await conn.execute("deallocate planned")


def row_counts(plan: Json) -> RowCounts:
    discarded: Counter[str] = Counter()
    scans = []
    returned = _rows(plan)
    for node in _nodes(plan):
        for part, rows in _discarded(node):
            discarded[part] += round(rows)
        if node["Node Type"] == "ModifyTable":
            inner = (one for one in node["Plans"] if one["Parent Relationship"] == "Outer")
            returned += sum(map(_rows, inner))
        elif "Relation Name" in node:
            scans.append((node["Relation Name"], _rows(node)))
    removed = sum(
        node.get(name, 0) * node["Actual Loops"]
        for node in _nodes(plan)
        if "Relation Name" in node
        for name in _REMOVED
    )
    found = Counter[str]()
    for table, rows in scans:
        found[table] += round(rows)
    unused = frozenset(table for table, rows in found.items() if rows == 0)
    read = found.total() + round(removed)
    return RowCounts(discarded, read, round(returned), unused, _templates(plan))


def _templates(plan: Json) -> int:
    """How many templates are read, also those that a filter removes."""
    read = (
        _rows(node) + sum(node.get(name, 0) for name in _REMOVED) * node["Actual Loops"]
        for node in _nodes(plan)
        if node.get("Relation Name") == "template"
    )
    return round(float(sum(read)))


def _nodes(node: Json) -> Iterator[Json]:
    yield node
    for inner in node.get("Plans", ()):
        yield from _nodes(inner)


def _rows(node: Json) -> float:
    rows: float = node["Actual Rows"] * node["Actual Loops"]
    return rows


def _discarded(node: Json) -> Iterator[tuple[str, float]]:
    kind, loops = node["Node Type"], node["Actual Loops"]
    place = " ".join((kind, node.get("Relation Name", ""), node.get("Index Name", ""))).rstrip()
    conditions = ", ".join(node[name] for name in _CONDITIONS if name in node)
    for name in _REMOVED:
        if node.get(name):
            yield f"{place}: {conditions}", node[name] * loops
    if kind in ("Hash Join", "Merge Join"):
        matched = _rows(node) + node.get("Rows Removed by Join Filter", 0) * loops
        for inner in node["Plans"]:
            if inner["Parent Relationship"] in ("Outer", "Inner") and _rows(inner) > matched:
                yield f"{place}: {conditions}", _rows(inner) - matched
    if kind == "Limit" and (sort := _sort_below(node)) is not None:
        yield "Sort before Limit", max(0, _rows(sort["Plans"][0]) - _rows(node))


def _sort_below(node: Json) -> Json | None:
    while node.get("Plans"):
        outer = [
            one for one in node["Plans"] if one["Parent Relationship"] in ("Outer", "Subquery")
        ]
        if not outer:
            return None
        node = outer[0]
        if node["Node Type"] == "Sort":
            return node
        if node["Node Type"] not in _PASSING:
            return None
    return None


def largest(discarded: Mapping[str, int], count: int = 2) -> Collection[str]:
    """The parts of a plan that discard most rows, to show them."""
    return [f"{rows}: {part}" for part, rows in Counter(discarded).most_common(count)]
