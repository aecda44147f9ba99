"""Plug-ins: the entry points of the installed packages, and calls of what they load."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import metadata
from inspect import isawaitable
from typing import TypeVar

from engine.errors import Unavailable

Result = TypeVar("Result")


@cache
def entry_points(group: str) -> tuple[metadata.EntryPoint, ...]:
    """Return the entry points of a group. Cached: packages do not change while the process runs."""
    return tuple(metadata.entry_points(group=group))


def load_plugin(point: metadata.EntryPoint, what: str) -> object:
    """Instantiate a plug-in without arguments. what: the kind of plug-in. Raises Unavailable."""
    try:
        return point.load()()
    except Exception as error:
        why = str(error) or type(error).__name__
        reason = f"the {what} plug-in {point.name} ({point.value}) does not load: {why}"
        raise Unavailable(reason, remedy="Repair or uninstall it.") from error


def wrong_type_error(point: metadata.EntryPoint, what: str, kind: type) -> Unavailable:
    """Return the error for a plug-in that is not an instance of `kind`."""
    reason = f"the {what} plug-in {point.name} ({point.value}) is not of type {kind.__name__}"
    return Unavailable(reason, remedy=f"See {kind.__module__}, or uninstall it.")


async def call_plugin(call: Callable[[], Result | Awaitable[Result]], max_seconds: float) -> Result:
    """Call a plug-in, whose methods may be coroutine functions. Raises TimeoutError, and what the
    plug-in raises.
    """
    async with asyncio.timeout(max_seconds):
        called = call()
        return await called if isawaitable(called) else called
