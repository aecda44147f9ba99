"""Sections that a tool writes into hand-written pages, between comments that readers do not see."""

import re
from collections.abc import Mapping
from pathlib import Path

BEGIN = "<!-- generated: {} -->"
END = "<!-- end -->"
_SECTION = re.compile(r"<!-- generated: (?P<name>[^>]+) -->\n.*?<!-- end -->", re.S)


def with_sections(page: Path, sections: Mapping[str, str]) -> str:
    """The text of the page with these sections in place of those that it has.

    Raises ValueError if the page lacks one, or has one that no tool writes.
    """
    text = page.read_text(encoding="utf-8")
    found = sorted(one["name"] for one in _SECTION.finditer(text))
    if found != sorted(sections):
        difference = sorted(set(found) ^ set(sections)) or "one of them twice"
        raise ValueError(f"{page.name}: sections and their tool differ: {difference}")

    def section(match: re.Match[str]) -> str:
        name = match["name"]
        return f"{BEGIN.format(name)}\n\n{sections[name].strip()}\n\n{END}"

    return _SECTION.sub(section, text)


def table(*rows: tuple[str, ...]) -> str:
    """A table of Markdown; the first row is its head. Pipes in cells are escaped."""
    head, *rest = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    rule = "|".join(["---"] * len(rows[0]))
    return "\n".join([f"| {head} |", f"|{rule}|", *(f"| {row} |" for row in rest)])
