"""Every recorded response of Heat is compared with Headgate's; each difference is a listed one.

A test fails for a difference that is not listed in differences.py, for a listed one that does not
exist any more, and for one that the documentation does not have.
"""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.compat.hot.cases import RECORDED, TABLES, digest
from tests.compat.hot.comparison import difference_of
from tests.compat.hot.differences import DIFFERENCES, Difference
from tests.compat.hot.headgate_responses import ask_all
from tests.support.program import program

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "heat-differences.md"
REMEDY = "run `make heat-answers`"


def recorded(table: str) -> dict[str, Any]:
    return dict(json.loads((RECORDED / f"{table}.json").read_text())["answers"])


def listed(table: str) -> list[Difference]:
    return [one for one in DIFFERENCES if any(each.startswith(table) for each in one.cases)]


@pytest.mark.parametrize("table", TABLES)
async def test_responses_are_those_of_heat(database_url: str, table: str) -> None:
    cases, heat = list(TABLES[table]()), recorded(table)
    assert [one["name"] for one in cases] == list(heat), f"cases changed: {REMEDY}"
    changed = [one["name"] for one in cases if heat[one["name"]]["digest"] != digest(one)]
    assert not changed, f"cases changed: {REMEDY}"
    async with program(database_url) as run:
        ours = await ask_all(run, cases)
    faults = [name for name, answer in ours.items() if answer.get("status", 400) in range(500, 600)]
    assert not faults
    wrong: list[str] = []
    seen: set[tuple[str, str]] = set()
    for name, answer in heat.items():
        kind = difference_of(answer, ours[name])
        if kind is None:
            continue
        covering = [one for one in listed(table) if one.covers(name, kind)]
        seen.update((one.key, pattern) for one in covering for pattern in one.matching(name))
        if not covering:
            wrong.append(f"{name}: {kind}\n  Heat: {answer}\n  here: {ours[name]}")
    assert not wrong, "\n".join(wrong)
    stale = [
        (one.key, pattern)
        for one in listed(table)
        for pattern in one.cases
        if pattern.startswith(table) and (one.key, pattern) not in seen
    ]
    assert not stale, f"no difference any more: {stale}"


async def test_the_list_of_versions_is_that_of_heat_and_the_own_version(database_url: str) -> None:
    (case,) = [one for one in TABLES["versions"]() if one["name"] == "versions/all"]
    async with program(database_url) as run:
        ours = (await ask_all(run, [case]))["versions/all"]["response"]
    assert ours[:-1] == recorded("versions")["versions/all"]["response"]
    assert ours[-1]["version"] == "heat_template_version.2026-12-01"


def test_the_names_of_cases_are_unique() -> None:
    names = [one["name"] for cases_of in TABLES.values() for one in cases_of()]
    assert len(set(names)) == len(names) >= 400


def test_the_documentation_has_exactly_the_listed_differences() -> None:
    tables = PAGE.read_text().partition("## Messages of errors")[0]
    named = re.findall(r"^\| `([a-z-]+)` \|", tables, re.MULTILINE)
    assert sorted(named) == sorted({one.key for one in DIFFERENCES})


def test_every_pattern_matches_a_case() -> None:
    names = [one["name"] for cases_of in TABLES.values() for one in cases_of()]
    for one in DIFFERENCES:
        for pattern in one.cases:
            assert any(fnmatchcase(name, pattern) for name in names), (one.key, pattern)
