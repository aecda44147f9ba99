"""A private RabbitMQ server or cluster: Debian's programs, on loopback ports, in temporary folders.

Tests can stop and start the nodes.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aio_pika

from tests.support.ports import free_port

#: The program itself: the one on the PATH changes the account and drops the environment.
PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
#: Seconds until it must be ready.
PATIENCE = 180.0


class Rabbit:
    """A node, which is a server of its own or a member of a cluster."""

    def __init__(self, folder: Path, *, conf: str = "", port_mapper_port: int = 0) -> None:
        """conf: lines of its configuration. port_mapper_port: of the cluster; 0: its own."""
        if not PROGRAM.exists():
            raise FileNotFoundError(
                f"{PROGRAM} is not there: `make tests` installs it as root on Debian"
                " (apt-get install rabbitmq-server)"
            )
        self.port = free_port()
        self.management_port = free_port()
        self._folder = folder
        self._port_mapper_port = port_mapper_port or free_port()
        self._distribution = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        (folder / "plugins").write_text("[rabbitmq_management].\n")
        (folder / "rabbit.conf").write_text(
            # Disables the alarms about memory and disk of the machine.
            "vm_memory_high_watermark.relative = 0.9\ndisk_free_limit.absolute = 10MB\n"
            "collect_statistics_interval = 500\n"
            f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {self.management_port}\n" + conf
        )

    @property
    def name(self) -> str:
        return f"t{self.port}@localhost"

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    @property
    def management_url(self) -> str:
        """The URL of its HTTP API, where guest may do everything."""
        return f"http://127.0.0.1:{self.management_port}"

    @property
    def _environment(self) -> dict[str, str]:
        folder = self._folder
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbit"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_PORT": str(self._port_mapper_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    def configure_cluster(self, members: "Sequence[Rabbit]") -> None:
        """Make it join the cluster of these nodes when it starts for the first time."""
        names = "".join(
            f"cluster_formation.classic_config.nodes.{number} = {member.name}\n"
            for number, member in enumerate(members)
        )
        with (self._folder / "rabbit.conf").open("a") as conf:
            conf.write(
                "cluster_formation.peer_discovery_backend = classic_config\n"
                # A paused node may never continue after two others were killed at once: with the
                # tables of its last moments, each waits for another one.
                "cluster_partition_handling = ignore\n" + names
            )
        cookie = self._folder / ".erlang.cookie"
        cookie.write_text("HEADGATETESTCLUSTER")
        cookie.chmod(0o400)

    def start(self) -> None:
        """Start the process; `ready` waits for it."""
        log = (self._folder / "out.log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [str(PROGRAM)],
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def ready(self) -> None:
        """Wait until it accepts logins.

        Raises AssertionError, with the end of its log, if it ended or is not ready in time.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                while not self._listens():
                    assert self.is_running, self._log_text()
                    await asyncio.sleep(0.05)
                # It listens before it accepts logins, and loads plug-ins before it listens.
                while not await self._accepts_logins():
                    assert self.is_running, self._log_text()
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(
                f"{self.name} is not ready after {PATIENCE:g} s:\n{self._log_text()}"
            ) from None

    def _listens(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    async def _accepts_logins(self) -> bool:
        try:
            connection = await aio_pika.connect(self.url, timeout=5)
        except (aio_pika.exceptions.AMQPError, OSError):
            return False
        await connection.close()
        return True

    def _log_text(self) -> str:
        logs = [self._folder / "out.log", *sorted((self._folder / "log").glob("*.log"))]
        return "\n".join(
            f"{log.name}:\n{log.read_text(errors='replace')[-3000:]}"
            for log in logs
            if log.exists()
        )

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def end_with_this_process(self) -> None:
        """Kill the started server and its port mapper when this process ends, also by SIGKILL: a
        process of their own waits for that."""
        assert self._process is not None
        command = [
            sys.executable, "-m", "tests.support.rabbit", str(self._process.pid),
            str(self._port_mapper_port),
        ]  # fmt: skip
        self._guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def kill(self) -> None:
        """Kill it as a power failure would. Persistent messages stay."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)
        self._process = None

    def send_signal(self, number: int) -> None:
        """Send SIGSTOP or SIGCONT to all its processes."""
        assert self._process is not None
        os.killpg(self._process.pid, number)

    def control(self, *arguments: str) -> str:
        """Run rabbitmqctl on this node."""
        program = PROGRAM.with_name("rabbitmqctl")
        done = subprocess.run(
            [str(program.resolve().with_name("rabbitmqctl")), *arguments],
            env=self._environment, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    async def stop(self) -> None:
        """Stop it in order, which takes 6 s; persistent messages stay."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGTERM)
            await asyncio.to_thread(self._process.wait, 30)
            self._process = None

    def stop_port_mapper(self) -> None:
        """Stop the port mapper (epmd) that it started, which is a separate daemon."""
        _stop_port_mapper(self._port_mapper_port)


def _stop_port_mapper(port: int) -> None:
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and "epmd" in (entry / "comm").read_text()
                and f"ERL_EPMD_PORT={port}\0" in (entry / "environ").read_text()
            ):
                os.kill(int(entry.name), signal.SIGTERM)
        except (OSError, UnicodeDecodeError):
            continue


@asynccontextmanager
async def running_rabbit(*, conf: str = "") -> AsyncIterator[Rabbit]:
    folder = Path(tempfile.mkdtemp(prefix="headgate-rabbit-"))
    rabbit = Rabbit(folder, conf=conf)
    try:
        rabbit.start()
        await rabbit.ready()
        yield rabbit
    finally:
        # Without a reader of its shutdown messages, an orderly stop takes seconds.
        if rabbit.is_running:
            rabbit.kill()
        rabbit.stop_port_mapper()
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def running_cluster(nodes: int) -> AsyncIterator[list[Rabbit]]:
    """A cluster with a port mapper of its own. Quorum queues accept nothing without a majority."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-rabbit-"))
    port_mapper_port = free_port()
    members: list[Rabbit] = []
    for number in range(nodes):
        home = folder / str(number)
        home.mkdir()
        members.append(Rabbit(home, port_mapper_port=port_mapper_port))
    for member in members:
        member.configure_cluster(members)
    try:
        for together in (members[:1], members[1:]):  # the first one is there to be joined
            for member in together:
                member.start()
            for member in together:
                await member.ready()
        yield members
    finally:
        for member in members:
            if member.is_running:
                member.kill()
        for member in members[:1]:
            member.stop_port_mapper()
        shutil.rmtree(folder, ignore_errors=True)


def _guard(process_group: int, port: int) -> None:
    """Wait until the other end of the standard input is closed, then kill the server."""
    sys.stdin.read()
    with suppress(ProcessLookupError):
        os.killpg(process_group, signal.SIGKILL)
    _stop_port_mapper(port)


if __name__ == "__main__":
    _guard(*map(int, sys.argv[1:]))
