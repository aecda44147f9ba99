"""The programs of examples/policies and examples/resize, each as a process, with Headgate
configured by the files next to them.
"""

import asyncio
import csv
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import aiohttp
import pytest
import yaml

from engine.types.contract import ResourceType
from hub.settings.settings import load_settings
from tests.support.changes import until_complete, until_deleted, until_status
from tests.support.ports import free_port
from tests.support.program import PATIENCE, Json, Program, eventually, program, template

EXAMPLES = Path(__file__).parents[3] / "examples"
POLICIES, RESIZE = EXAMPLES / "policies", EXAMPLES / "resize"


class Example:
    """One of the programs: its configuration for Headgate, and its process."""

    def __init__(self, script: Path, *arguments: str, port: int = 0) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        config = tomllib.loads(script.with_name(f"{CONFIGS[script.name]}.toml").read_text())
        for one in config["subscriptions"]:
            one["target"] = re.sub(r"http://127.0.0.1:\d+", self.url, one["target"])
        self.rules = config.get("hooks", {}).get("rules", [])
        self.subscriptions = config["subscriptions"]
        self.secret = self.subscriptions[0]["secret"]
        self.command = [sys.executable, str(script), "--port", str(self.port), *arguments]

    @asynccontextmanager
    async def running(self, folder: Path) -> AsyncIterator[None]:
        """Run the program; at the end, kill it and answer its last requests to Headgate in this
        loop.
        """
        log = folder / "example.log"
        with log.open("ab") as output:
            one = subprocess.Popen(
                self.command, cwd=folder, stdout=output, stderr=output,
                env=os.environ | {"SECRET": self.secret},
            )  # fmt: skip
        try:
            await eventually(self._answers)
            yield
            assert one.poll() is None, log.read_text()
        finally:
            one.terminate()
            await asyncio.to_thread(one.wait, PATIENCE)

    async def _answers(self) -> bool:
        try:
            async with aiohttp.ClientSession() as session, session.get(self.url):
                return True
        except aiohttp.ClientError:
            return False

    @asynccontextmanager
    async def behind(self, url: str, *types: ResourceType) -> AsyncIterator[Program]:
        settings = {
            "hooks.rules": self.rules,
            "subscriptions": self.subscriptions,
            "engine.poll": "1s",
        }
        async with program(url, settings, types=types) as run:
            yield run


CONFIGS = {f"{name}.py": name for name in ("owner_tag", "licenses", "drain", "change_window")} | {
    "confirm.py": "resize"
}


def body(file: str, **parameters: Json) -> Json:
    folder = RESIZE if file == "resize.yaml" else POLICIES
    template = yaml.safe_load((folder / file).read_text())
    template["heat_template_version"] = str(template["heat_template_version"])
    return {"template": template, "parameters": parameters}


async def create(run: Program, name: str, sent: Json) -> None:
    status, response = await run.call("POST", "/stacks", {"stack_name": name, **sent})
    assert status == 201, response


async def reason(run: Program, name: str) -> str:
    return str((await run.stack(name))["stack_status_reason"])


@pytest.mark.parametrize("config", sorted(EXAMPLES.glob("*/*.toml")), ids=lambda one: one.name)
def test_each_configuration_is_valid(config: Path) -> None:
    if config.name != "pyproject.toml":
        load_settings(config, {}, environment={})


# -- owner_tag.py ---------------------------------------------------------------------------------


