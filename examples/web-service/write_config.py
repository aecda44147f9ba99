"""Writes or removes the service's configuration file, in the folder it is run in.

The same operation may be run twice (after a crash): the file is then written again, all the same.
"""

import json
import os
import sys
from pathlib import Path

PATH = Path("service.json").absolute()


def write() -> None:
    fresh = PATH.with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({"secret": os.environ["SECRET"]}, file)
    fresh.replace(PATH)
    print(json.dumps({"id": str(PATH), "path": str(PATH)}))


def remove() -> None:
    PATH.unlink(missing_ok=True)


if __name__ == "__main__":
    {"write": write, "remove": remove}[sys.argv[1]]()
