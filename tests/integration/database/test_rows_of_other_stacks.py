"""A statement of the engine reads and writes the rows of one stack and its nested stacks, except lists
of one project and the work of a process for all projects.

A server executes most of what users can request, beside stacks in all states in this and another
project, and PostgreSQL records the stack of each row (`tests/support/observed_rows.py`).
"""

import asyncio
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from engine.types.contract import Failed
from engine.types.observation import Difference, Observation
from engine.words import ObservedState
from tests.integration.api import test_openapi_traffic as traffic
from tests.integration.database.test_statements import FOUND
from tests.support.changes import LONG_WAIT, observed, put, thing, until_deleted
from tests.support.observed_rows import Execution, ObservedServer, observed_server
from tests.support.openapi_check import RecordingClient
from tests.support.program import Http, program
from tests.support.receiver import running_receiver
from tests.support.scripted_type import Thing, World

Json = Any
SETTINGS = {"channels.webhook.attempts": 1, "engine.first_retry": "1s", "engine.poll": "1s"}
STORES = "engine.store."
#: Statements that read rows of several stacks of one project, and why.
OF_A_PROJECT: Mapping[str, str] = {
    "audit.audit_log.READ_OF_PROJECT": "list",
    "hooks.hook_lists.READ_HOOKS": "list",
    "projects.id_prefixes.DELIVERIES_WITH_PREFIX": "list",
    "projects.id_prefixes.HOOKS_WITH_PREFIX": "list",
    "projects.id_prefixes.STACKS_WITH_PREFIX": "list",
    "projects.quotas.CHECKS": "counts what a quota limits",
    "projects.quotas.RESOURCES": "counts what a quota limits",
    "projects.quotas.STACKS": "counts what a quota limits",
    "projects.quotas.WAITING_HOOKS": "counts what a quota limits",
    "projects.usage.COMPUTE": "adds up what the project has used",
    "software.server_resources.FIND_BY_SERVER": "finds the resource that has created a server",
    "stacks.stack_dependencies.CHECK_SOURCES": "reads the outputs of the stacks that a template names",
    "stacks.stack_dependencies.READ_DEPENDENTS": "list of the stacks that read an output",
    "stacks.stack_lists.COUNT_SORTED": "list",
    "stacks.stack_lists.PAGE": "list",
    "stacks.stack_lists.SORTED": "list",
    "stacks.stack_lists.TOTAL": "list",
    "stacks.stack_overview.COUNT": "list",
    "stacks.stack_overview.READ": "list",
    "stacks.stack_search.NEIGHBOURS": "the nearest name to a mistyped one",
    "stacks.stack_search.WITH_NAMES": "the nearest name to a mistyped one",
}  # fmt: skip
#: Statements that read or write rows of several stacks of any projects, and why.
OF_THE_SERVER: Mapping[str, str] = {
    "audit.audit_log.STACKS": "signs the audit logs of all stacks",
    "audit.checkpoints.HASHES": "signs the audit logs of all stacks",
    "hooks.deadlines.DUE_HOOKS": "timer: the hooks whose deadline has passed",
    "hooks.deadlines.DUE_HOOKS_IN_TURN": "timer: the hooks whose deadline has passed",
    "hooks.deadlines.DUE_REMINDERS": "timer: the hooks with a reminder that is due",
    "hooks.deadlines.RECORD_REMINDERS": "timer: the hooks with a reminder that is due",
    "hooks.deadlines.NEXT_DEADLINE": "timer: when the next deadline is",
    "hooks.deadlines.NEXT_REMINDER": "timer: when the next reminder is due",
    "hooks.hook_lists.READ_HOOKS_OF_ALL": "list of all projects",
    "maintenance.monitoring.COUNT_ROWS": "metrics",
    "maintenance.monitoring.OBSERVED_STATES": "metrics",
    "maintenance.monitoring.WAITING_WORK": "metrics",
    "maintenance.retention.FIND_DELETED_STACKS": "purge",
    "maintenance.retention.NEXT_AUDIT_LOG": "timer: when the next purge is due",
    "maintenance.retention.NEXT_DELETED": "timer: when the next purge is due",
    "maintenance.retention.NEXT_EVENTS": "timer: when the next purge is due",
    "maintenance.retention.NEXT_HOOK": "timer: when the next purge is due",
    "maintenance.retention.NEXT_TRAVERSAL": "timer: when the next purge is due",
    "maintenance.retention.PURGE_DELIVERIES": "purge",
    "maintenance.retention.PURGE_EVENTS": "purge",
    "maintenance.retention.PURGE_HOOKS": "purge",
    "maintenance.retention.PURGE_STACKS": "purge",
    "maintenance.retention.PURGE_TRAVERSALS": "purge",
    "observer.completions.COMPLETE": "what a list of a provider has found complete",
    "observer.observation_schedule.CLAIM": "claim: observes several stacks with one list",
    "observer.observation_schedule.FINISH": "ends what it has claimed",
    "observer.observation_schedule.NEXT_DUE": "timer: when the next observation is due",
    "observer.observation_schedule.RENEW": "renews what it has claimed",
    "observer.observations.READ_PAGE": "reads what it has claimed",
    "observer.observations.WRITE": "writes what it has claimed",
    "projects.usage.REPAIRS": "metrics",
    "projects.usage.ROLL_UP": "adds up what all projects have used",
    "projects.usage.SAMPLE": "counts the resources of all projects",
    "projects.usage.TODAY": "metrics",
    "stacks.events.READ_TREE_IDS": "list of the roots of stacks with events",
    "stacks.stack_lists.NEWEST_OF_ALL": "list of all projects",
    "stacks.stack_lists.OLDEST_OF_ALL": "list of all projects",
    "traversals.advance.ADVANCE": "claim: a worker claims the nodes of several stacks",
    "traversals.advance.NEXT_DUE": "timer: when the next node is due",
    "traversals.advance.RELEASE": "releases what a worker has claimed",
    "traversals.advance.RENEW": "renews what a worker has claimed",
    "traversals.end.CLAIM_ENDED": "claim: a worker ends the changes of several stacks",
    "traversals.end.COMPLETE_TRAVERSALS": "claim: a worker ends the changes of several stacks",
    "traversals.end.MARK_NOTIFIED": "notifies plug-ins of changes of several stacks",
    "traversals.graph_archive.ARCHIVE_PAGE": "archives the graphs of several stacks",
    "traversals.graph_archive.NEXT_GRAPH": "timer: when the next archiving is due",
}  # fmt: skip
#: Statements that get the keys of their rows, for several requests that arrive together: answers, and
#: reads that a process gathers.
GATHERED = frozenset({
    "audit.audit_log.INSERT", "audit.audit_log.LAST", "hooks.deadlines.READ_CLOCKS",
    "hooks.deadlines.WRITE_CLOCKS", "hooks.hook_lists.READ_HOOKS_BY_ID",
    "hooks.locked_hooks.DECIDE_HOOKS", "hooks.locked_hooks.FIND_HOOKS",
    "hooks.locked_hooks.READ_HOOKS", "hooks.locked_hooks.RECORD_EVENTS",
    "stacks.stack_locks.LOCK_STACKS",
})  # fmt: skip
#: Tables that these statements search with a condition that PostgreSQL does not use for an index
#: below a policy, because it has `coalesce` or a subquery. It then tries all rows.
SEARCHED: Mapping[str, Collection[str]] = {
    "observer.observation_schedule.READ_SECTION": ("stack",),
    "resources.overrides.READ_ENDED": ("stack", "traversal"),
    "stacks.stack_dependencies.READ_DEPENDENTS": ("stack",),
    "stacks.stack_overview.READ": ("stack", "traversal"),
}
#: Statements of the engine that the test executes at least. Each of them has rows of stacks.
MIN_STATEMENTS = 145
AT_A = {"hooks": [{"at": "a", "on": ["pre-create"], "timeout": "5h"}]}
HOLD = {"convergence": {"observe": {"every": "10m"}, "on_drift": "hold"}}


