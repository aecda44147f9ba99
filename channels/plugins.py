"""Channels from other packages: entry points under ``headgate.channels``.

The entry point has the name of the channel and refers to a callable without arguments that returns
a `channels.contract.Channel`. If the channel is an async context manager, the program enters it.
"""

from collections.abc import Collection, Iterable
from importlib.metadata import EntryPoint
from typing import cast

from channels.contract import Channel
from engine.errors import Unavailable
from engine.installed import entry_points, load_plugin

ENTRY_POINTS = "headgate.channels"


def load_installed(reserved: Collection[str]) -> dict[str, Channel]:
    """Return the channels of the installed packages, by name. reserved: names of built-in channels.

    Raises Unavailable for an invalid channel.
    """
    return load_channels(entry_points(ENTRY_POINTS), reserved)


def load_channels(points: Iterable[EntryPoint], reserved: Collection[str]) -> dict[str, Channel]:
    found: dict[str, Channel] = {}
    for point in points:
        if point.name in reserved or point.name in found:
            raise _unusable(point, f'a channel "{point.name}" already exists')
        channel = load_plugin(point, "channel")
        missing = [name for name in ("check_target", "deliver") if not hasattr(channel, name)]
        if missing:
            raise _unusable(point, f"it has no {' and no '.join(missing)}")
        found[point.name] = cast(Channel, channel)
    return found


def _unusable(point: EntryPoint, why: str) -> Unavailable:
    return Unavailable(
        f'cannot use the channel "{point.name}" ({point.value}): {why}',
        place=ENTRY_POINTS,
        remedy="Repair or uninstall it.",
    )
