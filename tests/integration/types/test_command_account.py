"""The account for programs of Headgate::Command: required, and without access to the server's
files.
"""

import asyncio
import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from engine.errors import Unavailable
from hub.program.app import ROLES, running
from hub.program.command_account import check_run_as, find_run_as
from hub.settings.settings import Settings, load_settings
from tests.support.keys import key_file

OTHER_ACCOUNT = "nobody"
IS_ROOT = os.geteuid() == 0


def settings(folder: Path, run_as: str, **more: Any) -> Settings:
    values = {
        "resource_types.command.enabled": True,
        "resource_types.command.run_as": run_as,
        "database.data_dir": folder / "data",
    }
    return load_settings(None, values | more, environment={})


def refused(loaded: Settings) -> str:
    with pytest.raises(Unavailable) as found:
        check_run_as(loaded)
    assert found.value.finding.place == "[resource_types.command] run_as"
    assert found.value.finding.remedy
    return found.value.finding.reason


def test_without_the_type_no_account_is_required(tmp_path: Path) -> None:
    check_run_as(load_settings(None, {"database.data_dir": tmp_path}, environment={}))


def test_an_account_is_required(tmp_path: Path) -> None:
    assert "no account is named" in refused(settings(tmp_path, ""))


def test_the_servers_own_account_is_accepted_in_mode_none_only(tmp_path: Path) -> None:
    check_run_as(settings(tmp_path, "server"))
    assert "mode none only" in refused(settings(tmp_path, "server", **{"auth.mode": "tokens"}))


@pytest.mark.skipif(not IS_ROOT, reason="another refusal comes first")
def test_root_and_unknown_accounts_are_refused(tmp_path: Path) -> None:
    assert "may not run as root" in refused(settings(tmp_path, "root"))
    assert "there is no account" in refused(settings(tmp_path, "no-such-account"))


def test_only_root_can_start_programs_as_another_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    loaded = settings(tmp_path, OTHER_ACCOUNT)
    assert find_run_as(loaded.resource_types.command) is None
    assert f"cannot start programs as {OTHER_ACCOUNT}" in refused(loaded)


@pytest.mark.skipif(not IS_ROOT, reason="only root starts programs as another account")
def test_an_account_that_can_read_the_servers_keys_is_refused(data_directory: Path) -> None:
    """By mode, owner or group; a closed directory above the file is sufficient."""
    data_directory.mkdir(mode=0o711)
    key, other = data_directory / "credentials.key", pwd.getpwnam(OTHER_ACCOUNT)
    loaded = settings(data_directory.parent, OTHER_ACCOUNT)
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    check_run_as(loaded)
    for mode, owner, group in ((0o644, 0, 0), (0o640, 0, other.pw_gid), (0o600, other.pw_uid, 0)):
        key.chmod(mode)
        os.chown(key, owner, group)
        assert f"can read {key}" in refused(loaded)
    data_directory.chmod(0o700)
    check_run_as(loaded)
    fallback = data_directory.parent / "credentials.key.old"
    fallback.write_bytes(bytes(32))
    fallback.chmod(0o644)
    more = {"credentials.fallback_key_files": [str(fallback)]}
    assert f"can read {fallback}" in refused(settings(data_directory.parent, OTHER_ACCOUNT, **more))
    fallback.unlink()
    audit = data_directory.parent / "audit.key"
    audit.write_bytes(b"key")
    audit.chmod(0o644)
    assert f"can read {audit}" in refused(
        settings(data_directory.parent, OTHER_ACCOUNT, **{"audit.key_file": str(audit)})
    )
    audit.unlink()


async def test_a_worker_process_does_not_start_without_an_account(
    database_url: str, tmp_path: Path
) -> None:
    """A process that only answers requests runs no programs."""
    loaded = settings(
        tmp_path,
        "",
        **{
            "database.url": database_url,
            "credentials.key_file": str(key_file()),
            "server.listen": "127.0.0.1:0",
        },
    )
    with pytest.raises(Unavailable, match="no account is named"):
        async with running(loaded, ROLES, asyncio.Event()):
            pass
    async with running(loaded, frozenset({"api"}), asyncio.Event()):
        pass
