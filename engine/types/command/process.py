"""Runs one command with limits on time and output, and ends its processes; its environment, and the
result from its output.

The command gets its own session and process group. After a timeout, or if the caller is cancelled,
the group gets SIGTERM and then SIGKILL. If the command exits by itself, its background processes
continue to run.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import orjson

from engine.bounded_wait import wait_at_most
from engine.types.command.allow_list import RunAs
from engine.types.contract import Call
from engine.types.text_cleaning import as_text, decode_text, mask_secrets, replace_nul
from engine.words import Json

#: Seconds between SIGTERM and SIGKILL.
GRACE = 3.0
#: Seconds to read output after the command has exited: a daemon may hold the pipe open.
AFTERMATH = 0.2
#: Seconds between two checks whether a group has ended after SIGTERM.
LOOK = 0.02


@dataclass(frozen=True, slots=True)
class CommandResult:
    """code: None after a timeout, negative after a signal. stdout, stderr: at most `max_output`
    bytes."""

    code: int | None
    stdout: bytes
    stderr: bytes


class _Watch(asyncio.SubprocessProtocol):
    """Stores `max_bytes` of each stream, and sets events at the exit and at the end of output.

    It stores the first bytes of standard output, and the last bytes of standard error, which have
    the reason of a failure.

    This is a protocol because the wait() of asyncio's `Process` lasts as long as a daemon holds a
    pipe, and its pipes cannot be closed.
    """

    def __init__(self, max_bytes: int) -> None:
        self.kept = {1: bytearray(), 2: bytearray()}
        self.exited = asyncio.Event()
        self.read = asyncio.Event()
        self._max_bytes = max_bytes
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self.kept[fd]
        if fd == 1:
            kept += data[: max(0, self._max_bytes - len(kept))]
        else:
            kept += data
            del kept[: max(0, len(kept) - self._max_bytes)]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.read.set()

    def process_exited(self) -> None:
        self.exited.set()


async def run(
    argv: Sequence[str],
    *,
    program: str,
    cwd: str | None,
    environment: Mapping[str, str],
    seconds: float,
    max_output: int,
    run_as: RunAs | None = None,
) -> CommandResult:
    """Run a command. program: the file to execute; argv[0] is only its displayed name.

    Raises OSError, ValueError or SubprocessError if the command cannot be started.
    """
    if any("\0" in text for text in (*argv, *environment, *environment.values())):
        raise ValueError("an argument or variable contains a NUL character")
    watch = _Watch(max_output)
    transport = await _start(watch, argv, program, cwd, environment, _change_account(run_as))
    try:
        timed_out = not await wait_at_most(watch.exited, seconds)
        await wait_at_most(watch.read, AFTERMATH)
        code = None if timed_out else transport.get_returncode()
        return CommandResult(code, bytes(watch.kept[1]), bytes(watch.kept[2]))
    finally:
        try:
            if not watch.exited.is_set():
                await _end_group(transport.get_pid(), watch)
        finally:
            transport.close()


async def _start(
    watch: _Watch,
    argv: Sequence[str],
    program: str,
    cwd: str | None,
    environment: Mapping[str, str],
    become: Callable[[], None] | None,
) -> asyncio.SubprocessTransport:
    """Start the process, and kill it if the caller is cancelled meanwhile; on any event loop."""
    starting = asyncio.create_task(
        asyncio.get_running_loop().subprocess_exec(
            lambda: watch,
            *argv,
            executable=program,
            cwd=cwd,
            env=dict(environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            preexec_fn=become,
        )
    )
    try:
        transport, _ = await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_discard)
        await asyncio.wait([starting])
        if starting.exception() is None:
            await wait_at_most(watch.exited, GRACE)
        raise
    return transport


def _change_account(run_as: RunAs | None) -> Callable[[], None] | None:
    """The `preexec_fn` that changes the account of a new process; uvloop has no other way."""
    if run_as is None or run_as.uid is None:
        return None
    uid, gid, groups = run_as.uid, run_as.gid, list(run_as.groups)

    def become() -> None:
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)

    return become


def _discard(started: asyncio.Task[tuple[asyncio.SubprocessTransport, _Watch]]) -> None:
    if not started.cancelled() and started.exception() is None:
        transport, _ = started.result()
        _signal(transport.get_pid(), signal.SIGKILL)
        transport.close()


async def _end_group(group: int, watch: _Watch) -> None:
    """Send SIGTERM, wait for the group, then send SIGKILL; at once if cancelled meanwhile."""
    try:
        _signal(group, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                while _signal(group, 0):  # noqa: ASYNC110 - a group has no exit event
                    await asyncio.sleep(LOOK)
    finally:
        _signal(group, signal.SIGKILL)
        await wait_at_most(watch.exited, GRACE)


def _signal(group: int, number: int) -> bool:
    """Send a signal to a group; False if it has no processes."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


