"""headgate admin backup-check: a complete database passes, and one with lost rows fails."""

from pathlib import Path

import pytest

from engine.store.database import Database
from engine.store.encryption.secret_values import Keyring
from engine.store.maintenance.invariants import INVARIANTS, find_violations
from engine.store.traversals.traversal_credentials import scope
from hub.checks.database import CheckState, KeyFiles, check_backup
from tests.support.admin_command import run_admin
from tests.support.keys import key_file
from tests.support.program import Program, resource

#: Statements that break a rule, and the rule.
VIOLATIONS = {
    "delete from traversal where stack_id = (select id from stack where name = 'done')":
        "a stack has its current traversal and version",
    "delete from stack where name = 'done'": "rows belong to an existing stack",
    "delete from traversal where number = 1": "nodes belong to an existing traversal",
    "insert into archived_graph (stack_id, traversal) select id, 99 from stack":
        "archived graphs belong to an existing traversal",
    "insert into archived_graph (stack_id, traversal, ids) select stack_id, traversal, array_agg(id) from node group by 1, 2":
        "archived nodes are deleted",
    "insert into resource_snapshot (stack_id, traversal, resource_id, name, type, data) select id, 99, id, 'a', 'T', '{}' from stack":
        "resource snapshots belong to a snapshot or to a deletion",
    "update traversal set active_nodes = active_nodes + 1 where state = 'running'":
        "the number of active nodes is right",
    "update stack set traversal = 3 where name = 'held'":
        "operations of earlier traversals are found",
    "update traversal set blocked_nodes = blocked_nodes + 1 where state = 'running'":
        "the number of blocked nodes is right",
    "update node set pending_dependencies = pending_dependencies + 1 where state = 'waiting'":
        "the number of pending dependencies of a node is right",
    "update stack set traversal = 2 where name = 'held'":
        "only the current traversal is under way",
    "delete from node where state = 'parked'":
        "a hook waits only while its node is parked",
    "delete from hook where state = 'waiting'":
        "a node parked at a breakpoint has one waiting hook",
    "insert into resource (stack_id, id, name, type, action, status, reason, attributes, data, metadata, digest, requires) select stack_id, gen_random_uuid(), name, type, action, status, reason, attributes, data, metadata, digest, requires from resource":
        "a resource name has one row",
    "with self_parent as (update stack set parent_id = id where name = 'held' returning id) update traversal t set parent_traversal = 1, parent_node = 99 from self_parent where t.stack_id = self_parent.id":
        "a parent node waits for its nested stack",
    "delete from event e using stack s where s.id = e.stack_id and s.sequence = e.sequence":
        "the newest event of a stack exists",
    "delete from event where sequence = 1": "events to be published exist",
    "update outbox_cursor set position = 1": "no event has a position that is not assigned yet",
    "delete from subscription": "deliveries have an event and a subscription",
}  # fmt: skip


@pytest.fixture
async def run(running: Program) -> Program:
    """A completed stack, a waiting one, and a subscription."""
    await running.call(
        "POST", "/subscriptions", {"channel": "webhook", "target": f"{running.url}/x"}
    )
    await running.create("done", {"a": resource()})
    await running.until_ended("done")
    chain = {"a": resource(), "b": resource(depends_on="a"), "c": resource(depends_on="b")}
    await running.create("held", chain, environment={"hooks": [{"at": "b", "on": "pre-create"}]})
    await running.waiting_hooks("held")
    return running


def test_every_rule_has_a_violation() -> None:
    assert sorted(VIOLATIONS.values()) == sorted(INVARIANTS)


async def test_each_violation_of_a_rule_is_found(run: Program) -> None:
    async with run.database.connection() as conn:
        assert await find_violations(conn) == {}
    for statement, rule in VIOLATIONS.items():
        async with run.database.rollback_only() as conn:
            await conn.execute(statement)
            assert rule in await find_violations(conn), statement


async def test_a_complete_database_passes_with_its_number_of_stacks(
    run: Program, tmp_path: Path
) -> None:
    async with run.database.connection() as conn:
        found = await check_backup(conn, KeyFiles(key_file()))
    assert {one.state for one in found} == {CheckState.OK}
    assert [one.check for one in found] == [
        "schema", "rules", "audit", "key", "contents", "age",
    ]  # fmt: skip
    assert found[4].reason.startswith("stacks: 2, deleted stacks: 0, ")


async def test_a_changed_audit_log_and_a_wrong_key_are_found(run: Program, tmp_path: Path) -> None:
    (hook,) = await run.waiting_hooks("held")
    await run.signal(hook)
    await run.until_ended("held")
    key, right = tmp_path / "key", key_file().read_bytes()
    other = Keyring(bytes(32), random_bytes=bytes)
    async with run.database.rollback_only() as conn:
        await conn.execute("update decision set by = 'eve'")
        states = []
        for content in (None, b"short", bytes(32), right):
            if content is not None:
                key.write_bytes(content)
            found = {one.check: one for one in await check_backup(conn, KeyFiles(key))}
            states.append(found["key"].state)
            assert found["audit"].state == CheckState.ERROR
        stack_id = await conn.fetchval("select id from stack where name = 'held'")
        await conn.execute(
            "insert into credential select id, traversal, $1 from stack where id = $2",
            other.encrypt(scope("p", stack_id), "s"), stack_id,
        )  # fmt: skip
        found = {one.check: one for one in await check_backup(conn, KeyFiles(key))}
    assert states == [CheckState.ERROR] * 3 + [CheckState.OK]
    assert found["key"].state == CheckState.WARNING


async def test_the_exit_code_is_that_of_the_result(database: Database, database_url: str) -> None:
    done = await run_admin("backup-check", url=database_url)
    assert done.code == 0, done.out
    async with database.connection() as conn:
        await conn.execute(
            "insert into hook (stack_id, id, project, traversal, node, resource_name, path, point, mode, state, on_timeout, timeout, notification, digest, opened_at, deadline, rule) select gen_random_uuid(), gen_random_uuid(), 'p', 1, 1, 'a', 'a', 'pre-create', 'wait', 'waiting', 'stop', '1 h', '{}', '', now(), now(), '{}'"
        )
    done = await run_admin("backup-check", "--json", url=database_url)
    assert done.code == 1
    assert [one["check"] for one in done.document if one["state"] == "error"] == ["rules", "rules"]