async def test_servers_without_an_owner_are_refused(database_url: str, tmp_path: Path) -> None:
    example = Example(POLICIES / "owner_tag.py", "--types", "OS::Heat::No*")
    async with example.running(tmp_path), example.behind(database_url) as run:
        await create(run, "s", body("owner_tag.yaml"))
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert "pre-stack-create rejected" in await reason(run, "s")
        assert "no metadata.owner: backend" in await reason(run, "s")
        assert all(not one["physical_resource_id"] for one in (await run.resources("s")).values())
        await run.update("s", "PUT", **body("owner_tag.yaml", owner="bob"))
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        await run.update("s", "PUT", **body("owner_tag.yaml"))
        assert await run.until_ended("s") == "UPDATE_FAILED"
        other = body("owner_tag.yaml", owner="bob")
        other["template"]["resources"]["backend"]["properties"]["flavor"] = "huge"
        await run.update("s", "PUT", **other)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_an_owner_that_is_unknown_in_the_plan_is_checked_at_the_resource(
    database_url: str, tmp_path: Path
) -> None:
    example = Example(POLICIES / "owner_tag.py", "--types", "OS::Heat::None")
    async with example.running(tmp_path), example.behind(database_url) as run:
        sent = body("owner_tag.yaml")
        resources = sent["template"]["resources"]
        resources["source"] = {"type": "OS::Heat::TestResource", "properties": {"value": ""}}
        metadata = {"owner": {"get_attr": ["source", "output"]}}
        resources["backend"]["properties"] = {"metadata": metadata}
        await create(run, "s", sent)
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert "pre-create rejected" in await reason(run, "s")
        # The resource becomes a server only now, so the plan shows no change of the owner.
        resources["backend"] = {"type": "OS::Heat::TestResource"}
        await run.update("s", "PUT", **sent)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"
        resources["backend"] = {"type": "OS::Heat::None"}
        await run.update("s", "PUT", **sent)
        assert await run.until_ended("s") == "UPDATE_FAILED"
        assert "no metadata.owner: backend" in await reason(run, "s")
        resources["source"]["properties"]["value"] = "eve"
        resources["backend"]["properties"] = {"metadata": metadata}
        await run.update("s", "PUT", **sent)
        assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_without_the_policy_program_changes_are_rejected(database_url: str) -> None:
    example = Example(POLICIES / "owner_tag.py")
    example.rules[0]["timeout"] = "1s"
    # The program does not run: the time limit starts when its delivery is dead.
    settings = {"hooks.rules": example.rules, "subscriptions": example.subscriptions,
            "engine.poll": "1s", "channels.webhook.attempts": 2}  # fmt: skip
    async with program(database_url, settings) as run:
        await create(run, "s", body("owner_tag.yaml", owner="bob"))
        (hook,) = await run.waiting_hooks("s")
        assert (await run.signal(hook, user="ann", roles="admin"))[0] == 403
        assert await run.until_ended("s") == "CREATE_FAILED"


@pytest.mark.parametrize("tag", ["metadata.owner", "metadata"])
async def test_a_hidden_owner_is_not_accepted(database_url: str, tmp_path: Path, tag: str) -> None:
    example = Example(POLICIES / "owner_tag.py", "--types", "OS::Heat::None", "--tag", tag)
    metadata: Json = {"get_param": "h"}
    sent = body("owner_tag.yaml")
    sent["template"]["parameters"] = {"h": {"type": "json", "hidden": True}}
    resources = sent["template"]["resources"]
    sent["template"]["resources"] = {"backend": resources["backend"]}
    resources["backend"]["properties"] = {"metadata": metadata}
    sent["parameters"] = {"h": {"owner": "eve"}}
    sent["template"].pop("outputs", None)
    async with example.running(tmp_path), example.behind(database_url) as run:
        await create(run, "s", sent)
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert f"no {tag}: backend" in await reason(run, "s")


# -- licenses.py ----------------------------------------------------------------------------------


async def test_licenses_are_acquired_and_released(database_url: str, tmp_path: Path) -> None:
    port = free_port()
    example = Example(POLICIES / "licenses.py", "--types", "OS::Heat::TestResource", "--max-licenses", "3",
                      "--headgate", f"http://127.0.0.1:{port}")  # fmt: skip

    async def licenses_in_use() -> int:
        async with aiohttp.ClientSession() as session, session.get(example.url) as answer:
            return int((await answer.json())["taken"])

    async def until_in_use(count: int) -> None:
        async def check() -> bool:
            return await licenses_in_use() == count

        await eventually(check)

    settings = {"hooks.rules": example.rules, "subscriptions": example.subscriptions,
            "engine.poll": "1s", "server.listen": f"127.0.0.1:{port}"}  # fmt: skip
    async with program(database_url, settings) as run:
        async with example.running(tmp_path):
            await create(run, "s", body("licenses.yaml"))
            assert await run.until_ended("s") == "CREATE_COMPLETE"
            await create(run, "t", body("licenses.yaml"))
            assert await run.until_ended("t") == "CREATE_FAILED"
            assert "2 licenses are needed, and 1 of 3 are free" in await reason(run, "t")
            assert await licenses_in_use() == 2
            less = body("licenses.yaml")
            del less["template"]["resources"]["second"]
            await run.update("s", "PUT", **less)
            assert await run.until_ended("s") == "UPDATE_COMPLETE"
            await until_in_use(1)
        async with example.running(tmp_path):  # the program restores its state
            assert await licenses_in_use() == 1
            await run.update("t", "PUT", **body("licenses.yaml"))
            assert await run.until_ended("t") == "UPDATE_COMPLETE"
            await until_in_use(3)
            broken = body("licenses.yaml")
            await run.stack_request("DELETE", "t")
            await until_deleted(run, "t")
            await until_in_use(1)
            broken["template"]["resources"]["second"]["properties"] = {"fail": True}
            broken["template"]["resources"]["second"]["depends_on"] = "first"
            await create(run, "u", broken)
            assert await run.until_ended("u") == "CREATE_FAILED"
            await until_in_use(2)
            inner = json.dumps(body("licenses.yaml")["template"])
            nested: Json = {
                "template": template({"n": {"type": "in.yaml"}}),
                "files": {"in.yaml": inner},
            }
            await create(run, "v", nested)
            assert await run.until_ended("v") == "CREATE_FAILED"
            assert "2 licenses are needed, and 1 of 3 are free" in await reason(run, "v")
            await run.stack_request("DELETE", "u")
            await until_deleted(run, "u")
            await until_in_use(1)
            await run.update("v", "PUT", **nested)
            assert await run.until_ended("v") == "UPDATE_COMPLETE"
            await until_in_use(3)


