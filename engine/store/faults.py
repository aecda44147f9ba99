"""Named points at which a test may have this process die, or stop, as a crash would.

Every commit has two: ``<what>.before`` and ``<what>.after``, where what is one of WHAT. Nothing is
looked for unless HEADGATE_FAULT was set when the process started: ``advance.after:3:kill`` ends it
with SIGKILL when it comes to that point for the third time; ``:stop`` halts it with SIGSTOP.
"""

import os
import signal
from collections.abc import Callable

VARIABLE = "HEADGATE_FAULT"
WHAT = ("accept", "answer", "advance", "nest", "end", "expire", "publish", "deliver")
POINTS = tuple(f"{what}.{when}" for what in WHAT for when in ("before", "after"))
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def _nowhere(_: str) -> None:
    """The usual process reaches no point."""


def _asked(said: str) -> Callable[[str], None]:
    point, times, how = said.split(":")
    if point not in POINTS:
        raise ValueError(f"{VARIABLE}: there is no point {point}; there are {', '.join(POINTS)}")
    left = int(times)

    def reach(reached: str) -> None:
        nonlocal left
        left -= reached == point
        if left == 0 and reached == point:
            os.kill(os.getpid(), SIGNALS[how])

    return reach


_reached: Callable[[str], None] = (
    _asked(os.environ[VARIABLE]) if VARIABLE in os.environ else _nowhere
)


def reach(point: str) -> None:
    """This process has come to a point."""
    _reached(point)
