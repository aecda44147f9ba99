"""The file with contexts."""

import json
import stat
from pathlib import Path

import pytest

from hub.cli.connection.saved_contexts import (
    ContextError,
    SavedContext,
    SavedContexts,
    contexts_path,
    read_contexts,
    write_contexts,
)

WEB, DB = SavedContext("http://a", "web", "ann", "hgt_1"), SavedContext("https://b")


def test_contexts_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "contexts.json"
    saved = SavedContexts().add("a", WEB).add("b", DB)
    write_contexts(path, saved)
    assert read_contexts(path) == saved and saved.current == "b"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    write_contexts(path, saved.select("a").remove("b"))
    assert read_contexts(path) == SavedContexts("a", {"a": WEB})
    assert [one.name for one in path.parent.iterdir()] == ["contexts.json"]


def test_without_a_file_there_are_no_contexts(tmp_path: Path) -> None:
    assert read_contexts(tmp_path / "nope") == SavedContexts()


def test_the_current_context_can_be_deleted() -> None:
    assert SavedContexts().add("a", WEB).remove("a") == SavedContexts("", {})


def test_a_logout_keeps_the_server_and_the_project(tmp_path: Path) -> None:
    login = SavedContext("http://a", "web", token="hgt_1", expires_at="2026-11-27T12:00:00Z")
    saved = SavedContexts().add("a", login).add("b", DB)
    assert "hgt_1" not in repr(saved)
    assert saved.log_out("a") == SavedContexts("b", {"a": SavedContext("http://a", "web"), "b": DB})
    path = tmp_path / "contexts.json"
    write_contexts(path, saved)
    assert read_contexts(path) == saved
    # Releases before this value can read the file again.
    write_contexts(path, saved.log_out("a"))
    assert "expires_at" not in path.read_text()


def test_an_unknown_context_is_refused_with_the_known_ones() -> None:
    refused = (
        SavedContexts.find,
        SavedContexts.select,
        SavedContexts.remove,
        SavedContexts.log_out,
    )
    for change in refused:
        with pytest.raises(ContextError, match='no context "b"; saved: a'):
            change(SavedContexts().add("a", WEB), "b")


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "contexts.json"
    write_contexts(path, SavedContexts().add("a", WEB))
    path.chmod(0o640)
    with pytest.raises(ContextError, match="chmod 600"):
        read_contexts(path)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"current": "a"}', '{"current": "", "contexts": []}',
             json.dumps({"current": "", "contexts": {"a": {"urll": ""}}})],
)  # fmt: skip
def test_a_damaged_file_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "contexts.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ContextError, match=str(path)):
        read_contexts(path)


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ContextError, match="cannot be written"):
        write_contexts(tmp_path / "file" / "contexts.json", SavedContexts())


def test_the_variables_choose_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_CONTEXTS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/x")
    assert contexts_path() == Path("/x/headgate/contexts.json")
    monkeypatch.setenv("HEADGATE_CONTEXTS", "/y")
    assert contexts_path() == Path("/y")


def test_a_token_is_not_in_the_representation() -> None:
    assert "hgt_1" not in repr(WEB)


@pytest.mark.parametrize("values", [{"url": 5}, {"url": "http://a", "token": "a\n"}])
def test_values_that_are_no_text_are_refused(values: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "contexts.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps({"current": "a", "contexts": {"a": values}}))
    with pytest.raises(ContextError, match="does not have the form of contexts"):
        read_contexts(path)