# -- drain.py -------------------------------------------------------------------------------------


class Haproxy:
    """The part of HAProxy's runtime API that the program uses: one line per connection."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {"web1": "ready"}
        self.sessions = 3
        self.lines: list[str] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode().strip()
        self.lines.append(line)
        writer.write(self._answer(line).encode())
        await writer.drain()
        writer.close()

    def _answer(self, line: str) -> str:
        match line.split():
            case ["show", "stat"]:
                table = io.StringIO()
                rows = csv.writer(table, lineterminator="\n")
                rows.writerow(["# pxname", "svname", "qcur", "qmax", "scur", "smax"])
                rows.writerow(["web", "web1", 0, 0, self.sessions, 9])
                rows.writerow(["web", "BACKEND", 0, 0, self.sessions, 9])
                return f"{table.getvalue()}\n"
            case ["set", "server", "web/web1", "state", state]:
                self.states["web1"] = state
                return "\n"
            case _:
                return "No such server.\n\n"


@asynccontextmanager
async def haproxy() -> AsyncIterator[tuple[Haproxy, str]]:
    one = Haproxy()
    server = await asyncio.start_server(one.handle, "127.0.0.1", 0)
    async with server:
        yield one, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_server_is_drained_before_it_is_replaced(database_url: str, tmp_path: Path) -> None:
    async with haproxy() as (balancer, address):
        example = Example(POLICIES / "drain.py", "--haproxy", address, "--interval", "0.05")
        async with example.running(tmp_path), example.behind(database_url) as run:
            await create(run, "s", body("drain.yaml"))
            assert await run.until_ended("s") == "CREATE_COMPLETE" and balancer.lines == []
            first = (await run.resources("s"))["web1"]["physical_resource_id"]
            await run.update("s", "PUT", **body("drain.yaml", release="2"))
            (hook,) = await run.waiting_hooks("s")

            async def is_up() -> bool:
                _, response = await run.call("GET", f"/hooks/{hook['id']}/decisions")
                return "progress" in [one["kind"] for one in response["decisions"]]

            await eventually(is_up)
            assert (hook["point"], balancer.states["web1"]) == ("pre-replace", "drain")
            assert (await run.resources("s"))["web1"]["physical_resource_id"] == first
            balancer.sessions = 0
            assert await run.until_ended("s") == "UPDATE_COMPLETE"
            assert balancer.states["web1"] == "ready"
            assert (await run.resources("s"))["web1"]["physical_resource_id"] != first


async def test_a_server_whose_change_is_rejected_is_enabled_again(
    database_url: str, tmp_path: Path
) -> None:
    async with haproxy() as (balancer, address):
        example = Example(POLICIES / "drain.py", "--haproxy", address, "--interval", "0.05")
        async with example.running(tmp_path), example.behind(database_url) as run:
            await create(run, "s", body("drain.yaml"))
            await run.until_ended("s")
            await run.update("s", "PUT", **body("drain.yaml", release="2"))
            await run.waiting_hooks("s")

            async def state() -> str:
                return balancer.states["web1"]

            async def drained() -> bool:
                return await state() == "drain"

            async def is_up_again() -> bool:
                return await state() == "ready"

            await eventually(drained)
            await run.stack_request("POST", "s", "/actions", {"stop": None})
            await eventually(is_up_again)


async def test_a_server_that_the_balancer_does_not_know_is_refused(
    database_url: str, tmp_path: Path
) -> None:
    async with haproxy() as (_, address):
        example = Example(POLICIES / "drain.py", "--haproxy", address, "--backend", "other")
        async with example.running(tmp_path), example.behind(database_url) as run:
            await create(run, "s", body("drain.yaml"))
            await run.until_ended("s")
            await run.update("s", "PUT", **body("drain.yaml", release="2"))
            assert await run.until_ended("s") == "UPDATE_FAILED"
            assert "haproxy: No such server." in await reason(run, "s")


# -- change_window.py -----------------------------------------------------------------------------


def window(opens: timedelta, closes: timedelta) -> list[str]:
    """A change window, relative to now, in seconds."""
    now = datetime.now(UTC)
    times = [f"{now + one:%H:%M:%S}" for one in (opens, closes)]
    return ["--days", "mon-sun", "--from", times[0], "--to", times[1], "--interval", "0.2"]


async def update(run: Program, value: str) -> None:
    resources = {"a": {"type": "OS::Heat::TestResource", "properties": {"value": value}}}
    template = {"heat_template_version": "2018-08-31", "resources": resources}
    await run.update("s", "PUT", template=template)


async def test_a_change_waits_for_the_change_window(database_url: str, tmp_path: Path) -> None:
    hour = timedelta(hours=1)
    closed = Example(POLICIES / "change_window.py", *window(hour, 2 * hour))
    async with closed.behind(database_url) as run:
        await run.create("s", {"a": {"type": "OS::Heat::TestResource"}})
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        async with closed.running(tmp_path):
            await update(run, "new")
            (hook,) = await run.waiting_hooks("s")

            async def decision_kinds() -> list[str]:
                _, response = await run.call("GET", f"/hooks/{hook['id']}/decisions")
                return [one["kind"] for one in response["decisions"]]

            async def is_answered() -> bool:
                return (await decision_kinds()).count("progress") >= 3

            await eventually(is_answered)
            assert set(await decision_kinds()) == {"progress"}
        # Restarted shortly before the window opens, it continues with the waiting hooks.
        opening = Example(
            POLICIES / "change_window.py", *window(timedelta(seconds=2), hour), port=closed.port
        )
        async with opening.running(tmp_path):
            assert await run.until_ended("s") == "UPDATE_COMPLETE"
            assert (await decision_kinds())[-1] == "continue"
            assert (tmp_path / "change-window.json").stat().st_mode & 0o077 == 0
            await update(run, "newer")
            assert await run.until_ended("s") == "UPDATE_COMPLETE"
            await until_complete(run, "s")


async def test_an_operator_can_answer_before_the_window_opens(
    database_url: str, tmp_path: Path
) -> None:
    hour = timedelta(hours=1)
    example = Example(POLICIES / "change_window.py", *window(hour, 2 * hour))
    async with example.running(tmp_path), example.behind(database_url) as run:
        await run.create("s", {"a": {"type": "OS::Heat::TestResource"}})
        await run.until_ended("s")
        await update(run, "new")
        (hook,) = await run.waiting_hooks("s")
        assert (await run.signal(hook, user="ann"))[0] == 403
        assert (await run.signal(hook, user="ann", roles="operator"))[0] == 200
        await until_status(run, "s", "UPDATE_COMPLETE")

        async def is_forgotten() -> bool:
            return (tmp_path / "change-window.json").read_text() == "{}"

        await eventually(is_forgotten)


# -- examples/resize ------------------------------------------------------------------------------


def server_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_server", RESIZE / "example_server.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_a_resize_is_confirmed_or_reverted(database_url: str, tmp_path: Path) -> None:
    servers = tmp_path / "servers"
    example = Example(RESIZE / "confirm.py", "--max-size", "16")

    def sizes() -> list[str]:
        return [one.read_text() for one in servers.iterdir()]

    type_ = server_module().Server(servers)
    async with example.running(tmp_path), example.behind(database_url, type_) as run:
        await create(run, "s", body("resize.yaml"))
        assert await run.until_ended("s") == "CREATE_COMPLETE" and sizes() == ['{"memory": 4}']
        await run.update("s", "PUT", **body("resize.yaml", memory=16))
        assert await run.until_ended("s") == "UPDATE_COMPLETE" and sizes() == ['{"memory": 16}']
        await run.update("s", "PUT", **body("resize.yaml", memory=32))
        assert await run.until_ended("s") == "UPDATE_FAILED" and sizes() == ['{"memory": 16}']
        message = await reason(run, "s")
        assert "32 GiB is more than 16; back to 16 GiB" in message
        physical_id = (await run.resources("s"))["server"]["physical_resource_id"]
        await run.update("s", "PUT", **body("resize.yaml", memory=8))
        assert await run.until_ended("s") == "UPDATE_COMPLETE" and sizes() == ['{"memory": 8}']
        is_answered = (await run.resources("s"))["server"]["physical_resource_id"]
        assert is_answered == physical_id
        await run.stack_request("DELETE", "s")
        await until_deleted(run, "s")
        assert sizes() == []
