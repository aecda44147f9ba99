"""The columns that `advance` returns are the fields of `Work`, by name and type. The fields of the
steps that it reads are those that workers write. Only `advance` calls the functions that it
consists of.
"""

import re
from datetime import datetime
from typing import Any, get_args, get_type_hints
from uuid import UUID, uuid4

from engine.principal import named
from engine.service.requests.requests import StackRequest
from engine.store.advance import ADVANCE, WORK_COLUMNS, Work
from engine.store.database import Database
from engine.store.routine_versions import routines
from engine.words import Json
from tests.integration.database.test_statements import FOUND
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import ManualWorker
from tests.support.program import template
from tests.support.scripted_type import Thing, World

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


#: A list of columns of a document: ``as s (stack_id uuid, ...)``.
COLUMNS = re.compile(r"\(([^()]*)\)")
#: Fields that other modules than the encoder add: of runs, and the size of a resource.
OF_RUNS, SIZE = {"run", "run_size", "operation_key"}, "bytes"


def columns_after(text: str, opening: str) -> set[str]:
    """The names of the columns in the first list after `opening`."""
    found = COLUMNS.search(text, text.index(opening) + len(opening) - 1)
    assert found is not None
    return {one.split()[0] for one in found[1].split(",")}


async def written_steps(database: Database) -> list[Json]:
    """The steps of a stack that is created with a hook, updated, replaced and deleted with a
    snapshot."""
    world = World()
    engine = idle_engine(database, Thing(world))
    worker = ManualWorker(database, make_registry(Thing(world)), engine.stacks.end_traversal, uuid4)
    hooks = {"hooks": [{"at": "a", "on": ["post-create"], "mode": "notify"}]}

    def request(**properties: Json) -> StackRequest:
        resource = {"type": "Test::Thing", "properties": properties, "deletion_policy": "Snapshot"}
        return StackRequest(name="s", template=template({"a": resource}), environment=hooks)

    stack = await engine.stacks.create("p", request(size=1))
    await worker.work()
    for properties in ({"size": 2}, {"size": 2, "place": "north"}):
        await engine.stacks.update("p", stack.id, request(**properties))
        await worker.work()
    await engine.stacks.delete("p", stack.id, named("ann"))
    await worker.work()
    return worker.settled


async def test_each_field_of_a_step_is_a_field_that_workers_write(database: Database) -> None:
    text = next(file.text for file in routines() if file.name == "4_apply_transitions.sql")
    steps = await written_steps(database)
    resources, snapshots = [], []
    for step in steps:
        assert step.keys() | OF_RUNS == columns_after(text, "jsonb_to_recordset(p_steps) as s (")
        for hook in step["hook"] or ():
            assert hook.keys() == columns_after(text, "jsonb_to_recordset(s.hook) as h (")
        for event in step["events"]:
            assert event.keys() == columns_after(text, "jsonb_to_recordset(s.events) as e (")
        resources += [step["resource"]] if step["resource"] else []
        snapshots += [step["snapshot"]] if step["snapshot"] else []
    assert any(step["hook"] for step in steps) and any(step["events"] for step in steps)
    columns = columns_after(text, "jsonb_to_record(coalesce(s.snapshot, '{}')) as k (")
    assert [one.keys() for one in snapshots] == [columns] * len(snapshots) != []
    assert {one["write"] for one in resources} == {"update", "insert", "remove"}
    read = set(re.findall(r"s\.resource ->>? '(\w+)'", text)) - {SIZE}
    written = set[str]().union(*resources)
    assert (read - written, written - read) == ({"lifecycle"}, set())
