"""A preview tells what the update then does: random stacks, whose updates are previewed first.

The templates have loops, groups of all kinds with rolling updates, nested templates, moves,
lifecycles, deletion policies, conditions, secrets and resources that fail. Updates are whole or
partial, and follow changes that failed or stopped at a breakpoint, checks, suspensions, and
resources that a user has marked. Hooks get no answer until their deadline. Each resource
in the preview is compared with the events of the update; what the preview calls uncertain may
happen or not.
"""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from random import Random

from tests.property.machines import TIMES
from tests.property.previewed_templates import (
    GROUPS,
    RANDOM_NAMES,
    SECRET,
    Templates,
    whole_body,
)
from tests.support.postgres import TestServer
from tests.support.program import (
    FINAL_STATUSES,
    Http,
    Json,
    Program,
    eventually,
    program,
)

HISTORIES, UPDATES, CONCURRENCY = 10 * TIMES, 3, 6
#: Always the same histories unless the hunt is a longer one.
FIRST_SEED = 0 if TIMES == 1 else Random().randrange(1_000_000)
#: The operations that a kind of change stands for.
OPERATIONS: Mapping[str, frozenset[str]] = {
    "unchanged": frozenset(),
    "added": frozenset({"CREATE"}),
    "updated": frozenset({"UPDATE"}),
    "replaced": frozenset({"CREATE", "DELETE"}),
    "deleted": frozenset({"DELETE"}),
}
#: Of a member that a group has only while it changes in batches.
TEMPORARY = frozenset({"CREATE", "DELETE"})
PATHS = "select name, path from stack where project = $1"
POLICIES = """
select concat_ws('/', nullif(s.path, ''), r.name) as path,
       case r.action when 'SUSPEND' then 'suspended' else '' end as state,
       r.deletion_policy as policy
  from stack s join resource r on r.stack_id = s.id
 where s.project = $1 and s.deleted_at is null
"""
#: The deadline of waiting hooks.
EXPIRE = """
with due as (
    update hook set deadline = clock_timestamp()
     where project = $1 and state = 'waiting' and deadline > clock_timestamp()
    returning id
)
select pg_notify('headgate_hook', '') from due limit 1
"""


