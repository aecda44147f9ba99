"""What `make release` refuses."""

import re
from pathlib import Path
from typing import Any

import pytest

from tools.release import UPGRADE_NOTES, problems

ROOT = Path(__file__).parents[2]
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-01-31\n\n- New.\n"
READY: dict[str, Any] = {
    "declared": "1.2.0", "changelog": CHANGELOG, "upgrade_notes": "## 1.2.0\n",
    "tags": ["v1.1.9", "v0.9.0", "other"], "recorded": True, "changed": "",
}  # fmt: skip


def test_a_release_that_is_ready_has_no_problem() -> None:
    assert problems("1.2.0", **READY) == []
    assert problems("1.2.0", **READY | {"tags": []}) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"declared": "1.1.9"}, "pyproject.toml has version 1.1.9"),
        ({"tags": ["v1.2.0"]}, "1.2.0 is already released"),
        ({"tags": ["v1.1.0", "v1.10.0", "v1.9.0"]}, "1.10.0 is already released"),
        ({"changelog": CHANGELOG.replace("[1.2.0]", "[1.1.9]")}, "must begin with the sections"),
        ({"changelog": CHANGELOG.replace("## [Unreleased]", "")}, "must begin with the sections"),
        ({"changelog": CHANGELOG.replace("ed]\n", "ed]\n\n- Late.\n", 1)}, "has entries"),
        ({"changelog": CHANGELOG.replace(" - 2026-01-31", "")}, "has no date"),
        ({"changelog": CHANGELOG.replace("- New.\n", "")}, "has no entries"),
        ({"upgrade_notes": "## 1.2.0.1\n\n## 11.2.0\n"}, 'has no section "## 1.2.0"'),
        ({"recorded": False}, "run `make routines-version`"),
        ({"changed": " M README.md\n"}, "M README.md"),
    ],
    ids=["version", "tagged", "newest-by-number", "no-section", "no-unreleased", "late-entries",
         "date", "entries", "upgrade-notes", "routines", "changed"],
)  # fmt: skip
def test_each_problem_is_reported_with_its_remedy(changes: dict[str, Any], problem: str) -> None:
    (found,) = problems("1.2.0", **READY | changes)
    assert problem in found


@pytest.mark.parametrize("version", ["", "1.2", "v1.2.0", "1.02.0", "1.2.0rc1"])
def test_a_version_has_three_numbers(version: str) -> None:
    (found,) = problems(version, **READY)
    assert "is not a version" in found


def test_all_problems_are_reported_at_once() -> None:
    changes = {"declared": "1.1.9", "recorded": False, "changelog": "", "changed": "?? new"}
    assert len(problems("1.2.0", **READY | changes)) == 4


def test_the_changelog_has_the_form_that_a_release_requires() -> None:
    names = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert names[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", one) for one in names[1:])


def test_each_version_in_the_changelog_has_upgrade_notes_in_the_same_order() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    notes = (ROOT / UPGRADE_NOTES).read_text(encoding="utf-8")
    versions = re.findall(r"^## \[([\d.]+)\]", changelog, re.MULTILINE)
    assert re.findall(r"^## (.*)$", notes, re.MULTILINE) == ["The next release", *versions]
