"""Finds what a migration must not do, so that programs of the previous release work beside it.

A migration only adds: tables, columns that rows of earlier programs get a value for, and indexes.
One that removes or restricts something is a contract migration, whose first line names the programs
that work after it (engine/store/schema/compatibility.py).
"""

from collections.abc import Iterator, Sequence

from tests.support.sql import Token, closing, tokens

#: Words after `drop` in a statement of their own.
DROPPED = frozenset(
    {"table", "view", "materialized", "function", "procedure", "type", "schema", "trigger",
     "sequence", "domain"}
)  # fmt: skip


def find_restrictions(text: str) -> list[str]:
    """What a migration removes or restricts, in order."""
    found = tokens(text)
    statements = list(_split(found, ";"))
    created = {name for one in statements if (name := _created_table(one))}
    return [rule for one in statements for rule in _check(one, created)]


def _split(found: Sequence[Token], sign: str) -> Iterator[Sequence[Token]]:
    """The parts between signs that are outside of brackets."""
    start = at = 0
    while at < len(found):
        if found[at].kind == "sign" and found[at].word == "(":
            at = closing(found, at)
        elif found[at].kind == "sign" and found[at].word == sign:
            yield found[start:at]
            start = at + 1
        at += 1
    if start < len(found):
        yield found[start:]


def _words(found: Sequence[Token]) -> list[str]:
    return [one.word if one.kind != "text" else "''" for one in found]


def _created_table(statement: Sequence[Token]) -> str | None:
    words = _words(statement)
    return words[2] if words[:2] == ["create", "table"] else None


def _check(statement: Sequence[Token], created: set[str]) -> Iterator[str]:
    """created: tables of this migration, which earlier programs do not use."""
    words = _words(statement)
    if not words:
        return
    if words[0] == "do":
        yield "a block of code, which cannot be checked"
    elif words[0] == "truncate":
        yield "truncate"
    elif words[0] == "drop" and words[1] in DROPPED:
        yield " ".join(words[:3])
    elif words[:2] == ["alter", "type"]:
        yield f"alter type {words[2]}"
    elif words[:2] == ["alter", "table"] and words[2] not in created:
        for part in _split(statement[3:], ","):
            yield from (f"{words[2]}: {rule}" for rule in _check_alteration(_words(part)))
    elif words[:3] == ["create", "unique", "index"] and words[words.index("on") + 1] not in created:
        yield f"unique index {words[3]} on {words[words.index('on') + 1]}"
    elif words[:2] == ["create", "trigger"] and words[words.index("on") + 1] not in created:
        yield f"trigger {words[2]}"


def _check_alteration(words: Sequence[str]) -> Iterator[str]:
    """The rules for one clause of `alter table`."""
    line = " ".join(words)
    if words[0] in ("drop", "rename"):
        yield line
    elif words[:2] == ["add", "column"]:
        fills = "default" in words or "generated" in words
        if "not null" in line and not fills:
            yield f"{line}: not null without a default"
        if {"check", "unique", "references", "primary"} & set(words):
            yield f"{line}: a constraint"
    elif words[0] == "add":
        yield line
    elif words[:2] == ["alter", "column"]:
        change = " ".join(words[3:])
        if change.startswith(("type", "set data type", "set not null", "drop default")):
            yield f"{words[2]} {change}"
