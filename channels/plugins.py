"""Channels from other packages: entry points under ``headgate.channels``.

The entry point has the name of the channel and refers to a callable without arguments that returns
a `channels.contract.Channel`. If the channel is an async context manager, the program enters it.
"""

from collections.abc import Collection, Iterable
from importlib.metadata import EntryPoint

from channels.contract import Channel
from engine.errors import Unavailable
from engine.installed import entry_points

ENTRY_POINTS = "headgate.channels"


def installed(taken: Collection[str]) -> dict[str, Channel]:
    """By name. taken: names of built-in channels. Raises Unavailable for an invalid channel."""
    return loaded(entry_points(ENTRY_POINTS), taken)


def loaded(points: Iterable[EntryPoint], taken: Collection[str]) -> dict[str, Channel]:
    found: dict[str, Channel] = {}
    for point in points:
        if point.name in taken or point.name in found:
            raise _unusable(point, f'there is a channel "{point.name}" already')
        try:
            channel = point.load()()
        except Exception as error:
            raise _unusable(point, f"{type(error).__name__}: {error}") from error
        missing = [name for name in ("check_target", "deliver") if not hasattr(channel, name)]
        if missing:
            raise _unusable(point, f"it has no {' and no '.join(missing)}")
        found[point.name] = channel
    return found


def _unusable(point: EntryPoint, why: str) -> Unavailable:
    return Unavailable(
        f'cannot use the channel "{point.name}" ({point.value}): {why}',
        place=ENTRY_POINTS,
        remedy="Fix or uninstall the package that provides it.",
    )
