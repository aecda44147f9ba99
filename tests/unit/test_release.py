"""`make release`: what it refuses, and what it tags."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tools.release import problems

ROOT = Path(__file__).parents[2]
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-01-31\n\n- New.\n"
READY: dict[str, Any] = {
    "declared": "1.2.0", "changelog": CHANGELOG, "tags": ["v1.1.9", "v0.9.0", "other"],
    "recorded": True, "changed": "",
}  # fmt: skip
#: Git's own settings, whatever those of the machine are.
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "ann", "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "ann", "GIT_COMMITTER_EMAIL": "ann@example.org",
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
        ({"recorded": False}, "run `make routines-version`"),
        ({"changed": " M README.md\n"}, "M README.md"),
    ],
    ids=["version", "tagged", "newest-by-number", "no-section", "no-unreleased", "late-entries",
         "date", "entries", "routines", "changed"],
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


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of a repository with the files of this work tree that a release reads."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    for folder in ("engine", "tools"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, origin / folder, ignore=ignored)
    for name in ("CHANGELOG.md", "Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, origin / name)
    (origin / ".gitignore").write_text("__pycache__\n")
    git(origin, "init", "--quiet")
    commit(origin)
    git(tmp_path, "clone", "--quiet", str(origin), str(clone))
    return clone


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=folder, env=os.environ | GIT, check=True, capture_output=True,
        text=True, timeout=60,
    ).stdout  # fmt: skip


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "A change")


def make_release(clone: Path, version: str) -> subprocess.CompletedProcess[str]:
    """`make release`, with the Python of the tests in place of a new virtual environment."""
    return subprocess.run(
        ["make", "--no-print-directory", "--old-file", ".venv/.ready", "release",
         f"PYTHON={sys.executable}", f"VERSION={version}"],
        cwd=clone, env=os.environ | GIT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def prepare(clone: Path, version: str) -> None:
    """What CONTRIBUTING.md says to do before `make release`."""
    project, changelog = clone / "pyproject.toml", clone / "CHANGELOG.md"
    old = tomllib.loads(project.read_text())["project"]["version"]
    text = project.read_text().replace(f'\nversion = "{old}"\n', f'\nversion = "{version}"\n')
    project.write_text(text)
    heading = f"## [Unreleased]\n\n## [{version}] - 2026-01-31\n\n- A change.\n"
    changelog.write_text(changelog.read_text().replace("## [Unreleased]\n", heading, 1))
    subprocess.run(
        [sys.executable, "-m", "tools.record_routines"], cwd=clone, check=True, timeout=60
    )
    commit(clone)


def test_a_release_is_tagged_in_the_clone_alone_and_only_once(clone: Path, tmp_path: Path) -> None:
    refused = make_release(clone, "9.8.7")
    assert refused.returncode != 0 and "pyproject.toml has version" in refused.stderr
    assert git(clone, "tag") == ""
    prepare(clone, "9.8.7")
    done = make_release(clone, "9.8.7")
    assert done.returncode == 0, done.stderr
    assert "git push origin v9.8.7" in done.stdout
    assert git(clone, "tag") == "v9.8.7\n"
    assert git(clone, "cat-file", "-t", "v9.8.7") == "tag\n"
    assert git(clone, "rev-parse", "v9.8.7^{commit}") == git(clone, "rev-parse", "HEAD")
    assert git(tmp_path / "origin", "tag") == ""
    again = make_release(clone, "9.8.7")
    assert again.returncode != 0 and "9.8.7 is already released" in again.stderr
    assert make_release(clone, "").returncode != 0
