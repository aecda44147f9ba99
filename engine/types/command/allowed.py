"""What the operator lets commands be: the settings, and the list of programs."""

import os
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """allow: absolute paths of the programs that may be run. max_output: bytes of each stream."""

    enabled: bool = False
    allow: tuple[str, ...] = ()
    max_output: int = 65_536
    max_timeout: timedelta = timedelta(hours=1)


def allowed_file(program: str, allow: tuple[str, ...]) -> str | None:
    """The file to execute for `program`, free of links a template's author may move; None: refused.

    Links in the folder are followed on both sides. The last part is followed only toward the list:
    a name that leads to a listed program is that program, but a listed link does not let in the
    other names of what it leads to (many tools of a small system are links to one program).
    """
    if not os.path.isabs(program) or "\0" in program:
        return None
    listed = {_place(path) for path in allow}
    place = _place(program)
    if place in listed:
        return place
    real = os.path.realpath(program)
    return real if real in listed else None


def _place(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
