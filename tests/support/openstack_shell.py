"""The unmodified `openstack` command line, one command after the other in one process.

Run as a program, it reads a list of words in JSON from each line of its standard input, and answers
each with a line: [exit code, what it wrote on standard output, and on standard error].
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
    """A context manager: the process lives as long as it is entered.

    options: in front of every command. environment: the whole of it. ran: the commands so far.
    """

    def __init__(self, options: Sequence[str], environment: Mapping[str, str]) -> None:
        self._options, self._environment = options, environment
        self.ran: list[str] = []

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

    def run(self, *words: str, code: int = 0) -> str:
        """What it wrote, on both; its exit code is `code`."""
        got, out, err = self._asked(words)
        assert got == code, (words, got, out, err)
        return str(out + err)

    def document(self, *words: str) -> Any:
        """What a command gives, as JSON; nothing else is said."""
        got, out, err = self._asked((*words, "-f", "json"))
        assert (got, err) == (0, ""), (words, got, out, err)
        return json.loads(out)

    def _asked(self, words: Sequence[str]) -> Any:
        self.ran.append(" ".join(words))
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([*self._options, *words]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"{words} ended the process"
        return json.loads(answer)


def answer_lines() -> None:
    from openstackclient.shell import OpenStackShell

    answers = sys.stdout
    for line in sys.stdin:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code: Any = OpenStackShell().run(json.loads(line))
            except SystemExit as ended:
                code = ended.code
        answers.write(json.dumps([code, out.getvalue(), err.getvalue()]) + "\n")
        answers.flush()


if __name__ == "__main__":
    answer_lines()
