"""The generated pages and tables of the reference show what the code has."""

from pathlib import Path

import pytest

from tools.generated_sections import with_sections
from tools.reference_pages import PAGES, REFERENCE


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_page_is_what_the_tool_writes(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == PAGES[name](), "run `make reference`"


def test_a_section_that_no_tool_writes_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- generated: x -->\nold\n<!-- end -->\nb")
    assert with_sections(page, {"x": "new"}) == (
        "a\n<!-- generated: x -->\n\nnew\n\n<!-- end -->\nb"
    )
    for sections in ({}, {"x": "new", "y": "new"}):
        with pytest.raises(ValueError, match=r"page\.md"):
            with_sections(page, sections)
