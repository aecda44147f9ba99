"""Tables: complete in files and pipes, short enough for its width on a terminal."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from hub.cli.printing.renderables import assemble_text, break_words, styled_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

Json = Any
#: The width of files, pipes and -o wide: no line is shortened.
UNLIMITED = 100_000
#: Characters between columns.
GAP = 2
#: Characters that a shortened ID has at least.
SHORT_ID = 8
#: A column of words, such as ``pre-create``, has texts of at most this length. They stay whole as
#: long as a longer text can be shortened.
WORD = 16
#: Characters that a column keeps, and those that it keeps on a very narrow terminal.
KEPT, MIN_WIDTH = 8, 3
#: Characters that Python does not call printable, and that texts have.
SHOWN = frozenset("\n\t")
#: Invisible characters that letters of Persian and Hindi, and emoji, are written with. Elsewhere,
#: two different names would look the same.
JOINERS = frozenset("\u200c\u200d")
#: After the turn of each column that has one.
LAST_TURN = 100
#: What is shown of a time that should be in the future.
OVERDUE = "overdue"
#: Fields with times in the future.
FUTURE = ("deadline", "expires_at")
STYLE = {
    "COMPLETE": "green",
    "FAILED": "red",
    "STOPPED": "magenta",
    "PROGRESS": "cyan",
    "waiting": "yellow",
    "done": "green",
    "failed": "red",
    "stopped": "magenta",
    "running": "cyan",
    "parked": "yellow",
    "enabled": "green",
    "disabled": "red",
    "delivered": "green",
    "dead": "red",
}


#: The state of an action that has not ended.
RUNNING = "running"
#: A time in a sentence, in RFC 3339.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


class Content(StrEnum):
    """What a column has. Only a text is truncated; the others are short."""

    TEXT = "text"
    ID = "id"
    PAST = "past"
    DEADLINE = "deadline"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class Column:
    """drop: its turn among the columns that a narrow terminal leaves out; 0: it is never left
    out."""

    heading: str
    content: Content = Content.TEXT
    drop: int = 0


#: key of a row -> heading, or column.
Columns = Mapping[str, str | Column]


def text_column(heading: "str | Column") -> Column:
    return heading if isinstance(heading, Column) else Column(heading)


def id_column(heading: str = "ID") -> Column:
    """On a terminal, the IDs are as short as they can be and still differ."""
    return Column(heading, Content.ID)


def past_column(heading: str) -> Column:
    """Times. On a terminal: ``9 min ago``."""
    return Column(heading, Content.PAST)


def deadline_column(heading: str) -> Column:
    """Times. On a terminal: ``1h30m left``."""
    return Column(heading, Content.DEADLINE)


def status_column(heading: str = "STATUS") -> Column:
    """The status of a stack, with the number of its waiting hooks (`hooks_waiting` of the row)."""
    return Column(heading, Content.STATUS)


@dataclass(frozen=True, slots=True)
class DataTable:
    """A renderable. columns: key -> column."""

    rows: Sequence[Mapping[str, Json]]
    columns: Mapping[str, Column]

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.cells import cell_len

        short = options.max_width < UNLIMITED
        columns = self._select_columns() if short else self.columns
        cells = self._cells(columns, short=short)
        widths = [max(map(cell_len, column)) for column in cells]
        if short:
            shown = list(zip(columns.values(), widths, strict=True))
            kept = list(_keep(shown, options.max_width))
            cells = [cells[number] for number in kept]
            levels = list(_least_widths([shown[number] for number in kept]))
            widths = fit([widths[number] for number in kept], levels, options.max_width)
            contents = [shown[number][0].content for number in kept]
            cells = [
                _fit_statuses(column, width) if content == Content.STATUS else column
                for column, width, content in zip(cells, widths, contents, strict=True)
            ]
        for number, row in enumerate(zip(*cells, strict=True)):
            yield _line(row, widths, bold=number == 0)

    def fits(self, width: int) -> bool:
        """Whether no text is shortened at this width of a terminal."""
        from rich.cells import cell_len

        cells = self._cells(self._select_columns(), short=True)
        room = sum(max(map(cell_len, column)) + GAP for column in cells) - GAP
        return room <= width

    def _select_columns(self) -> Mapping[str, Column]:
        """Without columns that are empty in each row."""
        shown = {
            key: column
            for key, column in self.columns.items()
            if any(cell_text(row.get(key)) for row in self.rows)
        }
        return shown if self.rows else self.columns

    def _cells(self, columns: Mapping[str, Column], *, short: bool) -> list[list[str]]:
        """The texts of each column, with its heading."""
        now = datetime.now(UTC)
        return [
            [column.heading, *_column_texts(self.rows, key, column.content, short=short, now=now)]
            for key, column in columns.items()
        ]


def _fit_statuses(texts: Sequence[str], width: int) -> list[str]:
    """Statuses that are too long keep the number of their hooks: ``CREATE waiting (3)``."""
    from rich.cells import cell_len

    return [
        one if cell_len(one) <= width else one.replace(" for approval (", " (") for one in texts
    ]


def _keep(shown: Sequence[tuple[Column, int]], available: int) -> Sequence[int]:
    """The numbers of the columns that have room without shortening words. shown: each column with
    its width."""
    kept = list(range(len(shown)))
    while True:
        least = next(_least_widths([shown[number] for number in kept]))
        minor = [number for number in kept if _turn(shown[number][0])]
        if sum(least) + GAP * (len(kept) - 1) <= available or not minor:
            return kept
        kept.remove(min(minor, key=lambda number: (_turn(shown[number][0]), -number)))


def _turn(column: Column) -> int:
    """When a column is left out; 0: never. Times in the past are, after minor columns."""
    return column.drop or (LAST_TURN if column.content == Content.PAST else 0)


def _least_widths(shown: Sequence[tuple[Column, int]]) -> Iterator[list[int]]:
    """The least width of each column, in four levels: texts are shortened, then words, then
    headings, then everything but IDs. shown: each column with its width."""
    texts = [one.content == Content.TEXT for one, _ in shown]
    headings = [max(KEPT, len(one.heading)) for one, _ in shown]
    widths = [width for _, width in shown]
    for least in (
        [max(heading, width if width <= WORD else 0)
         for heading, width in zip(headings, widths, strict=True)],
        headings,
        [MIN_WIDTH + 1] * len(shown),
    ):  # fmt: skip
        yield [
            min(one, width) if is_text else width
            for one, width, is_text in zip(least, widths, texts, strict=True)
        ]
    yield [width if one.content == Content.ID else MIN_WIDTH for one, width in shown]


@dataclass(frozen=True, slots=True)
class FieldTable:
    """A renderable: a line for each of these fields that is not empty. names: of the fields."""

    document: Mapping[str, Json]
    names: Sequence[str]

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        short, now = options.max_width < UNLIMITED, datetime.now(UTC)
        shown = [name for name in self.names if self.document.get(name) not in (None, "", [], {})]
        indent = max(map(len, shown), default=0) + GAP
        for name in shown:
            text = field_text(name, self.document, now if short else None)
            for number, line in enumerate(break_words(style(text), options.max_width - indent)):
                heading = "" if number else name.replace("_", " ")
                yield assemble_text((heading.ljust(indent), "bold"), line)


def field_text(name: str, document: Mapping[str, Json], now: datetime | None) -> str:
    """The value of a field. now: also show times relative to it. Pure."""
    text = cell_text(document[name])
    if name == "stack_status":
        return status_text(text, document.get("hooks_waiting") or 0)
    if now is None or _moment(text) is None:
        return text
    relative = time_left(text, now) if name in FUTURE else time_ago(text, now)
    return f"{text} ({relative})"


def _line(row: Sequence[str], widths: Sequence[int], *, bold: bool) -> "Text":
    from rich.text import Text

    line = Text("", "bold" if bold else "", no_wrap=True, overflow="ignore", end="\n")
    for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
        last = number == len(row) - 1
        text = Text(cell) if bold else style(cell)
        text.truncate(width, overflow="ellipsis", pad=not last)
        line.append_text(text)
        if not last:
            line.append(" " * GAP)
    line.rstrip()
    return line


def _column_texts(
    rows: Sequence[Mapping[str, Json]], key: str, content: Content, *, short: bool, now: datetime
) -> Iterable[str]:
    texts = [" ".join(cell_text(row.get(key)).split()) for row in rows]
    if content == Content.STATUS:
        counts = (row.get("hooks_waiting") or 0 for row in rows)
        return [
            status_text(text, count, short=short) for text, count in zip(texts, counts, strict=True)
        ]
    if not short:
        return texts
    match content:
        case Content.ID:
            return short_ids(texts)
        case Content.PAST:
            return [time_ago(one, now) for one in texts]
        case Content.DEADLINE:
            return [time_left(one, now) for one in texts]
        case _:
            return texts


def fit(widths: Sequence[int], levels: Sequence[Sequence[int]], available: int) -> list[int]:
    """Shorten the widest columns so that a line fits. levels: the least width of each column; the
    next ones apply only if a line does not fit. Pure."""
    room, fitted = available - GAP * (len(widths) - 1), list(widths)
    for least in (*levels, [MIN_WIDTH] * len(widths)):
        for cap in range(max(widths, default=0), 0, -1):
            pairs = zip(widths, least, strict=True)
            fitted = [min(width, max(cap, one)) for width, one in pairs]
            if sum(fitted) <= room:
                return fitted
    return fitted


def short_ids(ids: Sequence[str]) -> list[str]:
    """The beginning of each ID that no other one has. Pure."""
    different = set(ids)
    length = SHORT_ID
    while len({one[:length] for one in different}) < len(different):
        length += 1
    return [one[:length] for one in ids]


def time_ago(text: str, now: datetime) -> str:
    """``40 s ago``, ``9 min ago``, ``5 h ago`` or ``3 days ago``; any other text as it is. Pure."""
    moment = _moment(text)
    if moment is None:
        return text
    seconds = int((now - moment).total_seconds())
    if seconds < 0:
        return f"in {span(-seconds)}"
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "min"), (2 * 86_400, 3600, "h")):
        if seconds < limit:
            return f"{seconds // size} {unit} ago"
    return f"{seconds // 86_400} days ago"


def time_left(text: str, now: datetime) -> str:
    """``1h30m left``, or ``overdue``; any other text as it is. Pure."""
    moment = _moment(text)
    if moment is None:
        return text
    seconds = int((moment - now).total_seconds())
    return f"{span(seconds)} left" if seconds > 0 else OVERDUE


def relative_times(sentence: str, now: datetime) -> str:
    """A sentence with times in whole seconds and relative to now: ``2026-11-29T17:17:34Z (1h58m
    left)``. Pure."""

    def relative(found: re.Match[str]) -> str:
        moment = _moment(found[0])
        if moment is None:
            return found[0]
        when = time_left(found[0], now) if moment > now else time_ago(found[0], now)
        return f"{moment.replace(microsecond=0).isoformat().replace('+00:00', 'Z')} ({when})"

    return _TIME.sub(relative, sentence)


def span(seconds: int) -> str:
    """The two largest units: ``2d4h``, ``1h30m``, ``9m5s`` or ``45s``."""
    parts, rest = [], seconds
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        parts.append((rest // size, unit))
        rest %= size
    first = next((number for number, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return "".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count) or "0s"


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def status_text(status: str, waiting: int, *, short: bool = False) -> str:
    """``CREATE_IN_PROGRESS, waiting for approval (3)``; short: ``CREATE waiting for approval (3)``,
    and without ``running``. Pure."""
    if not waiting:
        return status
    if short and status == RUNNING:
        return f"waiting for approval ({waiting})"
    action, progress, _ = status.partition("_IN_PROGRESS")
    base = action if short and progress else f"{status},"
    return f"{base} waiting for approval ({waiting})"


def style(word: str) -> "Text":
    """A status or state in its color."""
    if "waiting for approval (" in word:
        return styled_text(word, "yellow")
    return styled_text(word, STYLE.get(word.rpartition("_")[2] or word, ""))


def plain(text: str) -> str:
    """Replace control characters, because names and reasons can come from other users."""
    return "".join(
        one if one.isprintable() or one in SHOWN or _is_joiner(text, place) else "\ufffd"
        for place, one in enumerate(text)
    )


def _is_joiner(text: str, place: int) -> bool:
    """Whether a character joins two that are not ASCII."""
    beside = text[place - 1 : place] + text[place + 1 : place + 2]
    return text[place] in JOINERS and len(beside) == 2 and not any(map(str.isascii, beside))


def cell_text(value: Json) -> str:
    """A value of a document in a line."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(cell_text(one) for one in value)
    if isinstance(value, dict):
        return ", ".join(f"{plain(str(key))}={cell_text(item)}" for key, item in value.items())
    return plain(str(value))
