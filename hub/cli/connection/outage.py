"""Times without usable responses, through which a command waits."""

from collections.abc import Callable
from contextlib import suppress

from engine.back_off import BackOff
from headgate.errors import RateLimitError, RequestError, UnreachableError
from hub.cli import libraries
from hub.cli.messages import note

#: Statuses of a server or proxy that cannot respond now. 0: there was no usable response.
TRANSIENT = frozenset({0, 429, 502, 503, 504})
#: Seconds after which a command stops trying.
MAX_SECONDS = 300.0
#: Seconds between attempts, and the longest that a server can ask for.
PAUSES, MAX_RETRY_AFTER = BackOff(0.25, 2.0), 30.0


class Outage:
    """The current time without usable responses, if there is one.

    report: prints what the user must know, once when an outage begins and once when it ends. A rate
    limit of the server is none: the command waits as long as it asks for, without a word.
    Several requests of a command share one object.
    """

    def __init__(self, report: Callable[[str], None] = note) -> None:
        self._report = report
        self._began: float | None = None
        self._reported = False
        self._ended = libraries.asyncio.Event()
        self._failures = 0

    async def endure(self, error: RequestError) -> None:
        """Pause until the next attempt. Raises RequestError if the error is lasting, or after
        MAX_SECONDS."""
        if not is_transient(error):
            raise error
        now = libraries.asyncio.get_running_loop().time()
        if self._began is None:
            self._began = now
            self._ended.clear()
        if not self._reported and not isinstance(error, RateLimitError):
            self._reported = True
            limit = f"{MAX_SECONDS / 60:g} min"
            self._report(f"connection lost ({reason_of(error)}); reconnecting for up to {limit}")
        self._failures += 1
        if now - self._began >= MAX_SECONDS:
            reason = f"{reason_of(error)}, for {MAX_SECONDS / 60:g} min"
            raise UnreachableError(reason, "Check the server and the network.") from error
        pause = PAUSES.ceiling(self._failures)
        if isinstance(error, RateLimitError):
            # Whether another request has a response changes nothing.
            await libraries.asyncio.sleep(max(pause, min(error.retry_after, MAX_RETRY_AFTER)))
            return
        with suppress(TimeoutError):
            async with libraries.asyncio.timeout(pause):
                await self._ended.wait()

    def end(self) -> None:
        """A usable response came."""
        if self._began is not None:
            self._began, self._failures = None, 0
            self._ended.set()
        if self._reported:
            self._reported = False
            self._report("connected again")


def is_transient(error: RequestError) -> bool:
    return error.status in TRANSIENT


def reason_of(error: RequestError) -> str:
    """Without the full stop at its end. Pure."""
    return error.reason.rstrip(".")
