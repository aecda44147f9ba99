"""Positions in a document: where in its text a place such as ``resources.web.type`` is.

The text is read again for this, only when an error or a warning needs a position. Time and memory
are proportional to the text: paths are not built for each value.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

import yaml

from engine.errors import MAX_WARNINGS
from engine.hot.syntax.yaml_reader import DocumentReader, key_text

#: Collections in each other. The YAML scanner takes longer for each token the deeper it is: without
#: a limit, the time would grow with the square of the text.
MAX_LEVELS: Final = 500
#: Kinds of tokens: the start of a collection, its end, and a scalar.
MAP, LIST, END, SCALAR = "{", "[", "}", ""


class Token(NamedTuple):
    """text: of a scalar as a key. written: as it is in the document, if it is not text."""

    kind: str
    line: int
    column: int
    text: str = ""
    written: str = ""


class ItemPosition(NamedTuple):
    """A key of a map, or an item of a list. depth: of its collection, from 0. token: the key, or
    the number of the item.
    """

    depth: int
    token: str | int
    line: int
    column: int
    written: str = ""


class Position(NamedTuple):
    """line, column: from 1. matched: the characters of the place that the text has."""

    line: int
    column: int
    matched: int = 0


@dataclass(frozen=True, slots=True)
class IrregularKey:
    """A key that is given twice or is not text. first_line: of its first occurrence; 0: it is not
    given twice. written: the key as it is in the document.
    """

    place: str
    key: str
    line: int
    column: int
    written: str
    first_line: int = 0


#: By the first key or item number of a place: the places that may begin with it, and where the
#: rest of each begins. A place is ambiguous, because keys may have dots.
_Table = dict[str | int, list[tuple[str, int]]]


@dataclass(slots=True)
class _Level:
    """An open collection. at_key: the next value is a key. items: number of items of a list."""

    is_map: bool
    at_key: bool = True
    items: int = 0


def iterate_children(text: str, *, is_json: bool) -> Iterator[ItemPosition]:
    """Yield each key and each item, in the order of the text. Ends where the text is not valid, or
    deeper than `MAX_LEVELS`."""
    levels: list[_Level] = []
    for token in _json_tokens(text) if is_json else _yaml_tokens(text):
        if token.kind == END:
            levels.pop()
            continue
        if levels:
            here = levels[-1]
            if not here.is_map:
                yield ItemPosition(len(levels) - 1, here.items, token.line, token.column)
                here.items += 1
            elif here.at_key:
                yield ItemPosition(
                    len(levels) - 1, token.text, token.line, token.column, token.written
                )
            here.at_key = not here.at_key
        if token.kind != SCALAR:
            if len(levels) >= MAX_LEVELS:
                return
            levels.append(_Level(token.kind == MAP))


def _yaml_tokens(text: str) -> Iterator[Token]:
    loader = yaml.CSafeLoader(text)
    reader = DocumentReader(loader, 0, 0)
    anchors: dict[str, Any] = {}
    event: Any
    try:
        while type(event := loader.get_event()) is not yaml.StreamEndEvent:
            line, column = event.start_mark.line + 1, event.start_mark.column + 1
            if isinstance(event, yaml.CollectionStartEvent):
                is_map = type(event) is yaml.MappingStartEvent
                yield Token(MAP if is_map else LIST, line, column)
            elif isinstance(event, yaml.CollectionEndEvent):
                yield Token(END, line, column)
            elif type(event) is yaml.ScalarEvent:
                if event.anchor is not None:
                    anchors[event.anchor] = event
                yield Token(SCALAR, line, column, *_scalar(reader, event))
            elif type(event) is yaml.AliasEvent:
                source = anchors.get(str(event.anchor))
                yield Token(SCALAR, line, column, *(_scalar(reader, source) if source else ()))
    except (yaml.YAMLError, ValueError, OverflowError):
        return
    finally:
        loader.dispose()


def _scalar(reader: DocumentReader, event: Any) -> tuple[str, str]:
    """Return a scalar as a key, and as it is written if it is not text."""
    if event.tag is None and not event.implicit[0]:
        return event.value, ""
    value = reader.scalar_value(event)
    if not isinstance(value, str | int | float | None):  # the key `<<`
        return event.value, ""
    text, is_text = key_text(event, value)
    return text, "" if is_text else event.value or "null"


_JSON_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s{}\[\],:"]+')


def _json_tokens(text: str) -> Iterator[Token]:
    """The text must be valid JSON."""
    line, start, last = 1, 0, 0
    for found in _JSON_TOKEN.finditer(text):
        at = found.start()
        if breaks := text.count("\n", last, at):
            line, start = line + breaks, text.rindex("\n", last, at) + 1
        last, part = at, found.group()
        kind = part if part in "{[" else END if part in "}]" else SCALAR
        key = json.loads(part, strict=False) if part[0] == '"' else ""
        yield Token(kind, line, at - start + 1, key)


def find_irregular_keys(text: str, *, is_json: bool) -> list[IrregularKey]:
    """Return the keys that are given twice or are not text: one more than the maximum number of
    warnings at most.
    """
    return list(islice(_irregular_keys(text, is_json=is_json), MAX_WARNINGS + 1))


def _irregular_keys(text: str, *, is_json: bool) -> Iterator[IrregularKey]:
    path: list[str | int] = []
    seen: list[dict[str | int, int]] = []  # lines by key, of each open collection
    for child in iterate_children(text, is_json=is_json):
        del path[child.depth :], seen[child.depth + 1 :]
        path.append(child.token)
        if len(seen) == child.depth:
            seen.append({})
        first = seen[-1].get(child.token, 0)
        if not first:
            seen[-1][child.token] = child.line
        if first or child.written:
            yield IrregularKey(
                join_path(path), str(child.token), child.line, child.column, child.written, first
            )


def join_path(path: Iterable[str | int]) -> str:
    """Return the place of a value: ``resources.web.networks[0]``."""
    parts = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in path)
    return "".join(parts).removeprefix(".")


def find_positions(text: str, places: Iterable[str]) -> dict[str, Position]:
    """Return where each place is: the position of its key or item, of equal keys that of the last.
    For a place that the text does not have, that of the innermost value around it; places without
    one are left out.
    """
    found: dict[str, Position] = {}
    tables = [_table([(one, 0) for one in places])]
    for child in iterate_children(text, is_json=_is_json(text)):
        del tables[child.depth + 1 :]
        matched = tables[child.depth].get(child.token, ())
        for place, end in matched:
            if place not in found or end >= found[place].matched:
                found[place] = Position(child.line, child.column, end)
        tables.append(_table(matched))
    return found


_ITEM: Final = re.compile(r"\[([0-9]{1,9})\]")
_KEY: Final = re.compile(r'\["[^"]*"\]')
_ENDS: Final = re.compile(r"[.\[<]|$")


def _table(places: Iterable[tuple[str, int]]) -> _Table:
    table: _Table = {}
    for place, start in places:
        if (key := _KEY.match(place, start)) is not None:
            start = key.end()  # all resources of a `for_each` have one body
        if (item := _ITEM.match(place, start)) is not None:
            table.setdefault(int(item[1]), []).append((place, item.end()))
        start += place.startswith(".", start)
        for end in _ENDS.finditer(place, start):
            if end.start() > start:
                table.setdefault(place[start : end.start()], []).append((place, end.start()))
    return table


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
