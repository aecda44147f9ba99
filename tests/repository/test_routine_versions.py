"""Versions of routines: they follow from the files, and only ever rise."""

import re
from itertools import pairwise
from pathlib import Path

from engine.store.schema.routine_versions import (
    RoutineVersion,
    SqlFile,
    digest_of,
    own_version,
    released_versions,
    version_of,
)

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
OLD, NEW = [SqlFile("1_a.sql", "select 1")], [SqlFile("1_a.sql", "select 2")]
RELEASED = [RoutineVersion(1, True, digest_of(OLD))]


def test_released_versions_rise_by_one_and_each_differs_from_the_one_before() -> None:
    released = released_versions()
    assert [one.number for one in released] == list(range(1, len(released) + 1))
    assert all(re.fullmatch(r"[0-9a-f]{64}", one.digest) for one in released)
    assert all(before.digest != after.digest for before, after in pairwise(released))


def test_a_changed_routine_raises_the_version() -> None:
    """Also one that has become what an earlier version was."""
    assert version_of(OLD, RELEASED) == RELEASED[0]
    changed = version_of(NEW, RELEASED)
    assert (changed.number, changed.released) == (2, False)
    released = [*RELEASED, RoutineVersion(2, True, digest_of(NEW))]
    assert version_of(NEW, released) == released[1]
    assert version_of(OLD, released).number == 3
    assert version_of(OLD, []).number == 1


def test_a_release_records_its_routines() -> None:
    """Before a release, `make routines-version` adds what is missing."""
    text = CHANGELOG.read_text()
    unreleased = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if unreleased is None or not unreleased[1].strip():
        assert own_version().released
