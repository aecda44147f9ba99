"""A RabbitMQ of our own: Debian's programs, private ports on loopback, in a folder that goes.

It is halted and started again like any process, to be away and to come back.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aio_pika

#: The program itself; what is on the PATH changes to another account and forgets the environment.
PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
#: Seconds until it must be ready.
PATIENCE = 180.0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Rabbit:
    def __init__(self, folder: Path, *, conf: str = "") -> None:
        """conf: lines of its configuration."""
        if not PROGRAM.exists():
            raise FileNotFoundError(
                f"{PROGRAM} is not there: `make tests` installs it as root on Debian"
                " (apt-get install rabbitmq-server)"
            )
        self.port = free_port()
        self.management_port = free_port()
        self._folder = folder
        self._names = free_port()
        self._distribution = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "plugins").write_text("[rabbitmq_management].\n")
        (folder / "rabbit.conf").write_text(
            # The whole machine is not ours: neither its memory nor its disk stops the broker.
            "vm_memory_high_watermark.relative = 0.9\ndisk_free_limit.absolute = 10MB\n"
            "collect_statistics_interval = 500\n"
            f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {self.management_port}\n" + conf
        )

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    @property
    def management_url(self) -> str:
        """Of its API over HTTP; guest may do everything there."""
        return f"http://127.0.0.1:{self.management_port}"

    @property
    def _environment(self) -> dict[str, str]:
        folder = self._folder
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "RABBITMQ_NODENAME": f"t{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbit"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_PORT": str(self._names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    def start(self) -> None:
        """Begin to start; `ready` waits for it."""
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
        async with asyncio.timeout(PATIENCE):
            while not self._listens():
                assert self._process is not None and self._process.poll() is None, self._said()
                await asyncio.sleep(0.05)
            # It listens a moment before it lets anybody in; plug-ins come before that.
            while not await self._lets_in():
                await asyncio.sleep(0.05)

    def _listens(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    async def _lets_in(self) -> bool:
        try:
            connection = await aio_pika.connect(self.url, timeout=5)
        except (aio_pika.exceptions.AMQPError, OSError):
            return False
        await connection.close()
        return True

    def _said(self) -> str:
        return (self._folder / "out.log").read_text()[-3000:]

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """As a machine that loses its power."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)
        self._process = None

    def halt(self, number: int) -> None:
        """SIGSTOP or SIGCONT to all of it."""
        assert self._process is not None
        os.killpg(self._process.pid, number)

    def control(self, *words: str) -> str:
        """rabbitmqctl, of this node."""
        program = PROGRAM.with_name("rabbitmqctl")
        done = subprocess.run(
            [str(program.resolve().with_name("rabbitmqctl")), *words],
            env=self._environment, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    async def stop(self) -> None:
        """End it as its operator would; messages that are persistent stay."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGTERM)
            await asyncio.to_thread(self._process.wait, 30)
            self._process = None

    def forget_names(self) -> None:
        """End the name server that it has started, which is a daemon of its own."""
        for entry in Path("/proc").iterdir():
            try:
                if (
                    entry.name.isdigit()
                    and "epmd" in (entry / "comm").read_text()
                    and f"ERL_EPMD_PORT={self._names}\0" in (entry / "environ").read_text()
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
        # Nobody reads what it would write down in order, which takes seconds.
        if rabbit.runs:
            rabbit.kill()
        rabbit.forget_names()
        shutil.rmtree(folder, ignore_errors=True)
