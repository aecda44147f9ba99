"""A thread pool with a fair queue for parsing and evaluating templates. One template may take
seconds, and must block neither the event loop nor other projects."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from engine.errors import Unavailable
from engine.fair_queue import FairQueue

#: Threads. They share one processor: more threads are not faster. The last one is free for a
#: project that has no job running.
THREADS = 3
THREADS_PER_PROJECT = 2
THREADS_PER_USER = 1

T = TypeVar("T")


def _stays_connected() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RequestClient:
    """The client of a request. is_disconnected: whether the client has closed its connection."""

    user: str = ""
    is_disconnected: Callable[[], bool] = _stays_connected


#: The client of the current request; the default for jobs of the engine itself.
CLIENT: ContextVar[RequestClient] = ContextVar("client", default=RequestClient())  # noqa: B039 - it is frozen


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """group: the project."""

    group: str
    client: RequestClient
    work: Callable[[], Any]
    result: "asyncio.Future[Any]"

    @property
    def member(self) -> str:
        return self.client.user


class ThreadPool:
    """Runs tasks of bounded cost (engine/hot/functions/cost_budget.py) in a thread."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="read")
        self._queue: FairQueue[_Job] = FairQueue(THREADS, THREADS_PER_PROJECT, THREADS_PER_USER)

    async def __call__(self, work: Callable[[], T], project: str) -> T:
        """Run `work` in a thread and return its result; it must do no I/O and change no state.

        Raises what `work` raises, and Unavailable if the client closed its connection before the
        job started. A call that is cancelled while its job waits removes the job from the queue.
        """
        result = asyncio.get_running_loop().create_future()
        job = _Job(project, CLIENT.get(), partial(copy_context().run, work), result)
        self._queue.add(job)
        self._start()
        try:
            return cast(T, await result)
        finally:
            self._queue.discard(job)

    def _start(self) -> None:
        while (job := self._queue.take()) is not None:
            if job.client.is_disconnected():
                self._queue.release(job)
                if not job.result.done():
                    job.result.set_exception(client_disconnected())
                continue
            loop = job.result.get_loop()
            running = loop.run_in_executor(self._threads, job.work)
            running.add_done_callback(partial(self._finish, job))

    def _finish(self, job: _Job, running: "asyncio.Future[Any]") -> None:
        self._queue.release(job)
        self._start()
        if job.result.done():  # the call was cancelled
            running.exception()
        elif (error := running.exception()) is not None:
            job.result.set_exception(error)
        else:
            job.result.set_result(running.result())


def client_disconnected() -> Unavailable:
    """The error for a client that has closed its connection."""
    return Unavailable(
        "the client closed the connection before its request was processed",
        remedy="Send the request again.",
        code="ClientGone",
    )