class History:
    """The life of one stack."""

    def __init__(self, run: Program, seed: int) -> None:
        self.http = Http(run.session, run.url, f"p{seed}")
        self.pool = run.database.pool
        self.make = Templates(seed)
        self.counts = Counter[str]()
        self.new_files = False

    async def run(self) -> list[str]:
        """Return the differences between previews and events."""
        template, files = self.make.template(), self.make.files()
        body = whole_body(template, files)
        status, response = await self.http.call("POST", "/stacks", {"stack_name": "s", **body})
        if status != 201:
            self.counts["refused creates"] += 1
            return []
        self.path = f"/stacks/s/{response['stack']['id']}"
        await self.http.until_ended("s")
        log = [json.dumps(body)]
        for _ in range(UPDATES):
            acted = await self.act() if self.make.chance(15) else ""
            new = self.make.changed(template)
            new_files = self.make.files() if self.make.chance(30) else files
            marked = await self.mark() if self.make.chance(30) else ""
            method, body = self.make.request(new, new_files)
            log += [f"action: {acted}", f"marked: {marked}", f"{method} {json.dumps(body)}"]
            self.new_files = new_files is not files
            if wrong := await self.update(method, body):
                return [f"history {self.http.project}", *wrong, *log]
            template, files = new, new_files
        return []

    async def act(self) -> str:
        """Check or suspend the stack; return the state after it."""
        action = self.make.random.choice(["check", "suspend"])
        status, _ = await self.http.call("POST", f"{self.path}/actions", {action: None})
        self.counts[f"{action}: {status}"] += 1
        return await self.until_ended()

    async def until_ended(self) -> str:
        """As `Http.until_ended`; no hook is answered, so the stack stops at their deadlines."""

        async def ended() -> str | None:
            await self.pool.execute(EXPIRE, self.http.project)
            status = str((await self.http.stack("s"))["stack_status"])
            return status if status.rpartition("_")[2] in FINAL_STATUSES else None

        return str(await eventually(ended))

    async def mark(self) -> str:
        """Mark a resource as unhealthy; return its path."""
        found = await self.resources()
        if not found:
            return ""
        one = self.make.random.choice(found)
        stack = next(link["href"] for link in one["links"] if link["rel"] == "stack")
        name, stack_id = stack.split("/")[-2:]
        url = f"/stacks/{name}/{stack_id}/resources/{one['physical_resource_id']}"
        await self.http.call("PATCH", url, {"mark_unhealthy": True})
        return f"{name}/{one['headgate_resource_name']}"

    async def update(self, method: str, body: Json) -> list[str]:
        url = f"{self.path}/preview?show_nested=True"
        status, preview = await self.http.call(method, url, body)
        before = {one["id"] for one in await self.events()}
        policies = await self.policies()
        accepted, response = await self.http.call(method, self.path, body)
        if status != 200 or accepted != 202:
            message = preview.get("error", {}).get("message")
            denied = status == 200 and any(one["denied"] for _, one in _changes(preview))
            same = accepted == status and message == response["error"]["message"]
            self.counts["refused updates"] += 1
            return [] if same or denied else [f"preview: {message}, update: {response}"]
        ended = await self.until_ended()
        events = [one for one in await self.events() if one["id"] not in before]
        self.counts["compared"] += 1
        self.counts[ended] += 1
        if SECRET in json.dumps(preview):
            return ["the preview has a secret", json.dumps(preview)]
        failed = ended != "UPDATE_COMPLETE"
        return await self.differences(preview, events, policies, failed=failed)

    async def resources(self) -> list[Json]:
        url = f"{self.path}/resources?nested_depth=3"
        _, response = await self.http.call("GET", url)
        return list(response["resources"])

    async def events(self) -> list[Json]:
        _, response = await self.http.call("GET", f"{self.path}/events?nested_depth=5&limit=1000")
        return list(response["events"])

    async def policies(self) -> dict[str, set[str]]:
        """The deletion policies of the physical resources of each resource, by its path, and
        "suspended"."""
        found: dict[str, set[str]] = defaultdict(set)
        for row in await self.pool.fetch(POLICIES, self.http.project):
            found[row["path"]] |= {row["policy"], row["state"]}
        return found

    async def paths(self, found: Sequence[Json]) -> list[str]:
        """The paths of resources, or of the resources of events; of the stack's own events ""."""
        rows = await self.pool.fetch(PATHS, self.http.project)
        paths = {row["name"]: row["path"] for row in rows}
        result = []
        for one in found:
            stack = next(link["href"] for link in one["links"] if link["rel"] == "stack")
            name, of_stack = one["headgate_resource_name"], stack.split("/")[-2]
            own = "stack_status" in one or name == of_stack
            result.append("" if own else f"{paths[of_stack]}/{name}".lstrip("/"))
        return result

    async def differences(
        self,
        preview: Json,
        events: Sequence[Json],
        policies: Mapping[str, Collection[str]],
        *,
        failed: bool,
    ) -> list[str]:
        """policies: of the resources before the update. failed: the update did not do everything,
        but nothing else."""
        seen: dict[str, set[str]] = defaultdict(set)
        for path, one in zip(await self.paths(events), events, strict=True):
            if path:
                seen[path].add(one["resource_status"])
        done = {path: _operations(statuses) for path, statuses in seen.items()}
        expected: dict[str, list[tuple[str, Json]]] = defaultdict(list)
        for kind, one in _changes(preview):
            expected[one["path"]].append((kind, one))
            self.counts[kind if one["certain"] else "uncertain"] += 1
        done = _with_previewed_names(_without_temporary(done, expected, policies), policies)
        wrong = []
        for path in {**expected, **done}:
            operations = done.get(path, frozenset())
            possible = _possible(path, expected[path], out_of_date=bool(preview["out_of_date"]))
            names = {path, *(one.get("moved_from") or path for _, one in expected[path])}
            possible = _by_policy(
                possible, {each for one in names for each in policies.get(one, ())}
            )
            if operations in possible:
                continue
            if self.new_files and path.startswith("scaled/"):
                continue  # a member gets the new file at once, and its own values in its batch
            if not failed or not any(operations <= one for one in possible):
                kinds = [(kind, one["certain"]) for kind, one in expected[path]]
                wrong.append(f"{path}: preview: {kinds}, events: {sorted(operations)}")
        return wrong


