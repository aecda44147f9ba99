"""The account that runs the programs of Headgate::Command. It must not be able to read the server's
files."""

import os
import pwd
import stat
from pathlib import Path

from engine.errors import Unavailable
from engine.types.command import RunAs
from hub.settings.resource_types import CommandSection
from hub.settings.settings import Settings

#: In place of an account: the account of the server. Allowed in mode none only.
SERVER = "server"
_PLACE = "[resource_types.command] run_as"


def find_run_as(settings: CommandSection) -> RunAs | None:
    """The configured account; None if it does not exist or this process cannot switch to it."""
    if settings.run_as == SERVER:
        return RunAs(SERVER)
    if os.geteuid() != 0 or not settings.run_as:
        return None
    try:
        entry = pwd.getpwnam(settings.run_as)
    except KeyError:
        return None
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return RunAs(entry.pw_name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir)


def check_run_as(settings: Settings) -> None:
    """Raise Unavailable unless commands run as an account that cannot read the server's files."""
    command = settings.resource_types.command
    if not command.enabled:
        return
    if command.run_as == SERVER:
        if settings.auth.mode != "none":
            raise _refusal(
                f'run_as = "server" is allowed with [auth] mode none only, not'
                f" {settings.auth.mode}: commands could read the server's keys",
                "Name an account that has no other use",
            )
        return
    found = find_run_as(command)
    if found is None:
        raise _refusal(*_missing_account(command.run_as))
    if found.uid == 0:
        raise _refusal("commands may not run as root", "Name another account")
    for path in _files(settings):
        if _can_read(found, path):
            raise _refusal(
                f"the account {found.name}, which runs commands, can read {path}",
                f"Name another account, or protect the file with `chmod go-rwx {path}`",
            )


def _missing_account(name: str) -> tuple[str, str]:
    if not name:
        return (
            "Headgate::Command is enabled, but no account is named to run its programs",
            "Name an account that has no other use, and start the server as root",
        )
    if os.geteuid() != 0:
        return (
            f"the server runs as an account that cannot start programs as {name}",
            "Start the processes with the role engine as root, or disable Headgate::Command",
        )
    return f"there is no account {name}", f"Create it, for example with `useradd --system {name}`"


def _refusal(reason: str, remedy: str) -> Unavailable:
    return Unavailable(reason, place=_PLACE, remedy=remedy)


def _files(settings: Settings) -> list[Path]:
    """The existing files and directories that only the server may read."""
    data_dir = settings.database.data_dir
    files = [*settings.key_files, data_dir / "postgres", data_dir / "postgres.log"]
    return [path for path in files if path.exists()]


def _can_read(account: RunAs, path: Path) -> bool:
    """Whether an account may read a file, or list a folder."""
    real = path.resolve()
    return all(_may(account, one, 1) for one in real.parents) and _may(account, real, 4)


def _may(account: RunAs, path: Path, bit: int) -> bool:
    """bit: 4 to read, 1 to enter."""
    found = path.stat()
    if found.st_uid == account.uid:
        return bool(found.st_mode & bit << 6)
    if found.st_gid in account.groups:
        return bool(found.st_mode & bit << 3)
    return bool(stat.S_IMODE(found.st_mode) & bit)
