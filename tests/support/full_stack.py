"""A stack with one object of each kind, and the rows of the database that refer to it."""

from collections import Counter
from uuid import UUID

from aiohttp import web

from engine.hooks.checkpoint import Signer
from engine.store.database import Database
from engine.types.observation import Observation
from engine.words import ObservedState
from engine.work.audit_signing import sign_heads
from tests.support.changes import LONG_WAIT, observed, put, thing, until_deleted, until_started
from tests.support.program import Json, Program, eventually, template
from tests.support.purging import archive_all_graphs
from tests.support.receiver import Received, Receiver
from tests.support.scripted_type import World

#: All tables, and whether they have a column with the stack's ID.
TABLES = """
select c.relname as name, exists (
           select from pg_attribute a
            where a.attrelid = c.oid and a.attname = 'stack_id' and not a.attisdropped) as of_stack
  from pg_class c
 where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
"""
#: The number of rows of a table that contain one of the IDs.
COUNT_MENTIONS = "select count(*) from {} t where to_jsonb(t)::text ~ $1"


async def tables(database: Database, *, of_stack: bool = False) -> list[str]:
    async with database.connection() as conn:
        found = await conn.fetch(TABLES)
    return [row["name"] for row in found if row["of_stack"] or not of_stack]


async def count_mentions(database: Database, ids: set[str]) -> Counter[str]:
    """The number of rows that contain one of the IDs, by table."""
    found: Counter[str] = Counter()
    async with database.connection() as conn:
        for table in await tables(database):
            found[table] = await conn.fetchval(COUNT_MENTIONS.format(table), "|".join(sorted(ids)))
    return +found


async def value(run: Program, query: str, *args: Json) -> Json:
    async with run.database.connection() as conn:
        return await conn.fetchval(query, *args)


async def until_delivered(run: Program) -> None:
    """Wait until no event is unpublished and no delivery is pending."""
    left = """
    select not exists (select from outbox where position is null)
       and not exists (select from delivery where state = 'pending')
    """
    await eventually(lambda: value(run, left))


async def only_waiting_hook(run: Program, name: str) -> Json:
    (hook,) = await run.waiting_hooks(name)
    return hook


COMPLETION = """
insert into completion (stack_id, operation_key, request_id, object_id, definition)
values ($1, gen_random_uuid(), gen_random_uuid(), 'x', '{}')
"""
CONVERGE = """
insert into converge_request (stack_id, traversal, round, rounds, state, request, requested_by,
                              requested_by_id)
values ($1, 1, 1, 2, 'ended', '{}', 'ann', 'name:ann')
"""


async def create_and_delete_full_stack(
    run: Program, world: World, receiver: Receiver
) -> tuple[set[str], set[str]]:
    """Create and delete a stack with one object of each kind. Returns its IDs, and the tables that
    had rows with them.
    """
    refused, accepted = f"{receiver.url}/refused", f"{receiver.url}/taken"

    async def handle(one: Received) -> web.Response:
        return web.Response(status=500 if one.path == "/refused" else 200)

    receiver.handle = handle
    sink = {"type": "webhook", "target": refused, "events": ["headgate.stack.*"]}
    await run.call("POST", "/subscriptions", {"channel": "webhook", "target": accepted})
    environment = {
        "hooks": [{"at": "a", "on": "pre-create"}, {"at": "a", "on": "pre-update"}],
        "event_sinks": [sink],
    }
    world.script("create", "a", LONG_WAIT)
    retained = {"b": thing(deletion_policy="Snapshot")}
    body = {"stack_name": "s", "template": template({"a": thing()} | retained), "tags": "t"}
    headers = {"X-Auth-Token": "t", "Idempotency-Key": "once"}
    status, response = await run.call(
        "POST", "/stacks", body | {"environment": environment}, headers=headers
    )
    assert status == 201
    ids, seen = {response["stack"]["id"]}, set[str]()

    async def collect_tables() -> None:
        seen.update(await count_mentions(run.database, ids))

    path = f"/hooks/{(await only_waiting_hook(run, 's'))['id']}/signal"
    await run.call("POST", path, {"decision": "continue"}, headers={"X-Auth-Token": "t"})
    await until_started(world, "create", "a")
    # No request of the observer has it, so only a purge deletes it.
    await run.database.pool.execute(COMPLETION, UUID(response["stack"]["id"]))
    await run.database.pool.execute(CONVERGE, UUID(response["stack"]["id"]))
    await collect_tables()
    path = f"/stacks/s/{response['stack']['id']}"
    assert (await run.call("POST", f"{path}/resources/a/signal", {"x": 1}))[0] == 200
    await collect_tables()
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await run.stack_request("POST", "s", "/snapshots", {"name": "before"})
    assert await run.until_ended("s") == "SNAPSHOT_COMPLETE"
    point = {"at": "a", "on": ["pre-delete"]}
    assert (await run.call("POST", f"{path}/breakpoints", {"breakpoints": [point]}))[0] == 201
    deployed = {
        "type": "OS::Heat::SoftwareDeployment",
        "properties": {"server": "srv", "signal_transport": "NO_SIGNAL"},
    }
    resources = {"a": thing(2), "deployed": deployed} | retained
    hold = {"convergence": {"observe": {"every": "1d"}, "on_drift": "hold"}}
    await put(run, "s", resources, environment=environment | hold)
    hook = await only_waiting_hook(run, "s")
    ids.add(hook["id"])
    await collect_tables()
    await run.signal(hook)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    world.observed["a"] = Observation(ObservedState.DEGRADED)
    assert [one["state"] for one in (await observed(run))["resources"]] == ["degraded"]
    ids.add((await only_waiting_hook(run, "s"))["id"])
    await collect_tables()
    await run.stack_request("DELETE", "s")
    hook = await only_waiting_hook(run, "s")
    await run.signal(hook)
    await until_deleted(run, "s")
    async with run.database.connection() as conn:
        assert await sign_heads(conn, Signer("key", bytes)) == 1
    await collect_tables()
    await archive_all_graphs(run.database)
    await collect_tables()
    await until_delivered(run)
    states = await value(run, "select array_agg(distinct state order by state) from delivery")
    assert states == ["dead", "delivered"]
    return ids | {hook["id"]}, seen
