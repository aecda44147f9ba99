"""Writes or removes a configuration file: `write_config.py write|remove`, in the folder it runs in.

The file is named by its operation's key. So the same operation may run twice (after a crash), and
when a new secret replaces the file, the old one is removed without touching the new one.
"""

import json
import os
import sys
from pathlib import Path


def write() -> None:
    key = os.environ["HEADGATE_OPERATION_KEY"]
    path = Path(f"config-{key}.json").absolute()
    fresh = path.with_suffix(".new")
    # Nobody else may read it, not for a moment: the mode is set before there is anything in it.
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        os.fchmod(file.fileno(), 0o600)
        json.dump({"secret": os.environ["SECRET"]}, file)
    fresh.replace(path)
    print(json.dumps({"id": key, "path": str(path)}))


def remove() -> None:
    """Also what a `write` that was ended half way left; where there is nothing, that is fine."""
    wanted = os.environ["HEADGATE_PHYSICAL_ID"]
    for path in Path().glob("config-*"):
        if means(wanted, path.stem.removeprefix("config-")):
            path.unlink(missing_ok=True)


def means(physical_id: str, key: str) -> bool:
    """The key itself; or, when what create printed was lost, the id that Headgate made of it."""
    return physical_id == key or physical_id.endswith("-" + key.replace("-", "")[:12])


if __name__ == "__main__":
    {"write": write, "remove": remove}[sys.argv[1]]()
