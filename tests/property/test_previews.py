"""A preview tells what the update then does: random stacks, whose updates are previewed first.

The templates have loops, groups, nested templates, groups of nested templates, moves, lifecycles,
conditions and resources that fail. Each resource in the preview is compared with the events of
the update; what the preview calls uncertain may happen or not.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tests.property.machines import TIMES
from tests.support.postgres import TestServer
from tests.support.program import Http, Json, Program, program

HISTORIES, UPDATES, CONCURRENCY = 10 * TIMES, 3, 6
NAMES, KEYS = ("a", "b", "c", "d"), ("x", "y", "z")
#: The operations that a kind of change stands for.
OPERATIONS: Mapping[str, frozenset[str]] = {
    "unchanged": frozenset(),
    "added": frozenset({"CREATE"}),
    "updated": frozenset({"UPDATE"}),
    "replaced": frozenset({"CREATE", "DELETE"}),
    "deleted": frozenset({"DELETE"}),
}
PATHS = "select name, path from stack where project = $1"


class Templates:
    """Makes random templates."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def value(self, before: Sequence[str]) -> Json:
        """before: resources that it may read."""
        constants = ["1", "2", "${size}", {"if": ["on", "1", "off"]}]
        if not before or self.chance(50):
            return self.random.choice(constants)
        read = {"get_attr": [self.random.choice(before), "output"]}
        reference = {"get_resource": self.random.choice(before)}
        text = {"str_replace": {"template": "v-X", "params": {"X": read}}}
        return self.random.choice([read, reference, text])

    def thing(self, before: Sequence[str] = ()) -> Json:
        properties: dict[str, Json] = {"value": self.value(before)}
        if self.chance(20):
            properties["update_replace"] = True
        if self.chance(20):
            properties["update_replace_value"] = self.value(before)
        if self.chance(7):
            properties["fail"] = True
        return {"type": "OS::Heat::TestResource", "properties": properties}

    def resource(self, before: Sequence[str]) -> Json:
        one = self.thing(before)
        lifecycle: dict[str, Json] = {}
        if self.chance(15):
            lifecycle["ignore_changes"] = self.random.choice([["value"], "all"])
        if self.chance(25):
            other = self.random.choice(before) if before else "value"
            causes: list[Json] = ["value", other, {"get_param": "size"}]
            causes += [{"get_attr": [other, "output"]}] if before else []
            lifecycle["replace_when"] = [self.random.choice(causes)]
        if lifecycle:
            one["lifecycle"] = lifecycle
        if self.chance(10):
            checked = {"not": {"equals": [self.value(before), "2"]}}
            one["preconditions"] = [{"assert": checked, "message": "it is 2"}]
        if before and self.chance(20):
            one["depends_on"] = self.random.choice(before)
        return one

    def loop(self, before: Sequence[str]) -> Json:
        keys = [key for key in KEYS if self.chance(60)]
        values = {key: self.random.choice("12") for key in keys}
        one = self.thing(before)
        if self.chance(50):
            one["properties"]["value"] = "${each.value}"
        return one | {"for_each": values if self.chance(50) else keys}

    def group(self, before: Sequence[str]) -> Json:
        member = self.thing(before)
        member["properties"]["value"] = self.random.choice(["m%index%", self.value(before)])
        properties = {"count": self.random.randint(0, 3), "resource_def": member}
        if self.chance(30):
            properties["removal_policies"] = [{"resource_list": ["1"]}]
        return {"type": "OS::Heat::ResourceGroup", "properties": properties}

    def nested(self, before: Sequence[str]) -> Json:
        return {"type": "in.yaml", "properties": {"value": self.value(before)}}

    def nested_members(self, before: Sequence[str]) -> Json:
        properties = {"count": self.random.randint(0, 2), "resource_def": self.nested(before)}
        return {"type": "OS::Heat::ResourceGroup", "properties": properties}

    def inner(self) -> Json:
        """The nested template."""
        inside = {name: self.thing() for name in ("i", "j") if name == "i" or self.chance(50)}
        for one in inside.values():
            one["properties"]["value"] = self.random.choice(["1", {"get_param": "value"}])
        return {
            "heat_template_version": "headgate",
            "parameters": {"value": {"type": "string"}, "size": {"type": "number", "default": 1}},
            "conditions": {"on": True},
            "resources": inside,
            "outputs": {"output": {"value": {"get_attr": ["i", "output"]}}},
        }

    def template(self) -> Json:
        makers = {name: self.resource for name in NAMES} | {
            "web": self.loop, "g": self.group, "n": self.nested, "deep": self.nested_members,
        }  # fmt: skip
        chosen = [name for name in makers if self.chance(60 if name in NAMES else 40)]
        self.random.shuffle(chosen)
        resources: dict[str, Json] = {}
        for name in chosen:
            readable = [one for one in resources if one in (*NAMES, "n")]
            resources[name] = makers[name](readable)
        return {
            "heat_template_version": "headgate",
            "parameters": {
                "size": {"type": "number", "default": self.random.randint(1, 2)},
                "flag": {"type": "boolean", "default": self.chance(70)},
            },
            "conditions": {"on": {"get_param": "flag"}},
            "resources": resources,
        }

    def changed(self, template: Json) -> Json:
        """A template of which some resources differ, with a move if one can have been moved."""
        other = self.template()
        resources = dict(template["resources"])
        for name in {**resources, **other["resources"]}:
            if self.chance(40):
                resources.pop(name, None)
                if name in other["resources"]:
                    resources[name] = other["resources"][name]
        new = {**template, "resources": resources}
        new.pop("moved", None)
        if self.chance(40):
            new["parameters"] = other["parameters"]
        gone = [one for one in NAMES if one in template["resources"] and one not in resources]
        added = [one for one in NAMES if one in resources and one not in template["resources"]]
        if gone and added:
            new["moved"] = [{"from": gone[0], "to": added[0]}]
        return new


