"""The commands of the tutorial and of the guides for stacks, executed as written, on one server.

`Guide.before` is what a page leaves to its reader: files, and commands that bring a stack to the state
that the page assumes. A command that a page shows with its output prints that output.
"""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.test_readme import AT_A_HOOK, ROOT, normalize
from tests.support import forks
from tests.support.program import PATIENCE, ServerProcess, intervals

DOCS = ROOT / "docs"
BLOCK = re.compile(r"^ *```(sh|console)\n(.*?)^ *```\n(.*?)(?=^ *```|\Z)", re.M | re.S)
HEREDOC = re.compile(r"^cat > (\S+) <<'EOF'\n(.*?)^EOF\n", re.M | re.S)
CODE = re.compile(r"\bexit code is `?(\d)`?")
EXPORT = re.compile(r"export ")
VARIABLE = re.compile(r"(\w+)=")
DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
SECRET = re.compile(r"\bwhsec_[A-Za-z0-9+/=]+")
#: The server and the environment are the test's own.
SET_UP = ("make setup", ".venv/bin/headgate serve", "headgate serve", "export PATH", "echo $?")
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


@dataclass(frozen=True)
class File:
    name: str
    content: str


@dataclass(frozen=True)
class Command:
    """shown: the output on the page. code: the exit code that the page names."""

    text: str
    shown: str = ""
    code: int = 0


@dataclass(frozen=True)
class Guide:
    """before: what comes before the command that begins so. left_out: beginnings of commands that
    only show a form. names: placeholders of the page, and what the reader writes for them."""

    page: str
    before: Mapping[str, Sequence[str | File]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


def template(name: str, *resources: str, properties: str = "value: a", more: str = "") -> File:
    """A file with a template of test resources."""
    lines = [
        f"  {one}: {{type: OS::Heat::TestResource, properties: {{{properties}}}}}\n"
        for one in resources
    ]
    return File(name, f"heat_template_version: 2018-08-31\nresources:\n{''.join(lines)}{more}")


#: The history of a hook that was answered.
HISTORY = "history $(headgate hook list --state answered -o name | head -1)"
GUIDES = (
    Guide("tutorial/first-stack.md"),
    Guide(
        "how-to/answer-a-hook.md",
        before={
            "headgate hook list": [
                "headgate stack create first -t examples/first-stack.yaml -e examples/first-env.yaml"
            ],
            "headgate hook reject": [
                "headgate watch first",
                "headgate stack update first --existing -P length=30 --break-at app:pre-update",
            ],
        },
        left_out=("curl -X POST",),
        names={"STACK:RESOURCE": "first:app", "STACK": "first", "history ID": HISTORY},
    ),
    Guide(
        "how-to/change-a-stack-safely.md",
        before={
            "headgate stack update web -t web.yaml --only": [
                "headgate hook continue first:app",
                template("web.yaml", "server", "db_a", "db", "cache"),
                "headgate stack create web -t web.yaml --wait",
                template("web.yaml", "server", "db_a", "db", "cache", properties="value: b"),
            ],
            "headgate stack update web -t web.yaml --moved": [
                template("web.yaml", "frontend", "db_a", "db", "cache", properties="value: b")
            ],
            "headgate stack update other": [
                template("other.yaml", "x"),
                "headgate stack create other -t other.yaml --wait",
                template("other.yaml", "x", "cache", properties="value: b"),
            ],
            "headgate stack update web -t web.yaml --break-at": [
                template("web.yaml", "frontend", "db_a", "db", properties="value: c")
            ],
        },
    ),
    Guide(
        "how-to/undo.md",
        before={
            "headgate stack update web -t web.yaml --rollback": [
                template("web.yaml", "a"),
                "headgate stack create web -t web.yaml --wait",
                template("web.yaml", "a", properties="value: b"),
                "headgate stack update web -t web.yaml --wait",
                "headgate stack update web -t web.yaml --wait",
                template("web.yaml", "a", properties="fail: true"),
            ],
            "headgate stack update web -t web.yaml --wait": [
                template("web.yaml", "a", "b"),
            ],
        },
    ),
    Guide(
        "how-to/move-a-stack.md",
        before={
            "headgate stack abandon": [
                template("web.yaml", "a"),
                "headgate stack create web -t web.yaml --wait",
            ]
        },
    ),
    Guide(
        "how-to/migrate-from-heat.md",
        before={
            "headgate template validate": [
                template("web.yaml", "a"),
                File("env.yaml", "resource_registry: {}\n"),
            ]
        },
        left_out=("export OS_", "openstack", "headgate stack adopt"),
    ),
    Guide(
        "how-to/step-through-a-stack.md",
        before={
            "headgate stack update first": [
                "headgate hook run first:app",
                "headgate watch first",
                File("patch.yaml", "hooks: [{at: app, on: pre-update, patch: [value]}]"),
            ],
            "headgate hook progress": ["headgate hook step first:secret"],
            "headgate stack breakpoints add shop": [
                template("web.yaml", "db"),
                template("shop.yaml", more="  web: {type: web.yaml}\n"),
                "headgate stack create shop -t shop.yaml --wait",
            ],
        },
        left_out=("headgate admin verify-audit",),
        names={"history ID": HISTORY},
    ),
    Guide(
        "how-to/scale-a-group.md",
        before={
            "openstack stack resource signal": [
                "headgate stack create crew -t examples/group/group.yaml --wait"
            ],
            "headgate hook list": [
                "headgate stack update crew -t examples/group/group.yaml -e examples/group/ask.yaml"
                " -P greeting=hi"
            ],
        },
        left_out=("headgate hook continue crew:workers --data",),
    ),
    Guide("how-to/check-templates.md"),
    Guide("../examples/group/README.md", left_out=("curl -X POST URL",)),
    Guide(
        "../examples/shop/README.md",
        left_out=("make serve",),
        names={".venv/bin/headgate": "headgate"},
    ),
    Guide("how-to/wait-for-a-signal.md", left_out=("curl",)),
    Guide("how-to/write-a-listener.md"),
)


def commands(page: str) -> Iterator[Command | File]:
    """The commands of a page in their order, and the files that it writes."""
    for kind, block, after in BLOCK.findall(page):
        code = CODE.search(after.split("\n\n")[0])
        if kind == "console":
            shown = [one.partition("\n") for one in block.split("$ ")[1:]]
            for index, (command, _, output) in enumerate(shown, 1):
                yield Command(command, output, int(code[1]) if code and index == len(shown) else 0)
            continue
        yield from (File(Path(name).name, content) for name, content in HEREDOC.findall(block))
        lines = re.sub(r"\\\n *", "", HEREDOC.sub("", block)).splitlines()
        found = [line.strip() for line in lines if line.strip() and line.strip()[0] != "#"]
        last = max((index for index, one in enumerate(found) if one != "echo $?"), default=-1)
        for index, one in enumerate(found):
            yield Command(one, code=int(code[1]) if code and index == last else 0)


def exported_names(text: str) -> list[str]:
    """The variables that a command exports."""
    found = [VARIABLE.match(word) for word in text.split()] if EXPORT.match(text) else []
    return [one[1] for one in found if one]


class Reader:
    """A reader at a shell, who waits where a change takes its time."""

    def __init__(self, url: str, project: str, names: Mapping[str, str]) -> None:
        self._names = {**REPLACED, **names}
        self.environment = os.environ | {
            "HEADGATE_URL": url,
            "HEADGATE_PROJECT": project,
            "OS_AUTH_TYPE": "none",
            "OS_ENDPOINT": f"{url}/v1/{project}",
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

    def execute(self, command: Command) -> None:
        text = self.fill_in(command.text)
        end, pauses = time.monotonic() + PATIENCE, intervals()
        while True:
            done = self._run(text)
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

    def _run(self, text: str) -> subprocess.CompletedProcess[str]:
        if names := exported_names(text):
            shown = "\\0".join(["%s"] * len(names))
            values = " ".join(f'"${{{name}}}"' for name in names)
            text = f"{text}; printf '{shown}' {values}"
        words = shlex.split(text, comments=True)
        if words[0] == "headgate" and not {"|", ">"} & {*words}:
            return forks.run(words[1:], self.environment)
        return subprocess.run(
            ["bash", "-c", text], env=self.environment, capture_output=True, text=True,
            timeout=PATIENCE, check=False,
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


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: Path(guide.page).stem)
def test_each_command_works_as_the_page_says(
    guide: Guide, server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    reader = Reader(server.url, f"guide-{GUIDES.index(guide)}", guide.names)
    before = dict(guide.before)
    executed = 0
    for one in commands((DOCS / guide.page).read_text()):
        if isinstance(one, File):
            (tmp_path / one.name).write_text(one.content)
            continue
        if one.text.startswith((*SET_UP, *guide.left_out)):
            continue
        for beginning in [begin for begin in before if one.text.startswith(begin)]:
            for step in before.pop(beginning):
                if isinstance(step, File):
                    (tmp_path / step.name).write_text(step.content)
                else:
                    reader.execute(Command(step))
        reader.execute(one)
        executed += 1
    assert executed
    assert not before, "no command of the page begins so"