def group(count: int) -> Json:
    definition = thing(depends_on=[])
    return {"type": "OS::Heat::ResourceGroup", "properties": {
        "count": count, "resource_def": {one: definition[one] for one in ("type", "properties")}}}  # fmt: skip


async def create_others(run: Http, world: World, name: str, *, waiting: bool = True) -> None:
    """Stacks that wait, that are complete, failed and deleted, and nested ones."""
    await run.create(f"{name}-group", {"g": group(2), "a": thing()}, tags="one")
    assert await run.until_ended(f"{name}-group") == "CREATE_COMPLETE"
    world.script("create", f"{name}-broken", Failed("no"))
    await run.create(f"{name}-failed", {f"{name}-broken": thing(), "g": group(1)})
    assert await run.until_ended(f"{name}-failed") == "CREATE_FAILED"
    await run.create(f"{name}-gone", {"g": group(1)})
    assert await run.until_ended(f"{name}-gone") == "CREATE_COMPLETE"
    await run.stack_request("DELETE", f"{name}-gone")
    await until_deleted(run, f"{name}-gone")
    if waiting:
        world.script("create", f"{name}-long", LONG_WAIT)
        await run.create(f"{name}-running", {f"{name}-long": thing(), "g": group(1)})
        await run.create(f"{name}-waiting", {"a": thing(), "b": thing()}, environment=AT_A)
        await run.waiting_hooks(f"{name}-waiting")


async def change_trees(run: Http, world: World, name: str) -> None:
    """Steps, updates, a rollback, a cancel, a stop and a delete of a stack with nested stacks."""
    rules = {"hooks": [{"at": "g/0", "on": ["pre-create"]}]}
    await run.create(name, {"g": group(2), "a": thing(depends_on="g")}, environment=rules)
    (hook,) = await run.waiting_hooks(name)
    await run.signal(hook, "step")
    while (await run.stack(name))["stack_status"] == "CREATE_IN_PROGRESS":
        _, found = await run.call("GET", f"/hooks?state=waiting&stack={name}")
        for one in found["hooks"]:
            await run.signal(one, "run")
        await asyncio.sleep(0.05)
    assert await run.until_ended(name) == "CREATE_COMPLETE"
    await put(run, name, {"g": group(4), "a": thing(2)})
    assert await run.until_ended(name) == "UPDATE_COMPLETE"
    broken = {"g": group(3), "a": thing(3), f"{name}-bad": thing()}
    world.script("create", f"{name}-bad", Failed("no"))
    await put(run, name, broken, disable_rollback=False)
    assert await run.until_ended(name) == "ROLLBACK_COMPLETE"
    for action, status in (("cancel_update", "ROLLBACK_COMPLETE"), ("stop", "UPDATE_STOPPED")):
        rules = {"hooks": [{"at": "last", "on": ["pre-create"]}]}
        await put(run, name, {"g": group(2), "last": thing()}, environment=rules)
        await run.waiting_hooks(name)
        await run.act(name, action)
        assert await run.until_ended(name) == status
    await run.stack_request("POST", name, "/snapshots", {"name": "kept"})
    assert await run.until_ended(name) == "SNAPSHOT_COMPLETE"
    await run.act(name, "check")
    assert await run.until_ended(name) == "CHECK_FAILED"  # "last" was never created
    for path in (
        "/why",
        "/graph",
        "/events?nested_depth=3",
        "/resources?nested_depth=3",
        "/history",
    ):
        await run.stack_request("GET", name, path)
    await run.stack_request("DELETE", name)
    await until_deleted(run, name)


async def hold_drift(run: Http, world: World, name: str) -> None:
    """A difference waits for an answer, which repairs it."""
    await run.create(name, {f"{name}-web": thing(), "g": group(1)}, environment=HOLD)
    assert await run.until_ended(name) == "CREATE_COMPLETE"
    difference = Difference("size", 1, {"observed": 7})
    world.observed[f"{name}-web"] = Observation(ObservedState.CHANGED, [difference])
    await observed(run, name)
    (hook,) = await run.waiting_hooks(name)
    await run.stack_request("GET", name, "/why")
    world.observed.clear()
    assert (await run.signal(hook, "repair"))[0] == 200
    await run.until_ended(name)
    await observed(run, name)


