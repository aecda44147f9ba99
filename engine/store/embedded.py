"""The embedded PostgreSQL server, which Headgate creates, starts and stops in its data directory.

    DATA_DIR/headgate.lock    held as long as a headgate uses this directory
    DATA_DIR/postgres/        the database cluster, and its socket
    DATA_DIR/postgres.log     the server's log
    DATA_DIR/programs/        only where the account of the server cannot reach the installed ones

The server is our child and ends with us: orderly by `EmbeddedServer.stop`, or, where the system can
do that (Linux), by a signal from the kernel when we are killed. A server that was left behind all
the same is ended in order and started anew as our child, so there is never more than one.
"""

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

import asyncpg
import structlog
from structlog.typing import FilteringBoundLogger

from engine import errors
from engine.back_off import BackOff
from engine.store.binaries import (
    Account,
    blocked_at,
    find_account,
    find_binaries,
    initdb_binaries,
    reachable_binaries,
)
from engine.store.data_directory import (
    USER,
    DirectoryLock,
    close_access,
    give_to,
    open_log,
    socket_directory,
)
from engine.store.postmaster import POLL, Postmaster, end, end_leftover, exited, spawn

log: FilteringBoundLogger = structlog.get_logger()

DATABASE = "headgate"
PORT = 5432  # part of the socket's name; nothing listens on a network

#: Seconds.
INITDB_TIMEOUT = 60.0
START_TIMEOUT = 60.0  # after a crash the server first replays its log
SUPERVISE_INTERVAL = 0.5
RESTART = BackOff(SUPERVISE_INTERVAL, 10.0)

MENDING = "Mend that; it is tried again in {:g} s"

LOG_LINES = 8
LOG_TAIL = 16 * 1024
LOG_LIMIT = 10 * 1024 * 1024

PLACE = "[database] data_dir"

#: What the server runs with; everything else is PostgreSQL's default.
OPTIONS: Mapping[str, str] = {
    "listen_addresses": "",
    "port": str(PORT),
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "128MB",
    "max_connections": "60",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "log_checkpoints": "off",
    "logging_collector": "off",
    "log_destination": "stderr",
}

#: In the server's log when another server, which may be stopping, uses the cluster.
TAKEN = re.compile(r'lock file "\S+" already exists|shared memory block .* is still in use')

FIND_DATABASE = "select 1 from pg_database where datname = $1"

CREATE_DATABASE = "create database headgate"


