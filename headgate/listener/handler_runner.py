"""Runs the handlers of notifications and events, for every channel alike."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from headgate.listener.answers import HookAnswer, Reject
from headgate.listener.hook_run import HookRun, RunSettings
from headgate.listener.journal import Journal
from headgate.listener.notification import CLOSING, WAITING, AnswerSender, HookNotification
from headgate.listener.routing import EventRoute, HookRoute

Json = Any
log = logging.getLogger("headgate.listener")
#: Answers that are kept for notifications that arrive again.
MAX_ANSWERS = 10_000


class ListenerBusy(Exception):
    """The listener accepts no further notification now."""


class HandlerRunner:
    """The routes, and the runs of their handlers. Arguments: see `Listener`."""

    def __init__(
        self,
        *,
        concurrency: int = 100,
        backlog: int = 1000,
        answer_within: float = 5.0,
        on_error: HookAnswer | None = Reject(""),  # noqa: B008  # frozen
        journal: str | Path | None = None,
        grace: float = 10.0,
    ) -> None:
        if concurrency < 1 or backlog < 0:
            raise ValueError("concurrency must be at least 1, and backlog at least 0")
        self.answer_within = answer_within
        self._capacity = concurrency + backlog
        self._concurrency = concurrency
        self._on_error = on_error
        self._journal = Journal(Path(journal)) if journal else None
        self._grace = grace
        self.hook_routes: list[HookRoute] = []
        self.event_routes: list[EventRoute] = []
        self._runs: dict[str, HookRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._answers: OrderedDict[str, dict[str, Json] | None] = OrderedDict()
        self._settings: RunSettings | None = None
        self._freed = asyncio.Event()
        self._stopping = False

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Accept notifications; at the end, wait for handlers for `grace` seconds."""
        self._settings = RunSettings(asyncio.Semaphore(self._concurrency), self._on_error)
        self._stopping = False
        try:
            yield
        finally:
            self._stopping = True
            await self._end_runs()
            self._settings = None

    async def _end_runs(self) -> None:
        tasks = [*self._tasks.values()]
        if not tasks:
            return
        _, left = await asyncio.wait(tasks, timeout=self._grace)
        for task in left:
            task.cancel()
        if left:
            log.warning("%d handlers were cancelled, because the listener stops", len(left))
            await asyncio.wait(left)

    def resume(self, sender: AnswerSender) -> None:
        """Run the handlers of the journal again, after the channel is open. Removes the entries
        that no handler accepts any more."""
        if self._journal is None:
            return
        obsolete = [
            hook_id
            for hook_id, entry in [*self._journal.entries.items()]
            if self.accept(entry["event"], sender, entry["reply_to"], limited=False) is None
        ]
        if obsolete:
            log.warning("no handler accepts %d hooks of the journal any more", len(obsolete))
            self._journal.remove(*obsolete)

    def accept(
        self,
        event: Mapping[str, Json],
        sender: AnswerSender,
        reply_to: str = "",
        *,
        limited: bool = True,
    ) -> HookRun | None:
        """Start the handler of a notification, once, or find its run. None: no handler matches, it
        has been answered, or the listener may not answer it. Raises ListenerBusy."""
        hook_id = event["data"]["hook"]["id"]
        if hook_id in self._runs or hook_id in self._answers:
            return self._runs.get(hook_id)
        notification = HookNotification(event, sender, reply_to)
        route = self._route_of(notification)
        if route is None:
            return None
        if self._settings is None or self._stopping:
            raise ListenerBusy("the listener does not run")
        if limited and len(self._runs) >= self._capacity:
            raise ListenerBusy("too many notifications are in work")
        run = self._runs[hook_id] = HookRun(route, notification, self._settings)
        self._tasks[hook_id] = asyncio.create_task(self._run(hook_id, run))
        return run

    def _route_of(self, notification: HookNotification) -> HookRoute | None:
        if notification.hook["mode"] != "wait":
            return None
        return next((one for one in self.hook_routes if one.matches(notification)), None)

    async def _run(self, hook_id: str, run: HookRun) -> None:
        try:
            await run.run()
        finally:
            del self._runs[hook_id], self._tasks[hook_id]
            self._freed.set()
        # Not after a cancellation: the handler runs again after the restart.
        self._answers[hook_id] = run.answered.result()
        if len(self._answers) > MAX_ANSWERS:
            self._answers.popitem(last=False)
        if self._journal is not None:
            self._journal.remove(hook_id)

    def earlier_answer(self, event: Mapping[str, Json]) -> dict[str, Json] | None:
        """The answer to a notification that has arrived before."""
        return self._answers.get(event["data"]["hook"]["id"])

    def keep(self, run: HookRun) -> None:
        """Headgate does not deliver the notification again: keep it in the journal."""
        run.is_direct, run.is_kept = False, True
        notification = run.notification
        if self._journal is not None and notification.id in self._runs:
            entry = {"event": notification.event, "reply_to": notification.reply_to}
            self._journal.add(notification.id, entry)

    async def until_free(self) -> None:
        """Wait until a further notification can be accepted."""
        while len(self._runs) >= self._capacity:
            self._freed.clear()
            await self._freed.wait()

    async def handle_event(self, event: Mapping[str, Json]) -> None:
        """Call the handlers of an event that is no notification. Raises what they raise."""
        if event["type"] in CLOSING:
            hook = event["data"]["hook"]
            if (run := self._runs.get(hook["id"])) is not None:
                run.close(f"the hook is {hook['state']}")
        for route in self.event_routes:
            if route.matches(event):
                await route.handler(event)

    async def handle_event_once(self, event: Mapping[str, Json]) -> None:
        """The same for a channel that does not deliver again: an exception is logged."""
        try:
            await self.handle_event(event)
        except Exception:
            log.exception("a handler of %s failed", event["type"])


def is_hook_notification(event: Mapping[str, Json]) -> bool:
    return bool(event["type"] == WAITING)
