"""The columns that `advance` returns are the fields of `Work`, by name and type. Only `advance`
calls the functions that it consists of.
"""

import re
from datetime import datetime
from typing import Any, get_args, get_type_hints
from uuid import UUID

from engine.store.advance import ADVANCE, WORK_COLUMNS, Work
from engine.store.database import Database
from engine.store.routine_versions import routines
from tests.integration.database.test_statements import FOUND

#: Columns of every row: its kind and its node.
COMMON_COLUMNS = {"kind", "stack_id", "traversal", "node", "claim"}
#: Columns of rows that are not nodes to work on.
OTHER_COLUMNS = {"reason", "due_in"}
TYPES: dict[str, Any] = {
    "uuid": UUID, "text": str, "int4": int, "bool": bool, "timestamptz": datetime,
    "text[]": list[str], "bytea": bytes,
}  # fmt: skip
#: Their planner settings are those of `advance`, as long as nothing else calls them.
PARTS = (
    "apply_transitions", "wake_dependents", "update_traversals", "claim_due", "later_nodes",
    "read_claimed",
)  # fmt: skip
SETTINGS = "select unnest(proconfig) from pg_proc where proname = $1"


async def test_each_column_is_a_field_of_its_type(database: Database) -> None:
    async with database.connection() as conn:
        columns = {
            one.name: one.type.name for one in (await conn.prepare(ADVANCE)).get_attributes()
        }
    assert columns.keys() == COMMON_COLUMNS | OTHER_COLUMNS | {*WORK_COLUMNS}
    hints = get_type_hints(Work)
    wrong = [
        name
        for name in WORK_COLUMNS
        if (kind := columns[name]) != "jsonb"
        and TYPES[kind] not in (hints[name], *get_args(hints[name]))
    ]
    assert wrong == []


async def test_only_advance_calls_its_parts(
    database: Database,
) -> None:
    texts = FOUND | {file.name: file.text for file in routines()}
    for part in PARTS:
        calls = re.compile(rf"(?<!function )(?<!if exists )\b{part}\(")
        assert {name for name, text in texts.items() if calls.search(text)} == {"5_advance.sql"}
    async with database.connection() as conn:
        settings = {row[0] for row in await conn.fetch(SETTINGS, "advance")}
    assert settings == {
        "plan_cache_mode=force_generic_plan", "enable_seqscan=off", "enable_hashjoin=off",
        "enable_mergejoin=off",
    }  # fmt: skip
