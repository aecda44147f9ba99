"""Before Python 3.11.4, what a block of `except*` raises is wrapped in an exception group: also
SystemExit and CancelledError. So these blocks only record what they have caught."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("channels", "engine", "headgate", "hub", "tests", "tools")


def raising_lines(text: str) -> list[int]:
    """The lines in blocks of `except*` that raise, exit, or wait, which a cancellation ends."""
    blocks = [
        handler
        for group in ast.walk(ast.parse(text))
        if isinstance(group, ast.TryStar)
        for handler in group.handlers
    ]
    return sorted(
        node.lineno
        for block in blocks
        for node in ast.walk(block)
        if isinstance(node, ast.Raise | ast.Await | ast.AsyncFor | ast.AsyncWith)
        or (isinstance(node, ast.Call) and ast.unparse(node.func) in ("sys.exit", "exit"))
    )


def test_blocks_of_exception_groups_do_not_raise() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if "node_modules" not in path.parts
        for text in [path.read_text(encoding="utf-8")]
        if "except*" in text and path != Path(__file__)
        for line in raising_lines(text)
    }
    assert not found


@pytest.mark.parametrize("line", ["raise", "sys.exit(1)", "await stop.wait()", "lost = 1"])
def test_a_block_that_raises_is_found(line: str) -> None:
    text = f"async def f():\n try:\n  g()\n except* OSError:\n  {line}\n"
    assert raising_lines(text) == ([] if line == "lost = 1" else [5])
