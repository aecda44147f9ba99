"""The programs of examples/policies and examples/resize, each a process of its own, behind Headgate
set up by the files beside them."""

import asyncio
import csv
import importlib.util
import io
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import aiohttp
import pytest
import yaml

from engine.types.contract import ResourceType
from hub.settings.settings import load_settings
from tests.support.changes import ended_again, ended_as, gone
from tests.support.program import PATIENCE, Json, Program, eventually, free_port, program

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

    @contextmanager
    def process(self, folder: Path) -> Iterator[None]:
        """Answers when it is entered; ended by its pid."""
        log = folder / "example.log"
        with log.open("ab") as said:
            one = subprocess.Popen(
                self.command, cwd=folder, stdout=said, stderr=said,
                env=os.environ | {"SECRET": self.secret},
            )  # fmt: skip
        try:
            yield
            assert one.poll() is None, log.read_text()
        finally:
            one.terminate()
            one.wait(PATIENCE)

    @asynccontextmanager
    async def running(self, folder: Path) -> AsyncIterator[None]:
        with self.process(folder):
            await eventually(self._answers)
            yield

    async def _answers(self) -> bool:
        try:
            async with aiohttp.ClientSession() as session, session.get(self.url):
                return True
        except aiohttp.ClientError:
            return False

    @asynccontextmanager
    async def behind(self, url: str, *types: ResourceType) -> AsyncIterator[Program]:
        said = {"hooks.rules": self.rules, "subscriptions": self.subscriptions, "engine.poll": "1s"}
        async with program(url, said, types=types) as made:
            yield made


CONFIGS = {f"{name}.py": name for name in ("owner_tag", "licenses", "drain", "change_window")} | {
    "confirm.py": "resize"
}


def body(file: str, **parameters: Json) -> Json:
    folder = RESIZE if file == "resize.yaml" else POLICIES
    template = yaml.safe_load((folder / file).read_text())
    template["heat_template_version"] = str(template["heat_template_version"])
    return {"template": template, "parameters": parameters}


async def create(run: Program, name: str, sent: Json) -> None:
    status, said = await run.call("POST", "/stacks", {"stack_name": name, **sent})
    assert status == 201, said


async def reason(run: Program, name: str) -> str:
    return str((await run.stack(name))["stack_status_reason"])


@pytest.mark.parametrize("config", sorted(EXAMPLES.glob("*/*.toml")), ids=lambda one: one.name)
def test_each_configuration_is_one(config: Path) -> None:
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


