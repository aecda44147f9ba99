"""Exit codes of commands; docs/reference/cli.md repeats the table."""

from enum import IntEnum


class ExitCode(IntEnum):
    COMPLETE = 0
    ERROR = 1
    USAGE = 2
    FAILED = 3
    STOPPED = 4
    WAITING = 5
    TIMED_OUT = 6
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


MEANING = {
    ExitCode.COMPLETE: "success, or, with --wait and watch, the stack is COMPLETE",
    ExitCode.ERROR: "request refused, object not found, or server unreachable; or a converge has"
    " not repaired everything",
    ExitCode.USAGE: "invalid options or arguments",
    ExitCode.FAILED: "the stack is FAILED",
    ExitCode.STOPPED: "the stack is STOPPED (`headgate stack show` prints the command that"
    " continues it)",
    ExitCode.WAITING: "only hooks that wait for an answer are left (with --until-waiting)",
    ExitCode.TIMED_OUT: "--timeout has expired, and the action continues on the server",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
    ExitCode.BROKEN_PIPE: "the reader of standard output has ended",
    ExitCode.TERMINATED: "ended by SIGTERM",
}
OF_STATUS = {"COMPLETE": ExitCode.COMPLETE, "FAILED": ExitCode.FAILED, "STOPPED": ExitCode.STOPPED}


def of_status(stack_status: str) -> ExitCode | None:
    """The code of a final status such as ``CREATE_COMPLETE``; None for any other status."""
    return OF_STATUS.get(stack_status.rpartition("_")[2])


def epilog() -> str:
    return "Exit codes: " + "; ".join(f"{code.value} {MEANING[code]}" for code in ExitCode) + "."
