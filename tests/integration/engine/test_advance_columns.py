"""The columns that `advance` returns are the fields of `Work`, by name and type. The fields of the
steps that it reads are those that workers write. Only `advance` calls the functions that it
consists of.
"""

import re
from collections.abc import Mapping, Set
from datetime import datetime
from typing import Any, get_args, get_type_hints
from uuid import UUID, uuid4

from engine.principal import principal_of_name
from engine.service.requests.requests import StackRequest
from engine.store.database import Database
from engine.store.schema.routine_versions import routines
from engine.store.traversals.advance import ADVANCE, WORK_COLUMNS, Work
from engine.types.contract import Failed
from engine.words import Json
from engine.work.nodes.internal_error import NodeContext, bare_failure
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
    "apply_transitions", "wake_dependents", "traversal_changes", "claim_due", "later_nodes",
    "update_traversals", "read_claimed",
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


#: The parts of the routine that write a resource, by the field `write` of its step.
WRITES = {
    "update": ("updated_resource",), "fail": ("failed_resource",),
    "remove": ("deleted_resource", "deleted_signal"),
    "insert": ("replaced_resource", "inserted_resource"),
    "leave": ("replaced_resource", "inserted_resource"),
}  # fmt: skip
#: Fields that a resource does not have in every step that writes it in this way.
OPTIONAL = {SIZE, "lifecycle", "replaced_by", "replaces"}
#: What values of a step are before they are written, by the type of the column.
WRITTEN_TYPES: dict[str, tuple[type, ...]] = {
    "uuid": (UUID,), "text": (str,), "integer": (int,), "text[]": (list, tuple),
    "timestamptz": (datetime,), "double precision": (int, float), "jsonb": (object,),
    "boolean": (bool,),
}  # fmt: skip


def columns_after(text: str, opening: str) -> dict[str, str]:
    """The columns and their types in the first list after `opening`."""
    found = COLUMNS.search(text, text.index(opening) + len(opening) - 1)
    assert found is not None
    return dict(one.split(maxsplit=1) for one in found[1].split(","))


def check_fields(document: Json, columns: Mapping[str, str], added: Set[str] = frozenset()) -> None:
    """The document has these columns and no others, with values of their types. added: columns that
    other modules add to some documents."""
    assert document.keys() | added == columns.keys()
    check_types(document, columns)


def check_types(document: Json, columns: Mapping[str, str]) -> None:
    """Each value of the document is null or of the type of its column."""
    wrong = {
        name: (document[name], kind)
        for name, kind in columns.items()
        if document.get(name) is not None and not isinstance(document[name], WRITTEN_TYPES[kind])
    }
    assert wrong == {}


def resource_columns(text: str) -> dict[str, str]:
    """The fields of a resource that a part of the routine reads, with their types."""
    read = re.findall(r"s\.resource -> '(\w+)'", text)
    texts = re.findall(r"s\.resource ->> '(\w+)'", text)
    cast = dict(re.findall(r"\(s\.resource ->> '(\w+)'\)::(\w+)", text))
    return dict.fromkeys(read, "jsonb") | dict.fromkeys(texts, "text") | cast


def part_of(text: str, name: str) -> str:
    """The common table expression of this name."""
    return text.split(f" {name} as (\n")[1].split("\n    )")[0]


async def written_steps(database: Database) -> list[Json]:
    """The steps of a stack that is created with a hook, updated, replaced and deleted with a
    snapshot, and of one whose replacement fails; then a failure without documents.
    """
    world = World()
    engine = idle_engine(database, Thing(world))
    worker = ManualWorker(database, make_registry(Thing(world)), engine.stacks.end_traversal, uuid4)
    hooks = {"hooks": [{"at": "a", "on": ["post-create"], "mode": "notify"}]}

    def request(name: str, **properties: Json) -> StackRequest:
        resource = {"type": "Test::Thing", "properties": properties, "deletion_policy": "Snapshot"}
        return StackRequest(name=name, template=template({"a": resource}), environment=hooks)

    stack = await engine.stacks.create("p", request("s", size=1))
    await worker.work()
    for properties in ({"size": 2}, {"size": 2, "place": "north"}):
        await engine.stacks.update("p", stack.id, request("s", **properties))
        await worker.work()
    await engine.stacks.delete("p", stack.id, principal_of_name("ann"))
    await worker.work()
    steps, worker.settled = worker.settled, []
    failing = await engine.stacks.create("p", request("t", size=1))
    await worker.work()
    world.script("create", "a", Failed("no space", physical_id="half"))
    await engine.stacks.update("p", failing.id, request("t", size=1, place="north"))
    await worker.work()
    job, _ = next(iter(worker.decided.values()))
    return [*steps, *worker.settled, bare_failure(NodeContext(job.work), "damaged")]


async def test_each_field_of_a_step_is_a_field_that_workers_write(database: Database) -> None:
    texts = {file.name: file.text for file in routines()}
    text = texts["4_apply_transitions.sql"]
    added = columns_after(texts["4_add_nodes.sql"], "jsonb_to_recordset(p_steps) as s (")
    columns = columns_after(text, "jsonb_to_recordset(p_steps) as s (") | added
    listed = re.search(r"-- p_steps: \[\{([^}]*)\}\]", texts["5_advance.sql"])
    assert listed and set(re.findall(r"\w+", listed[1])) == {*columns}
    steps = await written_steps(database)
    written: dict[str, list[Json]] = {write: [] for write in WRITES}
    snapshots = []
    for step in steps:
        check_fields(step, columns, OF_RUNS)
        for hook in step["hook"] or ():
            check_fields(hook, columns_after(text, "jsonb_to_recordset(s.hook) as h ("))
        for event in step["events"]:
            check_fields(event, columns_after(text, "jsonb_to_recordset(s.events) as e ("))
        if step["resource"]:
            written[step["resource"]["write"]].append(step["resource"])
        snapshots += [step["snapshot"]] if step["snapshot"] else []
    assert any(step["hook"] for step in steps) and any(step["events"] for step in steps)
    for snapshot in snapshots:
        check_fields(
            snapshot, columns_after(text, "jsonb_to_record(coalesce(s.snapshot, '{}')) as k (")
        )
    assert snapshots
    for write, resources in written.items():
        read = resource_columns("".join(part_of(text, name) for name in WRITES[write]))
        assert resources, f"no step writes a resource with {write!r}"
        for resource in resources:
            assert read.keys() - resource.keys() <= OPTIONAL
            check_types(resource, read)
    every = {name for resources in written.values() for one in resources for name in one}
    assert resource_columns(text).keys() ^ every == {SIZE, "lifecycle"}
