"""Entry points of the packages that are installed."""

from functools import cache
from importlib import metadata


@cache
def entry_points(group: str) -> tuple[metadata.EntryPoint, ...]:
    """Read once: every package is looked at, and none is installed beneath a running program."""
    return tuple(metadata.entry_points(group=group))
