"""The code of docs/how-to/write-a-listener.md runs as written."""

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to"


def code_blocks(page: str) -> list[str]:
    return re.findall(r"^ *```python\n(.*?)^ *```", (HOW_TO / page).read_text(), re.M | re.S)


async def test_the_handlers_of_the_guide_pass_its_test() -> None:
    handlers, *_, test = code_blocks("write-a-listener.md")
    names: dict[str, Any] = {"__name__": "guide"}
    exec(handlers, names)
    exec(test, names)
    await names["test_a_large_database_is_kept"]()


@pytest.mark.parametrize("page", ["write-a-listener.md", "answer-a-hook.md"])
def test_each_example_is_valid_python(page: str) -> None:
    found = code_blocks(page)
    assert found
    for code in found:
        compile(dedent(code), page, "exec")
