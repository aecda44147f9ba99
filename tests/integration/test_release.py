"""`make release` in a clone of the repository tags a release that is ready, once."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.release import UPGRADE_NOTES

ROOT = Path(__file__).parents[2]
#: Git settings that do not depend on the machine.
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "ann", "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "ann", "GIT_COMMITTER_EMAIL": "ann@example.org",
}  # fmt: skip


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of a repository with the files of this work tree that a release reads."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    for folder in ("engine", "tools"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, origin / folder, ignore=ignored)
    (origin / UPGRADE_NOTES).parent.mkdir(parents=True)
    for name in ("CHANGELOG.md", "Makefile", "pyproject.toml", UPGRADE_NOTES):
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
    """`make release`, with the Python of the tests instead of a new virtual environment."""
    return subprocess.run(
        ["make", "--no-print-directory", "--old-file", ".venv/.ready", "release",
         f"PYTHON={sys.executable}", f"VERSION={version}"],
        cwd=clone, env=os.environ | GIT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def prepare(clone: Path, version: str) -> None:
    """The steps that CONTRIBUTING.md requires before `make release`."""
    project, changelog = clone / "pyproject.toml", clone / "CHANGELOG.md"
    old = tomllib.loads(project.read_text())["project"]["version"]
    text = project.read_text().replace(f'\nversion = "{old}"\n', f'\nversion = "{version}"\n')
    project.write_text(text)
    heading = f"## [Unreleased]\n\n## [{version}] - 2026-01-31\n\n- A change.\n"
    changelog.write_text(changelog.read_text().replace("## [Unreleased]\n", heading, 1))
    notes, next_release = clone / UPGRADE_NOTES, "## The next release\n"
    text = notes.read_text().replace(next_release, f"{next_release}\n## {version}\n", 1)
    notes.write_text(text)
    subprocess.run(
        [sys.executable, "-m", "tools.record_routines"], cwd=clone, check=True, timeout=60
    )
    commit(clone)


def test_a_release_is_tagged_once_in_the_local_repository(clone: Path, tmp_path: Path) -> None:
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
    repeated = make_release(clone, "9.8.7")
    assert repeated.returncode != 0 and "9.8.7 is already released" in repeated.stderr
    assert make_release(clone, "").returncode != 0
