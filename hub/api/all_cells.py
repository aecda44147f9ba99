"""Lists of all projects: pages that are put together from those of all cells.

The order is that of one database, a time and the ID, so any item of any cell is a marker.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import TypeVar

from engine.errors import Finding
from engine.store.hooks.hook_lists import HookFilter, HookPosition
from engine.store.records import HookRecord
from engine.store.stacks.stack_lists import BY_AGE, StackFilter, StackPage
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

P = TypeVar("P")
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
    return await _read_current(cells, lambda places: _read_stacks(places, selected))


async def read_all_hooks(
    cells: Cells,
    selected: HookFilter,
    describe: Callable[[AppContext, Sequence[HookRecord]], Awaitable[Sequence[T]]],
) -> tuple[list[T], Sequence[str]]:
    """The hooks of all projects that a filter selects, oldest first, and the cells that the list
    lacks. describe: returns the items of the list for the hooks of a cell, in order.

    Raises Unavailable as `read_all_stacks`.
    """
    return await _read_current(cells, lambda places: _read_hooks(places, selected, describe))


async def _read_current(
    cells: Cells, read: Callable[[ReadPlaces], Awaitable[tuple[P, Sequence[str]]]]
) -> tuple[P, Sequence[str]]:
    """Read a page of all places, again if a project has moved meanwhile. read: returns the page,
    and the cells that it lacks."""
    for _ in range(READ_ATTEMPTS):
        places = await cells.locate_all()
        try:
            page = await read(places)
        except Exception:
            # The rows of a project that has moved are deleted.
            if await cells.are_current(places, ()):
                raise
            continue
        if await cells.are_current(places, page[1]):
            return page
    raise refuse_moving("")


async def _read_stacks(
    places: ReadPlaces, selected: StackFilter
) -> tuple[StackPage, Sequence[str]]:
    if (marker := selected.marker) is not None:
        after = await _find(places, lambda one: one.engine.reads.stack_position(marker))
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


async def _read_hooks(
    places: ReadPlaces,
    selected: HookFilter,
    describe: Callable[[AppContext, Sequence[HookRecord]], Awaitable[Sequence[T]]],
) -> tuple[list[T], Sequence[str]]:
    if (marker := selected.marker) is not None:
        after = await _find(places, lambda one: one.engine.reads.hook_position(marker))
        if after is None:
            return [], ()
        selected = replace(selected, marker=None, after=after)

    async def read(one: AppContext) -> list[tuple[HookPosition, T]]:
        hooks = await one.engine.reads.hooks(None, selected)
        items = await describe(one, hooks)
        return [((hook.opened_at, hook.id), item) for hook, item in zip(hooks, items, strict=True)]

    answers = await read_all(places, read)
    if not answers.results:
        raise unavailable(answers.away)
    merged = sorted(chain.from_iterable(answers.results), key=itemgetter(0))
    return [item for _, item in merged[: selected.limit]], answers.away


async def _find(places: ReadPlaces, read: Callable[[AppContext], Awaitable[P | None]]) -> P | None:
    """The position of a marker. None: no cell has it."""

    async def read_one(one: AppContext) -> tuple[P | None]:
        return (await read(one),)

    answers = await read_all(places, read_one)
    found = [position for (position,) in answers.results if position is not None]
    if not found and answers.away:
        raise unavailable(answers.away)
    return found[0] if found else None
