"""Ends traversals, and exports their spans."""

from collections.abc import Callable, Sequence

from engine.service.stacks import Stacks
from engine.store.database import Database
from engine.store.traversals.advance import TraversalToEnd
from engine.store.traversals.graphs import read_traversal_span
from engine.tracing import Tracer


class TraversalEnds:
    """What workers call when all nodes of a traversal have ended."""

    def __init__(
        self, stacks: Stacks, database: Database, tracer: Tracer, ended: Callable[[], None]
    ) -> None:
        """ended: wakes the loops that continue after the end of a traversal."""
        self._stacks = stacks
        self._database = database
        self._tracer = tracer
        self._ended = ended

    async def end_alone(self, ended: TraversalToEnd) -> None:
        """End a traversal and create its span."""
        await self._stacks.end_alone(ended)
        await self._export_span(ended)

    async def end_complete(self, ends: Sequence[TraversalToEnd]) -> Sequence[TraversalToEnd]:
        """End the complete ones of these traversals and create their spans; return the others."""
        left = await self._stacks.end_complete(ends)
        self._ended()
        for ended in ends:
            if ended not in left:
                await self._export_span(ended)
        return left

    async def _export_span(self, ended: TraversalToEnd) -> None:
        if type(self._tracer) is Tracer:
            return  # spans are not exported
        async with self._database.connection() as conn:
            record = await read_traversal_span(conn, ended.stack_id, ended.traversal)
        if record is not None and record.traceparent and record.over:
            span = self._tracer.begin(
                f"traversal {record.action.lower()}", record.traceparent,
                seconds_ago=record.seconds, stack_id=str(ended.stack_id),
                traversal=ended.traversal,
            )  # fmt: skip
            span.end(state=record.state)