class History:
    """The life of one stack."""

    def __init__(self, run: Program, seed: int) -> None:
        self.http = Http(run.session, run.url, f"p{seed}")
        self.pool = run.database.pool
        self.make = Templates(seed)
        self.compared = 0

    async def run(self) -> list[str]:
        """Return the differences between previews and events."""
        template, inner = self.make.template(), self.make.inner()
        sent = {"stack_name": "s", **_body(template, inner)}
        status, response = await self.http.call("POST", "/stacks", sent)
        if status != 201:
            return []
        self.path = f"/stacks/s/{response['stack']['id']}"
        await self.http.until_ended("s")
        wrong: list[str] = []
        for _ in range(UPDATES):
            new = self.make.changed(template)
            inner_now = self.make.inner() if self.make.chance(30) else inner
            wrong += await self.update(_body(new, inner_now))
            if wrong:
                return [*wrong, json.dumps(template), json.dumps(new), json.dumps(inner_now)]
            template, inner = new, inner_now
        return wrong

    async def update(self, body: Json) -> list[str]:
        status, preview = await self.http.call("PUT", f"{self.path}/preview?show_nested=True", body)
        before = {one["id"] for one in await self.events()}
        accepted, response = await self.http.call("PUT", self.path, body)
        if status != 200 or accepted != 202:
            message = preview.get("error", {}).get("message")
            denied = status == 200 and any(one["denied"] for _, one in _changes(preview))
            same = accepted == status and message == response["error"]["message"]
            return [] if same or denied else [f"preview: {message}, update: {response}"]
        ended = await self.http.until_ended("s")
        events = [one for one in await self.events() if one["id"] not in before]
        self.compared += 1
        return await self.differences(preview, events, failed=ended.endswith("FAILED"))

    async def events(self) -> list[Json]:
        _, response = await self.http.call("GET", f"{self.path}/events?nested_depth=5&limit=1000")
        return list(response["events"])

    async def differences(
        self, preview: Json, events: Sequence[Json], *, failed: bool
    ) -> list[str]:
        """failed: the update did not do everything, but nothing else."""
        rows = await self.pool.fetch(PATHS, self.http.project)
        paths = {row["name"]: row["path"] for row in rows}
        seen: dict[str, set[str]] = defaultdict(set)
        for one in events:
            stack = next(link["href"] for link in one["links"] if link["rel"] == "stack")
            name, of_stack = one["headgate_resource_name"], stack.split("/")[-2]
            if name != of_stack:
                seen[f"{paths[of_stack]}/{name}".lstrip("/")].add(one["resource_status"])
        expected: dict[str, list[tuple[str, Json]]] = defaultdict(list)
        for kind, one in _changes(preview):
            expected[one["path"]].append((kind, one))
        wrong = []
        for path in {**expected, **seen}:
            done = _operations(seen[path])
            possible = {frozenset[str]()}
            for kind, one in expected[path]:
                possible = {each | more for each in possible for more in _possible(kind, one)}
            if done not in possible and not (failed and any(done <= one for one in possible)):
                kinds = [(kind, one["certain"]) for kind, one in expected[path]]
                wrong.append(f"{path}: preview: {kinds}, events: {sorted(seen[path])}")
        return wrong


def _body(template: Json, inner: Json) -> dict[str, Any]:
    return {"template": template, "files": {"in.yaml": json.dumps(inner)}}


def _changes(preview: Json) -> list[tuple[str, Json]]:
    found = preview["resource_changes"]
    return [(kind, one) for kind, resources in found.items() for one in resources]


def _operations(statuses: set[str]) -> frozenset[str]:
    """The operations that events tell of. A move, and a failed resource that has its properties
    again, are updates that have not begun; so is an operation whose precondition failed."""
    begun = {one.partition("_")[0] for one in statuses if one.endswith("IN_PROGRESS")}
    return frozenset(begun)


def _possible(kind: str, one: Json) -> set[frozenset[str]]:
    certain = {OPERATIONS[kind]}
    if kind == "deleted" and not one["physical_resource_id"]:
        certain.add(frozenset())  # it was never created
    return certain if one["certain"] else {*certain, *OPERATIONS.values()}


async def test_updates_do_what_their_previews_tell(postgres: TestServer) -> None:
    async with postgres.new_database() as url, program(url) as run:
        histories = [History(run, seed) for seed in range(HISTORIES)]
        waiting = list(histories)
        wrong: list[str] = []

        async def work() -> None:
            while waiting and not wrong:
                wrong.extend(await waiting.pop().run())

        async with asyncio.TaskGroup() as tasks:
            for _ in range(CONCURRENCY):
                tasks.create_task(work())
        assert not wrong, "\n".join(wrong)
        assert sum(one.compared for one in histories) > HISTORIES