def _without_temporary(
    done: Mapping[str, frozenset[str]], expected: Mapping[str, Json], before: Collection[str]
) -> dict[str, frozenset[str]]:
    """Without members that a group has only while it changes in batches: a preview lists those
    that it has afterwards. before: the paths of resources before the update."""
    temporary = {
        path
        for path, operations in done.items()
        if operations == TEMPORARY and path not in expected and path not in before
        and path.partition("/")[0] in GROUPS and path.count("/") == 1
    }  # fmt: skip
    return {path: one for path, one in done.items() if _member(path) not in temporary}


def _with_previewed_names(
    done: Mapping[str, frozenset[str]], before: Collection[str]
) -> dict[str, frozenset[str]]:
    """With the names of a preview for new members whose names are random."""
    names: dict[str, str] = {}
    counts = Counter[str]()
    result = {}
    for path, operations in sorted(done.items()):
        group, member = path.partition("/")[0], _member(path)
        if group in RANDOM_NAMES and member != group and member not in before:
            if member not in names:
                counts[group] += 1
                names[member] = f"{group}/new-{counts[group]}"
            path = names[member] + path.removeprefix(member)
        result[path] = operations
    return result


def _member(path: str) -> str:
    """The path of the member of a group that a resource is, or is in."""
    return "/".join(path.split("/")[:2])


def _changes(preview: Json) -> list[tuple[str, Json]]:
    found = preview["resource_changes"]
    return [(kind, one) for kind, resources in found.items() for one in resources]


def _operations(statuses: set[str]) -> frozenset[str]:
    """The operations that events tell of. A move, and a failed resource that has its properties
    again, are updates that have not begun; so is an operation whose precondition failed."""
    begun = {one.partition("_")[0] for one in statuses if one.endswith("IN_PROGRESS")}
    return frozenset(begun)


def _by_policy(
    possible: Collection[frozenset[str]], policies: Collection[str]
) -> set[frozenset[str]]:
    """The possible operations with these deletion policies. A member that is created and deleted
    by the same update has none before it."""
    if "suspended" in policies:  # before it is updated or replaced, it is resumed
        possible = {
            *possible,
            *(one | {"RESUME"} for one in possible if one),
            *(one - {"UPDATE"} | {"RESUME"} for one in possible if "UPDATE" in one),
        }
    found = set[frozenset[str]]()
    for one in possible:
        if "DELETE" not in one or not policies or "Delete" in policies:
            found.add(one)
        if "DELETE" in one and "Snapshot" in policies:
            found.add(one | {"SNAPSHOT"})
        if "DELETE" in one and "Retain" in policies:
            found.add(one - {"DELETE"})
    return found


def _possible(
    path: str, previewed: Sequence[tuple[str, Json]], *, out_of_date: bool
) -> set[frozenset[str]]:
    """The operations that a preview allows. out_of_date: it leaves other resources out of date."""
    possible = {frozenset[str]()}
    for kind, one in previewed:
        possible = {each | more for each in possible for more in _possible_of_kind(kind, one)}
    if out_of_date and len(previewed) == 1:
        # Resources that stay out of date may use the one that is replaced.
        possible |= {one - {"DELETE"} for one in possible if "CREATE" in one}
    if path.partition("/")[0] in GROUPS and "/" in path and OPERATIONS["deleted"] in possible:
        # One batch repairs, updates or creates a member, and a later one removes it.
        possible |= {OPERATIONS["deleted"] | one for one in OPERATIONS.values()}
    return possible


def _possible_of_kind(kind: str, one: Json) -> set[frozenset[str]]:
    certain = {OPERATIONS[kind]}
    if kind == "deleted" and not one["physical_resource_id"]:
        certain.add(frozenset())  # it was never created
    return certain if one["certain"] else {*certain, *OPERATIONS.values()}


async def test_updates_do_what_their_previews_tell(postgres: TestServer) -> None:
    async with postgres.new_database() as url, program(url) as run:
        histories = [History(run, FIRST_SEED + number) for number in range(HISTORIES)]
        waiting = list(histories)
        wrong: list[str] = []

        async def work() -> None:
            while waiting and not wrong:
                wrong.extend(await waiting.pop().run())

        async with asyncio.TaskGroup() as tasks:
            for _ in range(CONCURRENCY):
                tasks.create_task(work())
        counts = sum((one.counts for one in histories), Counter[str]())
        print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
        assert not wrong, "\n".join(wrong)
        assert counts["compared"] > HISTORIES
