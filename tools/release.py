"""Checks that the work tree is a release and tags it; see `make release` and CONTRIBUTING.md.

It changes nothing but the tag, and does not push it.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from engine.store.schema.routine_versions import own_version

ROOT = Path(__file__).parents[1]
UPGRADE_NOTES = "docs/reference/upgrade-notes.md"
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
SECTION = re.compile(
    r"^## \[(?P<name>[^]]+)\](?P<date>[^\n]*)\n(?P<text>.*?)(?=^## \[|\Z)", re.M | re.S
)
DATE = re.compile(r" - \d{4}-\d{2}-\d{2}")


def problems(
    version: str,
    *,
    declared: str,
    changelog: str,
    upgrade_notes: str,
    tags: Iterable[str],
    recorded: bool,
    changed: str,
) -> list[str]:
    """Why this version cannot be released, with the remedies; empty if it can be. Pure.

    declared: the version in pyproject.toml. upgrade_notes: the page. tags: of the repository.
    recorded: whether the version of the routines is. changed: the output of `git status
    --porcelain`.
    """
    if not VERSION.fullmatch(version):
        return [f'"{version}" is not a version: write MAJOR.MINOR.PATCH, such as 1.4.0']
    messages = []
    if declared != version:
        messages.append(f"pyproject.toml has version {declared}: set it to {version}")
    released = [tag[1:] for tag in tags if tag[:1] == "v" and VERSION.fullmatch(tag[1:])]
    newest = max(released, key=_number, default=None)
    if newest is not None and _number(version) <= _number(newest):
        messages.append(f"{newest} is already released: choose a greater version")
    messages += _changelog_problems(version, changelog)
    if not re.search(rf"^## {re.escape(version)}$", upgrade_notes, re.M):
        messages.append(
            f'{UPGRADE_NOTES} has no section "## {version}": describe the steps of the upgrade'
        )
    if not recorded:
        messages.append("the version of the routines is not recorded: run `make routines-version`")
    if changed:
        messages.append(f"the work tree has changes: commit them\n{changed.rstrip()}")
    return messages


def _changelog_problems(version: str, changelog: str) -> list[str]:
    sections = list(SECTION.finditer(changelog))
    names = [section["name"] for section in sections]
    if names[:2] != ["Unreleased", version]:
        return [f"CHANGELOG.md must begin with the sections [Unreleased] and [{version}]"]
    unreleased, section = sections[:2]
    messages = []
    if unreleased["text"].strip():
        messages.append(f"[Unreleased] in CHANGELOG.md has entries: move them to [{version}]")
    if not DATE.fullmatch(section["date"]):
        messages.append(
            f"[{version}] in CHANGELOG.md has no date: write ## [{version}] - YYYY-MM-DD"
        )
    if not section["text"].strip():
        messages.append(f"[{version}] in CHANGELOG.md has no entries: describe the release")
    return messages


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _git(*words: str) -> str:
    command = ["git", *words]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603


def main(version: str) -> int:
    """Tag the commit; returns the exit code."""
    messages = problems(
        version,
        declared=tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"],
        changelog=(ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        upgrade_notes=(ROOT / UPGRADE_NOTES).read_text(encoding="utf-8"),
        tags=_git("tag", "--list").split(),
        recorded=own_version().released,
        changed=_git("status", "--porcelain"),
    )
    for message in messages:
        print(f"release: {message}", file=sys.stderr)
    if messages:
        return 1
    _git("tag", "--annotate", "--message", f"Headgate {version}", f"v{version}")
    print(f"release: tagged v{version}; publish it with: git push origin v{version}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
