"""A PgBouncer in front of the tests' PostgreSQL, on loopback, in a temporary folder."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg

from tests.support.ports import free_port
from tests.support.postgres import open_directory

#: Seconds until it must be ready.
PATIENCE = 30.0
CONFIGURATION = """
[databases]
* = host={sockets} port={server_port} user={user} pool_size=20

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
server_round_robin = {round_robin}
logfile = {folder}/pgbouncer.log
{settings}
"""


def _program() -> str:
    found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        raise FileNotFoundError(
            "pgbouncer is not there: `make tests` installs it as root on Debian"
            " (apt-get install pgbouncer)"
        )
    return found


@asynccontextmanager
async def pooled(
    database_url: str, mode: str, *, round_robin: bool = False, settings: str = ""
) -> AsyncIterator[str]:
    """The URL of the same database through a pooler in this mode, with default settings but for
    these lines."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(database_url).query).items()}
    name = urlsplit(database_url).path.removeprefix("/")
    owner = Path(query["host"]).stat()  # an account that may reach the server and is not root
    with open_directory() as folder:
        port = free_port()
        configuration = folder / "pgbouncer.ini"
        configuration.write_text(
            CONFIGURATION.format(
                sockets=query["host"],
                server_port=query["port"],
                user=query["user"],
                port=port,
                mode=mode,
                folder=folder,
                round_robin=int(round_robin),
                settings=settings,
            )
        )
        os.chown(folder, owner.st_uid, owner.st_gid)
        other = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
        process = subprocess.Popen(
            [_program(), "-q", str(configuration)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **(other if os.geteuid() == 0 else {}),  # type: ignore[call-overload]
        )
        url = f"postgresql://{query['user']}@127.0.0.1:{port}/{name}?sslmode=disable"
        try:
            await _until_ready(url, process, folder)
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


async def _until_ready(url: str, process: "subprocess.Popen[bytes]", folder: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                connection = await asyncpg.connect(url, timeout=5, statement_cache_size=0)
                await connection.close(timeout=5)
                return
            except (OSError, asyncpg.PostgresError):
                if process.poll() is not None:
                    raise RuntimeError((folder / "pgbouncer.log").read_text()) from None
                await asyncio.sleep(0.02)
