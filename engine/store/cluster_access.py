"""Who may use a cluster's files and log in to its server: one account, and root.

Called before each start, so that clusters of earlier versions, which let every local account in,
are closed as well.
"""

import os
import pwd
from pathlib import Path

from engine.store.binaries import Account

#: The one role of the server; also the name of the map below.
USER = "headgate"
HBA = f"""\
# Written by Headgate at each start: one account of this machine, and who started the server.
local all {USER} peer map={USER}
"""
OPEN_LOG = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


def close_access(cluster: Path, account: Account | None) -> None:
    """Have the server ask the system which account a client is."""
    names = {account.name} if account else set()
    names.add(pwd.getpwuid(os.geteuid()).pw_name)
    lines = "".join(f'{USER} "{name}" {USER}\n' for name in sorted(names))
    _replace(cluster / "pg_ident.conf", f"# Written by Headgate at each start.\n{lines}", account)
    _replace(cluster / "pg_hba.conf", HBA, account)


def _replace(path: Path, text: str, account: Account | None) -> None:
    """Links that the cluster's account has made there are not followed."""
    partial = path.with_name(f"{path.name}.new")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        if account is not None:
            os.fchown(descriptor, account.uid, account.gid)
        file.write(text)
    partial.replace(path)


def give_to(cluster: Path, account: Account) -> None:
    """Make a cluster the account's, where it was that of another one. The server must be down."""
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
    """Open a log to write at its end, also one that others could read until now."""
    descriptor = os.open(path, OPEN_LOG, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor
