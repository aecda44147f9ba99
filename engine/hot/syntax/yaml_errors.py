"""Explains syntax errors of YAML: what is wrong, where it began, and what to do."""

from collections.abc import Sequence
from typing import Final

import yaml

from engine.errors import Finding

QUOTES: Final = "Put the value in quotes"
#: Remedies by a part of the problem and a part of its context. "{line}" is the line in which the
#: construct began.
REMEDIES: Final[Sequence[tuple[str, str, str]]] = (
    ("found a tab character", "", "Indent with spaces."),
    ("mapping values are not allowed", "", f'{QUOTES} if it contains ": " or ends with ":";'
     " otherwise correct the indentation."),
    ("undefined alias", "", f'{QUOTES} if it is text that begins with "*".'),
    ("alphabetic or numeric", "alias", f'{QUOTES}: text cannot begin with "*".'),
    ("alphabetic or numeric", "anchor", f'{QUOTES}: text cannot begin with "&".'),
    ("end of stream", "quoted scalar", "Close the quotes that begin in line {line}."),
    ("document indicator", "quoted scalar", "Close the quotes that begin in line {line}."),
    ("unknown escape", "quoted scalar", r"Use single quotes, or write \\ for a backslash."),
    ("expected ',' or ']'", "", 'Close the "[" of line {line}, or separate its items with commas.'),
    ("expected ',' or '}'", "", 'Close the "{{" of line {line}, or separate its keys with commas.'),
    ("expected ':'", "simple key", 'Write ": " after the key in line {line}.'),
    ("expected key", "block mapping",
     "Give all keys of the map that begins in line {line} the same indentation."),
    ("expected '-' indicator", "", "Give all items of the list that begins in line {line} the same"
     ' indentation, and begin each with "- ".'),
    ("a key that is a list or a map", "", f'{QUOTES} if it is text that begins with "{{{{{{{{".'),
    ("constructor for the tag", "", "Remove the tag, or write the value in quotes."),
    ("block sequence entries are not allowed", "", "Begin the list in a line of its own."),
    ("expected node content", "", "Complete or remove what begins in line {line}."),
    ("another document", "", 'Remove the line "---", or send the documents one by one.'),
)  # fmt: skip
#: Remedies for characters at which a map ends although it should have another key.
_CLOSED_TWICE: Final = 'Remove the "{character}", or open it before.'
_AFTER_QUOTES: Final = (
    "Put the whole value in one pair of quotes. Between single quotes, write one that is part of"
    " the text twice; between double quotes, write a backslash before it."
)
#: Problems that are corrected where the construct began.
_AT_START: Final = ("end of stream", "document indicator", "expected ',' or", "expected ':'")


def explain_syntax_error(error: yaml.MarkedYAMLError, text: str, what: str) -> Finding:
    """Return the finding of a syntax error, with its position. what: the document, in messages."""
    problem, context = error.problem or "", error.context or ""
    reason = " ".join(part for part in (context, problem) if part)
    mark, start = error.problem_mark or error.context_mark, error.context_mark
    if mark is None:
        return Finding("", f"Error parsing {what}: {reason}", "Correct the syntax.", "Invalid")
    end = _end_of(text)
    mark, start = min(mark, end, key=_position), start and min(start, end, key=_position)
    remedy = _remedy(problem, context, (start or mark).line + 1, *_around(error, text))
    reason += f" in line {mark.line + 1}, column {mark.column + 1}"
    if start is not None and (start.line, start.column) != (mark.line, mark.column):
        reason += f" (it begins in line {start.line + 1}, column {start.column + 1})"
        if any(part in problem for part in _AT_START):
            mark = start
    return Finding("", f"Error parsing {what}: {reason}", remedy, "Invalid",
                   line=mark.line + 1, column=mark.column + 1)  # fmt: skip


def explain_character(character: str, text: str, what: str) -> Finding:
    """Return the finding of the first occurrence of a character that YAML does not allow."""
    before = text[: max(text.find(character), 0)]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    reason = f"the character U+{ord(character):04X} is not allowed"
    return Finding("", f"Error parsing {what}: {reason} in line {line}, column {column}",
                   "Remove the character, or write it as an escape sequence in double quotes.",
                   "Invalid", line=line, column=column)  # fmt: skip


def _position(mark: yaml.Mark) -> tuple[int, int]:
    return mark.line, mark.column


def _end_of(text: str) -> yaml.Mark:
    """Return the position after the last character that is not white space."""
    before, _, last = text.rstrip().rpartition("\n")
    line = before.count("\n") + 1 if before else 0
    return yaml.Mark("", len(text.rstrip()), line, len(last), None, 0)


def _remedy(problem: str, context: str, line: int, character: str, before: str) -> str:
    if "expected key" in problem and character in ("}", "]"):
        return _CLOSED_TWICE.format(character=character)
    if "expected key" in problem and before in ("'", '"'):
        return _AFTER_QUOTES
    if "cannot start any token" in problem:
        if character == "\t":
            return "Indent with spaces, not with tabs."
        return f'{QUOTES}: text cannot begin with "{character}".' if character else f"{QUOTES}."
    for part, around, remedy in REMEDIES:
        if part in problem and around in context:
            return remedy.format(line=line)
    return f"Correct what begins in line {line}."


def _around(error: yaml.MarkedYAMLError, text: str) -> tuple[str, str]:
    """The character at which the error is, and the one before it in its line, without spaces."""
    if (mark := error.problem_mark) is None:
        return "", ""
    before = text[max(mark.index - mark.column, 0) : mark.index].rstrip()
    return text[mark.index : mark.index + 1], before[-1:]
