"""`headgate admin verify-audit` refuses files that verify nothing."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hub.cli.main import app


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("--signed", "has no signed checkpoint, so it verifies nothing"),
        ("--public-key", "is not an Ed25519 key in PEM"),
    ],
)
def test_a_file_that_verifies_nothing_is_refused(option: str, error: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a: [1\n")
    words = ["admin", "verify-audit", "--data-dir", str(tmp_path / "data"), option, str(file)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert f"{option}: {file} {error}" in done.stderr


def test_a_file_is_read_once_so_that_it_can_be_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, read, read_text = tmp_path / "file", [], Path.read_text

    def count(path: Path, *arguments: Any, **options: Any) -> str:
        read.append(path)
        return read_text(path, *arguments, **options)

    file.write_text("")
    monkeypatch.setattr(Path, "read_text", count)
    words = ["admin", "verify-audit", "--data-dir", str(tmp_path / "data"), "--signed", str(file)]
    assert CliRunner().invoke(app, words).exit_code == 1
    assert read.count(file) == 1
