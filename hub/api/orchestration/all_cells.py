"""Lists of all projects: pages that are put together from those of all cells.

The order is that of one database, the time of the creation and the ID, so any item of any cell is a
marker.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from engine.errors import Finding
from engine.store.stacks.stack_lists import BY_AGE, StackFilter, StackPage, StackPosition
from hub.api.app_context import AppContext
from hub.api.cells import (
    PLACE,
    READ_ATTEMPTS,
    Cells,
    OneDatabase,
    ReadPlaces,
    first_reachable,
    read_all,
    refuse_moving,
    unavailable,
)
from hub.api.request_validation import invalid

T = TypeVar("T")


def incomplete(things: str, away: Sequence[str]) -> Finding:
    """The warning of a list that lacks the items of cells. things: their plural."""
    return Finding(
        PLACE,
        f"the list lacks {things} of these cells, which are not available: {', '.join(away)}",
        "Send the request again later.",
        "CellUnavailable",
    )


async def read_all_stacks(cells: Cells, selected: StackFilter) -> tuple[StackPage, Sequence[str]]:
    """A page of the stacks of all projects, and the cells that it lacks.

    Raises Unavailable if all cells are away, or if the cell of the marker can be one of those.
    """
    if isinstance(cells, OneDatabase):
        one = first_reachable(cells)
        return await one.context.engine.reads.list_stacks(None, selected), ()
    if tuple(selected.sort_keys) != BY_AGE:
        reason = "stacks of several cells are sorted by creation_time only"
        raise invalid("sort_keys", reason, "Leave it out.")
    for _ in range(READ_ATTEMPTS):
        places = await cells.locate_all()
        try:
            page = await _read(places, selected)
        except Exception:
            # The rows of a project that has moved are deleted.
            if await cells.are_current(places, ()):
                raise
            continue
        if await cells.are_current(places, page[1]):
            return page
    raise refuse_moving("")


async def _read(places: ReadPlaces, selected: StackFilter) -> tuple[StackPage, Sequence[str]]:
    if selected.marker is not None:
        after = await _find(places, selected.marker)
        if after is None:
            return StackPage([], None), ()
        selected = replace(selected, marker=None, after=after)
    answers = await read_all(places, lambda one: one.engine.reads.list_stacks(None, selected))
    if not answers.results:
        raise unavailable(answers.away)
    pages = answers.results
    stacks = sorted(
        (stack for page in pages for stack in page.stacks),
        key=lambda one: (one.created_at, one.id),
        reverse=selected.descending,
    )
    totals = [page.total for page in pages if page.total is not None]
    total = sum(totals) if selected.counted else None
    return StackPage(stacks[: selected.limit], total), answers.away


async def _find(places: ReadPlaces, stack_id: UUID) -> StackPosition | None:
    """The position of a marker. None: no cell has it."""

    async def read(one: AppContext) -> tuple[StackPosition | None]:
        return (await one.engine.reads.stack_position(stack_id),)

    answers = await read_all(places, read)
    found = [position for (position,) in answers.results if position is not None]
    if not found and answers.away:
        raise unavailable(answers.away)
    return found[0] if found else None
