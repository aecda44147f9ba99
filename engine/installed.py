"""Entry points of the installed packages."""

from functools import cache
from importlib import metadata

from engine.errors import Unavailable


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
