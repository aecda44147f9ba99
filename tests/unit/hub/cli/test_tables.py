"""Tables on terminals of any width, and in files."""

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from hub.cli.printing import output, tables
from hub.cli.printing.renderables import wrapped_text
from hub.cli.printing.tables import (
    KEPT,
    UNLIMITED,
    fit,
    short_ids,
    status_text,
    time_ago,
    time_left,
)

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
ROWS: list[dict[str, Any]] = [
    {
        "name": "a-stack-with-a-name-that-is-longer-than-most-names-are",
        "stack_status": "CREATE_IN_PROGRESS",
        "hooks_waiting": 3,
        "created": "2020-01-01T00:00:00Z",
        "nothing": "",
        "reason": "first line\nsecond line " + "x" * 200,
        "id": "0b3a1c5e-0000-4000-8000-000000000001",
    },
    {"name": "数据库" * 20, "stack_status": "UPDATE_COMPLETE", "reason": None,
     "id": "0b3a1c5e-1000-4000-8000-000000000001"},
]  # fmt: skip
COLUMNS: tables.Columns = {
    "name": "NAME",
    "stack_status": tables.status_column(),
    "created": tables.past_column("CREATED"),
    "nothing": "NOTHING",
    "reason": "REASON",
    "id": tables.id_column(),
}