async def test_an_owner_that_nobody_could_know_before_is_looked_for_then(
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
        # One that becomes a server only now, and of which the plan shows no owner to change.
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


async def test_without_the_policy_engine_nothing_passes(database_url: str) -> None:
    example = Example(POLICIES / "owner_tag.py")
    example.rules[0]["timeout"] = "1s"
    # The program does not run: the time limit begins when its delivery is given up.
    said = {"hooks.rules": example.rules, "subscriptions": example.subscriptions,
            "engine.poll": "1s", "channels.webhook.attempts": 2}  # fmt: skip
    async with program(database_url, said) as run:
        await create(run, "s", body("owner_tag.yaml", owner="bob"))
        (hook,) = await run.waiting("s")
        assert (await run.signal(hook, user="ann", roles="admin"))[0] == 403
        assert await run.until_ended("s") == "CREATE_FAILED"


# -- licenses.py ----------------------------------------------------------------------------------


async def test_licenses_are_taken_and_given_back(database_url: str, tmp_path: Path) -> None:
    port = free_port()
    example = Example(POLICIES / "licenses.py", "--types", "OS::Heat::TestResource", "--most", "3",
                      "--headgate", f"http://127.0.0.1:{port}")  # fmt: skip

    async def taken() -> int:
        async with aiohttp.ClientSession() as session, session.get(example.url) as answer:
            return int((await answer.json())["taken"])

    async def until_taken(count: int) -> None:
        async def look() -> bool:
            return await taken() == count

        await eventually(look)

    said = {"hooks.rules": example.rules, "subscriptions": example.subscriptions,
            "engine.poll": "1s", "server.listen": f"127.0.0.1:{port}"}  # fmt: skip
    async with program(database_url, said) as run:
        async with example.running(tmp_path):
            await create(run, "s", body("licenses.yaml"))
            assert await run.until_ended("s") == "CREATE_COMPLETE"
            await create(run, "t", body("licenses.yaml"))
            assert await run.until_ended("t") == "CREATE_FAILED"
            assert "2 licenses are needed, and 1 of 3 are free" in await reason(run, "t")
            assert await taken() == 2
            less = body("licenses.yaml")
            del less["template"]["resources"]["second"]
            await run.update("s", "PUT", **less)
            assert await run.until_ended("s") == "UPDATE_COMPLETE"
            await until_taken(1)
        async with example.running(tmp_path):  # it remembers
            assert await taken() == 1
            await run.update("t", "PUT", **body("licenses.yaml"))
            assert await run.until_ended("t") == "UPDATE_COMPLETE"
            await until_taken(3)
            broken = body("licenses.yaml")
            await run.at("DELETE", "t")
            await gone(run, "t")
            await until_taken(1)
            broken["template"]["resources"]["second"]["properties"] = {"fail": True}
            broken["template"]["resources"]["second"]["depends_on"] = "first"
            await create(run, "u", broken)
            assert await run.until_ended("u") == "CREATE_FAILED"
            await until_taken(2)


# -- drain.py -------------------------------------------------------------------------------------


class Haproxy:
    """What of HAProxy's runtime API the program speaks: one line in, the answer, and it hangs up."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {"web1": "ready"}
        self.sessions = 3
        self.said: list[str] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode().strip()
        self.said.append(line)
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
    server = await asyncio.start_server(one.talk, "127.0.0.1", 0)
    async with server:
        yield one, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_server_is_drained_before_it_is_replaced(database_url: str, tmp_path: Path) -> None:
    async with haproxy() as (balancer, address):
        example = Example(POLICIES / "drain.py", "--haproxy", address, "--interval", "0.05")
        async with example.running(tmp_path), example.behind(database_url) as run:
            await create(run, "s", body("drain.yaml"))
            assert await run.until_ended("s") == "CREATE_COMPLETE" and balancer.said == []
            first = (await run.resources("s"))["web1"]["physical_resource_id"]
            await run.update("s", "PUT", **body("drain.yaml", release="2"))
            (hook,) = await run.waiting("s")

            async def at_work() -> bool:
                _, said = await run.call("GET", f"/hooks/{hook['id']}/decisions")
                return "progress" in [one["kind"] for one in said["decisions"]]

            await eventually(at_work)
            assert (hook["point"], balancer.states["web1"]) == ("pre-replace", "drain")
            assert (await run.resources("s"))["web1"]["physical_resource_id"] == first
            balancer.sessions = 0
            assert await run.until_ended("s") == "UPDATE_COMPLETE"
            assert balancer.states["web1"] == "ready"
            assert (await run.resources("s"))["web1"]["physical_resource_id"] != first


async def test_a_server_that_is_not_to_change_after_all_comes_back(
    database_url: str, tmp_path: Path
) -> None:
    async with haproxy() as (balancer, address):
        example = Example(POLICIES / "drain.py", "--haproxy", address, "--interval", "0.05")
        async with example.running(tmp_path), example.behind(database_url) as run:
            await create(run, "s", body("drain.yaml"))
            await run.until_ended("s")
            await run.update("s", "PUT", **body("drain.yaml", release="2"))
            await run.waiting("s")

            async def state() -> str:
                return balancer.states["web1"]

            async def drained() -> bool:
                return await state() == "drain"

            async def back() -> bool:
                return await state() == "ready"

            await eventually(drained)
            await run.at("POST", "s", "/actions", {"stop": None})
            await eventually(back)


async def test_a_balancer_that_does_not_know_the_server_refuses_the_change(
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
    """From now on; seconds are enough."""
    now = datetime.now(UTC)
    times = [f"{now + one:%H:%M:%S}" for one in (opens, closes)]
    return ["--days", "mon-sun", "--from", times[0], "--to", times[1], "--interval", "0.2"]


async def updated(run: Program, value: str) -> None:
    resources = {"a": {"type": "OS::Heat::TestResource", "properties": {"value": value}}}
    template = {"heat_template_version": "2018-08-31", "resources": resources}
    await run.update("s", "PUT", template=template)


async def test_a_change_waits_for_the_window_and_then_goes_on(
    database_url: str, tmp_path: Path
) -> None:
    hour = timedelta(hours=1)
    closed = Example(POLICIES / "change_window.py", *window(hour, 2 * hour))
    async with closed.behind(database_url) as run:
        await run.create("s", {"a": {"type": "OS::Heat::TestResource"}})
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        async with closed.running(tmp_path):
            await updated(run, "new")
            (hook,) = await run.waiting("s")

            async def kinds() -> list[str]:
                _, said = await run.call("GET", f"/hooks/{hook['id']}/decisions")
                return [one["kind"] for one in said["decisions"]]

            async def again() -> bool:
                return (await kinds()).count("progress") >= 3

            await eventually(again)
            assert set(await kinds()) == {"progress"}
        # Started again, when the window is soon to open, it goes on with what was held.
        opening = Example(
            POLICIES / "change_window.py", *window(timedelta(seconds=2), hour), port=closed.port
        )
        async with opening.running(tmp_path):
            assert await run.until_ended("s") == "UPDATE_COMPLETE"
            assert (await kinds())[-1] == "continue"
            assert (tmp_path / "change-window.json").stat().st_mode & 0o077 == 0
            await updated(run, "newer")
            assert await run.until_ended("s") == "UPDATE_COMPLETE"
            await ended_again(run, "s")


async def test_somebody_in_charge_need_not_wait(database_url: str, tmp_path: Path) -> None:
    hour = timedelta(hours=1)
    example = Example(POLICIES / "change_window.py", *window(hour, 2 * hour))
    async with example.running(tmp_path), example.behind(database_url) as run:
        await run.create("s", {"a": {"type": "OS::Heat::TestResource"}})
        await run.until_ended("s")
        await updated(run, "new")
        (hook,) = await run.waiting("s")
        assert (await run.signal(hook, user="ann"))[0] == 403
        assert (await run.signal(hook, user="ann", roles="operator"))[0] == 200
        await ended_as(run, "s", "UPDATE_COMPLETE")

        async def forgotten() -> bool:
            return (tmp_path / "change-window.json").read_text() == "{}"

        await eventually(forgotten)


# -- examples/resize ------------------------------------------------------------------------------


def server_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_server", RESIZE / "example_server.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_a_resize_is_confirmed_or_taken_back(database_url: str, tmp_path: Path) -> None:
    servers = tmp_path / "servers"
    example = Example(RESIZE / "confirm.py", "--most", "16")

    def sizes() -> list[str]:
        return [one.read_text() for one in servers.iterdir()]

    made = server_module().Server(servers)
    async with example.running(tmp_path), example.behind(database_url, made) as run:
        await create(run, "s", body("resize.yaml"))
        assert await run.until_ended("s") == "CREATE_COMPLETE" and sizes() == ['{"memory": 4}']
        await run.update("s", "PUT", **body("resize.yaml", memory=16))
        assert await run.until_ended("s") == "UPDATE_COMPLETE" and sizes() == ['{"memory": 16}']
        await run.update("s", "PUT", **body("resize.yaml", memory=32))
        assert await run.until_ended("s") == "UPDATE_FAILED" and sizes() == ['{"memory": 16}']
        said = await reason(run, "s")
        assert "32 GiB is more than 16; back to 16 GiB" in said
        physical_id = (await run.resources("s"))["server"]["physical_resource_id"]
        await run.update("s", "PUT", **body("resize.yaml", memory=8))
        assert await run.until_ended("s") == "UPDATE_COMPLETE" and sizes() == ['{"memory": 8}']
        again = (await run.resources("s"))["server"]["physical_resource_id"]
        assert again == physical_id
        await run.at("DELETE", "s")
        await gone(run, "s")
        assert sizes() == []
