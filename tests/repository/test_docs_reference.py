"""The generated pages of the reference show the commands and settings as they are."""

import pytest

from tools.reference_pages import PAGES, REFERENCE


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_page_is_what_the_tool_writes(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == PAGES[name](), "run `make reference`"
