"""Headgate in tests: in this process (`Program`), or as a process of its own (`ServerProcess`)."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from engine.lifecycle.contract import LifecyclePlugin
from engine.lifecycle.plugins import Plugins
from engine.service import Engine
from engine.store.database import Database
from engine.types.contract import ResourceType
from engine.types.placement import Placement, Placer
from hub.program.app import ROLES, running
from hub.settings.settings import load_settings
from tests.support.forks import ForkedProcess, start_forked
from tests.support.keys import key_file
from tests.support.ports import free_port
from tests.support.postgres import copy_cluster

Json = Any
#: The longest time, in seconds, to wait for a condition.
PATIENCE = 90.0
FINAL_STATUSES = ("COMPLETE", "FAILED", "STOPPED")


def resource(value: Json = "x", **more: Json) -> Json:
    """A TestResource. more: further keys of the resource."""
    return {"type": "OS::Heat::TestResource", "properties": {"value": value}, **more}


def template(resources: Json, **more: Json) -> Json:
    return {"heat_template_version": "2018-08-31", "resources": resources, **more}


def identity_headers(user: str = "", roles: str = "") -> dict[str, str]:
    """Headers that identify the user in mode none."""
    headers = {"X-Auth-User": user, "X-Roles": roles}
    return {name: value for name, value in headers.items() if value}


class Http:
    """A client of one server and project, which returns status and body of each response."""

    def __init__(self, session: aiohttp.ClientSession, url: str, project: str = "p") -> None:
        self.session, self.url, self.project = session, url, project

    async def call(
        self, method: str, path: str, body: Json = None, **kwargs: Any
    ) -> tuple[int, Json]:
        """path: relative to the project, or to the server's root if it begins with `//`."""
        url = (
            f"{self.url}{path[1:]}"
            if path.startswith("//")
            else f"{self.url}/v1/{self.project}{path}"
        )
        if body is not None:
            kwargs["json"] = body
        async with self.session.request(method, url, **kwargs) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, await (answer.json() if is_json else answer.text())

    async def create(self, name: str, resources: Json, **body: Json) -> str:
        sent = {"stack_name": name, "template": template(resources), **body}
        status, response = await self.call("POST", "/stacks", sent)
        assert status == 201, response
        return str(response["stack"]["id"])

    async def stack(self, name: str) -> Json:
        status, response = await self.call("GET", f"/stacks/{name}")
        assert status == 200, response
        return response["stack"]

    async def update(self, name: str, method: str = "PATCH", **body: Json) -> None:
        stack = await self.stack(name)
        path = f"/stacks/{stack['stack_name']}/{stack['id']}"
        status, response = await self.call(method, path, body)
        assert status == 202, response

    async def stack_request(
        self, method: str, name: str, rest: str = "", body: Json = None
    ) -> Json:
        """Send a request to a path of the stack, which must succeed; return the response."""
        stack = await self.stack(name)
        path = f"/stacks/{stack['stack_name']}/{stack['id']}{rest}"
        status, response = await self.call(method, path, body)
        assert status < 300, response
        return response

    async def act(self, name: str, action: str) -> None:
        await self.stack_request("POST", name, "/actions", {action: None})

    async def until_ended(self, name: str) -> str:
        """Wait for the end of the stack's action; return the status."""

        async def ended() -> str | None:
            status = str((await self.stack(name))["stack_status"])
            return status if status.rpartition("_")[2] in FINAL_STATUSES else None

        return str(await eventually(ended))

    async def waiting_hooks(self, name: str, count: int = 1) -> list[Json]:
        """Wait until the stack has `count` waiting hooks; return them."""

        async def found() -> list[Json] | None:
            _, response = await self.call("GET", f"/hooks?state=waiting&stack={name}")
            return response["hooks"] if len(response["hooks"]) == count else None

        return list(await eventually(found))

    async def until_parked(self, name: str, count: int) -> None:
        """Wait until `count` nodes of the stack are parked, according to its graph."""
        stack = await self.stack(name)

        async def reached() -> bool:
            path = f"/stacks/{stack['stack_name']}/{stack['id']}/graph"
            _, graph = await self.call("GET", path)
            parked = [node for node in graph["nodes"] if node["state"] == "parked"]
            return len(parked) == count

        await eventually(reached)

    async def signal(
        self,
        hook: Json,
        decision: str = "continue",
        *,
        user: str = "",
        roles: str = "",
        **more: Json,
    ) -> tuple[int, Json]:
        """user, roles: the identity of the approver."""
        body = {"decision": decision, **more}
        return await self.call(
            "POST", f"/hooks/{hook['id']}/signal", body, headers=identity_headers(user, roles)
        )

    async def resources(self, name: str) -> dict[str, Json]:
        """The resources by their names in the template."""
        _, response = await self.call("GET", f"/stacks/{name}/resources")
        return {one["headgate_resource_name"]: one for one in response["resources"]}

    async def events(self, name: str) -> list[Json]:
        _, response = await self.call("GET", f"/stacks/{name}/events")
        return list(response["events"])


