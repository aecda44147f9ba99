"""The run of a handler for one hook: its answer, the deadline of the hook, and its end."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from headgate.errors import RequestError
from headgate.listener.answers import HookAnswer, Reject
from headgate.listener.notification import AnswerInvalid, HookClosed, HookNotification
from headgate.listener.routing import HookRoute

Json = Any
log = logging.getLogger("headgate.listener")
#: Seconds before the deadline at which it is extended, at most; half of the time that is left, if
#: that is less.
EXTEND_BEFORE = 300.0
#: Seconds after the deadline at which a handler is cancelled, for clocks that differ.
CANCEL_AFTER = 5.0
#: Seconds in which a cancelled handler must end.
CANCEL_GRACE = 10.0
#: Seconds between two attempts to send: the first, and the longest.
FIRST_RETRY, MAX_RETRY = 0.5, 15.0
#: Seconds after the deadline until which an answer is sent again while Headgate does not respond;
#: for a hook without a deadline, after the first attempt.
SEND_AFTER_DEADLINE, SEND_WITHOUT_DEADLINE = 3600.0, 86400.0


@dataclass(frozen=True, slots=True)
class RunSettings:
    """on_error: the answer after a handler failed; None: no answer, the hook keeps waiting."""

    slots: asyncio.Semaphore
    on_error: HookAnswer | None


class HookRun:
    """Run `run` as a task. `answered` gets the body of the answer, or None if there is none; it is
    cancelled with the run."""

    def __init__(
        self, route: HookRoute, notification: HookNotification, settings: RunSettings
    ) -> None:
        self.notification = notification
        #: Whether the channel waits for `answered`, and sends the answer itself.
        self.is_direct = False
        #: Whether the run sends the answer itself, because Headgate does not deliver again.
        self.is_kept = False
        self.answered: asyncio.Future[dict[str, Json] | None] = (
            asyncio.get_running_loop().create_future()
        )
        self._route = route
        self._settings = settings
        self._closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def close(self, reason: str) -> None:
        """The hook is decided, expired or superseded: cancel the handler."""
        if not self._closed.done():
            self._closed.set_result(reason)

    async def run(self) -> None:
        """Never raises, except when it is cancelled."""
        body: dict[str, Json] | None = None
        try:
            body = await self._run()
        except HookClosed as closed:
            self._log(logging.INFO, f"no answer: {closed}")
        except Exception as error:
            self._log(logging.ERROR, "the run failed; the hook keeps waiting", error)
        except asyncio.CancelledError:
            self.answered.cancel()
            raise
        self.answered.set_result(body)

    async def _run(self) -> dict[str, Json] | None:
        answer = await self._answer()
        if answer is None:
            self._log(logging.INFO, "the handler gave no answer; the hook keeps waiting")
            return None
        body = {**answer.body(), "digest": self.notification.hook["digest"]}
        if self.is_direct:
            self._log(logging.INFO, f"{answer.decision} {answer.reason}".rstrip())
            return body
        try:
            await self._send(answer)
        except AnswerInvalid as error:
            self._log(logging.ERROR, f"Headgate refused the answer {answer.decision}: {error}")
            await self._send_failure(f"Headgate refused its answer {answer.decision}: {error}")
        return body

    async def _answer(self) -> HookAnswer | None:
        """The answer of the handler, or the one for a failed handler. Raises HookClosed."""
        handler = asyncio.ensure_future(self._call())
        watch = asyncio.ensure_future(self._watch_deadline())
        try:
            await asyncio.wait({handler, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not handler.done():
                reason = watch.result()
                await self._cancel(handler)
                raise HookClosed(reason)
            return handler.result()
        finally:
            await self._cancel(handler)
            await self._cancel(watch)

    async def _call(self) -> HookAnswer | None:
        async with self._settings.slots:
            try:
                answer = await self._route.handler(self.notification)
                if answer is None or isinstance(answer, HookAnswer):
                    return answer
                raise TypeError(f"a handler returns an answer or None, not {answer!r}")
            except HookClosed:
                raise
            except Exception as error:
                return self._answer_of_failure(error)

    def _answer_of_failure(self, error: Exception) -> HookAnswer | None:
        """The message of the error is only logged, because it may contain secrets."""
        error_id = uuid4().hex[:12]
        self._log(logging.ERROR, f"the handler failed (error {error_id})", error)
        on_error = self._settings.on_error
        if isinstance(on_error, Reject) and not on_error.reason:
            reason = f"{type(error).__name__}; see error {error_id} in the log of the listener"
            return Reject(f"the handler {self._route.name} failed: {reason}")
        return on_error

    async def _send_failure(self, reason: str) -> None:
        """Answer for a handler whose answer Headgate has refused."""
        on_error = self._settings.on_error
        if on_error is None:
            return
        if isinstance(on_error, Reject) and not on_error.reason:
            on_error = Reject(f"the handler {self._route.name} failed: {reason}"[:4000])
        with suppress(AnswerInvalid):
            await self._send(on_error)

    async def _cancel(self, task: "asyncio.Future[Any]") -> None:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_GRACE)
        if not task.done():
            self._log(logging.ERROR, f"the handler ignores its cancellation for {CANCEL_GRACE:g} s")
        elif not task.cancelled():
            task.exception()  # a cancelled handler that fails has no further effect

    # -- the deadline ----------------------------------------------------------------------------

    async def _watch_deadline(self) -> str:
        """Extend the deadline while the handler runs. Returns why the hook is closed."""
        notification = self.notification
        extend = self._route.extend and not notification.is_dry
        while True:
            left = self._seconds_left()
            if extend and left is not None:
                left -= min(left / 2, EXTEND_BEFORE)
            elif left is not None:
                left += CANCEL_AFTER
            reason = await self._pause(left)
            if reason:
                return reason
            if not self._is_due(extend):
                continue  # the deadline has moved meanwhile
            if not extend:
                return "the deadline has passed"
            extend = await self._extend()

    def _seconds_left(self) -> float | None:
        deadline = self.notification.deadline
        if deadline is None or self.notification.is_dry:
            return None
        return max(0.0, (deadline - datetime.now(UTC)).total_seconds())

    def _is_due(self, extend: bool) -> bool:
        left = self._seconds_left()
        return left is not None and (extend or left == 0)

    async def _pause(self, seconds: float | None) -> str:
        """Until the hook is closed, the deadline has moved, or the time is over. Returns why it is
        closed."""
        self.notification.moved.clear()
        moved = asyncio.ensure_future(self.notification.moved.wait())
        try:
            waited: set[asyncio.Future[Any]] = {self._closed, moved}
            await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            moved.cancel()
        return self._closed.result() if self._closed.done() else ""

    async def _extend(self) -> bool:
        """Extend the deadline; return whether it can be extended again."""
        try:
            await self.notification.extend(f"the handler {self._route.name} is running")
        except HookClosed as closed:
            self.close(str(closed))
        except AnswerInvalid as error:
            self._log(logging.WARNING, f"the deadline cannot be extended: {error}")
            return False
        except RequestError as error:
            self._log(logging.WARNING, f"the deadline was not extended: {error}")
            await self._pause(FIRST_RETRY)
        return True

    # -- the answer ------------------------------------------------------------------------------

    async def _send(self, answer: HookAnswer) -> None:
        """Send an answer, again while Headgate does not respond. Raises HookClosed and
        AnswerInvalid."""
        loop, pause = asyncio.get_running_loop(), FIRST_RETRY
        left = self._seconds_left()
        bound = SEND_WITHOUT_DEADLINE if left is None else left + SEND_AFTER_DEADLINE
        ends = loop.time() + bound
        while True:
            try:
                await self.notification.send(answer.body())
                self._log(logging.INFO, f"{answer.decision} {answer.reason}".rstrip())
                return
            except RequestError as error:
                if loop.time() > ends:
                    raise HookClosed(f"the answer was not accepted: {error}") from error
                self._log(logging.WARNING, f"the answer is sent again in {pause:g} s: {error}")
            if reason := await self._pause(pause):
                raise HookClosed(reason)
            pause = min(2 * pause, MAX_RETRY)

    def _log(self, level: int, text: str, error: Exception | None = None) -> None:
        place = self.notification.path or self.notification.hook["root_stack_name"]
        log.log(level, "%s %s: %s", place, self.notification.point, text, exc_info=error)
