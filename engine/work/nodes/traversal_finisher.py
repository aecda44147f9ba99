"""Ends the traversals that a worker has claimed to end."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog
from structlog.contextvars import bound_contextvars
from structlog.typing import FilteringBoundLogger

from engine.errors import Unavailable
from engine.store.database_errors import DataFault, classify_error
from engine.store.fault_points import reach
from engine.store.traversals.advance import TraversalToEnd
from engine.work.nodes.internal_error import report

log: FilteringBoundLogger = structlog.get_logger()

#: Ends those of the traversals that are complete; returns the others.
EndComplete = Callable[[Sequence[TraversalToEnd]], Awaitable[Sequence[TraversalToEnd]]]


@dataclass(frozen=True, slots=True)
class TraversalFinisher:
    """end: ends a traversal whose nodes have all ended, or whose timeout has passed. end_complete:
    ends many at once, and returns those that it leaves to `end`. fail_end: ends one for which `end`
    raises, with a reason.
    """

    new_id: Callable[[], UUID]
    end: Callable[[TraversalToEnd], Awaitable[None]]
    end_complete: EndComplete | None = None
    fail_end: Callable[[TraversalToEnd, str], Awaitable[None]] | None = None

    async def finish(self, ends: Sequence[TraversalToEnd]) -> None:
        """End traversals: together those that are complete, each of the others by itself. One that
        fails is repeated when its lease expires, or fails its stack."""
        try:
            reach("worker.end")
            left = ends if self.end_complete is None else await self.end_complete(ends)
        except Unavailable as error:
            log.warning("worker.unavailable", reason=str(error))
            return
        except Exception as error:
            report(error, self.new_id(), "end")
            left = ends
        for ended in left:
            with bound_contextvars(stack_id=str(ended.stack_id), traversal=ended.traversal):
                await self._finish_one(ended)

    async def _finish_one(self, ended: TraversalToEnd) -> None:
        try:
            reach("worker.end")
            await self.end(ended)
        except Unavailable as error:
            log.warning("worker.unavailable", reason=str(error))
        except Exception as error:
            reason = report(error, self.new_id(), "end")
            if self.fail_end is not None and classify_error(error) is not DataFault.NONE:
                await self._finish_failed(self.fail_end(ended, reason))

    async def _finish_failed(self, failing: Awaitable[None]) -> None:
        try:
            await failing
        except Exception as error:
            report(error, self.new_id(), "end")
