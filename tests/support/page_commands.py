"""The commands of a Markdown page, and the files that it writes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^ *```(sh|console)\n(.*?)^ *```\n(.*?)(?=^ *```|\Z)", re.M | re.S)
HEREDOC = re.compile(r"^cat > (\S+) <<'EOF'\n(.*?)^EOF\n", re.M | re.S)
CONTINUED = re.compile(r"\\\n *")
CODE = re.compile(r"\bexit code is `?(\d)`?")


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


def commands(page: str) -> Iterator[Command | File]:
    """The commands of a page in their order, and the files that it writes."""
    for kind, block, after in BLOCK.findall(page):
        code = CODE.search(after.split("\n\n")[0])
        if kind == "console":
            joined = CONTINUED.sub("", block)
            shown = [one.partition("\n") for one in joined.split("$ ")[1:]]
            for index, (command, _, output) in enumerate(shown, 1):
                yield Command(command, output, int(code[1]) if code and index == len(shown) else 0)
            continue
        yield from (File(Path(name).name, content) for name, content in HEREDOC.findall(block))
        lines = CONTINUED.sub("", HEREDOC.sub("", block)).splitlines()
        found = [line.strip() for line in lines if line.strip() and line.strip()[0] != "#"]
        last = max((index for index, one in enumerate(found) if one != "echo $?"), default=-1)
        for index, one in enumerate(found):
            yield Command(one, code=int(code[1]) if code and index == last else 0)


def page_command(page: str, beginning: str) -> str:
    """The command of a page that begins so. page: its path in the repository.

    `tests/repository/test_executed_commands.py` finds the calls and takes the command as executed:
    give it to a shell, with the names of the test in place of the placeholders.
    """
    (found,) = {
        one.text
        for one in commands((ROOT / page).read_text())
        if isinstance(one, Command) and one.text.startswith(beginning)
    }
    return found
