"""The load of the fault tests on a server, and the checks of its result.

Every operation writes a line with its key into a file, so its effects can be counted whichever
process died.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp

from tests.support.program import PATIENCE, Http, Json, eventually, template

EFFECT = """#!/bin/sh
# An operation that is called again with the same key finds what it did before.
done="$HEADGATE_STACK_NAME $HEADGATE_RESOURCE $HEADGATE_OPERATION $PPID"
while [ -n "$2" ] && [ ! -e "$2" ] && [ -e "$1" ]; do sleep 0.1; done
exec 9>>"$1.lock" && flock 9  # the child of a killed engine may look at the same moment
grep -q "$HEADGATE_OPERATION_KEY" "$1" || echo "$HEADGATE_OPERATION_KEY $done" >> "$1"
"""
SHORT_LEASE = """
[engine]
lease = "1s"
operations = 8
poll = "1s"
drain = "5s"
[quotas]
template_bytes = 2000000
"""


@contextmanager
def new_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="headgate-fault-") as name:
        found = Path(name)
        found.chmod(0o711)  # as root, the database runs as another account
        yield found


@asynccontextmanager
async def new_client(url: str, counts: FaultCounts) -> AsyncIterator[RetryingClient]:
    """A connection per request: persistent ones would end with their server."""
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        http = RetryingClient(session, url)
        http.counts = counts
        yield http


@dataclass
class Effects:
    """The script, the file that it writes, and the content of the file."""

    folder: Path

    def __post_init__(self) -> None:
        self.script = self.folder / "effect.sh"
        self.script.write_text(EFFECT)
        self.script.chmod(0o755)
        self.file = self.folder / "effects"
        self.file.touch()

    @property
    def settings(self) -> str:
        command = '[resource_types.command]\nenabled = true\nrun_as = "server"\n'
        program = f'[[resource_types.command.programs]]\npath = "{self.script}"\n'
        may = 'projects = ["*"]\narguments = ["**"]\n'
        return f"{command}{program}{may}{SHORT_LEASE}"

    def resource(self, version: int = 1, *, until: str = "", **more: Json) -> Json:
        """until: a file for which its operations wait."""
        command = [str(self.script), str(self.file), *([until] if until else [])]
        properties = {name: command for name in ("create", "update", "delete")}
        return {
            "type": "Headgate::Command",
            "properties": properties | {"triggers": {"version": version}},
            **more,
        }

    def done(self, stack: str) -> Counter[tuple[str, str]]:
        """(resource, operation) -> the number of keys with which it ran."""
        lines = [line.split() for line in self.file.read_text().splitlines()]
        keys = [key for key, *_ in lines]
        assert len(keys) == len(set(keys)), "an effect is there twice under one key"
        return Counter(
            (name, operation)
            for _, of, name, operation, _ in lines
            if of == stack or of.startswith(f"{stack}-{NEST}-")
        )

    def nested_template(self) -> str:
        """A nested template with one resource that has an effect."""
        inner = self.resource()
        inner["properties"]["triggers"] = {"version": {"get_param": "version"}}
        return json.dumps(template({"inner": inner}, parameters={"version": {"type": "number"}}))

    def workers(self) -> set[int]:
        """The PIDs of processes that ran operations."""
        return {int(line.split()[-1]) for line in self.file.read_text().splitlines()}


@dataclass
class FaultCounts:
    kills: int = 0
    requests: int = 0
    lost: int = 0
    doubled: int = 0
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        text = f"{self.kills} kills, {self.requests} requests"
        return f"{text}, {self.lost} lost, {self.doubled} doubled"


class RetryingClient(Http):
    """Repeats a request until it gets a response: the server may be down, and restarts."""

    counts: FaultCounts

    async def request(self, method: str, path: str, body: Json = None, **kwargs: Any) -> Json:
        """Repeat an idempotent request until the server responds."""
        end = time.monotonic() + 2 * PATIENCE
        while True:
            try:
                status, response = await self.call(method, path, body, **kwargs)
                if status != 503:
                    self.counts.requests += method != "GET"
                    return status, response
            except (aiohttp.ClientError, TimeoutError, ConnectionError):
                pass
            assert time.monotonic() < end, f"{method} {path} got no answer"
            await asyncio.sleep(0.05)

    async def waiting_hooks(self, name: str, count: int = 1) -> list[Json]:
        async def found() -> list[Json] | None:
            _, response = await self.request("GET", f"/hooks?state=waiting&stack={name}")
            return response["hooks"] if len(response["hooks"]) == count else None

        return list(await eventually(found))

    async def status(self, name: str) -> str:
        status, response = await self.request("GET", f"/stacks/{name}")
        return str(response["stack"]["stack_status"]) if status == 200 else "gone"

    async def until_status(self, name: str, wanted: str) -> None:
        end = time.monotonic() + 2 * PATIENCE
        while (found := await self.status(name)) != wanted:
            assert time.monotonic() < end, f"{name} is {found}, not {wanted}"
            await asyncio.sleep(0.05)


#: The resource with a nested stack.
NEST = "nest"
HOOKS = [
    {"at": "b", "on": "pre-create"},
    {"at": "c", "on": "pre-create", "timeout": "1s", "on_timeout": "continue"},
]


async def run_stack(http: RetryingClient, effects: Effects, name: str) -> None:
    """Create, update and delete a stack with a nested stack, with hooks that are answered, expire
    and are cleared.
    """
    files = {"inner.yaml": effects.nested_template()}
    tasks = {
        "a": effects.resource(),
        "b": effects.resource(depends_on="a"),
        "c": effects.resource(depends_on="a"),
        "d": effects.resource(depends_on=["b", "c"]),
        NEST: {"type": "inner.yaml", "properties": {"version": 1}, "depends_on": "a"},
    }
    body = {"stack_name": name, "template": template(tasks), "environment": {"hooks": HOOKS},
            "files": files}  # fmt: skip
    key = {"Idempotency-Key": uuid4().hex}
    status, response = await http.request("POST", "/stacks", body, headers=key)
    assert status == 201, response
    path = f"/stacks/{name}/{response['stack']['id']}"
    await answer_hook(http, name)
    await http.until_status(name, "CREATE_COMPLETE")
    changed = tasks | {"a": effects.resource(2), "e": effects.resource(depends_on="a")}
    del changed["d"]
    changed[NEST] = tasks[NEST] | {"properties": {"version": 2}}
    status, response = await http.request(
        "PUT", path, {"template": template(changed), "files": files}
    )
    assert status == 202, response
    await http.until_status(name, "UPDATE_COMPLETE")
    status, response = await http.request("DELETE", path)
    assert status in (204, 404), response
    await http.until_status(name, "gone")


async def answer_hook(http: RetryingClient, name: str) -> None:
    """Answer the hook of b. The same answer may have been accepted before a crash."""
    end = time.monotonic() + 2 * PATIENCE
    while True:
        status, response = await http.request("GET", f"/hooks?stack={name}")
        assert status == 200, response
        found = [hook for hook in response["hooks"] if hook["resource_name"] == "b"]
        if found:
            path = f"/hooks/{found[0]['id']}/signal"
            status, answer = await http.request("POST", path, {"decision": "continue"})
            assert status == 200, answer
            return
        assert time.monotonic() < end, "its hook never opened"
        await asyncio.sleep(0.05)


ONCE = {
    ("a", "create"), ("a", "update"), ("a", "delete"), ("b", "create"), ("b", "delete"),
    ("c", "create"), ("c", "delete"), ("d", "create"), ("d", "delete"), ("e", "create"),
    ("e", "delete"), ("inner", "create"), ("inner", "update"), ("inner", "delete"),
}  # fmt: skip


def check(effects: Effects, counts: FaultCounts, name: str) -> None:
    """Check that each operation ran with one key, and that none is missing."""
    done = effects.done(name)
    counts.lost += len(ONCE - done.keys())
    counts.doubled += sum(count - 1 for count in done.values())
    counts.notes += [f"{name}: {what} {count} times" for what, count in done.items() if count > 1]
    counts.notes += [f"{name}: {what} never" for what in ONCE - done.keys()]