async def list_all(run: Http) -> None:
    for path in ("/stacks", "/stacks?global_tenant=true", "/stacks?sort_keys=stack_status", "/hooks",
                 "/hooks?global_tenant=true", "/overview?counts=true", "/stacks?name=x-grup",
                 "/usage", "/quotas", "/decisions", "/events"):  # fmt: skip
        await run.call("GET", path)


async def execute_requests(server: ObservedServer) -> None:
    world = World()
    async with (
        program(server.url, SETTINGS, types=[Thing(world)]) as run,
        running_receiver() as receiver,
        running_receiver() as other,
    ):
        of = {name: RecordingClient(run.session, run.url, name) for name in "pq"}
        for project, client in of.items():
            for name in ("x", "y"):
                await create_others(client, world, f"{name}{project}", waiting=project == "q")
        await server.start_recording()
        watched = of["p"]
        await traffic.ok(watched, "POST", "/subscriptions", {"target": receiver.url})
        await traffic.call_routes_of_a_waiting_stack(watched)
        await traffic.more_hooks(watched, receiver)
        await create_others(watched, world, "z")
        await traffic.run_stack(watched, world)
        await traffic.call_drift(watched, world)
        await traffic.call_dependencies(watched)
        await traffic.call_read_routes(watched)
        await traffic.call_subscription_routes(watched, other)
        await traffic.call_software_routes(watched)
        # Changes of several stacks at the same time.
        trees = [(of[project], f"tree{project}{number}") for project in "pq" for number in range(2)]
        await asyncio.gather(*(change_trees(client, world, name) for client, name in trees))
        for client in of.values():
            await hold_drift(client, world, f"held{client.project}")
            await list_all(client)


@dataclass(frozen=True, slots=True)
class Stacks:
    """The project and the parent of each stack that has existed."""

    places: Mapping[UUID, tuple[str, UUID | None]]

    def root_of(self, stack: UUID) -> UUID:
        while parent := self.places[stack][1]:
            stack = parent
        return stack

    def project_of(self, stack: UUID) -> str:
        return self.places[stack][0]


async def read_stacks(server: ObservedServer) -> Stacks:
    conn = await server.administer()
    try:
        rows = await conn.fetch("select id, project, parent_id from stack")
    finally:
        await conn.close()
    return Stacks({row["id"]: (row["project"], row["parent_id"]) for row in rows})


NAMES = {hashlib.md5(text.encode()).hexdigest(): name for name, text in FOUND.items()}


def name_of(one: Execution) -> str:
    """The name of the statement below the package of the stores; of another one, its beginning."""
    return NAMES.get(one.digest, one.text).removeprefix(STORES)


def violations(executions: Sequence[Execution], stacks: Stacks) -> list[str]:
    found: set[str] = set()
    for one in executions:
        name = name_of(one)
        if name.startswith("channels.") or name in OF_THE_SERVER or name in GATHERED:
            continue
        read: set[UUID] = set()
        for table, ids in one.stacks.items():
            if table not in SEARCHED.get(name, ()):
                read |= ids
        roots = {stacks.root_of(stack) for stack in read}
        projects = {stacks.project_of(stack) for stack in read}
        if len(projects) > 1:
            found.add(f"{name} reads rows of several projects: {sorted(one.stacks)}")
        elif len(roots) > 1 and name not in OF_A_PROJECT:
            found.add(f"{name} reads rows of several stacks: {sorted(one.stacks)}")
    return sorted(found)


def test_the_exceptions_are_statements() -> None:
    known = {name.removeprefix(STORES) for name in FOUND}
    assert {*OF_A_PROJECT, *OF_THE_SERVER, *GATHERED, *SEARCHED} - known == set()
    assert OF_A_PROJECT.keys() & OF_THE_SERVER.keys() == set()


async def test_statements_read_the_rows_of_one_stack_and_its_nested_stacks() -> None:
    async with observed_server() as server:
        await execute_requests(server)
        executions, stacks = server.executions(), await read_stacks(server)
    executed = {name_of(one) for one in executions if NAMES.get(one.digest, "").startswith(STORES)}
    print(f"{len(executed)} statements of the engine, {len(executions)} executions")
    found = violations(executions, stacks)
    assert found == [], "\n".join(found)
    assert len(executed) >= MIN_STATEMENTS
