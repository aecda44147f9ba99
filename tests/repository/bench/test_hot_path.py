"""The digests that tell whether figures are older than the code that they measure."""

from pathlib import Path

import pytest

from tests.bench import hot_path
from tests.bench.hot_path import MIXED, changed, digest, digests, merged

ROOT = Path(__file__).parents[3]
CODE = 'QUERY = """\nselect 1 -- #1\n"""\n\n\ndef f() -> int:\n    "Text."\n    return 1\n'


def digest_of(tmp_path: Path, text: str, name: str = "a.py") -> str:
    path = tmp_path / name
    path.write_text(text)
    return digest(path)


@pytest.mark.parametrize("pattern", hot_path.PATTERNS)
def test_each_pattern_finds_files(pattern: str) -> None:
    assert list(ROOT.glob(pattern))


def test_the_hot_path_has_routines_statements_and_loops() -> None:
    found = digests(ROOT)
    for path in (
        "engine/store/routines/5_advance.sql", "engine/store/traversals/advance.py",
        "engine/work/nodes/worker.py", "engine/node/machine.py", "channels/store/claim.py",
    ):  # fmt: skip
        assert path in found


@pytest.mark.parametrize(
    ("old", "new"),
    [("Text.", "Another text."), ("return 1", "return 1  # one"), ("\n\n\n", "\n\n"),
     ("def f", "# a function\ndef f")],
)  # fmt: skip
def test_comments_docstrings_and_white_space_do_not_count(
    tmp_path: Path, old: str, new: str
) -> None:
    assert digest_of(tmp_path, CODE) == digest_of(tmp_path, CODE.replace(old, new))


@pytest.mark.parametrize(("old", "new"), [("return 1", "return 2"), ("select 1", "select 2")])
def test_code_and_statements_count(tmp_path: Path, old: str, new: str) -> None:
    assert digest_of(tmp_path, CODE) != digest_of(tmp_path, CODE.replace(old, new))


def test_comments_in_sql_do_not_count(tmp_path: Path) -> None:
    first = digest_of(tmp_path, "select 1 -- one\n  from a;", "a.sql")
    assert first == digest_of(tmp_path, "-- ones\nselect 1\nfrom a;", "a.sql")
    assert first != digest_of(tmp_path, "select 2\nfrom a;", "a.sql")


def test_edited_added_and_removed_files_have_changed() -> None:
    document = {"hot_path": {"same": "1", "edited": "1", "removed": "1"}}
    now = {"same": "1", "edited": "2", "added": "1"}
    assert changed(document, now) == ["added", "edited", "removed"]


def test_a_kept_file_has_changed_again_when_it_differs_from_its_kept_state() -> None:
    document = {
        "hot_path": {"a": "1", "b": "1", "gone": "1"},
        "kept": {"a": {"digest": "2"}, "b": {"digest": "2"}, "gone": {"digest": ""}},
    }
    assert changed(document, {"a": "2", "b": "3"}) == ["b"]


def test_parts_measured_with_different_code_leave_the_file_changed() -> None:
    digests = merged({"a": "1", "b": "1"}, {"a": "1", "b": "2", "c": "1"})
    assert digests == {"a": "1", "b": MIXED, "c": "1"}
    assert changed({"hot_path": digests}, {"a": "1", "b": "2", "c": "1"}) == ["b"]
