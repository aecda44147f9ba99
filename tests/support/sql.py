"""Parses SQL into tokens, and finds the columns that a statement or a routine writes."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/|\$\w*\$)   # also around the body of a routine
      | (?P<text>'(?:[^']|'')*')
      | (?P<name>[a-z_]\w*|"[^"]+")
      | (?P<number>\d+(?:\.\d+)?)
      | (?P<parameter>\$\d+)
      | (?P<sign>::|:=|->>|->|\#>>|\#>|<>|<=|>=|\|\||@\?|@>|.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


class Token(NamedTuple):
    """kind: text, name, number, parameter or sign. word: a name in lower case, or a text without
    quotes.
    """

    kind: str
    word: str
    line: int


def tokens(text: str) -> list[Token]:
    """The tokens of a text, including those of routine bodies between ``$$``."""
    return list(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "space":
            continue
        word = match[0]
        if kind == "text":
            word = word[1:-1].replace("''", "'")
        elif kind == "name":
            word = word.lower()
        yield Token(kind, word, text.count("\n", 0, match.start()) + 1)


def closing(found: Sequence[Token], opening: int) -> int:
    """The position of the bracket that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(found)):
        if found[at].kind == "sign":
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(found[at].word, 0)
            if depth == 0:
                return at
    raise ValueError(f"line {found[opening].line}: a bracket is not closed")


def writes(text: str) -> set[tuple[str, str]]:
    """(table, column) of every insert and update; (table, "") of every delete."""
    found = tokens(text)
    written: set[tuple[str, str]] = set()
    for at, one in enumerate(found[:-1]):
        word, after = _word(found, at), _word(found, at + 1)
        if (word, after) == ("insert", "into"):
            table, opening = found[at + 2].word, at + 3
            if _word(found, opening) == "as":
                opening += 2
            if _word(found, opening) == "(":
                columns = found[opening + 1 : closing(found, opening)]
                written |= {(table, each.word) for each in columns if each.kind == "name"}
            else:
                written.add((table, ""))
            written |= {(table, column) for column in _upserted(found, opening)}
        elif (word, after) == ("delete", "from"):
            written.add((found[at + 2].word, ""))
        elif word == "update" and one.kind == "name" and _begins_update(found, at):
            set_at = at + 2
            while _word(found, set_at) != "set":
                set_at += 1
            written |= {(after, column) for column in _assigned(found, set_at)}
    return written


def _word(found: Sequence[Token], at: int) -> str:
    return found[at].word if 0 <= at < len(found) and found[at].kind != "text" else ""


def _begins_update(found: Sequence[Token], at: int) -> bool:
    """Not ``for update``, ``for no key update`` or ``do update set``."""
    return _word(found, at - 1) not in ("for", "key", "do") and found[at + 1].kind == "name"


def _upserted(found: Sequence[Token], at: int) -> Iterator[str]:
    """The columns of ``on conflict ... do update set`` of the insert that continues at `at`."""
    depth = 0
    for here in range(at, len(found) - 2):
        depth += {"(": 1, ")": -1}.get(_word(found, here), 0)
        if depth < 0 or _word(found, here) in (";", "insert"):
            return
        if [_word(found, here + more) for more in range(3)] == ["do", "update", "set"]:
            yield from _assigned(found, here + 2)
            return


def _assigned(found: Sequence[Token], set_at: int) -> Iterator[str]:
    """The columns of a ``set`` list."""
    depth, at, expects = 0, set_at + 1, True
    while at < len(found):
        word = _word(found, at)
        depth += {"(": 1, ")": -1, "case": 1, "end": -1}.get(word, 0)
        if depth < 0 or (depth == 0 and word in ("from", "where", "returning", ";")):
            return
        if expects and depth == 0 and found[at].kind == "name" and _word(found, at + 1) == "=":
            yield word
        expects = (depth == 0 and word in (",", "set")) or (expects and depth > 0)
        at += 1