class EmbeddedServer:
    """One PostgreSQL server on one data directory. Use: ``url = await start()`` ... ``stop()``.

    binaries: a directory of PostgreSQL programs; None takes those of the installed wheel.
    options: settings of the server, over OPTIONS. account: whom it runs as when root starts it.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        binaries: Path | None = None,
        options: Mapping[str, str] | None = None,
        account: str = "",
    ) -> None:
        self._data_dir = data_dir.absolute()
        self._binaries = binaries
        self._account = account
        self._options = {**OPTIONS, **(options or {})}
        self._cluster = self._data_dir / "postgres"
        self._sockets = self._cluster
        self._log = self._data_dir / "postgres.log"
        self._lock: DirectoryLock | None = None
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The server's process, while there is one."""
        child = self._child
        return child.pid if child is not None and child.poll() is None else None

    @property
    def url(self) -> str:
        return _url(self._sockets)

    @property
    def made(self) -> bool:
        """Whether there is a cluster in the directory."""
        return self._cluster.exists()

    def url_in_use(self) -> str | None:
        """The URL of a server that another headgate runs here; None where none can be reached."""
        found = Postmaster.read(self._cluster)
        if found is None or not found.ready or not found.runs(self._cluster):
            return None
        return _url(found.socket.parent)

    async def start(self) -> str:
        """Make the cluster where there is none, start the server, and return its URL.

        Raises Unavailable: another headgate has the directory, or the server does not start; the
        message then holds the last lines of its log. Call it from the main thread: elsewhere the
        server would not end when we are killed.
        """
        if self._lock is not None:
            raise RuntimeError("this embedded server was started before")
        if "\n" in str(self._data_dir):
            raise errors.Unavailable(
                "the path of the data directory holds a line break",
                place=PLACE,
                remedy="Name another directory",
            )
        try:
            self._data_dir.mkdir(mode=0o711, parents=True, exist_ok=True)
            self._lock = DirectoryLock(self._data_dir)
            await self._start()
        except OSError as error:
            await self.stop()
            raise errors.Unavailable(
                f"the embedded database cannot be started: {error}",
                place=PLACE,
                remedy="Make the directory writable, or name another one",
            ) from error
        except BaseException:
            await self.stop()
            raise
        return self.url

    async def stop(self) -> None:
        """End the server in order, and by force if it takes too long. Does nothing when stopped."""
        child, self._child = self._child, None
        try:
            if child is not None:
                await end(child)
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    async def supervise(self) -> None:
        """Start the server again whenever it ends by itself. Runs until cancelled or stopped."""
        while self._lock is not None:
            if self._child is not None and self.pid is None:
                await self._start_again(self._child.returncode)
            await asyncio.sleep(SUPERVISE_INTERVAL)

    async def _start_again(self, code: int) -> None:
        """Retry with a log message: the cause, such as a full disk, can be removed meanwhile."""
        log.error("postgres.ended", code=code, log=str(self._log))
        failures = 0
        while True:
            failures += 1
            pause = RESTART.ceiling(failures)
            try:
                await self._start()
            except (OSError, errors.Unavailable) as error:
                log.error("postgres.down", reason=str(error), remedy=MENDING.format(pause))
            else:
                log.warning("postgres.restarted", pid=self.pid)
                return
            await asyncio.sleep(pause)

    async def _start(self) -> None:
        account = find_account(self._cluster, self._account)
        self._check_reachable(account)
        # Not in a thread: a program with threads had better not fork.
        binaries = reachable_binaries(find_binaries(self._binaries), account, self._data_dir)
        if self._log.exists() and self._log.stat().st_size > LOG_LIMIT:
            os.close(open_log(self._log))
            self._log.replace(self._log.with_name("postgres.log.1"))
        if not self._cluster.exists():
            await self._initialize(binaries, account)
        self._sockets = socket_directory(self._cluster, account)
        await self._end_leftover()
        if account is not None:
            give_to(self._cluster, account)
        close_access(self._cluster, account)
        await self._launch(binaries, account)
        await self._create_database()

    def _check_reachable(self, account: Account | None) -> None:
        if account and (blocked := blocked_at(self._cluster, account)):
            raise errors.Unavailable(
                f"PostgreSQL does not run as root, and the account {account.name} that it would"
                f" run as may not enter {blocked}",
                place=PLACE,
                remedy=f"Name another data directory, or allow it with `chmod o+x {blocked}`",
            )

    async def _initialize(self, binaries: Path, account: Account | None) -> None:
        # In a place of its own first: one that was cut off half-way is not taken for a cluster.
        partial = self._cluster.with_name("postgres.new")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        if account is not None:
            os.chown(partial, account.uid, account.gid)
        with initdb_binaries(binaries, account) as programs:
            command = [
                str(programs / "initdb"),
                *("--pgdata", str(partial), "--username", USER),
                *("--auth-local=peer", "--auth-host=reject"),
                *("--locale=C", "--encoding=UTF8", "--no-instructions"),
            ]
            child = self._spawn(command, account)
            try:
                if not await exited(child, INITDB_TIMEOUT) or child.returncode != 0:
                    raise self._failed("initdb could not make the database cluster")
            finally:
                await end(child)
        partial.rename(self._cluster)

    async def _end_leftover(self) -> None:
        """Stop a server whose Headgate process has ended. This process has the lock."""
        left = Postmaster.read(self._cluster)
        if left is None or not left.runs(self._cluster):
            return
        if not await end_leftover(left, self._cluster):
            raise errors.Unavailable(
                f"a PostgreSQL server left behind in {self._data_dir}, process {left.pid},"
                " does not end",
                place=PLACE,
                remedy=f"See {self._log}, end that process, and start again",
            )

    async def _launch(self, binaries: Path, account: Account | None) -> None:
        command = [
            str(binaries / "postgres"),
            "-D",
            str(self._cluster),
            "-k",
            _listed(self._sockets),
        ]
        for name, value in self._options.items():
            command += ["-c", f"{name}={value}"]
        try:
            async with asyncio.timeout(START_TIMEOUT):
                while True:
                    said = self._log.stat().st_size if self._log.exists() else 0
                    self._child = self._spawn(command, account)
                    if await self._ready(self._child):
                        return
                    # The backends of a killed server outlive it for a moment.
                    if not TAKEN.search(self._said_since(said)):
                        raise self._failed("PostgreSQL ended right after it was started")
                    await asyncio.sleep(10 * POLL)
        except TimeoutError as error:
            raise self._failed(f"PostgreSQL was not ready after {START_TIMEOUT:.0f} s") from error

    async def _ready(self, child: subprocess.Popen[bytes]) -> bool:
        """Wait until the server takes connections; False when it ended instead."""
        while child.poll() is None:
            found = Postmaster.read(self._cluster)
            if found and found.pid == child.pid and found.ready:
                return True
            await asyncio.sleep(POLL)
        return False

    async def _create_database(self) -> None:
        try:
            # Every parameter is given: asyncpg takes missing ones from PG... variables.
            connection = await asyncpg.connect(
                host=str(self._sockets), port=PORT, user=USER, database="postgres", timeout=10
            )
            try:
                if not await connection.fetchval(FIND_DATABASE, DATABASE, timeout=10):
                    await connection.execute(CREATE_DATABASE, timeout=30)
            finally:
                await connection.close(timeout=5)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise self._failed(f"PostgreSQL started, but does not answer ({error})") from error

    def _spawn(self, command: list[str], account: Account | None) -> subprocess.Popen[bytes]:
        with open(open_log(self._log), "ab") as log:
            return spawn(command, account, log)

    def _said_since(self, position: int) -> str:
        with contextlib.suppress(OSError), open(self._log, "rb") as log:
            log.seek(max(position, self._log.stat().st_size - LOG_TAIL))
            return log.read().decode("utf-8", "replace")
        return ""

    def _failed(self, reason: str) -> errors.Unavailable:
        lines = self._said_since(0).splitlines()[-LOG_LINES:]
        return errors.Unavailable(
            "\n    ".join([f"{reason}; the last lines of its log:", *lines]),
            place=PLACE,
            remedy=f"\nThe whole log is {self._log}",
        )


def _listed(directory: Path) -> str:
    """A directory as the only one of a list in PostgreSQL's settings."""
    name = str(directory)
    return '"{}"'.format(name.replace('"', '""')) if set(name) & set(', "') else name


def _url(sockets: Path) -> str:
    query = urlencode({"host": str(sockets), "port": PORT, "user": USER})
    return f"postgresql:///{DATABASE}?{query}"
