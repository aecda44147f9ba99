"""Arguments for any statement: those with which it finds rows of `filled_tables`.

A value depends on its type alone: each UUID is the ID of the large stack and of one of its rows in
each table, each number is 1, and each text is "p", the name of a project, of the stack and of one
of its resources.
"""

import re
from collections.abc import Mapping, Sequence

import orjson

from engine.store.connection import Connection
from engine.words import Json
from tests.support.filled_tables import LARGE

#: SQL expressions, by type. Other types get null.
SCALARS: Mapping[str, str] = {
    "uuid": f"'{LARGE}'::uuid", "int2": "1::smallint", "int4": "1", "int8": "1::bigint",
    "text": "'p'::text", "bool": "true", "interval": "interval '1 minute'", "timestamptz": "now()",
    "float8": "1::float8", "numeric": "1", "bytea": "'\\x01'::bytea", "date": "current_date",
}  # fmt: skip
#: Members of documents, by the type of the column that they become.
MEMBERS: Mapping[str, Json] = {
    "uuid": str(LARGE), "integer": 1, "bigint": 1, "text": "p", "boolean": True,
    "interval": "1 minute", "timestamptz": "2026-01-01T00:00:00Z", "double": 1.0, "jsonb": {},
    "uuid[]": [str(LARGE)], "text[]": ["p"], "integer[]": [1], "bytea": "\\x01",
    "date": "2026-01-01",
}  # fmt: skip
#: A transition, whose members statements read by name.
TRANSITION: Mapping[str, Json] = {
    "stack_id": str(LARGE), "traversal": 1, "node": 1, "claim": 0, "state": "running",
    "phase": "execute", "operation": "create", "id": str(LARGE), "name": "p",
    "resource_id": str(LARGE),
}  # fmt: skip
#: Whether the parameter is one document or a list, its number, and the columns.
_RECORDS = re.compile(
    r"jsonb_to_record(set)?\(\(?\$(\d+)(?:::jsonb)?\)?\)\s*(?:as\s+)?\w+\s*\(([^)]*)\)"
)
_PARAMETER = r"\(?\${}\b(?:::jsonb\)?)?"
_LIST = r"jsonb_(?:array_\w+|to_recordset)\({0}|{0}\s*@\?|\b(?:advance|stacks_to_detach)\([^)]*{0}"
PARAMETERS = """
select array(select t::oid::integer from unnest(parameter_types) with ordinality p (t, number)
              order by number)
  from pg_prepared_statements where name = 'planned'
"""
TYPE = """
select typname::text as name, typtype::text as kind, typelem::integer as element,
       format_type(oid, null) as text,
       array(select atttypid::integer from pg_attribute
              where attrelid = typrelid and attnum > 0 and not attisdropped order by attnum)
           as columns
  from pg_type where oid = $1::integer::oid
"""


class SampleArguments:
    """Expressions for the parameters of prepared statements of one database."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._known: dict[int, str] = {}

    async def of_prepared(self, text: str, given: Mapping[int, str]) -> list[str]:
        """For the statement prepared as "planned". given: expressions, by number."""
        types: Sequence[int] = await self._conn.fetchval(PARAMETERS)
        return [
            given.get(number) or await self._expression(kind) or document(text, number)
            for number, kind in enumerate(types, 1)
        ]

    async def _expression(self, kind: int) -> str:
        """'': a document, which depends on the statement."""
        if kind not in self._known:
            self._known[kind] = await self._compute(kind)
        return self._known[kind]

    async def _compute(self, kind: int) -> str:
        row = await self._conn.fetchrow(TYPE, kind)
        assert row is not None
        if row["name"] == "jsonb":
            return ""
        if row["name"].startswith("_"):
            return f"array[{await self._value(row['element'])}]::{row['text']}"
        if row["kind"] == "c":
            values = [await self._value(column) for column in row["columns"]]
            return f"row({', '.join(values)})::{row['text']}"
        return SCALARS.get(row["name"], "null")

    async def _value(self, kind: int) -> str:
        return await self._expression(kind) or "'{}'::jsonb"


def document(text: str, number: int) -> str:
    """The document that a statement reads its rows from, or one without any."""
    found: Json = {}
    parameter = _PARAMETER.format(number)
    for several, used, columns in _RECORDS.findall(text):
        if int(used) == number:
            words = (column.split() for column in columns.split(","))
            one = {**TRANSITION} | {
                word[0].strip('"'): MEMBERS.get(word[1], "p") for word in words if len(word) > 1
            }
            found = [one] if several else one
    if not found and re.search(_LIST.format(parameter), text):
        found = [{**TRANSITION}]
    return f"'{orjson.dumps(found).decode()}'::jsonb"
