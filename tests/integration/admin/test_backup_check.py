"""headgate admin backup-check: a whole database passes; one that lost rows is found out."""

from pathlib import Path

import pytest

from engine.store.credentials import scope
from engine.store.database import Database
from engine.store.encryption import Sealer
from engine.store.invariants import INVARIANTS, breaches
from hub.checks.backup_check import checked
from hub.checks.keys import KeyFiles
from hub.checks.results import State
from tests.support.admin import admin
from tests.support.keys import key_file
from tests.support.program import Program, resource

#: What breaks a rule, and which.
LOST = {
    "delete from traversal where stack_id = (select id from stack where name = 'done')":
        "a stack has its current traversal and version",
    "delete from stack where name = 'done'": "rows have the stack that they are of",
    "delete from traversal where number = 1": "nodes have their traversal",
    "insert into past_graph (stack_id, traversal) select id, 99 from stack":
        "graphs that are kept have their traversal",
    "insert into past_graph (stack_id, traversal, ids) select stack_id, traversal, array_agg(id) from node group by 1, 2":
        "graphs that are kept are of nodes that are gone",
    "insert into resource_snapshot (stack_id, traversal, resource_id, name, type, data) select id, 99, id, 'a', 'T', '{}' from stack":
        "resource snapshots have their snapshot or their delete",
    "update traversal set active = active + 1 where state = 'running'":
        "the counter of active nodes is what it is derived from",
    "update traversal set held = held + 1 where state = 'running'":
        "the counter of held nodes is what it is derived from",
    "update node set waits = waits + 1 where state = 'waiting'":
        "a node waits for as many as have not ended",
    "update stack set traversal = 2 where name = 'held'":
        "only the current traversal is under way",
    "delete from node where state = 'parked'":
        "a hook waits where its node is parked, and nowhere else",
    "delete from hook where state = 'waiting'":
        "a node parked at a breakpoint has one waiting hook",
    "insert into resource (stack_id, id, name, type, action, status, reason, attributes, data, metadata, digest, requires) select stack_id, gen_random_uuid(), name, type, action, status, reason, attributes, data, metadata, digest, requires from resource":
        "one row stands for a name",
    "with held as (update stack set parent_id = id where name = 'held' returning id) update traversal t set parent_traversal = 1, parent_node = 99 from held where t.stack_id = held.id":
        "a stack inside that is under way is waited for",
    "delete from event e using stack s where s.id = e.stack_id and s.sequence = e.sequence":
        "the newest event of a stack is there",
    "delete from event where sequence = 1": "what is to be published is there",
    "update publishing set position = 1": "no place was given that is still to be given",
    "delete from subscription": "deliveries have event and subscription",
}  # fmt: skip


@pytest.fixture
async def lived(running: Program) -> Program:
    """One stack that is done, one that is held, and somebody who hears of them."""
    await running.call(
        "POST", "/subscriptions", {"channel": "webhook", "target": f"{running.url}/x"}
    )
    await running.create("done", {"a": resource()})
    await running.until_ended("done")
    chain = {"a": resource(), "b": resource(depends_on="a"), "c": resource(depends_on="b")}
    await running.create("held", chain, environment={"hooks": [{"at": "b", "on": "pre-create"}]})
    await running.waiting("held")
    return running


def test_every_rule_is_broken_by_something() -> None:
    assert sorted(LOST.values()) == sorted(INVARIANTS)


async def test_rules_hold_and_each_is_found_when_it_is_broken(lived: Program) -> None:
    async with lived.database.connection() as conn:
        assert await breaches(conn) == {}
    for statement, rule in LOST.items():
        async with lived.database.rehearsal() as conn:
            await conn.execute(statement)
            assert rule in await breaches(conn), statement


async def test_what_is_whole_passes_and_says_how_much_there_is(
    lived: Program, tmp_path: Path
) -> None:
    async with lived.database.connection() as conn:
        found = await checked(conn, KeyFiles(key_file()))
    assert {one.state for one in found} == {State.OK}
    assert [one.what for one in found] == [
        "schema", "rules", "trail", "key", "contents", "age",
    ]  # fmt: skip
    assert found[4].said.startswith("2 stacks, 0 deleted stacks, ")


async def test_a_trail_that_was_cut_and_a_key_of_another_are_found(
    lived: Program, tmp_path: Path
) -> None:
    (hook,) = await lived.waiting("held")
    await lived.signal(hook)
    await lived.until_ended("held")
    key, right = tmp_path / "key", key_file().read_bytes()
    other = Sealer(bytes(32), random_bytes=bytes)
    async with lived.database.rehearsal() as conn:
        await conn.execute("update decision set by = 'eve'")
        said = []
        for content in (None, b"short", bytes(32), right):
            if content is not None:
                key.write_bytes(content)
            found = {one.what: one for one in await checked(conn, KeyFiles(key))}
            said.append(found["key"].state)
            assert found["trail"].state == State.WRONG
        stack_id = await conn.fetchval("select id from stack where name = 'held'")
        await conn.execute(
            "insert into credential select id, traversal, $1 from stack where id = $2",
            other.seal(scope("p", stack_id), "s"), stack_id,
        )  # fmt: skip
        found = {one.what: one for one in await checked(conn, KeyFiles(key))}
    assert said == [State.WRONG] * 3 + [State.OK]
    assert found["key"].state == State.WARNING


async def test_the_command_ends_with_what_it_found(database: Database, database_url: str) -> None:
    said = await admin("backup-check", url=database_url)
    assert said.code == 0, said.out
    async with database.connection() as conn:
        await conn.execute(
            "insert into hook (stack_id, id, project, traversal, node, resource_name, path, point, mode, state, on_timeout, timeout, notice, digest, opened_at, deadline, rule) select gen_random_uuid(), gen_random_uuid(), 'p', 1, 1, 'a', 'a', 'pre-create', 'wait', 'waiting', 'stop', '1 h', '{}', '', now(), now(), '{}'"
        )
    said = await admin("backup-check", "--json", url=database_url)
    assert said.code == 1
    assert [one["what"] for one in said.document if one["state"] == "wrong"] == ["rules", "rules"]
