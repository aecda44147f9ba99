"""Entry points of the packages that are installed."""

from functools import cache
from importlib import metadata

from engine.errors import Unavailable


@cache
def entry_points(group: str) -> tuple[metadata.EntryPoint, ...]:
    """Read once: every package is looked at, and none is installed beneath a running program."""
    return tuple(metadata.entry_points(group=group))


def make(point: metadata.EntryPoint, what: str) -> object:
    """What a plug-in makes without arguments. what: the kind of plug-in. Raises Unavailable."""
    try:
        return point.load()()
    except Exception as error:
        raise Unavailable(
            f"the {what} plug-in {point.name} ({point.value}) does not load: {error!r}",
            remedy="Mend or uninstall it.",
        ) from error


def misfit(point: metadata.EntryPoint, what: str, kind: type) -> Unavailable:
    """To be raised when what a plug-in made is not of its kind."""
    reason = f"the {what} plug-in {point.name} ({point.value}) is no {kind.__name__}"
    return Unavailable(reason, remedy=f"See {kind.__module__}, or uninstall it.")
