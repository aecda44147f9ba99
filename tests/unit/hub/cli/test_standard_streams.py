"""Output in encodings without some characters, and words that are no text."""

import io
import json
import sys

import pytest
from rich.console import Console

from hub.cli.printing.consoles import standard_output
from hub.cli.standard_streams import prepare_streams, undecodable_word


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_characters_that_an_encoding_does_not_have_are_escaped(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file, encoding))
    prepare_streams()
    document = {"name": "stra\u00dfe \u2714 \U0001f600 \udcdf"}
    sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
    Console(highlight=False).print("\u2714 done")
    sys.stdout.flush()
    text = file.getvalue().decode(encoding)
    first, second = text.splitlines()
    assert json.loads(first) == document
    assert second == "\\u2714 done"


def test_closed_streams_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    prepare_streams()
    assert not sys.stdin.isatty()
    standard_output.cache_clear()
    standard_output().print("discarded")
    standard_output.cache_clear()
    for one in (sys.stdin, sys.stdout, sys.stderr):
        one.close()


@pytest.mark.parametrize(
    ("words", "variables", "found"),
    [
        (["stack", "show", "stra\udcdfe"], {}, 'the argument "stra\\xdfe"'),
        (["stack", "show", "straße"], {}, None),
        (["stack", "list"], {"HEADGATE_TOKEN": "\udcdf"}, "the variable HEADGATE_TOKEN"),
        (["stack", "list"], {"OTHER": "\udcdf"}, None),
    ],
    ids=["argument", "text", "variable", "other-variable"],
)
def test_words_with_invalid_bytes_are_found(
    words: list[str],
    variables: dict[str, str],
    found: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["headgate", *words])
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert undecodable_word() == found
