"""Finds the statements in PL/pgSQL routines, so that tests can prepare each against the schema.

PostgreSQL parses such a statement when it first runs, so a wrong column in a rare branch stays
undetected. The module knows the part of the language that our routines use; anything else raises
Unreadable.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_SKIPPED = re.compile(r"\s+|--[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<skipped>\s+|--[^\n]*|/\*.*?\*/) | (?P<text>'(?:[^']|'')*')
      | (?P<name>[a-z_]\w*) | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_DECLARED = re.compile(r"(\w+)\s+([^;:]+?)\s*(?::=\s*(.*?))?;", re.DOTALL)
_ASSIGNED = re.compile(r"[\w.]+\s*:=\s*")
_TARGETS = re.compile(r"\s+[\w.]+(?:\s*,\s*[\w.]+)*")
#: A return without an expression.
_RETURN = re.compile(r"return\s*(?:next\s*\w*\s*)?;", re.IGNORECASE)
#: An error: its level and its message, the values in the message, and its code.
_RAISED = re.compile(
    r"raise\s+\w+\s+'(?:[^']|'')*'(?:\s*,(?P<values>.*?))?(?:\s+using\s+errcode\s*=\s*'\w+')?\s*",
    re.DOTALL | re.IGNORECASE,
)
_DEPTH = {"(": 1, "[": 1, ")": -1, "]": -1, "case": 1}
_SQL = ("select", "with", "insert", "update", "delete", "merge", "values")


class Unreadable(Exception):
    """A statement that this module does not know."""


class Embedded(NamedTuple):
    """line: in the routine's body. targets: the number of variables that receive the columns; None:
    any.

    returned: whether the routine returns the rows.
    """

    line: int
    text: str
    targets: int | None = None
    returned: bool = False


def variables(body: str) -> dict[str, str]:
    """The declared variables, with their types."""
    return {match[1]: match[2] for match in _DECLARED.finditer(_declarations(body))}


def statements(body: str) -> list[Embedded]:
    """All expressions and statements of a routine's body that PostgreSQL plans."""
    declared = [
        Embedded(1, f"select {match[3]}", 1)
        for match in _DECLARED.finditer(_declarations(body))
        if match[3]
    ]
    begin = re.search(r"\bbegin\b", _without_comments(body))
    if begin is None:
        raise Unreadable("no begin")
    return [*declared, *_statements(body, begin.end())]


def with_parameters(text: str, types: Mapping[str, str]) -> tuple[str, list[str]]:
    """The statement with parameters instead of variables, and the names of these in order."""
    used: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in types or match.string[match.start() - 1] == ".":
            return match[0]
        if name not in used:
            used.append(name)
        return f"(${used.index(name) + 1}::{types[name]})"

    return _TOKEN.sub(replaced, text), used


def _declarations(body: str) -> str:
    blank = _without_comments(body)
    begin = re.search(r"\bbegin\b", blank)
    declare = re.search(r"\bdeclare\b", blank)
    return blank[declare.end() : begin.start()] if begin and declare else ""


def _without_comments(body: str) -> str:
    """The body without comments; all other characters keep their position."""
    return re.sub(r"--[^\n]*", lambda match: " " * len(match[0]), body)


def _statements(body: str, at: int) -> Iterator[Embedded]:
    while True:
        while skipped := _SKIPPED.match(body, at):
            at = skipped.end()
        if at >= len(body):
            return
        line = body.count("\n", 0, at) + 1
        word = _TOKEN.match(body, at)["name"].lower()  # type: ignore[index]
        if word in ("begin", "else", "loop"):
            at += len(word)
        elif word == "end" or _RETURN.match(body, at):
            at = body.index(";", at) + 1
        elif word in ("if", "elsif", "while"):
            end = _find(body, at, "loop" if word == "while" else "then")
            yield Embedded(line, f"select {body[at + len(word) : end]}", 1)
            at = end + 4
        elif word == "for":
            query, end = _find(body, at, "in") + 2, _find(body, at, "loop")
            yield Embedded(line, body[query:end], body[at:query].count(",") + 1)
            at = end + 4
        else:
            end = _find(body, at, ";")
            yield _plain(line, word, body[at:end])
            at = end + 1


def _plain(line: int, word: str, text: str) -> Embedded:
    if assigned := _ASSIGNED.match(text):
        return Embedded(line, f"select {text[assigned.end() :]}", 1)
    if returned := re.match(r"return\s+query\s", text, re.IGNORECASE):
        return Embedded(line, text[returned.end() :], returned=True)
    if word in ("perform", "return"):
        return Embedded(line, f"select {text[len(word) :]}")
    if raised := _RAISED.fullmatch(text):
        return Embedded(line, f"select {raised['values'] or ''}")
    if word not in _SQL:
        raise Unreadable(f"line {line}: {text[:60]}")
    into = _into(text)
    if into is None:
        return Embedded(line, text)
    targets = _TARGETS.match(text, into + 4)
    assert targets is not None, text
    return Embedded(line, text[:into] + text[targets.end() :], targets[0].count(",") + 1)


def _into(text: str) -> int | None:
    """The position of the `into` that names variables, not of `insert into`."""
    at, before = 0, ""
    while (found := _find(text, at, "into", "insert", missing=-1)) >= 0:
        word = text[found : found + 4].lower()
        if word == "into" and before != "insert":
            return found
        before, at = ("insert" if word == "inse" else ""), found + 4
    return None


def _find(text: str, at: int, *words: str, missing: int | None = None) -> int:
    """The position of one of the words, outside of brackets and of ``case ... end``."""
    depth = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        assert token is not None
        word = token[0].lower() if token["name"] or token["sign"] else ""
        if depth == 0 and word in words:
            return at
        depth += _DEPTH.get(word, 0)
        if word == "end" and depth > 0:
            depth -= 1
        at = token.end()
    if missing is None:
        raise Unreadable(f"no {' or '.join(words)} after {text[:60]}")
    return missing
