"""The account that Headgate::Command runs programs as: required, and without access to our files."""

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

OTHER = "nobody"
ROOT = os.geteuid() == 0


def settings(folder: Path, run_as: str, **more: Any) -> Settings:
    said = {
        "resource_types.command.enabled": True,
        "resource_types.command.run_as": run_as,
        "database.data_dir": folder / "data",
    }
    return load_settings(None, said | more, environment={})


def refused(of: Settings) -> str:
    with pytest.raises(Unavailable) as found:
        check_run_as(of)
    assert found.value.finding.place == "[resource_types.command] run_as"
    assert found.value.finding.remedy
    return found.value.finding.reason


def test_off_needs_no_account(tmp_path: Path) -> None:
    check_run_as(load_settings(None, {"database.data_dir": tmp_path}, environment={}))


def test_an_account_has_to_be_named(tmp_path: Path) -> None:
    assert "no account is named" in refused(settings(tmp_path, ""))


def test_the_servers_own_account_is_for_trying_out(tmp_path: Path) -> None:
    check_run_as(settings(tmp_path, "server"))
    assert "mode none only" in refused(settings(tmp_path, "server", **{"auth.mode": "tokens"}))


@pytest.mark.skipif(not ROOT, reason="another refusal comes first")
def test_neither_root_nor_an_account_that_is_not_there(tmp_path: Path) -> None:
    assert "may not run as root" in refused(settings(tmp_path, "root"))
    assert "there is no account" in refused(settings(tmp_path, "no-such-account"))


def test_only_root_can_start_programs_as_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    of = settings(tmp_path, OTHER)
    assert find_run_as(of.resource_types.command) is None
    assert f"cannot start programs as {OTHER}" in refused(of)


@pytest.mark.skipif(not ROOT, reason="only root starts programs as another account")
def test_the_account_may_not_read_what_is_the_servers(data_directory: Path) -> None:
    """By its mode, by its owner, by a group; a closed folder above it is enough."""
    data_directory.mkdir(mode=0o711)
    key, other = data_directory / "credentials.key", pwd.getpwnam(OTHER)
    of = settings(data_directory.parent, OTHER)
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    check_run_as(of)
    for mode, owner, group in ((0o644, 0, 0), (0o640, 0, other.pw_gid), (0o600, other.pw_uid, 0)):
        key.chmod(mode)
        os.chown(key, owner, group)
        assert f"may read {key}" in refused(of)
    data_directory.chmod(0o700)
    check_run_as(of)
    fallback = data_directory.parent / "credentials.key.old"
    fallback.write_bytes(bytes(32))
    fallback.chmod(0o644)
    more = {"credentials.fallback_key_files": [str(fallback)]}
    assert f"may read {fallback}" in refused(settings(data_directory.parent, OTHER, **more))
    fallback.unlink()
    audit = data_directory.parent / "audit.key"
    audit.write_bytes(b"key")
    audit.chmod(0o644)
    assert f"may read {audit}" in refused(
        settings(data_directory.parent, OTHER, **{"audit.key_file": str(audit)})
    )
    audit.unlink()


async def test_a_process_that_works_does_not_start_without_it(
    database_url: str, tmp_path: Path
) -> None:
    """One that only answers requests runs no programs."""
    of = settings(
        tmp_path,
        "",
        **{
            "database.url": database_url,
            "credentials.key_file": str(key_file()),
            "server.listen": "127.0.0.1:0",
        },
    )
    with pytest.raises(Unavailable, match="no account is named"):
        async with running(of, ROLES, asyncio.Event()):
            pass
    async with running(of, frozenset({"api"}), asyncio.Event()):
        pass