def printed(width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(output.table(ROWS, COLUMNS), markup=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_a_row_is_one_line_that_fits(width: int) -> None:
    lines = printed(width)
    assert len(lines) == 1 + len(ROWS)
    assert max(map(cell_len, lines)) <= width
    head, first, second = lines
    assert "NOTHING" not in head and head.split()[-1] == "ID"
    assert "CREATE waiting for approval (3)" in first and "…" in first
    assert first.endswith("0b3a1c5e-0") and second.endswith("0b3a1c5e-1")
    assert "days ago" in first and "UPDATE_COMPLETE" in second


def test_a_status_without_room_keeps_the_number_of_waiting_hooks() -> None:
    row = {"name": "web", "stack_status": "CREATE_IN_PROGRESS", "hooks_waiting": 12,
           "id": "0b3a1c5e-0000-4000-8000-000000000001"}  # fmt: skip
    columns = {name: COLUMNS[name] for name in ("name", "stack_status", "id")}
    console = Console(file=io.StringIO(), width=40, highlight=False)
    console.print(output.table([row], columns), markup=False)
    assert isinstance(console.file, io.StringIO)
    _, shown = console.file.getvalue().splitlines()
    assert "  CREATE waiting (12) " in shown and cell_len(shown) <= 40


def test_a_file_has_complete_values() -> None:
    head, first, second = printed(UNLIMITED)
    assert "NOTHING" in head
    assert "CREATE_IN_PROGRESS, waiting for approval (3)" in first
    assert "first line second line " + "x" * 200 in first
    assert "2020-01-01T00:00:00Z" in first
    assert first.endswith(str(ROWS[0]["id"])) and second.endswith(str(ROWS[1]["id"]))


def test_an_empty_table_has_its_headings() -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(output.table([], {"a": "A", "b": "B"}))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().split() == ["A", "B"]


@pytest.mark.parametrize(
    ("widths", "kept", "available", "expected"),
    [
        ([4, 4], [4, 4], 10, [4, 4]),
        ([40, 4], [4, 4], 20, [14, 4]),
        ([40, 30, 10], [4, 4, 10], 40, [13, 13, 10]),
        ([40, 20], [40, 4], 50, [40, 8]),  # the first is kept as long as possible
        ([40, 20], [40, 4], 30, [14, 14]),
        ([], [], 80, []),
    ],
)
def test_the_widest_texts_are_shortened_first(
    widths: list[int], kept: list[int], available: int, expected: list[int]
) -> None:
    assert fit(widths, [[max(KEPT, one) for one in kept]], available) == expected


def test_an_id_is_shortened_after_everything_else() -> None:
    """A shorter one selects nothing."""
    row = dict.fromkeys("abcdef", "x" * 30) | {"id": "0b3a1c5e-0000-4000-8000-000000000001"}
    columns: tables.Columns = {**dict.fromkeys("abcdef", "HEADING"), "id": tables.id_column()}
    console = Console(file=io.StringIO(), width=40, highlight=False)
    console.print(output.table([row], columns), markup=False)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert lines[1].endswith(" 0b3a1c5e") and max(map(len, lines)) <= 40


def lines_of(renderable: Any, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(renderable, markup=False, soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


HOOK_ROW = {"stack": "shop", "resource": "app", "point": "pre-replace", "state": "superseded",
            "approvals": "1/2", "may_answer": "role:dba, user:alice, not joe", "deadline": "",
            "decision": "continue", "by": "anonymous",
            "id": "0b3a1c5e-0000-4000-8000-000000000001"}  # fmt: skip


def test_a_narrow_terminal_leaves_out_minor_columns_and_shortens_no_word() -> None:
    head, row = lines_of(output.table([HOOK_ROW], output.HOOK_COLUMNS), 80)
    assert " ".join(head.split()) == "STACK RESOURCE POINT STATE APPROVALS MAY ANSWER ID"
    assert "pre-replace  superseded  1/2        role:dba" in row and row.endswith("0b3a1c5e")
    head, row = lines_of(output.table([HOOK_ROW], output.HOOK_COLUMNS), 120)
    assert "APPROVALS" in head and "BY" in head and "…" not in row
    head, row = lines_of(output.table([HOOK_ROW], output.HOOK_COLUMNS), UNLIMITED)
    assert "APPROVALS" in head and "DEADLINE" in head


def test_times_are_whole_or_left_out() -> None:
    rows = [dict.fromkeys("abcde", "x" * 30) | {"at": "2020-01-01T00:00:00Z"}]
    columns: tables.Columns = {
        **dict.fromkeys("abcde", "HEADING"),
        "at": tables.past_column("AT"),
    }
    _, row = lines_of(output.table(rows, columns), 64)
    assert row.endswith(" days ago") and len(row) <= 64
    head, row = lines_of(output.table(rows, columns), 50)
    assert head.split() == ["HEADING"] * 5 and len(row) <= 50


ID = "0b3a1c5e-0000-4000-8000-000000000001"
NARROW = {
    "stacks": (
        output.table(
            [{"name": "x" * 255, "status": "ROLLBACK_COMPLETE", "at": "2020-01-01T00:00:00Z",
              "later": "2020-01-01T00:00:00Z", "id": ID}],
            {"name": "NAME", "status": tables.status_column(), "at": tables.past_column("CREATED"),
             "later": tables.past_column("UPDATED"), "id": tables.id_column()},
        ),
        ["ROLLBACK_COMPLETE", "0b3a1c5e"],
    ),
    "resources": (
        output.resources_table(
            [{"resource_name": "数据库服务器" * 3, "resource_type": "OS::Heat::TestResource",
              "resource_status": "ROLLBACK_FAILED", "physical_resource_id": ID}]
        ),
        ["ROLLBACK_FAILED"],
    ),
    "hooks": (
        output.table(
            [HOOK_ROW | {"deadline": "2020-01-01T00:00:00Z", "state": "waiting"}],
            output.WAITING_HOOK_COLUMNS,
        ),
        ["pre-replace", "0b3a1c5e"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("table", "whole"), NARROW.values(), ids=NARROW)
def test_statuses_points_and_ids_are_whole_on_40_columns(table: Any, whole: list[str]) -> None:
    head, row = lines_of(table, 40)
    assert cell_len(row) <= 40 and "…" not in head
    assert [one for one in whole if one not in row.split()] == []


def test_fields_are_continued_below_their_value_and_keep_long_words() -> None:
    document = {"name": "a b c " * 8, "url": "https://example.org/" + "x" * 60, "no": ""}
    assert lines_of(output.fields(document, ("name", "url", "no")), 40) == [
        "name  a b c a b c a b c a b c a b c a b",
        "      c a b c a b c",
        f"url   {document['url']}",
    ]


def test_a_sentence_is_continued_with_an_indent_and_a_command_stays_whole() -> None:
    text = "web: waits\n  db waits for ann. See `headgate hook show web:db` for more.\n\nend"
    assert lines_of(wrapped_text(text), 40) == [
        "web: waits", "  db waits for ann. See", "    `headgate hook show web:db` for", "    more.",
        "", "end",
    ]  # fmt: skip
    assert lines_of(wrapped_text(text), UNLIMITED) == text.splitlines()
    command = "headgate hook continue production-web:database --data KEY=VALUE"
    assert lines_of(wrapped_text(f"To approve it: {command}"), 40) == [
        "To approve it:", f"  {command}"
    ]  # fmt: skip


def test_times_in_a_sentence_are_relative() -> None:
    sentence = "since 2026-11-22T11:50:00.123456Z; deadline 2026-11-22T13:30:00Z, then stop"
    assert tables.relative_times(sentence, NOW) == (
        "since 2026-11-22T11:50:00Z (9 min ago); deadline 2026-11-22T13:30:00Z (1h30m left), then"
        " stop"
    )
    assert tables.relative_times("at 2026-13-22T11:50:00Z", NOW) == "at 2026-13-22T11:50:00Z"


def test_ids_are_as_short_as_they_differ() -> None:
    assert short_ids(["aaaaaaaa-1", "aaaaaaaa-2", ""]) == ["aaaaaaaa-1", "aaaaaaaa-2", ""]
    assert short_ids(["aaaaaaaabbbb", "cccccccccccc"]) == ["aaaaaaaa", "cccccccc"]
    assert short_ids(["aaaaaaaabbbb", "aaaaaaaabbbb"]) == ["aaaaaaaa", "aaaaaaaa"]
    assert short_ids([]) == []


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s ago"),
        (59, "59 s ago"),
        (540, "9 min ago"),
        (3_600, "1 h ago"),
        (100_000, "27 h ago"),
        (200_000, "2 days ago"),
        (-90, "in 1m30s"),
    ],
)
def test_a_past_time_is_relative(seconds: int, expected: str) -> None:
    moment = NOW - timedelta(seconds=seconds)
    assert time_ago(moment.isoformat(), NOW) == expected
    assert time_ago(moment.replace(tzinfo=None).isoformat(), NOW) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (45, "45s left"),
        (545, "9m5s left"),
        (5_400, "1h30m left"),
        (7_200, "2h left"),
        (187_200, "2d4h left"),
        (0, "overdue"),
        (-5, "overdue"),
    ],
)
def test_a_deadline_is_relative(seconds: int, expected: str) -> None:
    assert time_left((NOW + timedelta(seconds=seconds)).isoformat(), NOW) == expected


@pytest.mark.parametrize("text", ["", "never", "12", "2026-13-01T00:00:00Z"])
def test_a_text_that_is_no_time_is_shown_as_it_is(text: str) -> None:
    assert time_ago(text, NOW) == time_left(text, NOW) == text


@pytest.mark.parametrize(
    ("status", "waiting", "short", "expected"),
    [
        ("CREATE_COMPLETE", 0, True, "CREATE_COMPLETE"),
        ("CREATE_IN_PROGRESS", 2, True, "CREATE waiting for approval (2)"),
        ("CREATE_IN_PROGRESS", 2, False, "CREATE_IN_PROGRESS, waiting for approval (2)"),
        ("CREATE_COMPLETE", 1, True, "CREATE_COMPLETE, waiting for approval (1)"),
        ("running", 2, True, "waiting for approval (2)"),
        ("running", 2, False, "running, waiting for approval (2)"),
        ("running", 0, True, "running"),
    ],
)
def test_the_status_says_what_waits(status: str, waiting: int, short: bool, expected: str) -> None:
    assert status_text(status, waiting, short=short) == expected
