"""Exit codes of commands; docs/reference/cli.md repeats the table."""

from enum import IntEnum


class Exit(IntEnum):
    COMPLETE = 0
    ERROR = 1
    USAGE = 2
    FAILED = 3
    STOPPED = 4
    WAITING = 5
    TIMED_OUT = 6


MEANING = {
    Exit.COMPLETE: "success, or, with --wait and watch, the stack is COMPLETE",
    Exit.ERROR: "request refused, object not found, or server unreachable",
    Exit.USAGE: "invalid options or arguments",
    Exit.FAILED: "the stack is FAILED",
    Exit.STOPPED: "the stack is STOPPED (`headgate stack resume` continues it)",
    Exit.WAITING: "only hooks that wait for an answer are left (with --until-waiting)",
    Exit.TIMED_OUT: "--timeout has expired, and the action continues on the server",
}
OF_STATUS = {"COMPLETE": Exit.COMPLETE, "FAILED": Exit.FAILED, "STOPPED": Exit.STOPPED}


def of_status(stack_status: str) -> Exit | None:
    """The code of a final status such as ``CREATE_COMPLETE``; None for any other status."""
    return OF_STATUS.get(stack_status.rpartition("_")[2])


def epilog() -> str:
    return "Exit codes: " + "; ".join(f"{code.value} {MEANING[code]}" for code in Exit) + "."
