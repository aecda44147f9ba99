"""Adds positions and quoted lines to errors and warnings about the texts of a request.

Call it only if there are findings: it parses each text that has one again.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from engine.errors import ENVIRONMENT, TEMPLATE, Finding
from engine.hot.syntax.positions import Position, find_positions

#: Maximum characters of a quoted line, and of those before its column.
MAX_EXCERPT_LENGTH: Final = 120
BEFORE: Final = 60
#: Places that are in the environment, and places that are in no document.
_IN_ENVIRONMENT: Final = re.compile(
    "(resource_registry|parameter_defaults|event_sinks|encrypted_param_names"
    r"|parameter_merge_strategies|convergence|context)\b"
)
_IN_NO_DOCUMENT: Final = re.compile(r"hooks\.(add|clear)\b")
_LINE_BREAK: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


def locate(
    findings: Iterable[Finding], texts: Mapping[str, str], environments: Sequence[str] = ()
) -> list[Finding]:
    """Return the findings with line, column and quote, where a text has their place.

    texts: the template, the environment (`TEMPLATE`, `ENVIRONMENT`) and the files, by name. Only
    what the requester has sent: the lines are quoted. environments: names of the files that are
    merged to the environment.
    """
    found = [one.in_file(_file_of(one)) for one in findings]
    for file in dict.fromkeys((ENVIRONMENT, *(one.file for one in found))):
        names = reversed(environments) if file == ENVIRONMENT and environments else (file,)
        for name in names:
            if (text := texts.get(name)) is not None:
                found = _locate_in(text, file, name, found)
    return found


def _locate_in(text: str, file: str, name: str, findings: Sequence[Finding]) -> list[Finding]:
    """Locate the findings of a file in a text. name: of the file that has the text."""
    concerned = [one for one in findings if one.file == file]
    places = {_place(one) for one in concerned if not one.line}
    positions = find_positions(text, places) if places else {}
    lines = _LINE_BREAK.split(text)
    return [
        _locate_one(one, name, positions, lines) if one.file == file else one for one in findings
    ]


def _file_of(one: Finding) -> str:
    return ENVIRONMENT if _IN_ENVIRONMENT.match(one.place) else TEMPLATE


def _place(one: Finding) -> str:
    place = one.place if one.inner_place is None else one.inner_place
    return "" if _IN_NO_DOCUMENT.match(place) else place


def _locate_one(
    one: Finding, name: str, positions: Mapping[str, Position], lines: Sequence[str]
) -> Finding:
    known = Position(one.line, one.column) if one.line else positions.get(_place(one))
    if known is None and one.inner_place and one.file == name:
        known = Position(1, 1)  # the text lacks what should be there
    if known is None:
        return one
    if one.file != name and known.matched < len(_place(one)):
        return one  # another file of the environment has it
    quote = "" if one.secret or known.line > len(lines) else _quote(lines[known.line - 1], known)
    return replace(one, file=name, line=known.line, column=known.column, quote=quote)


def _quote(line: str, position: Position) -> str:
    """Return the part of a line around a column, and below it a caret at the column."""
    at = min(position.column - 1, len(line))
    start = max(at - BEFORE, 0)
    shown = "".join(
        one if one.isprintable() else " " for one in line[start : start + MAX_EXCERPT_LENGTH]
    )
    return f"{shown}\n{' ' * (at - start)}^"
