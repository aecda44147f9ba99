"""Every recorded answer of Heat's against ours; each difference is a listed one.

A test fails for a case that differs and is not listed (differences.py), for a listed difference
that is none any more, and for one that the documentation does not name.
"""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.compat.hot.cases import RECORDED, TABLES, digest
from tests.compat.hot.comparing import unlike
from tests.compat.hot.differences import DIFFERENCES, Difference
from tests.compat.hot.ours import ask_all
from tests.support.program import program

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "heat-differences.md"
AGAIN = "run `make heat-answers`"


def recorded(table: str) -> dict[str, Any]:
    return dict(json.loads((RECORDED / f"{table}.json").read_text())["answers"])


def listed(table: str) -> list[Difference]:
    return [one for one in DIFFERENCES if any(each.startswith(table) for each in one.cases)]


@pytest.mark.parametrize("table", TABLES)
async def test_a_template_means_here_what_it_means_in_heat(database_url: str, table: str) -> None:
    cases, heat = list(TABLES[table]()), recorded(table)
    assert [one["name"] for one in cases] == list(heat), f"cases changed: {AGAIN}"
    changed = [one["name"] for one in cases if heat[one["name"]]["asked"] != digest(one)]
    assert not changed, f"cases changed: {AGAIN}"
    async with program(database_url) as run:
        ours = await ask_all(run, cases)
    faults = [name for name, answer in ours.items() if answer.get("status", 400) in range(500, 600)]
    assert not faults
    wrong: list[str] = []
    seen: set[tuple[str, str]] = set()
    for name, answer in heat.items():
        how = unlike(answer, ours[name])
        if how is None:
            continue
        covering = [one for one in listed(table) if one.covers(name, how)]
        seen.update((one.key, pattern) for one in covering for pattern in one.matching(name))
        if not covering:
            wrong.append(f"{name}: {how}\n  Heat: {answer}\n  here: {ours[name]}")
    assert not wrong, "\n".join(wrong)
    stale = [
        (one.key, pattern)
        for one in listed(table)
        for pattern in one.cases
        if pattern.startswith(table) and (one.key, pattern) not in seen
    ]
    assert not stale, f"no difference any more: {stale}"


def test_every_case_is_asked_for_once() -> None:
    names = [one["name"] for made in TABLES.values() for one in made()]
    assert len(set(names)) == len(names) >= 400


def test_every_difference_is_in_the_documentation_and_nothing_else() -> None:
    named = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(named) == sorted({one.key for one in DIFFERENCES})


def test_patterns_name_cases() -> None:
    names = [one["name"] for made in TABLES.values() for one in made()]
    for one in DIFFERENCES:
        for pattern in one.cases:
            assert any(fnmatchcase(name, pattern) for name in names), (one.key, pattern)
