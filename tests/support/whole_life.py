"""A stack with one of everything; and where in the database there are rows of it."""

from collections import Counter

from aiohttp import web

from engine.hooks.checkpoint import Signer
from engine.store.database import Database
from engine.work.audit_signing import sign_heads
from tests.support.changes import FAR, begun, gone, put, thing
from tests.support.program import Json, Program, eventually, template
from tests.support.receiver import Received, Receiver
from tests.support.things import World

#: Every table, and whether it has a column that says of which stack a row is.
TABLES = """
select c.relname as name, exists (
           select from pg_attribute a
            where a.attrelid = c.oid and a.attname = 'stack_id' and not a.attisdropped) as of_stack
  from pg_class c
 where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
"""
#: Rows of any table that name one of some ids, wherever they do.
NAMING = "select count(*) from {} t where to_jsonb(t)::text ~ $1"


async def tables(database: Database, *, of_stack: bool = False) -> list[str]:
    async with database.connection() as conn:
        found = await conn.fetch(TABLES)
    return [row["name"] for row in found if row["of_stack"] or not of_stack]


async def rows_naming(database: Database, ids: set[str]) -> Counter[str]:
    """How many rows of which table name any of the ids."""
    found: Counter[str] = Counter()
    async with database.connection() as conn:
        for table in await tables(database):
            found[table] = await conn.fetchval(NAMING.format(table), "|".join(sorted(ids)))
    return +found


async def value(run: Program, query: str, *args: Json) -> Json:
    async with run.database.connection() as conn:
        return await conn.fetchval(query, *args)


async def settled(run: Program) -> None:
    """Nothing is left to be published or delivered."""
    left = """
    select not exists (select from outbox where position is null)
       and not exists (select from delivery where state = 'pending')
    """
    await eventually(lambda: value(run, left))


async def waiting_only(run: Program, name: str) -> Json:
    (hook,) = await run.waiting(name)
    return hook


async def lived(run: Program, world: World, receiver: Receiver) -> tuple[set[str], set[str]]:
    """A stack with one of everything, deleted. The ids that are its own, and the tables that had
    rows of it."""
    refused, taken = f"{receiver.url}/refused", f"{receiver.url}/taken"

    async def handle(one: Received) -> web.Response:
        return web.Response(status=500 if one.path == "/refused" else 200)

    receiver.handle = handle
    sink = {"type": "webhook", "target": refused, "events": ["headgate.stack.*"]}
    await run.call("POST", "/subscriptions", {"channel": "webhook", "target": taken})
    environment = {
        "hooks": [{"at": "a", "on": "pre-create"}, {"at": "a", "on": "pre-update"}],
        "event_sinks": [sink],
    }
    world.will("create", "a", FAR)
    kept = {"b": thing(deletion_policy="Snapshot")}
    body = {"stack_name": "s", "template": template({"a": thing()} | kept)}
    headers = {"X-Auth-Token": "t", "Idempotency-Key": "once"}
    status, made = await run.call(
        "POST", "/stacks", body | {"environment": environment}, headers=headers
    )
    assert status == 201
    ids, seen = {made["stack"]["id"]}, set[str]()

    async def look() -> None:
        seen.update(await rows_naming(run.database, ids))

    path = f"/hooks/{(await waiting_only(run, 's'))['id']}/signal"
    await run.call("POST", path, {"decision": "continue"}, headers={"X-Auth-Token": "t"})
    await begun(world, "create", "a")
    await look()
    path = f"/stacks/s/{made['stack']['id']}"
    assert (await run.call("POST", f"{path}/resources/a/signal", {"x": 1}))[0] == 200
    await look()
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await run.at("POST", "s", "/snapshots", {"name": "before"})
    assert await run.until_ended("s") == "SNAPSHOT_COMPLETE"
    point = {"at": "a", "on": ["pre-delete"]}
    assert (await run.call("POST", f"{path}/breakpoints", {"breakpoints": [point]}))[0] == 201
    deployed = {
        "type": "OS::Heat::SoftwareDeployment",
        "properties": {"server": "srv", "signal_transport": "NO_SIGNAL"},
    }
    resources = {"a": thing(2), "deployed": deployed} | kept
    await put(run, "s", resources, environment=environment)
    hook = await waiting_only(run, "s")
    ids.add(hook["id"])
    await look()
    await run.signal(hook)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await look()
    await run.at("DELETE", "s")
    hook = await waiting_only(run, "s")
    await run.signal(hook)
    await gone(run, "s")
    async with run.database.connection() as conn:
        assert await sign_heads(conn, Signer("key", bytes)) == 1
    await look()
    await settled(run)
    states = await value(run, "select array_agg(distinct state order by state) from delivery")
    assert states == ["dead", "delivered"]
    return ids | {hook["id"]}, seen
