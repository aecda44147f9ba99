"""Rules and signals to scaling policies in nested stacks: a change that begins in a nested stack."""

import json
from collections.abc import Sequence

import pytest

from engine.store.connection import connect
from tests.integration.groups.test_scaling import INNER
from tests.support.program import Json, Program, eventually, program, template

FILES = {"inner.yaml": json.dumps({"heat_template_version": "2018-08-31", **INNER})}
WEB = {"web": {"type": "inner.yaml", "properties": {"value": "v"}}}
TIER = {"parameters": {"tier": {"type": "string"}}}
RULE = {"at": "web/g", "on": ["pre-update", "pre-delete"]}
MEMBERS = {"at": "web/g/*", "on": ["pre-create"]}
WHEN = {"when": {"equals": [{"get_param": "tier"}, "prod"]}}


async def create(run: Program, sent: Json) -> str:
    """The ID of the nested stack."""
    body = {"stack_name": "s", "files": FILES, "template": template(WEB), **sent}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response

    async def created() -> bool:
        _, document = await run.call("GET", "/hooks?state=waiting")
        for one in document["hooks"]:
            await run.signal(one)
        return bool((await run.stack("s"))["stack_status"] == "CREATE_COMPLETE")

    await eventually(created)
    return str((await run.resources("s"))["web"]["physical_resource_id"])


async def send_signal(run: Program, web: str) -> None:
    await run.stack_request("POST", web, "/resources/up/signal", {})


async def places(run: Program, count: int) -> list[tuple[str, str]]:
    """Path and point of the waiting hooks, which are then answered."""
    hooks = await run.waiting_hooks("s", count)
    for one in hooks:
        assert (await run.signal(one))[0] == 200
    return [(one["path"], one["point"]) for one in hooks]


@pytest.mark.parametrize(
    "sent",
    [
        {"template": template(WEB, hooks=[RULE, MEMBERS])},
        {"environment": {"hooks": [RULE, MEMBERS]}},
        {
            "template": template(WEB, **TIER),
            "parameters": {"tier": "prod"},
            "environment": {"hooks": [RULE | WHEN, MEMBERS | WHEN]},
        },
    ],
    ids=["template", "environment", "condition"],
)
async def test_rules_of_the_parent_hold_a_scaling_and_stay(running: Program, sent: Json) -> None:
    web = await create(running, sent)
    for _ in range(2):
        await send_signal(running, web)
        assert await places(running, 1) == [("web/g", "pre-update")]
        (path, point), *others = await places(running, 1)
        assert (path.rpartition("/")[0], point, others) == ("web/g", "pre-create", [])
        assert await running.until_ended(web) == "UPDATE_COMPLETE"
    await running.stack_request("DELETE", "s")
    assert await places(running, 1) == [("web/g", "pre-delete")]


async def test_a_condition_of_the_parent_that_is_false_holds_nothing(running: Program) -> None:
    rules = {"hooks": [RULE | WHEN, MEMBERS | WHEN]}
    values = {"parameters": {"tier": "dev"}, "environment": rules}
    web = await create(running, {"template": template(WEB, **TIER), **values})
    await send_signal(running, web)
    assert await running.until_ended(web) == "UPDATE_COMPLETE"


@pytest.mark.parametrize(
    ("rules", "blocked"),
    [
        ([{"on": ["pre-update"], "at": "web/g"}], ("web/g", "pre-update")),
        ([{"on": ["pre-update"], "at": "*/g"}], ("web/g", "pre-update")),
        ([{"on": ["pre-stack-update"]}], ("web", "pre-stack-update")),
        ([{"on": ["pre-stack-update"], "nested": True}], ("web", "pre-stack-update")),
    ],
    ids=["path", "glob", "stack", "nested"],
)
async def test_operator_rules_hold_a_scaling(
    database_url: str, rules: Sequence[Json], blocked: tuple[str, str]
) -> None:
    async with program(database_url, {"hooks.rules": rules}) as run:
        web = await create(run, {})
        await send_signal(run, web)
        assert (await places(run, 1))[0] == blocked


#: Restores the schema of migration 0040.
RESTORE_SCHEMA_40 = """
alter table stack drop column parent_rules, drop column region cascade;
alter table traversal drop column excluded, drop column repairs_drift;
drop table archive_queue;
alter table archived_graph
    drop constraint archived_graph_pkey,
    drop column part,
    add primary key (stack_id, traversal);
alter table resource drop column lifecycle cascade;
alter table node drop column cancelled cascade;
alter table snapshot drop column root_id;
alter table resource_snapshot drop column overrides cascade;
alter table template drop column key_order, drop column stack_outputs, drop column sources;
drop index stack_listed;
drop index resource_by_physical_id;
create index event_by_own_id on event (id, stack_id);
drop index event_of_resource;
drop index node_succeeded;
drop index delivery_pending;
drop index decision_of_hook;
create index decision_by_hook on decision (stack_id, hook_id) where hook_id is not null;
drop index idempotency_by_stack;
drop table stack_tag, cell, cell_project, move_outcome, moving_row, moving_schema, position_shift, converge_request;
drop function tag_stack cascade;
drop function refuse_moved_project cascade;
drop index resource_by_requirement;
drop index delivery_dead;
drop index stack_by_tag;
drop index node_operating;
drop function stack_tags;
alter table hook drop column watched_at cascade;
drop table observation, observation_schedule, completion, completion_request, drift_hook,
    provider_budget, provider_failure, failed_request, failover_loss, oldest_program, trust,
    observation_credential, slack_request;
alter table process drop column version, drop column migration, drop column routines,
    drop column labels;
alter table node drop column label;
alter table resource drop column label cascade;
alter table resource drop column marked_at cascade;
alter table traversal drop column labelled cascade;
drop table labelled_work;
alter table token drop column subject cascade;
alter table credential drop column trust;
drop index traversal_repairs;
alter table subscription drop column quiet_hours, drop column digest;
alter table delivery drop column digest_at cascade, drop column digest_taken cascade;
drop table project_usage, usage_roll_up, observer_usage, resource_sample, usage_feed;
delete from migration where name >= '0041';
delete from routines; -- the views that were dropped are created again
"""


async def test_rules_of_the_parent_are_there_after_an_upgrade(database_url: str) -> None:
    async with program(database_url) as run:
        web = await create(run, {"template": template(WEB, hooks=[RULE])})
    conn = await connect(database_url)
    try:
        await conn.execute(RESTORE_SCHEMA_40)
    finally:
        await conn.close()
    async with program(database_url) as run:
        await send_signal(run, web)
        assert await places(run, 1) == [("web/g", "pre-update")]
