"""Finds the columns to which literals in SQL are compared or assigned."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.support.sql import Token, closing, tokens

#: Tokens that end an expression, besides a comma and a closing bracket.
_ENDS = frozenset(
    {"from", "where", "and", "or", "then", "when", "else", "end", "as", "order", "group"}
    | {"returning", "join", "on", "limit", "union", "loop", "into", "having", "left", "cross"}
    | {"for", "not", "filter", "do"}
)
_OPENS = {"(": 1, "[": 1, "case": 1, ")": -1, "]": -1, "end": -1}
#: Functions that return one of their arguments.
_PASSING = frozenset({"coalesce", "nullif", "greatest", "least"})
#: Tokens that can follow the name of a table without an alias.
_AFTER_TABLE = frozenset(
    {"set", "where", "on", "using", "as", "for", "select", "join", "cross", "left", "values"}
)

#: The composite type of events, as `record_events` takes it.
DRAFT = ("stack_id", "type", "resource_name", "resource_type", "physical_id", "action", "status",
         "reason", "data")  # fmt: skip


class Value(NamedTuple):
    """A literal and its column. tables: the possible tables of the column; empty if unknown."""

    tables: frozenset[str]
    column: str
    word: str
    line: int
    at: int


class _Reader:
    """columns: the columns to consider, by table."""

    def __init__(self, text: str, columns: Mapping[str, Collection[str]]) -> None:
        self.found = tokens(text)
        self._columns = columns
        self._names = frozenset(name for names in columns.values() for name in names)
        self._aliases: dict[str, set[str]] = {}
        self._derived = any(
            self._word(at - 1) in ("from", "join")
            and self._word(at - 2) not in ("distinct", "no")
            and one.word not in columns
            for at, one in enumerate(self.found)
        )
        for at, one in enumerate(self.found):
            if one.word in columns and self._word(at - 1) in (
                "from",
                "join",
                "update",
                "into",
                ",",
            ):
                self._alias(at, one.word)

    def _alias(self, at: int, table: str) -> None:
        after = at + 2 if self._word(at + 1) == "as" else at + 1
        follows = self.found[after] if after < len(self.found) else None
        if follows is not None and follows.kind == "name" and follows.word not in _AFTER_TABLE:
            self._aliases.setdefault(follows.word, set()).add(table)
        if self._word(at - 1) != ",":
            self._aliases.setdefault(table, set()).add(table)

    def values(self) -> Iterator[Value]:
        for at, one in enumerate(self.found):
            if one.kind == "text":
                yield from self._of_key(at)
            elif one.kind != "name":
                continue
            elif one.word in self._names and self._word(at + 1) != "(":
                yield from self._of_column(at)
            elif (parameter := self._parameter(one.word)) is not None:
                yield from self._compared(*parameter, at + 1)
            elif (one.word, self._word(at + 1)) == ("insert", "into"):
                yield from self._inserted(at + 2)
            elif (one.word, self._word(at + 1)) == ("row", "(") and self._is_draft(at + 1):
                yield from self._listed("event", DRAFT, at + 2)

    def _parameter(self, word: str) -> tuple[frozenset[str], str] | None:
        """The tables and the column of a parameter of a routine: `p_state`, `p_traversal_state`."""
        if not word.startswith("p_"):
            return None
        for table, columns in self._columns.items():
            column = word.removeprefix(f"p_{table}_")
            if column != word and column in columns:
                return frozenset({table}), column
        return (frozenset(), word[2:]) if word[2:] in self._names else None

    def _is_draft(self, opening: int) -> bool:
        return self._word(closing(self.found, opening) + 2) == "event_draft"

    def _of_key(self, at: int) -> Iterator[Value]:
        """A key of JSON that is read or written."""
        key = self.found[at].word
        if key not in self._names:
            return
        if self._word(at - 1) == "->>":
            yield from self._compared(frozenset(), key, at + 1)
        elif self._word(at - 1) in ("(", ",") and self._word(at + 1) == ",":
            yield from self._named(frozenset(), key, self._results(at + 2))

    def _of_column(self, at: int) -> Iterator[Value]:
        column, first = self.found[at].word, at
        if self._word(at - 1) == "as":
            yield from self._named(frozenset(), column, self._before_as(at - 2))
            return
        tables = self._tables_of(column)
        if self._word(at - 1) == ".":
            first = at - 2
            alias = self._aliases.get(self._word(first), set())
            tables = frozenset(one for one in alias if column in self._columns[one])
        if self._word(first - 1) == "case":
            yield from self._named(tables, column, self._when(first - 1))
        if self._word(first - 1) in ("=", "<>") and self.found[first - 2].kind == "text":
            yield from self._named(tables, column, [first - 2])
        yield from self._compared(tables, column, at + 1)

    def _compared(self, tables: frozenset[str], column: str, at: int) -> Iterator[Value]:
        """The operand after a column and its operator."""
        if self._word(at) == "," and at + 2 < len(self.found) and self._word(at + 2) == ")":
            if self.found[at + 1].kind == "text":  # coalesce(column, 'literal')
                yield from self._named(tables, column, [at + 1])
            at += 2
        while self._word(at) == ")" or self._word(at) == "::":
            at += 1 if self._word(at) == ")" else 2
        words = [self._word(at + more) for more in range(4)]
        if words[0] in ("=", "<>") and words[1] in ("any", "all"):
            yield from self._elements(tables, column, at + 2)
        elif words[0] in ("=", "<>", ":="):
            yield from self._named(tables, column, self._results(at + 1))
        elif words[0] == "is" and "distinct" in words[1:3]:
            yield from self._named(tables, column, self._results(at + 3 + (words[1] == "not")))
        elif words[0] == "in" or words[:2] == ["not", "in"]:
            opening = at + 1 + (words[0] == "not")
            for here in self._parts(opening + 1):
                yield from self._named(tables, column, self._results(here))

    def _elements(self, tables: frozenset[str], column: str, opening: int) -> Iterator[Value]:
        """The elements of ``any ('{a,b}')`` and ``any (array['a', 'b'])``."""
        for here in range(opening + 1, closing(self.found, opening)):
            one = self.found[here]
            if one.kind == "text":
                for word in one.word.strip("{}").split(","):
                    yield Value(tables, column, word.strip('"'), one.line, here)

    def _inserted(self, at: int) -> Iterator[Value]:
        table, opening = self.found[at].word, at + 1
        if self._word(opening) == "as":
            opening += 2
        if table not in self._columns or self._word(opening) != "(":
            return
        end = closing(self.found, opening)
        columns = [one.word for one in self.found[opening + 1 : end] if one.kind == "name"]
        here = end + 1
        if self._word(here) == "select":
            yield from self._listed(table, columns, here + 1)
        elif self._word(here) == "values":
            yield from self._listed(table, columns, here + 2)

    def _listed(self, table: str, columns: Sequence[str], at: int) -> Iterator[Value]:
        for column, here in zip(columns, self._parts(at), strict=False):
            if column in self._names:
                yield from self._named(frozenset({table}), column, self._results(here))

    def _parts(self, at: int) -> Iterator[int]:
        """The positions of the comma-separated parts of a list."""
        yield at
        depth = 0
        for here in range(at, len(self.found)):
            word = self._word(here)
            if depth == 0 and (word in (")", "]", ";") or word in ("from", "where")):
                return
            depth += _OPENS.get(word, 0)
            if depth == 0 and word == ",":
                yield here + 1

    def _results(self, at: int) -> list[int]:
        """The literals that an expression can return; none if it is more than a choice between
        literals.
        """
        one = self.found[at]
        if one.kind == "text":
            after = self._word(at + 1)
            ends = after in (",", ")", ";", "::", "") or after in _ENDS
            return [at] if ends or self._is_name(at + 1) else []
        if one.word == "case":
            return self._branches(at)
        if one.word == "(":
            return self._results(at + 1)
        if one.word in _PASSING and self._word(at + 1) == "(":
            return [found for part in self._parts(at + 2) for found in self._results(part)]
        return []

    def _branches(self, at: int) -> list[int]:
        """The results of a ``case``."""
        return [
            found
            for here, word in self._inside(at)
            if word in ("then", "else")
            for found in self._results(here + 1)
        ]

    def _when(self, at: int) -> list[int]:
        """The values with which ``case column`` compares the column."""
        return [here + 1 for here, word in self._inside(at)
                if word == "when" and self.found[here + 1].kind == "text"]  # fmt: skip

    def _inside(self, at: int) -> Iterator[tuple[int, str]]:
        """The words of a ``case``, without those of nested ones."""
        depth = 0
        for here in range(at, len(self.found)):
            word = self._word(here)
            if depth == 1:
                yield here, word
            depth += _OPENS.get(word, 0)
            if depth == 0:
                return

    def _before_as(self, at: int) -> list[int]:
        if self.found[at].kind == "text":
            return [at]
        if self._word(at) != "end":
            return []
        depth = 0
        for here in range(at, -1, -1):
            depth -= _OPENS.get(self._word(here), 0)
            if depth == 0:
                return self._branches(here)
        return []

    def _named(self, tables: frozenset[str], column: str, found: Sequence[int]) -> Iterator[Value]:
        for at in found:
            yield Value(tables, column, self.found[at].word, self.found[at].line, at)

    def _tables_of(self, column: str) -> frozenset[str]:
        """The possible tables of a column without a table name; none if it may be of a derived
        table.
        """
        if self._derived:
            return frozenset()
        every = {table for tables in self._aliases.values() for table in tables}
        return frozenset(one for one in every if column in self._columns[one])

    def _is_name(self, at: int) -> bool:
        return at < len(self.found) and self.found[at].kind == "name"

    def _word(self, at: int) -> str:
        if not 0 <= at < len(self.found) or self.found[at].kind == "text":
            return ""
        return self.found[at].word


def values(text: str, columns: Mapping[str, Collection[str]]) -> list[Value]:
    """The literals in a text that are values of these columns (table -> columns)."""
    return list(_Reader(text, columns).values())


def texts(text: str) -> list[tuple[int, Token]]:
    """All literals, with their positions."""
    return [(at, one) for at, one in enumerate(tokens(text)) if one.kind == "text"]
