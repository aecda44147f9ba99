"""Named points at which a test can make this process die, stop or fail, as in a crash.

Every commit has two: ``<what>.before`` and ``<what>.after``, where what is one of WHAT; each stage
of a worker's unit of work has one, ``worker.<stage>``; re-encryption has one after each page.
Nothing is looked for unless HEADGATE_FAULT was set when the process started:
``advance.after:3:kill`` ends it with SIGKILL when it comes to that point for the third time;
``:stop`` halts it with SIGSTOP, ``:raise`` raises `InjectedFault`. ``worker.judge@web:1:raise``
counts only what is reached for the resource web; ``all`` in place of the number: each time.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

VARIABLE = "HEADGATE_FAULT"
WHAT = ("accept", "answer", "advance", "nest", "end", "expire", "publish", "deliver")
STAGES = (
    "prepare", "start", "await", "judge", "settle", "fail", "measure", "end", "renew", "rest",
)  # fmt: skip
#: Those at a commit.
POINTS = tuple(f"{what}.{when}" for what in WHAT for when in ("before", "after"))
STAGE_POINTS = tuple(f"worker.{stage}" for stage in STAGES)
#: Those of commands, which no server reaches.
COMMANDS = ("reencrypt.page",)
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
RAISE, ALL = "raise", "all"


class InjectedFault(Exception):
    """Raised because a test asked for it."""


def _nowhere(_: str, __: str = "") -> None:
    """The usual process reaches no point."""


def _asked(said: str) -> Callable[[str, str], None]:
    point, times, how = said.split(":")
    point, _, only = point.partition("@")
    if point not in (known := (*POINTS, *STAGE_POINTS, *COMMANDS)):
        raise ValueError(f"{VARIABLE}: there is no point {point}; there are {', '.join(known)}")
    left = 0 if times == ALL else int(times)

    def reach(reached: str, name: str = "") -> None:
        nonlocal left
        if reached != point or only not in ("", name):
            return
        left -= times != ALL
        if left == 0:
            _strike(how, reached)

    return reach


def _strike(how: str, point: str) -> None:
    if how == RAISE:
        raise InjectedFault(point)
    os.kill(os.getpid(), SIGNALS[how])


_reached: Callable[[str, str], None] = (
    _asked(os.environ[VARIABLE]) if VARIABLE in os.environ else _nowhere
)


def reach(point: str, name: str = "") -> None:
    """Mark that this process reached a point. name: of the resource that it handles."""
    _reached(point, name)


@contextmanager
def injected(said: str) -> Iterator[None]:
    """The same for a part of a process, such as a test."""
    global _reached
    before = _reached
    _reached = _asked(said)
    try:
        yield
    finally:
        _reached = before