async def eventually(check: Callable[[], Awaitable[Any]]) -> Any:
    """Wait until `check` returns a true value; return it."""
    async with asyncio.timeout(PATIENCE):
        pauses = intervals()
        while not (found := await check()):
            await asyncio.sleep(next(pauses))
        return found


def intervals() -> Iterator[float]:
    """Seconds until the next check; they grow, because each check costs CPU time."""
    pause = 0.01
    while True:
        yield pause
        pause = min(1.5 * pause, 0.1)


class Program(Http):
    """The server in this process, with its engine and database."""

    engine: Engine
    database: Database


@asynccontextmanager
async def program(
    url: str,
    overrides: Mapping[str, Any] | None = None,
    *,
    types: Sequence[ResourceType] = (),
    plugins: Sequence[LifecyclePlugin] = (),
    placement: Placement | None = None,
) -> AsyncIterator[Program]:
    listen = f"127.0.0.1:{free_port()}"
    values = {
        "server.listen": listen,
        "database.url": url,
        # Each connection that is opened at the start costs PostgreSQL 5 to 10 ms. With fewer, less
        # is done at once: see `hub.api.costly_requests`.
        "database.pool": 7,
        "channels.webhook.allow": ["127.0.0.0/8"],
        "channels.webhook.first_retry": "1s",
        "credentials.key_file": str(key_file()),
        **(overrides or {}),
    }
    settings = load_settings(None, values, environment={})
    async with (
        running(
            settings,
            ROLES,
            asyncio.Event(),
            types=types,
            plugins=Plugins(plugins),
            placer=Placer(placement) if placement else None,
        ) as run,
        aiohttp.ClientSession() as session,
    ):
        opened = Program(session, run.url)
        opened.engine, opened.database = run.engine, run.database
        yield opened


class ServerProcess:
    """`headgate serve` as a process, with one data directory and port.

    roles: the process roles; all by default. database_url: instead of an embedded database.
    unforked: start a new Python process and initialize the database, as users do. processes: that
    share the port. program: a directory with the sources of another version, see
    tests/support/programs.py.
    """

    def __init__(
        self,
        folder: Path,
        *,
        settings: str = "",
        port: int | None = None,
        roles: Sequence[str] = (),
        database_url: str = "",
        unforked: bool = False,
        processes: int = 1,
        program: Path | None = None,
    ) -> None:
        self.folder = folder
        self._program = program
        self._unforked = unforked or program is not None
        self._processes = processes
        self._database_url = database_url
        self.roles = roles
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        name = "-".join(("server", *roles, str(self.port)))
        self.log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self.config = folder / f"{name}.toml"
        database = f'url = "{database_url}"' if database_url else f'data_dir = "{folder / "data"}"'
        self.config.write_text(
            f'[server]\nlisten = "127.0.0.1:{self.port}"\nprocesses = {processes}\n'
            f"[database]\n{database}\n"
            f'[channels.webhook]\nallow = ["127.0.0.0/8"]\n{settings}'
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, *, fault: str = "") -> float:
        """Start and wait until the process is ready; return the seconds that it took.

        fault: see engine/store/fault_points.py; the process may then die before it is ready.
        """
        started = time.monotonic()
        process = self._launch(fault)
        while not self._is_ready():
            if fault and process.poll() is not None:
                break
            assert process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() - started < PATIENCE, self.log.read_text()[-3000:]
            time.sleep(0.02)
        return time.monotonic() - started

    def refuse(self) -> str:
        """Start, wait until the process has refused to start, and return what it has logged."""
        assert self._launch().wait(PATIENCE) == 1
        return self.log.read_bytes()[self._ready_from :].decode()

    def _launch(self, fault: str = "") -> subprocess.Popen[bytes] | ForkedProcess:
        if not (self._unforked or self._database_url):
            copy_cluster(self.folder / "data")
        arguments = ["serve", "--config", str(self.config)]
        for role in self.roles:
            arguments += ["--role", role]
        environment = os.environ | ({"HEADGATE_FAULT": fault} if fault else {})
        with self.log.open("ab") as log:
            self._ready_from = log.tell()
            if self._unforked:
                command = [sys.executable, "-m", "hub.cli.main", *arguments]
                if self._program is not None:
                    environment |= {"PYTHONPATH": str(self._program)}
                self._process = subprocess.Popen(
                    command, stdout=log, stderr=log, env=environment, cwd=self._program
                )
            else:
                self._process = start_forked(
                    arguments, environment, [0, log.fileno(), log.fileno()]
                )
        return self._process

    def _is_ready(self) -> bool:
        if self._processes > 1 or (self.roles and "api" not in self.roles):
            return b"headgate.ready" in self.log.read_bytes()[self._ready_from :]
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE)

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.terminate()
        return self._process.wait(PATIENCE)
