"""Shell completion of the installed program."""

import subprocess
import sys
from pathlib import Path

import pytest


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
