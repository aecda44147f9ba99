"""Runs the unmodified `openstack` command line, many commands in one process.

Run as a program, it reads JSON lists of arguments from standard input, one per line, and writes a
line for each: [exit code, standard output, standard error].
"""

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self


class OpenstackShell:
    """A context manager; the process lives until it exits.

    options: before each command. environment: the complete one. ran: the commands so far.
    """

    def __init__(self, options: Sequence[str], environment: Mapping[str, str]) -> None:
        self._options, self._environment = options, environment
        self.commands: list[str] = []

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", __name__]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(self._environment),
        )  # fmt: skip
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.stdout.close()  # type: ignore[union-attr]
        self._process.wait(30)

    def run(self, *arguments: str, code: int = 0) -> str:
        """Standard output and standard error of a command that must exit with `code`."""
        actual, out, err = self._run(arguments)
        assert actual == code, (arguments, actual, out, err)
        return str(out + err)

    def document(self, *arguments: str) -> Any:
        """The JSON document that a command prints; it must print nothing on standard error."""
        actual, out, err = self._run((*arguments, "-f", "json"))
        assert (actual, err) == (0, ""), (arguments, actual, out, err)
        return json.loads(out)

    def _run(self, arguments: Sequence[str]) -> Any:
        self.commands.append(" ".join(arguments))
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([*self._options, *arguments]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"{arguments} ended the process"
        return json.loads(answer)


def run_lines() -> None:
    from openstackclient.shell import OpenStackShell

    output = sys.stdout
    for line in sys.stdin:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code: Any = OpenStackShell().run(json.loads(line))
            except SystemExit as ended:
                code = ended.code
        output.write(json.dumps([code, out.getvalue(), err.getvalue()]) + "\n")
        output.flush()


if __name__ == "__main__":
    run_lines()
