"""The data directory of an embedded server: its lock, its socket, and who can access its files."""

import contextlib
import fcntl
import hashlib
import os
import pwd
import stat
import tempfile
from pathlib import Path

from engine import errors
from engine.store.embedded.binaries import Account

LOCK_NAME = "headgate.lock"

#: Separators of lists of directories in settings of the server and in URLs.
SEPARATORS = frozenset(',"\n')

#: Every system accepts paths of Unix sockets up to 103 bytes, including the name of the socket.
MAX_SOCKET_DIRECTORY_BYTES = 103 - len("/.s.PGSQL.65535")


class DirectoryLock:
    """The lock of a data directory. The kernel releases it when the process ends."""

    def __init__(self, data_dir: Path) -> None:
        """Acquire the lock. Raises Unavailable with the ID of the process that has it."""
        descriptor = os.open(data_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise errors.Unavailable(
                f"another headgate, process {holder}, uses the data directory {data_dir}",
                place="[database] data_dir",
                remedy="Stop that process, or name another directory with --data-dir",
            ) from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Release the lock. The file stays, because two processes could lock two files of its
        name."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def socket_directory(cluster: Path, account: Account | None) -> Path:
    """Return the directory of the server's socket: the cluster, or a short path.

    The short path is used if the cluster's path is too long or contains a comma or a quote. It is a
    directory in the directory for temporary files, named after the cluster's real path and the
    server's account. Only that account may enter it. Raises Unavailable if another account owns it.
    """
    fits = len(os.fsencode(cluster)) <= MAX_SOCKET_DIRECTORY_BYTES
    if fits and not SEPARATORS & set(str(cluster)):
        return cluster
    identity = os.fsencode(cluster.resolve()) + (b"\0%d" % account.uid if account else b"")
    name = hashlib.sha256(identity).hexdigest()[:16]
    short = Path(tempfile.gettempdir(), f"headgate-{name}")
    owner = account.uid if account else os.geteuid()
    with contextlib.suppress(FileExistsError):
        short.mkdir(mode=0o700)
        if account is not None:
            os.chown(short, account.uid, account.gid, follow_symlinks=False)
    status = short.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o077:
        raise errors.Unavailable(
            f"the directory of the database's socket, {short}, belongs to another account",
            place="[database] data_dir",
            remedy="Remove it, or name a data directory with a shorter path",
        )
    return short


#: The only role of the server, and the name of the map below.
USER = "headgate"
HBA = f"""\
# Headgate writes this file at each start. Only the accounts in pg_ident.conf can log in.
local all {USER} peer map={USER}
"""
OPEN_LOG = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


def restrict_access(cluster: Path, account: Account | None) -> None:
    """Allow only `account` and the account of this process to log in (peer authentication)."""
    names = {account.name} if account else set()
    names.add(pwd.getpwuid(os.geteuid()).pw_name)
    lines = "".join(f'{USER} "{name}" {USER}\n' for name in sorted(names))
    header = "# Headgate writes this file at each start.\n"
    _replace(cluster / "pg_ident.conf", header + lines, account)
    _replace(cluster / "pg_hba.conf", HBA, account)


def _replace(path: Path, text: str, account: Account | None) -> None:
    """Replace a file without following links that the cluster's account may have created."""
    partial = path.with_name(f"{path.name}.new")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        if account is not None:
            os.fchown(descriptor, account.uid, account.gid)
        file.write(text)
    partial.replace(path)


def change_owner(cluster: Path, account: Account) -> None:
    """Change the owner of a cluster's files to the account. The server must be stopped."""
    owner = cluster.stat().st_uid
    if owner == account.uid:
        return
    for _, directories, files, folder in os.fwalk(cluster, follow_symlinks=False):
        for name in (*directories, *files):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if status.st_uid == owner:
                os.chown(name, account.uid, account.gid, dir_fd=folder, follow_symlinks=False)
    os.chown(cluster, account.uid, account.gid)


def open_log(path: Path) -> int:
    """Open a log for appending. Other accounts cannot read it."""
    descriptor = os.open(path, OPEN_LOG, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor
