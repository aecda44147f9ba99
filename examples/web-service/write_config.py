"""Writes or removes a configuration file in the working directory: `write_config.py write|remove`.

The operation key is part of the file name. The same operation can therefore run twice after a
crash, and when a new secret replaces the file, only the old file is removed.
"""

import json
import os
import sys
from pathlib import Path


def write() -> None:
    key = os.environ["HEADGATE_OPERATION_KEY"]
    path = Path(f"config-{key}.json").absolute()
    new_file = path.with_suffix(".new")
    # Set the mode before the file has any content, so that no other user can ever read it.
    with os.fdopen(os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        os.fchmod(file.fileno(), 0o600)
        json.dump({"secret": os.environ["SECRET"]}, file)
    new_file.replace(path)
    print(json.dumps({"id": key, "path": str(path)}))


def remove() -> None:
    """Also removes the partial file of an interrupted `write`. A missing file is no error."""
    physical_id = os.environ["HEADGATE_PHYSICAL_ID"]
    for path in Path().glob("config-*"):
        if belongs_to(physical_id, path.stem.removeprefix("config-")):
            path.unlink(missing_ok=True)


def belongs_to(physical_id: str, key: str) -> bool:
    """Whether the physical ID belongs to the operation key. If the output of create was lost, the
    physical ID is one that Headgate derived from the key."""
    return physical_id == key or physical_id.endswith("-" + key.replace("-", "")[:12])


if __name__ == "__main__":
    {"write": write, "remove": remove}[sys.argv[1]]()
