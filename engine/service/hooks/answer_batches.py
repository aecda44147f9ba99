"""Decides answers to hooks that arrive together in one transaction.

An answer needs the lock of its stack. One transaction is under way at a time, and decides all
answers that have arrived meanwhile, to any stacks. When it has the locks, it also takes the answers
that have arrived at these stacks while it waited. It waits for locks for a short time only. If
that was not enough, or it failed, each stack gets a queue. At most one transaction for each queue
waits for the lock. So a stack that stays locked neither delays answers to other stacks, nor do its
answers occupy the connections that other stacks need.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Unavailable
from engine.hooks.answer_data import DataCheck
from engine.hooks.answers import Answer
from engine.store.records import HookRecord

log: FilteringBoundLogger = structlog.get_logger()

#: Maximum number of answers in one transaction.
BATCH = 100


@dataclass(frozen=True, slots=True, eq=False)
class PendingAnswer:
    """An answer, and the future of its result.

    tree: the answer concerns the whole stack tree and is decided alone. check: the result of
    validating the answer's data.
    """

    stack_id: UUID
    hook_id: UUID
    answer: Answer
    project: str | None
    tree: bool
    check: DataCheck | None
    result: "asyncio.Future[HookRecord]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def key(self) -> tuple[UUID, UUID]:
        """(stack, hook)"""
        return self.stack_id, self.hook_id


class AnswerBatch:
    """Answers to different hooks, in their order, that one transaction decides.

    arriving: later answers, in their order.
    """

    def __init__(
        self, answers: Sequence[PendingAnswer], arriving: "deque[PendingAnswer] | None" = None
    ) -> None:
        self.answers = [*answers]
        self._arriving = arriving if arriving is not None else deque[PendingAnswer]()

    @property
    def stack_ids(self) -> set[UUID]:
        return {one.stack_id for one in self.answers}

    def add_arrived(self) -> None:
        """Add answers that have arrived at the same stacks. Call it when the stacks are locked."""
        self.answers += take_fitting(self._arriving, self.answers)


#: Decides a batch: one record or error for each of its answers.
Decide = Callable[[AnswerBatch], Awaitable[Sequence[HookRecord | Exception]]]


class AnswerBatches:
    """The pending answers: those that have arrived, and a queue for each stack that is locked, or
    that an answer concerns with its tree.

    decide: for answers to one stack. decide_together: for answers to any stacks; raises Unavailable
    if one of them stays locked.
    """

    def __init__(self, decide: Decide, decide_together: Decide) -> None:
        self._decide = decide
        self._decide_together = decide_together
        self._arrived: deque[PendingAnswer] = deque()
        self._gathers = False
        self._queues: dict[UUID, deque[PendingAnswer]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def decide(self, pending: PendingAnswer) -> HookRecord:
        """Decide an answer, with others; raises what deciding it raises.

        If the caller is cancelled, the answer is decided nevertheless.
        """
        if pending.tree or pending.stack_id in self._queues:
            self._enqueue(pending)
        else:
            self._arrive(pending)
        return await pending.result

    def _arrive(self, pending: PendingAnswer) -> None:
        self._arrived.append(pending)
        if not self._gathers:
            self._gathers = True
            self._start(self._empty_arrived())

    def _enqueue(self, pending: PendingAnswer) -> None:
        """Add an answer to the queue of its stack."""
        queue = self._queues.get(pending.stack_id)
        if queue is None:
            queue = self._queues[pending.stack_id] = deque()
            self._start(self._empty(pending.stack_id, queue))
        queue.append(pending)

    def _start(self, coroutine: Coroutine[None, None, None]) -> None:
        # A batch belongs to no single request, so it runs without the request's log context.
        task = asyncio.create_task(coroutine, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _empty_arrived(self) -> None:
        batch = AnswerBatch(())
        try:
            while self._arrived:
                arrived = next_batch(self._arrived)
                # A queue decides the answers of its stack in their order.
                for pending in [one for one in arrived if one.stack_id in self._queues]:
                    self._enqueue(pending)
                batch = AnswerBatch(
                    [one for one in arrived if one.stack_id not in self._queues], self._arrived
                )
                if batch.answers:
                    await self._complete_together(batch)
                batch = AnswerBatch(())
        finally:
            self._gathers = False
            cancel((*batch.answers, *self._arrived))
            self._arrived.clear()

    async def _complete_together(self, batch: AnswerBatch) -> None:
        """Decide answers to any stacks. If that fails, nothing was written, and they get into the
        queues of their stacks: one stack or answer must not fail the others."""
        try:
            results = await self._decide_together(batch)
        except Exception as error:
            log.info("answers.decided_by_stack", answers=len(batch.answers), reason=str(error))
            for pending in batch.answers:
                self._enqueue(pending)
        else:
            set_results(batch, results)

    async def _empty(self, stack_id: UUID, queue: deque[PendingAnswer]) -> None:
        batch = AnswerBatch(())
        try:
            while queue:
                batch = AnswerBatch(next_batch(queue), queue)
                await self._complete(batch)
                batch = AnswerBatch(())
                if not any(pending.tree for pending in queue):
                    break  # the lock is available again
        except BaseException:
            cancel((*batch.answers, *queue))
            raise
        finally:
            del self._queues[stack_id]
        for pending in queue:
            self._arrive(pending)

    async def _complete(self, batch: AnswerBatch) -> None:
        results: Sequence[HookRecord | Exception]
        try:
            results = await self._decide(batch)
        except Exception as error:
            answers = batch.answers
            if isinstance(error, Unavailable) or len(answers) == 1:
                # Single answers would wait just as long for the database or the stack's lock.
                results = [error] * len(answers)
            else:
                # Nothing was written. One answer must not fail the others.
                log.warning("answers.batch_failed", answers=len(answers), reason=str(error))
                for pending in answers:
                    await self._complete(AnswerBatch([pending]))
                return
        set_results(batch, results)


def set_results(batch: AnswerBatch, results: Sequence[HookRecord | Exception]) -> None:
    for pending, result in zip(batch.answers, results, strict=True):
        set_result(pending, result)


def set_result(pending: PendingAnswer, result: HookRecord | Exception) -> None:
    if pending.result.done():
        return  # its caller was cancelled
    if isinstance(result, Exception):
        pending.result.set_exception(result)
    else:
        pending.result.set_result(result)


def cancel(batch: Sequence[PendingAnswer]) -> None:
    """Cancel the answers that have no result: the process ends."""
    for pending in batch:
        pending.result.cancel()


def next_batch(queue: deque[PendingAnswer]) -> list[PendingAnswer]:
    """Remove and return the first answers that one transaction can decide, in their order.

    A second answer to a hook depends on the result of the first one, and an answer that concerns
    the stack tree locks more stacks: both start a new batch.
    """
    batch: list[PendingAnswer] = []
    hooks: set[UUID] = set()
    while queue and len(batch) < BATCH:
        pending = queue[0]
        if pending.hook_id in hooks or (pending.tree and batch):
            break
        batch.append(queue.popleft())
        hooks.add(pending.hook_id)
        if pending.tree:
            break
    return batch


def take_fitting(
    queue: deque[PendingAnswer], batch: Sequence[PendingAnswer]
) -> list[PendingAnswer]:
    """Remove and return the answers to the stacks of a batch that its transaction can also decide,
    in their order. An answer after one to the same hook, or after one that concerns the stack tree,
    depends on its result, and stays."""
    stacks, hooks = {one.stack_id for one in batch}, {one.hook_id for one in batch}
    taken: list[PendingAnswer] = []
    others: list[PendingAnswer] = []
    if any(one.tree for one in batch):
        return taken
    while queue and len(batch) + len(taken) < BATCH and not queue[0].tree:
        pending = queue.popleft()
        if pending.stack_id in stacks and pending.hook_id not in hooks:
            taken.append(pending)
            hooks.add(pending.hook_id)
        else:
            others.append(pending)
    queue.extendleft(reversed(others))
    return taken
