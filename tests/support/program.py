"""Headgate as tests meet it: in this process (`Program`) or as one of its own (`ServerProcess`)."""

import asyncio
import os
import signal
import socket
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
from tests.support.forks import Forked, forked
from tests.support.keys import key_file
from tests.support.postgres import lay_cluster

Json = Any
#: Seconds until a condition that must come is given up.
PATIENCE = 90.0
ENDS = ("COMPLETE", "FAILED", "STOPPED")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def resource(value: Json = "x", **more: Json) -> Json:
    """A TestResource; more: further keys of the resource."""
    return {"type": "OS::Heat::TestResource", "properties": {"value": value}, **more}


def template(resources: Json, **more: Json) -> Json:
    return {"heat_template_version": "2018-08-31", "resources": resources, **more}


def who(user: str = "", roles: str = "") -> dict[str, str]:
    """Headers that say who asks, in mode none."""
    said = {"X-Auth-User": user, "X-Roles": roles}
    return {name: value for name, value in said.items() if value}


class Http:
    """Requests against one server and project, answers as they are."""

    def __init__(self, session: aiohttp.ClientSession, url: str, project: str = "p") -> None:
        self.session, self.url, self.project = session, url, project

    async def call(
        self, method: str, path: str, body: Json = None, **kwargs: Any
    ) -> tuple[int, Json]:
        """path: below the project, or beginning with the server's root as `//...`."""
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
        status, made = await self.call("POST", "/stacks", sent)
        assert status == 201, made
        return str(made["stack"]["id"])

    async def stack(self, name: str) -> Json:
        status, said = await self.call("GET", f"/stacks/{name}")
        assert status == 200, said
        return said["stack"]

    async def update(self, name: str, method: str = "PATCH", **body: Json) -> None:
        stack = await self.stack(name)
        path = f"/stacks/{stack['stack_name']}/{stack['id']}"
        status, said = await self.call(method, path, body)
        assert status == 202, said

    async def at(self, method: str, name: str, rest: str = "", body: Json = None) -> Json:
        """A request to a part of the stack, which must go well; returns the answer."""
        stack = await self.stack(name)
        path = f"/stacks/{stack['stack_name']}/{stack['id']}{rest}"
        status, said = await self.call(method, path, body)
        assert status < 300, said
        return said

    async def act(self, name: str, action: str) -> None:
        await self.at("POST", name, "/actions", {action: None})

    async def until_ended(self, name: str) -> str:
        """The status at the end of the stack's action."""

        async def ended() -> str | None:
            status = str((await self.stack(name))["stack_status"])
            return status if status.rpartition("_")[2] in ENDS else None

        return str(await eventually(ended))

    async def waiting(self, name: str, count: int = 1) -> list[Json]:
        """So many waiting hooks of a stack."""

        async def found() -> list[Json] | None:
            _, said = await self.call("GET", f"/hooks?state=waiting&stack={name}")
            return said["hooks"] if len(said["hooks"]) == count else None

        return list(await eventually(found))

    async def waiting_count(self, name: str, count: int) -> None:
        """Until so many nodes of a stack are parked, counted in its graph."""
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
        """user, roles: whose answer it is."""
        body = {"decision": decision, **more}
        return await self.call(
            "POST", f"/hooks/{hook['id']}/signal", body, headers=who(user, roles)
        )

    async def resources(self, name: str) -> dict[str, Json]:
        _, said = await self.call("GET", f"/stacks/{name}/resources")
        return {one["resource_name"]: one for one in said["resources"]}

    async def events(self, name: str) -> list[Json]:
        _, said = await self.call("GET", f"/stacks/{name}/events")
        return list(said["events"])


async def eventually(look: Callable[[], Awaitable[Any]]) -> Any:
    """What `look` gives as soon as it gives something; a bounded wait."""
    async with asyncio.timeout(PATIENCE):
        pauses = looks()
        while not (found := await look()):
            await asyncio.sleep(next(pauses))
        return found


def looks() -> Iterator[float]:
    """Seconds until the next look, longer each time: looking takes from what is waited for."""
    pause = 0.01
    while True:
        yield pause
        pause = min(1.5 * pause, 0.1)


class Program(Http):
    """Everything in this process. engine, database: its own."""

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
    said = {
        "server.listen": listen,
        "database.url": url,
        "channels.webhook.allow": ["127.0.0.0/8"],
        "channels.webhook.first_retry": "1s",
        "credentials.key_file": str(key_file()),
        **(overrides or {}),
    }
    settings = load_settings(None, said, environment={})
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
        made = Program(session, run.url)
        made.engine, made.database = run.engine, run.database
        yield made


class ServerProcess:
    """`headgate serve` as a process of its own, on one data directory and port.

    roles: only these; database_url: instead of an embedded database; anew: the process itself loads
    the program and makes its database, as when people start it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        settings: str = "",
        port: int | None = None,
        roles: Sequence[str] = (),
        database_url: str = "",
        anew: bool = False,
    ) -> None:
        self.folder = folder
        self._anew = anew
        self._database_url = database_url
        self.roles = roles
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        name = "-".join(("server", *roles, str(self.port)))
        self.log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self._config = folder / f"{name}.toml"
        database = f'url = "{database_url}"' if database_url else f'data_dir = "{folder / "data"}"'
        self._config.write_text(
            f'[server]\nlisten = "127.0.0.1:{self.port}"\n'
            f"[database]\n{database}\n"
            f'[channels.webhook]\nallow = ["127.0.0.0/8"]\n{settings}'
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, *, fault: str = "") -> float:
        """Start and wait until it is ready; return the seconds that took.

        fault: see engine/store/fault_points.py; then it may also die before it is ready.
        """
        if not (self._anew or self._database_url):
            lay_cluster(self.folder / "data")
        began = time.monotonic()
        words = ["serve", "--config", str(self._config)]
        for role in self.roles:
            words += ["--role", role]
        environment = os.environ | ({"HEADGATE_FAULT": fault} if fault else {})
        with self.log.open("ab") as log:
            self._ready_from = log.tell()
            if self._anew:
                command = [sys.executable, "-m", "hub.cli.main", *words]
                self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            else:
                self._process = forked(words, environment, [0, log.fileno(), log.fileno()])
        while not self._is_ready():
            if fault and self._process.poll() is not None:
                break
            assert self._process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() - began < PATIENCE, self.log.read_text()[-3000:]
            time.sleep(0.02)
        return time.monotonic() - began

    def _is_ready(self) -> bool:
        if self.roles and "api" not in self.roles:
            return b"headgate.ready" in self.log.read_bytes()[self._ready_from :]
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, as a crash would."""
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE)

    def stop(self) -> int:
        """SIGTERM; return the exit code."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.terminate()
        return self._process.wait(PATIENCE)
