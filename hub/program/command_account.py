"""The account that programs of Headgate::Command run as, which may not read the server's files."""

import os
import pwd
import stat
from pathlib import Path

from engine.errors import Unavailable
from engine.types.command import RunAs
from hub.settings.resource_types import Command
from hub.settings.settings import Settings

#: In place of an account: the server's own. For trying things out, on loopback alone.
SERVER = "server"
_PLACE = "[resource_types.command] run_as"


def find_run_as(settings: Command) -> RunAs | None:
    """The account that is named; None where there is none that this process can become."""
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
            raise _refused(
                f'run_as = "server" is allowed with [auth] mode none only, not'
                f" {settings.auth.mode}: commands could read the server's keys",
                "Name an account that is used for nothing else",
            )
        return
    found = find_run_as(command)
    if found is None:
        raise _refused(*_why_none(command.run_as))
    if found.uid == 0:
        raise _refused("commands may not run as root", "Name another account")
    for path in _files(settings):
        if _reads(found, path):
            raise _refused(
                f"the account {found.name} that commands run as may read {path}",
                f"Name another account, or close the file with `chmod go-rwx {path}`",
            )


def _why_none(name: str) -> tuple[str, str]:
    if not name:
        return (
            "Headgate::Command is enabled, but no account is named to run its programs",
            "Name an account that is used for nothing else, and start the server as root",
        )
    if os.geteuid() != 0:
        return (
            f"the server runs as an account that cannot start programs as {name}",
            "Have root start the processes with the role engine, or turn Headgate::Command off",
        )
    return f"there is no account {name}", f"Make it, such as with `useradd --system {name}`"


def _refused(reason: str, remedy: str) -> Unavailable:
    return Unavailable(reason, place=_PLACE, remedy=remedy)


def _files(settings: Settings) -> list[Path]:
    """What only the server may read, of what is there."""
    webhook, amqp = settings.channels.webhook, settings.channels.amqp
    http, data_dir = settings.resource_types.http, settings.database.data_dir
    named = [webhook.signing_key_file, webhook.key_file, amqp.key_file, settings.server.key_file]
    named += [http.key_file, *(one.secret_file for one in http.credentials.values())]
    named += settings.credentials.fallback_key_files
    files = [settings.credentials.path(data_dir), settings.audit.key_path(data_dir)]
    files += [data_dir / "postgres", data_dir / "postgres.log"]
    return [path for path in (*files, *map(Path, filter(None, named))) if path.exists()]


def _reads(account: RunAs, path: Path) -> bool:
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
