"""A reader of the pages, who executes their commands at a shell."""

import asyncio
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tests.support import forks
from tests.support.page_commands import Command
from tests.support.program import PATIENCE, intervals

#: A command after which a page waits for a hook.
AT_A_HOOK = ("headgate why", "headgate hook", "openstack stack hook clear")
EXPORT = re.compile(r"export |\w+=\$\(.*\)$")
VARIABLE = re.compile(r"(\w+)=")
#: Of a variable of the environment.
USE = re.compile(r"\$(\w+)")
DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
SECRET = re.compile(r"\bwhsec_[A-Za-z0-9+/=]+")
VARIABLE_PARTS = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (DIGEST, "DIGEST"),
)
#: What only a shell understands.
SHELL = re.compile(r"\$[({]|[>|;]")
#: curl, which exits with 0 whatever the response is.
CURL = re.compile(r"^curl (?!.*--fail)", re.S)
#: What needs a terminal, a second server or a folder of all users.
REPLACED: Mapping[str, str] = {
    # A reader answers the question.
    "abandon web -o web.json": "abandon web -o web.json --yes",
    "stack delete first": "stack delete first --yes",
    "stack delete one": "stack delete one --yes",
    "snapshot restore web before": "snapshot restore web before --yes",
    "rotate-token-key --revoke": "rotate-token-key --revoke --yes",
    " --url http://other.example:8004": "",
    "/tmp/": "",
}


def exported_names(text: str) -> list[str]:
    """The variables that a command sets for the commands after it."""
    found = [VARIABLE.match(word) for word in text.split()] if EXPORT.match(text) else []
    return [one[1] for one in found if one]


class Reader:
    """A reader at a shell, who waits where a change takes its time."""

    def __init__(
        self, url: str, project: str, names: Mapping[str, str], *, patience: float = PATIENCE
    ) -> None:
        """names: placeholders, and what the reader writes for them. patience: the longest time, in
        seconds, of a command."""
        self._patience = patience
        endpoint = f"{url}/v1/{project}"
        self._names = {**REPLACED, "http://127.0.0.1:8004/v1/default": endpoint, **names}
        self.environment = os.environ | {
            "HEADGATE_URL": url,
            "HEADGATE_PROJECT": project,
            "OS_AUTH_TYPE": "none",
            "OS_ENDPOINT": endpoint,
            "COLUMNS": "200",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        self._digest, self._secret = "", ""

    def fill_in(self, text: str) -> str:
        """The command with what the reader writes for placeholders: also the digest and the secret
        that an earlier command has printed."""
        # In one pass: the port of a server can have the digits of a placeholder such as `17`.
        names = sorted(self._names, key=len, reverse=True)
        text = re.sub("|".join(map(re.escape, names)), lambda found: self._names[found[0]], text)
        text = DIGEST.sub(lambda _: self._digest, text)
        return text.replace("whsec_...", self._secret)

    async def type(self, command: str, typed: str = "") -> str:
        """Execute a command, in a thread, and return what it prints. typed: its standard input."""
        return await asyncio.to_thread(self.execute, Command(command), typed)

    def execute(self, command: Command, typed: str = "") -> str:
        """Return what it prints. typed: its standard input."""
        return self.enter(replace(command, text=self.fill_in(command.text)), typed)

    def enter(self, command: Command, typed: str = "") -> str:
        """The same for a command without placeholders."""
        text = command.text
        if text.startswith("unset "):
            for name in text.split()[1:]:
                del self.environment[name]
            return ""
        end, pauses = time.monotonic() + PATIENCE, intervals()
        while True:
            done = self._run(text, typed)
            early = text.startswith(AT_A_HOOK) and done.returncode != 0
            if not early or time.monotonic() > end:
                break
            time.sleep(next(pauses))
        assert done.returncode == command.code, (text, done.stdout, done.stderr)
        if names := exported_names(text):
            values = done.stdout.split("\0")
            assert len(values) == len(names) and all(values), (text, done.stdout, done.stderr)
            self.environment |= dict(zip(names, values, strict=True))
        if command.shown:
            assert is_shown(done.stdout, command.shown), (text, done.stdout)
        self._digest = "".join(DIGEST.findall(done.stdout)[-1:]) or self._digest
        self._secret = "".join(SECRET.findall(done.stdout)[-1:]) or self._secret
        return done.stdout

    def _run(self, text: str, typed: str) -> subprocess.CompletedProcess[str]:
        if names := exported_names(text):
            shown = "\\0".join(["%s"] * len(names))
            values = " ".join(f'"${{{name}}}"' for name in names)
            text = f"{text}; printf '{shown}' {values}"
        text = CURL.sub("curl --fail-with-body ", text)
        words = shlex.split(text, comments=True)
        if words[0] in forks.PROGRAMS and not SHELL.search(text):
            words = [USE.sub(lambda one: self.environment[one[1]], word) for word in words]
            return forks.run(
                words[1:], self.environment,
                program=words[0], typed=typed, patience=self._patience,
            )  # fmt: skip
        return subprocess.run(
            ["bash", "-c", text], env=self.environment, input=typed, capture_output=True, text=True,
            timeout=self._patience, check=False,
        )  # fmt: skip


def is_shown(printed: str, page: str) -> bool:
    """Whether the page shows what was printed. A line of the page that begins with `...` is the end
    of one of the lines."""
    lines = normalize(printed).splitlines()
    ends = [
        one.removeprefix("...") for one in normalize(page).splitlines() if one.startswith("...")
    ]
    if ends:
        return all(any(line.endswith(end) for line in lines) for end in ends)
    return normalize(printed) == normalize(page)


def normalize(text: str) -> str:
    """The text without parts that differ in each run, and without trailing spaces."""
    for pattern, word in VARIABLE_PARTS:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
