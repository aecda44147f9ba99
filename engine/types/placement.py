"""The interface of placement plug-ins, version 1: where new members of a group are created.

A plug-in is a class under the entry point group ``headgate.placement``. Each process creates one
instance without arguments; at most one plug-in may be installed. Headgate calls it before a group
creates members. It returns properties for each member, such as ``availability_zone``, which the
member keeps through all updates. Arguments are frozen. Within version 1, fields are added, but none
is removed or renamed.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Conflict
from engine.installed import call_plugin, entry_points, load_plugin, wrong_type_error
from engine.words import Json

#: Increases when the arguments of plug-ins get new fields.
VERSION = 1
ENTRY_POINTS = "headgate.placement"
#: The timeout of a call, in seconds.
MAX_SECONDS = 30.0

log: FilteringBoundLogger = structlog.get_logger()

#: The properties of each new member, by its name.
Places = Mapping[str, Mapping[str, Json]]


@dataclass(frozen=True, slots=True)
class PlacedMember:
    """An existing member. placed: the properties from the plug-in; empty if it was not called."""

    name: str
    status: str
    placed: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group and the members that it is about to create.

    type: of its members. properties: of its members, from the template; empty if any of them is
    secret. new: the names of the members to create.
    """

    project: str
    stack_id: UUID
    stack_name: str
    resource_name: str
    type: str
    properties: Mapping[str, Json]
    members: Sequence[PlacedMember]
    new: Sequence[str]


class Refused(Exception):
    """Raise it in `place` if the members cannot be created. The text appears in the status."""


class Placement(ABC):
    @abstractmethod
    def place(self, view: GroupView) -> Places | Awaitable[Places]:
        """Return the properties of new members. A member without an entry gets none.

        Called again after a crash, with the same names. Raise Refused to refuse. Any other
        exception also refuses: no member is better than one in the wrong place.
        """


class Placer:
    """Calls the plug-in with a timeout, in seconds."""

    def __init__(self, placement: Placement, *, max_seconds: float = MAX_SECONDS) -> None:
        self._placement = placement
        self._max_seconds = max_seconds

    async def place(self, view: GroupView) -> Places | str:
        """The properties of the new members, or the reason why there are none."""
        name = type(self._placement).__name__
        try:
            places = await call_plugin(partial(self._placement.place, view), self._max_seconds)
        except Refused as refused:
            return f"{name} refused to place members: {refused}"
        except TimeoutError:
            return f"{name} did not place the members within {self._max_seconds:g} s"
        except Exception as error:
            log.error("placement.failed", plugin=name, stack_id=str(view.stack_id), exc_info=error)
            return f"{name} failed, so no members are created; see the server's log"
        if not _is_valid(places, view.new):
            return f"{name} did not return a mapping from names of new members to properties"
        return places


def _is_valid(places: Json, new: Sequence[str]) -> bool:
    return (
        isinstance(places, Mapping)
        and {*places} <= {*new}
        and all(isinstance(one, Mapping) for one in places.values())
    )


def load_installed() -> Placer | None:
    """The installed plug-in. Raises Unavailable if it does not load, Conflict for several."""
    points = entry_points(ENTRY_POINTS)
    if len(points) > 1:
        names = ", ".join(sorted(point.name for point in points))
        reason = f"several placement plug-ins are installed: {names}"
        raise Conflict(reason, place="[placement]", remedy="Uninstall all but one.")
    for point in points:
        plugin = load_plugin(point, "placement")
        if not isinstance(plugin, Placement):
            raise wrong_type_error(point, "placement", Placement)
        return Placer(plugin)
    return None
