"""Links of the docs to files of the repository lead to their copies in the site."""

import re
from pathlib import Path

import pytest

from tools.docs_site import REMOTE_SHIM, linked_files, replaced_links

ROOT = Path(__file__).parents[2]


def test_the_navigation_has_every_page() -> None:
    listed = re.findall(r"[\w./-]+\.md$", (ROOT / "mkdocs.yml").read_text(), re.M)
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").glob("**/*.md")}
    assert pages - set(listed) == set()
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("how-to/a.md", "[b](b.md#c)", "[b](b.md#c)"),
        ("how-to/a.md", "[b](../reference/b.md)", "[b](../reference/b.md)"),
        ("how-to/a.md", "![b](../images/b.png)", "![b](../images/b.png)"),
        ("how-to/a.md", "[b](../../README.md#c)", "[b](../repository/README.md#c)"),
        ("README.md", "[b](../config.toml)", "[b](repository/config.toml)"),
        ("how-to/a.md", "[b](https://example.org/b)", "[b](https://example.org/b)"),
        ("how-to/a.md", "[b](#c)", "[b](#c)"),
        ("how-to/a.md", "`[b](../../c)`\n\n```\n[b](../../c)\n```", None),
        ("repository/README.md", "[b](docs/how-to/a.md)", "[b](../how-to/a.md)"),
        ("repository/x/README.md", "[b](b.py)", "[b](b.py)"),
        ("repository/x/README.md", "[b](../docs/a.md)", "[b](../../a.md)"),
    ],
)
def test_a_link_leads_to_the_file_in_the_site(page: str, text: str, expected: str | None) -> None:
    assert replaced_links(page, text) == (text if expected is None else expected)


def test_files_that_copied_pages_link_to_are_copied_too(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "README.md").write_text("[b](b.py) [d](../docs/d.md) [e](missing.py)")
    (tmp_path / "x" / "b.py").write_text("")
    pages = {"how-to/a.md": "[x](../../x/README.md) [b](b.md) `[c](../../x/c.py)`"}
    assert list(linked_files(tmp_path, pages)) == ["x/README.md", "x/b.py"]


def test_a_script_from_elsewhere_is_found() -> None:
    tag = '<script src="https://cdn.example/iframe-worker/shim"></script>'
    assert REMOTE_SHIM.sub("local.js", tag) == '<script src="local.js"></script>'
