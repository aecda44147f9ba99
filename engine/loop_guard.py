"""Background loops that continue after errors. Every loop of a process runs under a `Guard`.

There are two kinds of errors. A temporary one (`Unavailable`: the database or the broker does not
respond) is logged as one line; the loop pauses and repeats. Any other error is an internal error:
it is logged with its traceback under an error ID, and fails at most the unit of work that raised
it. The message of the exception is not logged, because it may contain a secret.

- `Guard.run` repeats the turns of a loop after any error.
- `Guard.attempt` does one unit of work (a delivery, a message, a project) and returns the `Fault`
  of one that failed.
- `Guard.split` does a batch at once, and halves it while it fails, so that only the units at fault
  fail. `BatchSize` does the same for a loop that reads the next units in an order.

A cancelled loop ends at once: cancellation is not an error.
"""

import asyncio
import itertools
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from engine.back_off import BackOff
from engine.bounded_wait import wait_at_most
from engine.errors import Unavailable
from engine.store.database_errors import DataFault, classify_error

log: FilteringBoundLogger = structlog.get_logger()

T = TypeVar("T")
U = TypeVar("U")

#: Seconds of the pause after the first error of a loop, and of the longest one.
FIRST_PAUSE, MAX_PAUSE = 0.5, 30.0
#: Seconds of the longest pause after a temporary error: all loops continue soon after a failover.
MAX_TEMPORARY_PAUSE = 5.0

#: Seconds until the first turn of a loop that is not urgent: a process that starts has other work.
START_DELAY = 5.0

#: Runs a loop until an event is set.
LoopRun = Callable[[asyncio.Event], Awaitable[None]]

#: Values that name a unit of work in the log; "event" is the name of the log event itself.
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """An internal error of one unit of work. id: in its log line and in the message for users."""

    id: str
    error: Exception

    def __str__(self) -> str:
        return f"internal error {self.id} (see the server's log)"


class Supervisor:
    """Makes the guards of a process.

    random: a number from 0 up to 1, for jitter. new_id: makes error IDs. failed: counts internal
    errors, by the name of the loop.
    """

    def __init__(
        self,
        *,
        random: Callable[[], float] = lambda: 0.5,
        new_id: Callable[[], str] | None = None,
        failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        numbers = itertools.count(1)
        self._random = random
        self._new_id = new_id or (lambda: str(next(numbers)))
        self._failed = failed

    def guard(
        self, name: str, *, first: float = FIRST_PAUSE, max_pause: float = MAX_PAUSE
    ) -> "Guard":
        """name: of the loop; its log events begin with it. first, max_pause: pauses in seconds."""
        back_off = BackOff(min(first, max_pause), max_pause)
        return Guard(name, back_off, self._random, self._new_id, self._failed)


class Guard:
    """Keeps errors from ending a loop, and errors of one unit from failing others."""

    def __init__(
        self,
        name: str,
        back_off: BackOff,
        random: Callable[[], float],
        new_id: Callable[[], str],
        failed: Callable[[str], None],
    ) -> None:
        self.name = name
        self._back_off = back_off
        self._random = random
        self._new_id = new_id
        self._failed = failed

    async def run(
        self, turn: Callable[[], Awaitable[object]], stop: asyncio.Event, *, after: float = 0.0
    ) -> None:
        """Repeat `turn` until `stop` is set; pause after each turn that raises an error. after:
        seconds until the first turn."""
        if after:
            await wait_at_most(stop, after)
        failures = 0
        while not stop.is_set():
            try:
                await turn()
            except Exception as error:
                failures += 1
                seconds = self._back_off.pause(failures, self._random())
                if is_passing(error):
                    seconds = min(seconds, MAX_TEMPORARY_PAUSE)
                self._log(error, {"again_in": round(seconds, 2)})
                await wait_at_most(stop, seconds)
            else:
                failures = 0

    async def attempt(self, work: Awaitable[T], **unit: Any) -> T | Fault:
        """Do one unit of work; an internal error is logged and returned. unit: names it in the log.

        Raises Unavailable.
        """
        try:
            return await work
        except Exception as error:
            if is_passing(error):
                raise
            return self.report(error, **unit)

    async def split(
        self,
        units: Sequence[U],
        work: Callable[[Sequence[U]], Awaitable[object]],
        failed: Callable[[U, Fault], Awaitable[object]],
        named: Callable[[U], Fields],
    ) -> None:
        """Do `work` on all units at once; after an error, on halves, down to single units.

        `work` is atomic. failed: ends a unit at fault, so that it is not repeated. A batch that
        exceeds a timeout or the memory is halved as well. A single unit that does so, or that
        `failed` cannot end, is unchanged: the error is raised after the others are done. An error
        that no unit can have caused (`classify_error`) is raised at once.
        """
        parts, left = deque([units] if units else []), None
        while parts:
            part = parts.popleft()
            try:
                await work(part)
            except Exception as error:
                if classify_error(error) is DataFault.NONE:
                    raise
                if len(part) > 1:
                    middle = len(part) // 2
                    parts.extendleft((part[middle:], part[:middle]))
                else:
                    left = await self._end(part[0], error, failed, named) or left
        if left is not None:
            raise left

    async def _end(
        self,
        unit: U,
        error: Exception,
        failed: Callable[[U, Fault], Awaitable[object]],
        named: Callable[[U], Fields],
    ) -> Exception | None:
        """End a unit at fault; return why that is not possible."""
        if is_passing(error):
            return error
        try:
            await failed(unit, self.report(error, **named(unit)))
        except Exception as another:
            return another
        return None

    def report(self, error: Exception, **unit: Any) -> Fault:
        """Log an internal error of a unit of work under a new ID."""
        return self._log(error, unit)

    def _log(self, error: Exception, fields: Fields) -> Fault:
        fault = Fault(self._new_id(), error)
        if is_passing(error):
            log.warning(f"{self.name}.unavailable", **{**fields, "reason": str(_first(error))})
        else:
            self._failed(self.name)
            cause = _first(error)
            details = {
                "error_id": fault.id,
                "error": type(cause).__name__,
                "sqlstate": getattr(cause, "sqlstate", None),
                "where": "".join(traceback.format_tb(cause.__traceback__)),
            }
            log.error(f"{self.name}.failed", **{**fields, **details})
        return fault


class BatchSize:
    """The number of units that a loop reads next, for a loop that reads them in an order.

    It is halved after an error and doubled after a success. At one, the next unit is at fault.
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = self.now = maximum

    def grow(self) -> None:
        self.now = min(self._maximum, 2 * self.now)

    def shrink(self, error: Exception) -> bool:
        """Return whether the error is the fault of the next unit alone.

        Raises an error that no unit can have caused, and a temporary one of a single unit.
        """
        alone = self.now == 1
        if classify_error(error) is DataFault.NONE or (alone and is_passing(error)):
            raise error
        self.now = max(1, self.now // 2)
        return alone


def is_passing(error: BaseException) -> bool:
    """Return whether an error only means that a service does not respond now."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_passing, error.exceptions))
    return isinstance(error, Unavailable)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = next((one for one in error.exceptions if not is_passing(one)), error.exceptions[0])
    return error