#: The variables that a command inherits from the server.
INHERITED = ("PATH", "HOME", "LANG")
#: Prefixes of variables with which the dynamic loader runs other code in an allowed program.
LOADER = ("LD_", "DYLD_")
#: The variable with the credential of the request; an observation has none.
CREDENTIAL = "HEADGATE_CREDENTIAL"
#: The limit for HEADGATE_PREVIOUS in bytes; Linux accepts no variable above 128 KiB.
MAX_PREVIOUS = 98_304
MAX_ERROR = 500


def environment(
    call: Call, name: str, result: Mapping[str, Json], run_as: RunAs | None
) -> dict[str, str]:
    """The variables of a command: from the template and from Headgate. result: see `result_of`."""
    known = {key: os.environ[key] for key in INHERITED if key in os.environ}
    if run_as is not None and run_as.uid is not None:
        known |= {"HOME": run_as.home, "USER": run_as.name, "LOGNAME": run_as.name}
    variables = call.properties.get("environment") or {}
    outputs = (result.get("attributes") or {}).get("outputs") or {}
    previous = orjson.dumps(outputs)
    headgate_variables = {
        "HEADGATE_STACK_NAME": call.stack_name,
        "HEADGATE_STACK_ID": str(call.stack_id),
        "HEADGATE_RESOURCE": call.resource_name,
        "HEADGATE_OPERATION": name,
        "HEADGATE_OPERATION_KEY": str(call.operation_key),
        "HEADGATE_PHYSICAL_ID": result.get("id") or call.physical_id or "",
        "HEADGATE_PREVIOUS": _decode_previous(previous),
        "HEADGATE_SNAPSHOT": _decode_previous(orjson.dumps((call.kept or {}).get("outputs") or {})),
    }
    if call.credential:
        headgate_variables[CREDENTIAL] = call.credential
    return (
        known
        | {key: as_text(value) for key, value in variables.items() if value is not None}
        | headgate_variables
    )


def _decode_previous(raw: bytes) -> str:
    return raw.decode() if len(raw) <= MAX_PREVIOUS else "{}"


def result_of(call: Call, code: int | None, stdout: bytes, stderr: bytes) -> dict[str, Json]:
    """{"id": physical ID, "attributes": {...}} of a successful create or update.

    An update without a JSON object as output does not change the outputs and the ID.
    """
    text = decode_text(stdout)
    before = call.data.get("attributes") or {}
    printed = _object(text)
    outputs = (before.get("outputs") or {}) if printed is None else printed
    printed_id = (printed or {}).get("id")
    return {
        "id": printed_id
        if isinstance(printed_id, str) and printed_id
        else call.physical_id or call.own_name,
        "attributes": {
            "outputs": outputs,
            "stdout": text,
            "stderr": decode_text(stderr),
            "exit_code": code,
        },
    }


def error_tail(call: Call, output: str) -> str:
    """The end of an error output, with secrets masked, for a message."""
    variables = call.properties.get("environment") or {}
    masked = mask_secrets(
        output, [as_text(value) for value in variables.values() if value is not None]
    )
    return masked.strip()[-MAX_ERROR:].strip()


def _object(text: str) -> dict[str, Json] | None:
    try:
        printed = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return replace_nul(printed) if isinstance(printed, dict) else None
