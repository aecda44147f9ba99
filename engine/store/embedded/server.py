"""The embedded PostgreSQL server, which Headgate creates, starts and stops in its data directory.

    DATA_DIR/headgate.lock    locked while a headgate process uses the directory
    DATA_DIR/postgres/        the database cluster and its socket
    DATA_DIR/postgres.log     the server's log
    DATA_DIR/programs/        copied programs, if the server's account cannot reach the installed
    ones

The server is a child process and ends with its parent: `EmbeddedServer.stop` shuts it down; if the
parent is killed, the kernel sends the server a signal (on Linux). At the next start, a server that
is still running is shut down and replaced by a new child process, so there is never more than one.
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
from engine.store.embedded.binaries import (
    Account,
    blocked_at,
    find_account,
    find_binaries,
    initdb_binaries,
    reachable_binaries,
)
from engine.store.embedded.data_directory import (
    USER,
    DirectoryLock,
    change_owner,
    open_log,
    restrict_access,
    socket_directory,
)
from engine.store.embedded.postmaster import (
    POLL_INTERVAL,
    Postmaster,
    end,
    spawn,
    stop_leftover,
    wait_for_exit,
)

log: FilteringBoundLogger = structlog.get_logger()

DATABASE = "headgate"
PORT = 5432  # part of the socket's name; nothing listens on a network

#: Seconds.
INITDB_TIMEOUT = 60.0
START_TIMEOUT = 60.0  # after a crash, the server first replays its log
SUPERVISE_INTERVAL = 0.5
RESTART = BackOff(SUPERVISE_INTERVAL, 10.0)

RETRY_REMEDY = "Remove the cause; the next attempt is in {:g} s"

LOG_LINES = 8
LOG_TAIL = 16 * 1024
MAX_LOG_BYTES = 10 * 1024 * 1024

PLACE = "[database] data_dir"

#: Settings of the server; all others have PostgreSQL's defaults.
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

#: Messages in the log if another server, which may be shutting down, uses the cluster.
CLUSTER_IN_USE = re.compile(
    r'lock file "\S+" already exists|shared memory block .* is still in use'
)

FIND_DATABASE = "select 1 from pg_database where datname = $1"

CREATE_DATABASE = "create database headgate"


class EmbeddedServer:
    """A PostgreSQL server with a data directory. Use: ``url = await start()`` ... ``stop()``.

    binaries: directory of the PostgreSQL programs; None: those of the installed wheel.
    options: settings of the server, which override OPTIONS. account: name of the account that the
    server runs as if root starts it.
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
        """The server's process ID; None: it is not running."""
        child = self._child
        return child.pid if child is not None and child.poll() is None else None

    @property
    def url(self) -> str:
        return _url(self._sockets)

    @property
    def has_cluster(self) -> bool:
        """Whether the directory contains a cluster."""
        return self._cluster.exists()

    def url_in_use(self) -> str | None:
        """The URL of the server that another headgate process runs here; None: no server is
        ready."""
        found = Postmaster.read(self._cluster)
        if found is None or not found.ready or not found.is_running(self._cluster):
            return None
        return _url(found.socket.parent)

    async def start(self) -> str:
        """Create the cluster if it does not exist, start the server, and return its URL.

        Raises Unavailable if another headgate process uses the directory or the server does not
        start; then the message contains the last lines of its log. Call it in the main thread:
        otherwise the server does not end if this process is killed.
        """
        if self._lock is not None:
            raise RuntimeError("this embedded server has already been started")
        if "\n" in str(self._data_dir):
            raise errors.Unavailable(
                "the path of the data directory contains a line break",
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
        """Shut the server down; kill it if that takes too long. Does nothing if it is stopped."""
        child, self._child = self._child, None
        try:
            if child is not None:
                await end(child)
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    async def supervise(self) -> None:
        """Restart the server each time it ends unexpectedly. Runs until cancelled or stopped."""
        while self._lock is not None:
            if self._child is not None and self.pid is None:
                await self._start_again(self._child.returncode)
            await asyncio.sleep(SUPERVISE_INTERVAL)

    async def _start_again(self, code: int) -> None:
        """Retry until the server starts, and log each failure with its cause, such as a full
        disk."""
        log.error("postgres.ended", code=code, log=str(self._log))
        failures = 0
        while True:
            failures += 1
            pause = RESTART.ceiling(failures)
            try:
                await self._start()
            except (OSError, errors.Unavailable) as error:
                log.error("postgres.down", reason=str(error), remedy=RETRY_REMEDY.format(pause))
            else:
                log.warning("postgres.restarted", pid=self.pid)
                return
            await asyncio.sleep(pause)

    async def _start(self) -> None:
        account = find_account(self._cluster, self._account)
        self._check_reachable(account)
        # Not in a thread: forking a process with several threads can deadlock the child.
        binaries = reachable_binaries(find_binaries(self._binaries), account, self._data_dir)
        if self._log.exists() and self._log.stat().st_size > MAX_LOG_BYTES:
            os.close(open_log(self._log))
            self._log.replace(self._log.with_name("postgres.log.1"))
        if not self._cluster.exists():
            await self._initialize(binaries, account)
        self._sockets = socket_directory(self._cluster, account)
        await self._end_leftover()
        if account is not None:
            change_owner(self._cluster, account)
        restrict_access(self._cluster, account)
        await self._launch(binaries, account)
        await self._create_database()

    def _check_reachable(self, account: Account | None) -> None:
        if account and (blocked := blocked_at(self._cluster, account)):
            raise errors.Unavailable(
                f"PostgreSQL does not run as root, and the account {account.name} has no access to"
                f" {blocked}",
                place=PLACE,
                remedy=f"Name another data directory, or allow access with `chmod o+x {blocked}`",
            )

    async def _initialize(self, binaries: Path, account: Account | None) -> None:
        # First in a temporary directory, so that an interrupted initdb leaves no partial cluster.
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
                if not await wait_for_exit(child, INITDB_TIMEOUT) or child.returncode != 0:
                    raise self._error("initdb could not create the database cluster")
            finally:
                await end(child)
        partial.rename(self._cluster)

    async def _end_leftover(self) -> None:
        """Stop a server whose Headgate process has ended. The caller has the directory's lock."""
        leftover = Postmaster.read(self._cluster)
        if leftover is None or not leftover.is_running(self._cluster):
            return
        if not await stop_leftover(leftover, self._cluster):
            raise errors.Unavailable(
                f"an earlier PostgreSQL server in {self._data_dir}, process {leftover.pid}, does"
                " not shut down",
                place=PLACE,
                remedy=f"See {self._log}, end that process, and start again",
            )

    async def _launch(self, binaries: Path, account: Account | None) -> None:
        command = [
            str(binaries / "postgres"),
            "-D",
            str(self._cluster),
            "-k",
            _quote_directory(self._sockets),
        ]
        for name, value in self._options.items():
            command += ["-c", f"{name}={value}"]
        try:
            async with asyncio.timeout(START_TIMEOUT):
                while True:
                    position = self._log.stat().st_size if self._log.exists() else 0
                    self._child = self._spawn(command, account)
                    if await self._wait_until_ready(self._child):
                        return
                    # Backends of a killed server run for a moment longer than the server.
                    if not CLUSTER_IN_USE.search(self._log_since(position)):
                        raise self._error("PostgreSQL ended immediately after its start")
                    await asyncio.sleep(10 * POLL_INTERVAL)
        except TimeoutError as error:
            raise self._error(f"PostgreSQL was not ready after {START_TIMEOUT:.0f} s") from error

    async def _wait_until_ready(self, child: subprocess.Popen[bytes]) -> bool:
        """Wait until the server accepts connections; False: it ended."""
        while child.poll() is None:
            found = Postmaster.read(self._cluster)
            if found and found.pid == child.pid and found.ready:
                return True
            await asyncio.sleep(POLL_INTERVAL)
        return False

    async def _create_database(self) -> None:
        try:
            # All parameters: asyncpg reads missing ones from PG... environment variables.
            connection = await asyncpg.connect(
                host=str(self._sockets), port=PORT, user=USER, database="postgres", timeout=10
            )
            try:
                if not await connection.fetchval(FIND_DATABASE, DATABASE, timeout=10):
                    await connection.execute(CREATE_DATABASE, timeout=30)
            finally:
                await connection.close(timeout=5)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise self._error(f"PostgreSQL started, but does not respond ({error})") from error

    def _spawn(self, command: list[str], account: Account | None) -> subprocess.Popen[bytes]:
        with open(open_log(self._log), "ab") as log:
            return spawn(command, account, log)

    def _log_since(self, position: int) -> str:
        with contextlib.suppress(OSError), open(self._log, "rb") as log:
            log.seek(max(position, self._log.stat().st_size - LOG_TAIL))
            return log.read().decode("utf-8", "replace")
        return ""

    def _error(self, reason: str) -> errors.Unavailable:
        lines = self._log_since(0).splitlines()[-LOG_LINES:]
        return errors.Unavailable(
            "\n    ".join([f"{reason}; the last lines of its log:", *lines]),
            place=PLACE,
            remedy=f"\nThe full log is {self._log}",
        )


def _quote_directory(directory: Path) -> str:
    """A directory in the form of a list with one element in PostgreSQL's settings."""
    name = str(directory)
    return '"{}"'.format(name.replace('"', '""')) if set(name) & set(', "') else name


def _url(sockets: Path) -> str:
    query = urlencode({"host": str(sockets), "port": PORT, "user": USER})
    return f"postgresql:///{DATABASE}?{query}"
