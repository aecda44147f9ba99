"""Each command of the tutorial, the guides, the examples and the README is executed by a test, or
listed with the reason why no test executes it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import test_example_pages as example_pages
from tests.e2e.test_guides import DOCS, GUIDES, SET_UP
from tests.e2e.test_readme import QUICKSTART
from tests.e2e.unexecuted_commands import UNEXECUTED
from tests.support.page_commands import ROOT, Command, commands, page_command

#: In the order of the list.
PAGES = sorted(
    [*DOCS.glob("tutorial/*.md"), *DOCS.glob("how-to/*.md"), *ROOT.glob("examples/**/*.md"),
     ROOT / "README.md"]
)  # fmt: skip


def commands_of(text: str) -> list[str]:
    return [one.text for one in commands(text) if isinstance(one, Command)]


def calls_of_page_command() -> Iterator[tuple[Path, str]]:
    """Page and beginning of each command that a test takes from the page by itself."""
    for file in (ROOT / "tests").rglob("test_*.py"):
        text = file.read_text()
        if file == Path(__file__) or f"{page_command.__name__}(" not in text:
            continue
        module = ast.parse(text)
        constants: dict[str, str] = {
            ast.unparse(node.targets[0]): str(node.value.value)
            for node in module.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == page_command.__name__:
                page, beginning = (
                    constants[one.id] if isinstance(one, ast.Name) else ast.literal_eval(one)
                    for one in node.args
                )
                yield ROOT / page, beginning


#: The beginnings of such commands, by page.
TAKEN: dict[Path, set[str]] = {}
for _page, _beginning in calls_of_page_command():
    TAKEN.setdefault(_page, set()).add(_beginning)


def executed_commands(page: Path) -> set[str]:
    """Those that a test executes, or replaces by its own server and environment."""
    found = {one for one in commands_of(page.read_text()) if one.startswith(SET_UP)}
    for guide in GUIDES:
        if (DOCS / guide.page).resolve() == page:
            found |= {
                one for one in commands_of(page.read_text()) if not one.startswith(guide.left_out)
            }
    for section in example_pages.ALL_SECTIONS:
        if (DOCS / section.page).resolve() == page:
            found |= {
                one for one in commands_of(section.text) if not one.startswith(section.left_out)
            }
    taken = tuple(TAKEN.get(page, ()))
    found |= {one for one in commands_of(page.read_text()) if one.startswith(taken)}
    return found | set(commands_of(QUICKSTART) if page == ROOT / "README.md" else ())


@pytest.mark.parametrize("page", PAGES, ids=lambda one: str(one.relative_to(ROOT)))
def test_each_command_is_executed_or_listed_with_a_reason(page: Path) -> None:
    listed = UNEXECUTED.get(str(page.relative_to(ROOT)), {})
    left = [one for one in commands_of(page.read_text()) if one not in executed_commands(page)]
    missing = [one for one in left if not one.startswith(tuple(listed))]
    assert not missing
    unused = [start for start in listed if not any(one.startswith(start) for one in left)]
    assert not unused, "a test executes them, or the page does not have them"


def test_only_existing_pages_are_listed() -> None:
    assert {*UNEXECUTED} <= {str(one.relative_to(ROOT)) for one in PAGES}


@pytest.mark.parametrize("page", TAKEN, ids=lambda one: str(one.relative_to(ROOT)))
def test_each_taken_command_is_on_its_page(page: Path) -> None:
    for beginning in TAKEN[page]:
        page_command(str(page), beginning)  # exactly one command begins so
