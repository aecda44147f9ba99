"""Named points at which a test can make this process die, stop or fail, as in a crash.

Every commit has two: ``<what>.before`` and ``<what>.after``, where what is one of WHAT. Each stage
of a worker's unit of work has one, ``worker.<stage>``; re-encryption has one after each page.
HEADGATE_FAULT selects one when the process starts: ``advance.after:3:kill`` ends the process with
SIGKILL when it passes the point for the third time; ``:stop`` halts it with SIGSTOP; ``:raise``
raises `InjectedFault`. ``worker.judge@web:1:raise`` counts only the resource web. ``all`` in place
of the number: each time.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

VARIABLE = "HEADGATE_FAULT"
WHAT = ("accept", "answer", "advance", "nest", "end", "expire", "publish", "deliver",
        "archive")  # fmt: skip
STAGES = (
    "prepare", "start", "await", "judge", "decide", "fail", "measure", "end", "renew", "rest",
)  # fmt: skip
POINTS = tuple(f"{what}.{when}" for what in WHAT for when in ("before", "after"))
#: Of the observer: of drift, and of operations that it completes.
DRIFT_POINTS = tuple(
    f"{what}.{when}" for what in ("observe", "observed", "report") for when in ("before", "after")
)
COMPLETION_POINTS = tuple(
    f"{what}.{when}" for what in ("wait", "look", "complete", "looked")
    for when in ("before", "after")
)  # fmt: skip
#: Of the observer: hooks about drift open and close.
HOLD_POINTS = ("drift.before", "drift.after")
#: Of the observer: what watched hooks show is due, and such hooks are replaced.
WATCH_POINTS = tuple(f"{what}.{when}" for what in ("due", "renew") for when in ("before", "after"))
#: Of the observer: requests of a budget are taken; an endpoint has failed or works again; drift is
#: not repaired.
BUDGET_POINTS = ("budget.before", "budget.after")
ENDPOINT_POINTS = ("endpoint.before", "endpoint.after")
UNREPAIRED_POINTS = ("unrepaired.before", "unrepaired.after")
#: Of converges with several rounds: one ends, or the stack is observed.
ROUND_POINTS = ("round.before", "round.after")
STAGE_POINTS = tuple(f"worker.{stage}" for stage in STAGES)
#: After the steps of a project's move to another cell (hub/cli/commands/project_move.py).
MOVE_POINTS = tuple(
    f"move.{step}"
    for step in ("announced", "closed", "taken", "copied", "arrived", "switched", "deleted")
)
#: After the first step of `--undo`, which puts the rows back; the schema of the move is left.
UNDO_POINT = "move.restored"
#: In commands, not in servers.
COMMANDS = ("reencrypt.page", *MOVE_POINTS, UNDO_POINT)
KNOWN = (
    *POINTS,
    *DRIFT_POINTS,
    *HOLD_POINTS,
    *WATCH_POINTS,
    *BUDGET_POINTS,
    *ENDPOINT_POINTS,
    *UNREPAIRED_POINTS,
    *ROUND_POINTS,
    *COMPLETION_POINTS,
    *STAGE_POINTS,
    *COMMANDS,
)
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
RAISE, ALL = "raise", "all"


class InjectedFault(Exception):
    """Raised on request of a test."""


def _ignore(_: str, __: str = "") -> None:
    """No fault was requested."""


def _parse(fault: str) -> Callable[[str, str], None]:
    point, times, how = fault.split(":")
    point, _, only = point.partition("@")
    if point not in KNOWN:
        raise ValueError(f"{VARIABLE}: unknown point {point}; the points are {', '.join(KNOWN)}")
    left = 0 if times == ALL else int(times)

    def reach(reached: str, name: str = "") -> None:
        nonlocal left
        if reached != point or only not in ("", name):
            return
        left -= times != ALL
        if left == 0:
            _inject(how, reached)

    return reach


def _inject(how: str, point: str) -> None:
    if how == RAISE:
        raise InjectedFault(point)
    os.kill(os.getpid(), SIGNALS[how])


_reached: Callable[[str, str], None] = (
    _parse(os.environ[VARIABLE]) if VARIABLE in os.environ else _ignore
)


def reach(point: str, name: str = "") -> None:
    """Report that this process passes a point. name: of the resource that it handles."""
    _reached(point, name)


@contextmanager
def inject_fault(fault: str) -> Iterator[None]:
    """Inject a fault as HEADGATE_FAULT does, until the context ends."""
    global _reached
    before = _reached
    _reached = _parse(fault)
    try:
        yield
    finally:
        _reached = before
