"""Shell completion of the installed program."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command_line import TEMPLATE, headgate, headgate_json
from tests.support.program import PATIENCE, ServerProcess


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(shell: str) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "_HEADGATE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "headgate subscription re",
        "COMP_CWORD": "2",
        "_TYPER_COMPLETE_ARGS": "headgate subscription re",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    program = str(Path(sys.executable).parent / "headgate")
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)
    assert "redeliver" in done.stdout and "rotate" not in done.stdout, done.stdout + done.stderr


def test_the_script_for_completion_is_printed() -> None:
    environment = {"PATH": "/usr/bin:/bin", "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    program = str(Path(sys.executable).parent / "headgate")
    shown = subprocess.run(
        [program, "--show-completion", "bash"],
        env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    assert "complete -o default -F _headgate_completion headgate" in shown.stdout


def completed(line: str, url: str, **variables: str) -> list[str]:
    """The candidates of fish for the last word of the line."""
    environment = {
        "PATH": os.environ["PATH"],
        "HEADGATE_URL": url,
        "_HEADGATE_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        **variables,
    }
    program = str(Path(sys.executable).parent / "headgate")
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stderr == "", done.stderr
    return [one.split("\t")[0] for one in done.stdout.splitlines() if one]


def test_the_formats_of_a_result_are_completed() -> None:
    found = completed("headgate stack list -o ", "http://127.0.0.1:1")
    assert found == ["table", "wide", "json", "yaml", "name", "jsonpath="]
    assert completed("headgate hook list --output j", "http://127.0.0.1:1") == [
        "json", "jsonpath="
    ]  # fmt: skip


def until_completed(line: str, url: str) -> list[str]:
    """The candidates; a completion gives up after seconds, which a busy machine can need."""
    deadline = time.monotonic() + PATIENCE
    while not (found := completed(line, url)):
        assert time.monotonic() < deadline, line
    return found


def test_names_of_the_server_are_completed(server: ServerProcess) -> None:
    create = ("stack", "create", "completes-me", "-t", TEMPLATE, "--break-at", "app:pre-create")
    headgate(server, *create, "--until-waiting", code=5)
    subscribe = ("subscription", "create", "http://127.0.0.1:9/completed")
    made = headgate_json(server, *subscribe, "--stacks", "completes-me")
    for words in ("stack show", "why", "hook list --stack", "watch", "hook continue --stack"):
        assert until_completed(f"headgate {words} complet", server.url) == ["completes-me"]
    assert completed("headgate stack show no-such-", server.url) == []
    hooks = until_completed("headgate hook continue completes", server.url)
    assert hooks == ["completes-me:app:pre-create"]
    assert until_completed("headgate resource show completes-me a", server.url) == ["app"]
    assert completed("headgate resource show no-such-stack a", server.url) == []
    found = until_completed(f"headgate subscription show {made['id'][:6]}", server.url)
    assert found == [made["id"]]
    headgate(server, "hook", "continue", "completes-me:app")


@pytest.mark.parametrize("words", ["stack show ", "hook show ", "resource show web ", "why "])
def test_without_a_server_nothing_is_completed_and_nothing_printed(words: str) -> None:
    assert completed(f"headgate {words}", "http://127.0.0.1:9") == []


def test_a_damaged_file_of_contexts_completes_nothing(tmp_path: Path) -> None:
    (tmp_path / "contexts.json").write_text("{")
    file = {"HEADGATE_CONTEXTS": str(tmp_path / "contexts.json")}
    for words in ("stack show ", "stack list --context "):
        assert completed(f"headgate {words}", "http://127.0.0.1:9", **file) == []
