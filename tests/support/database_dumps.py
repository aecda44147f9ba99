"""Dumps of databases that earlier versions wrote, and the catalog of a database."""

from pathlib import Path

import asyncpg

from engine.store.connection import connect

SCHEMA_24 = Path(__file__).parents[1] / "integration" / "data" / "schema_0024.sql"

#: Everything in the schema, one line each. Columns of tables and views are sorted; those of
#: composite types are in order.
CATALOG = """
select format('%s %s column %s %s %s default %s identity %s', c.relkind, c.relname, a.attname,
              format_type(a.atttypid, a.atttypmod), case when a.attnotnull then 'not null' end,
              pg_get_expr(d.adbin, d.adrelid), a.attidentity) as line
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
 where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v')
union all
select format('table %s %s %s', relname, relpersistence, reloptions)
  from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
union all
select format('type %s %s', c.relname, string_agg(
              a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum))
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
 where c.relnamespace = 'public'::regnamespace and c.relkind = 'c' group by c.relname
union all
select format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
  from pg_constraint where connamespace = 'public'::regnamespace and contype <> 'n'
union all
select indexdef from pg_indexes where schemaname = 'public'
union all
select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
union all
select pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
union all
select format('view %s %s', viewname, array(
              select word from regexp_split_to_table(definition, '[,[:space:]]+') word order by 1))
  from pg_views where schemaname = 'public'
order by 1
"""


async def restore(url: str, dump: Path = SCHEMA_24) -> None:
    """Restore a dump into an empty database."""
    conn = await asyncpg.connect(url, timeout=10, command_timeout=60)
    try:
        await conn.execute(dump.read_text())
    finally:
        await conn.close(timeout=5)


async def catalog(url: str) -> list[str]:
    """The schema of a database, as sorted lines."""
    conn = await connect(url)
    try:
        return [row["line"] for row in await conn.fetch(CATALOG)]
    finally:
        await conn.close(timeout=5)
