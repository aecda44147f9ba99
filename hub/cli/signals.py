"""Commands that end because of a signal: Ctrl-C, SIGTERM, or a reader that takes no more output."""

import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from hub.cli import libraries
from hub.cli.exit_codes import ExitCode
from hub.cli.standard_streams import discard_output

Result = TypeVar("Result")
SIGNALS = {
    ExitCode.INTERRUPTED: signal.SIGINT,
    ExitCode.BROKEN_PIPE: signal.SIGPIPE,
    ExitCode.TERMINATED: signal.SIGTERM,
}

#: Seconds between looks for signals while a read blocks.
SIGNAL_INTERVAL = 0.2


class EndedBySignal(Exception):
    """Ctrl-C or SIGTERM came, and the work has cleaned up."""

    def __init__(self, code: ExitCode) -> None:
        super().__init__(code)
        self.code = code


def run_until_signal(work: Callable[[], Awaitable[Result]]) -> Result:
    """Run the work in an event loop. A signal cancels it. Raises EndedBySignal."""
    terminated = False

    async def run() -> Result:
        nonlocal terminated
        loop = libraries.asyncio.get_running_loop()
        task = libraries.asyncio.current_task()

        def terminate() -> None:
            nonlocal terminated
            if task is not None:
                terminated = task.cancel()

        with suppress(RuntimeError, ValueError):  # only the main thread receives signals
            loop.add_signal_handler(signal.SIGTERM, terminate)
        return await work()

    try:
        return libraries.asyncio.run(run())
    except KeyboardInterrupt:
        raise EndedBySignal(ExitCode.INTERRUPTED) from None
    except libraries.asyncio.CancelledError:
        if terminated:
            raise EndedBySignal(ExitCode.TERMINATED) from None
        raise


def read_until_signal(read: Callable[[], Result]) -> Result:
    """Ctrl-C and SIGTERM end a read that blocks, such as of a named pipe that no program writes to.

    An event loop handles signals between its callbacks only. Outside of one, the defaults apply.
    The read has a thread of its own, and this one looks for signals at intervals: one that comes
    just before a system call does not interrupt it. Raises EndedBySignal, and what `read` raises.
    """
    if not _is_in_event_loop() or threading.current_thread() is not threading.main_thread():
        return read()
    codes = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}

    def end(number: int, _frame: object) -> None:
        raise EndedBySignal(codes[signal.Signals(number)])

    results: list[Result] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            results.append(read())
        except Exception as error:
            errors.append(error)

    before = {number: signal.signal(number, end) for number in codes}
    try:
        thread = threading.Thread(target=work, daemon=True)  # the process can end without it
        thread.start()
        while thread.is_alive():
            thread.join(SIGNAL_INTERVAL)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for error in errors:
        raise error
    return results[0]


def _is_in_event_loop() -> bool:
    try:
        libraries.asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def is_broken_pipe(error: BaseException) -> bool:
    """Whether the error was raised because the reader of the output has ended."""
    return any(isinstance(one, BrokenPipeError) for one in _with_reasons(error))


def is_interrupt(error: BaseException) -> bool:
    """Whether the error was raised because of Ctrl-C."""
    return any(isinstance(one, KeyboardInterrupt) for one in _with_reasons(error))


def code_of_abort(abort: BaseException) -> ExitCode:
    """Of a question that got no answer: Ctrl-C, or the end of the input."""
    return ExitCode.INTERRUPTED if is_interrupt(abort) else ExitCode.ERROR


def _with_reasons(error: BaseException) -> Iterator[BaseException]:
    one: BaseException | None = error
    while one is not None:
        yield one
        one = one.__cause__ or one.__context__


def end_by_signal(code: ExitCode) -> None:
    """End this process by the signal of the code, so that a shell ends its loop or script.

    Returns if the signal does not end it, as for the first process of a container.
    """
    number = SIGNALS[code]
    if code == ExitCode.BROKEN_PIPE:
        discard_output()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
