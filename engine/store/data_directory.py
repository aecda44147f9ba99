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
from engine.store.binaries import Account

LOCK_NAME = "headgate.lock"

#: What separates directories in lists of them, in settings of the server and in URLs.
SEPARATORS = frozenset(',"\n')

#: The longest path of a Unix socket that every system takes is 103 bytes, its name included.
SOCKET_DIRECTORY_LIMIT = 103 - len("/.s.PGSQL.65535")


class DirectoryLock:
    """Lock of the data directory of this process; the kernel releases it at the process's end."""

    def __init__(self, data_dir: Path) -> None:
        """Take the lock. Raises Unavailable, naming the process that has it."""
        descriptor = os.open(data_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise errors.Unavailable(
                f"the data directory {data_dir} is in use by another headgate, process {holder}",
                place="[database] data_dir",
                remedy="Stop that one, or name another directory with --data-dir",
            ) from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Release the lock. The file stays: otherwise, two files of its name could be locked."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def socket_directory(cluster: Path, account: Account | None) -> Path:
    """Return where the server's socket is: in the cluster, or in a short place.

    The short place is for paths that are too long or hold a comma or a quote. It is a directory
    under the temporary one, named after the cluster's real path and the server's account, which
    alone may enter it. Raises Unavailable if another account owns it.
    """
    fits = len(os.fsencode(cluster)) <= SOCKET_DIRECTORY_LIMIT
    if fits and not SEPARATORS & set(str(cluster)):
        return cluster
    told_by = os.fsencode(cluster.resolve()) + (b"\0%d" % account.uid if account else b"")
    name = hashlib.sha256(told_by).hexdigest()[:16]
    short = Path(tempfile.gettempdir(), f"headgate-{name}")
    owner = account.uid if account else os.geteuid()
    with contextlib.suppress(FileExistsError):
        short.mkdir(mode=0o700)
        if account is not None:
            os.chown(short, account.uid, account.gid, follow_symlinks=False)
    found = short.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or found.st_mode & 0o077:
        raise errors.Unavailable(
            f"the directory for the database's socket, {short}, belongs to another account",
            place="[database] data_dir",
            remedy="Remove it, or name a data directory with a shorter path",
        )
    return short


#: The one role of the server; also the name of the map below.
USER = "headgate"
HBA = f"""\
# Written by Headgate at each start: one account of this machine, and who started the server.
local all {USER} peer map={USER}
"""
OPEN_LOG = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


def close_access(cluster: Path, account: Account | None) -> None:
    """Let only the given account and that of this process log in (peer authentication)."""
    names = {account.name} if account else set()
    names.add(pwd.getpwuid(os.geteuid()).pw_name)
    lines = "".join(f'{USER} "{name}" {USER}\n' for name in sorted(names))
    _replace(cluster / "pg_ident.conf", f"# Written by Headgate at each start.\n{lines}", account)
    _replace(cluster / "pg_hba.conf", HBA, account)


def _replace(path: Path, text: str, account: Account | None) -> None:
    """Replace a file without following links that the cluster's account made."""
    partial = path.with_name(f"{path.name}.new")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        if account is not None:
            os.fchown(descriptor, account.uid, account.gid)
        file.write(text)
    partial.replace(path)


def give_to(cluster: Path, account: Account) -> None:
    """Change the owner of a cluster's files to the account. The server must be stopped."""
    owner = cluster.stat().st_uid
    if owner == account.uid:
        return
    for _, directories, files, folder in os.fwalk(cluster, follow_symlinks=False):
        for name in (*directories, *files):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if found.st_uid == owner:
                os.chown(name, account.uid, account.gid, dir_fd=folder, follow_symlinks=False)
    os.chown(cluster, account.uid, account.gid)


def open_log(path: Path) -> int:
    """Open a log for appending, and close it to other accounts."""
    descriptor = os.open(path, OPEN_LOG, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor
