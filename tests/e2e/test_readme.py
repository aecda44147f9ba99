"""The README's quick start, executed as it is, against a running server."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.page_reader import AT_A_HOOK, normalize
from tests.support.program import PATIENCE, ServerProcess, intervals

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
QUICKSTART = README.split("## Your first stack")[1].split("\n## ")[0]
BLOCKS = re.compile(r"^```(sh|console)\n(.*?)^```", re.M | re.S)
#: The test provides the server and the environment.
SET_UP = ("make setup", 'export PATH="$PWD/.venv/bin:$PATH"', "headgate serve &")


def commands() -> Iterator[tuple[str, str]]:
    """Each command, and the output that the README shows."""
    for kind, text in BLOCKS.findall(QUICKSTART):
        if kind == "sh":
            yield from ((line, "") for line in text.splitlines())
        else:
            for one in text.split("$ ")[1:]:
                command, _, shown = one.partition("\n")
                yield command, shown


def test_each_command_prints_the_shown_output(server: ServerProcess) -> None:
    documented = list(commands())
    assert [command for command, _ in documented[: len(SET_UP)]] == list(SET_UP)
    here = os.environ | {
        "HEADGATE_URL": server.url,
        "COLUMNS": "200",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for command, shown in documented[len(SET_UP) :]:
        command = command.replace("http://127.0.0.1:8004", server.url)
        if command.startswith("export "):
            here |= dict(word.split("=", 1) for word in command.split()[1:])
            continue
        printed = run(command, here, repeat=command.startswith(AT_A_HOOK))
        if shown:
            assert normalize(printed) == normalize(shown)


def run(command: str, environment: dict[str, str], *, repeat: bool) -> str:
    """The output of a command. again: repeat it until a hook waits."""
    end = time.monotonic() + PATIENCE
    pauses = intervals()
    while True:
        done = subprocess.run(
            ["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
        early = done.returncode != 0 or (
            "headgate why" in command and "has waited" not in done.stdout
        )
        if not (repeat and early and time.monotonic() < end):
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            return done.stdout
        time.sleep(next(pauses))


def test_the_hook_of_the_shop_requires_a_backup(server: ServerProcess) -> None:
    """`backup: false` does not approve."""
    headgate = f"{sys.executable} -m hub.cli.main"
    here = os.environ | {"HEADGATE_URL": server.url, "HEADGATE_PROJECT": "shop"}
    shop = "-t examples/shop/shop.yaml -e examples/shop/env.yaml"
    run(f"{headgate} stack create shop {shop}", here, repeat=False)
    answer = f"{headgate} hook continue shop:database --data ticket=OPS-17"
    run(f"{headgate} hook list | grep database", here, repeat=True)
    refused = subprocess.run(
        ["bash", "-c", f"{answer} --data backup=false"], cwd=ROOT, env=here, capture_output=True,
        text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert refused.returncode != 0 and "data.backup" in refused.stderr, refused
    run(f"{answer} --data backup=true", here, repeat=False)
    run(f"{headgate} stack delete shop --yes", here, repeat=False)
