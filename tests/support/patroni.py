"""Three PostgreSQL servers that Patroni manages, with etcd, on loopback.

Clients and other servers reach a server through its relay, and Patroni reaches etcd through
another one, so that a test can cut a server off from all others.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from engine.store.embedded.binaries import find_account
from tests.support.ports import free_port
from tests.support.postgres import OLDEST_BINARIES, open_directory
from tests.support.program import PATIENCE, eventually
from tests.support.relay import Relay, running_relay

NAMES = ("one", "two", "three")
#: Seconds after which Patroni promotes a replica if the primary is silent, and between its checks.
TTL, LOOP = 20, 2

Json = Any


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"{name} is not there: `make test-failover` installs it on Debian")
    return found


class PatroniNode:
    """One server. relay: between clients and it. api: between the other Patronis and its own. etcd:
    between its Patroni and etcd.
    """

    relay: Relay
    api: Relay
    etcd: Relay

    def __init__(self, folder: Path, name: str, user: dict[str, Any]) -> None:
        self.name = name
        self.data = folder / name
        self.port, self.api_port = free_port(), free_port()
        self.log = folder / f"{name}.log"
        self._configuration = folder / f"{name}.json"
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # Patroni reads YAML, of which JSON is a part.
        self._configuration.write_text(json.dumps(self._settings()))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [_program("patroni"), str(self._configuration)], cwd="/", stdout=log, stderr=log,
                **self._user,
            )  # fmt: skip

    def _settings(self) -> Json:
        trust = [f"host {which} all 127.0.0.1/32 trust" for which in ("all", "replication")]
        return {
            "scope": "headgate",
            "name": self.name,
            "restapi": {
                "listen": f"127.0.0.1:{self.api_port}",
                "connect_address": f"127.0.0.1:{self.api.port}",
            },
            # A proxy: otherwise Patroni learns etcd's own address and goes around the relay.
            "etcd3": {"hosts": [f"127.0.0.1:{self.etcd.port}"], "use_proxies": True},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL,
                    "loop_wait": LOOP,
                    "retry_timeout": 5,
                    "primary_start_timeout": 0,
                    "synchronous_mode": True,
                    "postgresql": {"use_pg_rewind": True, "use_slots": True},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "no-sync"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.port}",
                "connect_address": f"127.0.0.1:{self.relay.port}",
                "data_dir": str(self.data),
                "bin_dir": str(OLDEST_BINARIES),
                "pgpass": str(self.data.with_suffix(".pgpass")),
                "pg_hba": trust,
                "authentication": {
                    "superuser": {"username": "headgate"},
                    "replication": {"username": "headgate"},
                    "rewind": {"username": "headgate"},
                },
                "parameters": {
                    "fsync": "off",
                    "unix_socket_directories": str(self.data.parent),
                    "shared_buffers": "32MB",
                    "max_connections": "100",
                    "wal_log_hints": "on",
                    "wal_keep_size": "128MB",
                },
            },
        }

    def kill(self) -> None:
        """End Patroni and PostgreSQL at once, as a machine that loses power."""
        postmaster = self.data / "postmaster.pid"
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE)
        if postmaster.exists():
            pid = int(postmaster.read_text().split()[0])
            try:
                os.kill(pid, signal.SIGQUIT)
            except ProcessLookupError:
                return

    def isolate(self) -> None:
        """Drop all packets between this server and all others."""
        for one in (self.relay, self.api, self.etcd):
            one.silence()

    def rejoin(self) -> None:
        """Reach the others again; start first if it was killed."""
        if self._process is None or self._process.poll() is not None:
            self.start()
        for one in (self.relay, self.api, self.etcd):
            one.restore()

    async def state(self) -> Json:
        """Patroni's state of the server; empty: it does not answer."""
        return await asyncio.to_thread(self._get, "/patroni")

    def _get(self, path: str) -> Json:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.api_port}{path}", timeout=5
            ) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)
        except OSError:
            return {}

    def accepts(self, path: str, body: Json) -> bool:
        """Send a request to Patroni, which can refuse it for a moment."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.api_port}{path}", json.dumps(body).encode(), method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError:
            return False


class PatroniCluster:
    def __init__(self, nodes: list[PatroniNode]) -> None:
        self.nodes = nodes

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{one.relay.port}" for one in self.nodes)
        return f"postgresql://headgate@{hosts}/postgres?target_session_attrs=read-write"

    async def primary(self) -> PatroniNode:
        """Wait until one server is the primary, and the others follow it, also synchronously."""

        async def found() -> PatroniNode | None:
            states = [await one.state() for one in self.nodes]
            primaries = [
                node
                for node, state in zip(self.nodes, states, strict=True)
                if state.get("role") in ("master", "primary") and state.get("state") == "running"
            ]
            if len(primaries) != 1:
                return None
            replication = states[self.nodes.index(primaries[0])].get("replication", [])
            kinds = [one["sync_state"] for one in replication if one["state"] == "streaming"]
            return primaries[0] if len(kinds) == len(self.nodes) - 1 and "sync" in kinds else None

        node: PatroniNode = await eventually(found)
        return node

    async def next_primary(self, former: PatroniNode) -> None:
        """Wait until another server is the primary."""

        async def found() -> bool:
            others = [await one.state() for one in self.nodes if one is not former]
            return any(one.get("role") in ("master", "primary") for one in others)

        await eventually(found)

    async def switch_over(self, primary: PatroniNode) -> None:
        """Make the synchronous replica the primary, on request."""

        async def accepted() -> bool:
            return await asyncio.to_thread(primary.accepts, "/switchover", {"leader": primary.name})

        await eventually(accepted)


@contextmanager
def _running_etcd(folder: Path, user: dict[str, Any]) -> Iterator[int]:
    """The port of a running etcd."""
    port, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    command = [_program("etcd"), "--data-dir", str(folder / "etcd")]
    command += ["--listen-client-urls", port, "--advertise-client-urls", port]
    command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
    command += ["--initial-cluster", f"default={peer}"]
    with (folder / "etcd.log").open("ab") as log:
        process = subprocess.Popen(command, cwd="/", stdout=log, stderr=log, **user)
    try:
        yield int(port.rpartition(":")[2])
    finally:
        process.kill()
        process.wait(PATIENCE)


@asynccontextmanager
async def running_patroni() -> AsyncIterator[PatroniCluster]:
    """Three servers with synchronous replication."""
    with open_directory() as folder:
        account = find_account(folder / "one")
        user: dict[str, Any] = {}
        if account:
            os.chown(folder, account.uid, account.gid)
            user = {"user": account.uid, "group": account.gid, "extra_groups": []}
        async with AsyncExitStack() as stack:
            etcd_port = stack.enter_context(_running_etcd(folder, user))
            nodes = [PatroniNode(folder, name, user) for name in NAMES]
            for node in nodes:
                node.relay, node.api, node.etcd = [
                    await stack.enter_async_context(running_relay(f"tcp://127.0.0.1:{port}"))
                    for port in (node.port, node.api_port, etcd_port)
                ]
                stack.callback(node.kill)
                node.start()
            yield PatroniCluster(nodes)
