"""The interface of placement plug-ins, version 1: where new members of a group come to be.

A plug-in is a class under the entry point group ``headgate.placement``, made without arguments,
once in each process; there may be one. It is asked before a group makes members, and answers
properties for each of them, such as ``availability_zone``; they stay with the member for as long as
it lives, through updates. What it is given is frozen, and stays as it is described here within
version 1: fields are added, none is removed or renamed.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Conflict
from engine.installed import entry_points, make, misfit
from engine.words import Json

#: Grows when something is added to what plug-ins are given.
VERSION = 1
ENTRY_POINTS = "headgate.placement"
#: Seconds that a plug-in may take.
LONGEST = 30.0

log: FilteringBoundLogger = structlog.get_logger()

#: By the names of new members: properties of each.
Places = Mapping[str, Mapping[str, Json]]


@dataclass(frozen=True, slots=True)
class PlacedMember:
    """A member that there is. placed: what was answered for it; empty when nobody was asked."""

    name: str
    status: str
    placed: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group and what it is about to make.

    type: of its members. properties: of its members, as the template has them; empty where some of
    them are hidden. new: names of the members to be made.
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
    """Raise it in `place`: the members cannot be made. The text is told to who asked for them."""


class Placement(ABC):
    @abstractmethod
    def place(self, view: GroupView) -> Places | Awaitable[Places]:
        """Say where new members come to be; who is not named is made as the template says.

        Asked again after a crash, and then for the same names. Raise Refused to refuse. Any other
        exception refuses, too: a member in the wrong place is worse than none.
        """


class Placer:
    """Asks the plug-in, for so many seconds at most."""

    def __init__(self, placement: Placement, *, longest: float = LONGEST) -> None:
        self._placement = placement
        self._longest = longest

    async def place(self, view: GroupView) -> Places | str:
        """The properties by new members, or why there are none."""
        name = type(self._placement).__name__
        try:
            async with asyncio.timeout(self._longest):
                said = self._placement.place(view)
                places = await said if isawaitable(said) else said
        except Refused as refused:
            return f"{name} refused to place members: {refused}"
        except TimeoutError:
            return f"{name} did not say within {self._longest:g} s where members are placed"
        except Exception as error:
            log.error("placement.bug", plugin=name, stack_id=str(view.stack_id), exc_info=error)
            return f"{name} failed with {type(error).__name__}, and so places no members"
        if not _is_sound(places, view.new):
            return f"{name} answered no properties by the names of new members"
        return places


def _is_sound(places: Json, new: Sequence[str]) -> bool:
    return (
        isinstance(places, Mapping)
        and {*places} <= {*new}
        and all(isinstance(one, Mapping) for one in places.values())
    )


def installed() -> Placer | None:
    """Raises Unavailable for one that does not load, Conflict when there are several."""
    points = entry_points(ENTRY_POINTS)
    if len(points) > 1:
        names = ", ".join(sorted(point.name for point in points))
        reason = f"several plug-ins want to place members of groups: {names}"
        raise Conflict(reason, remedy="Uninstall all but one.")
    for point in points:
        made = make(point, "placement")
        if not isinstance(made, Placement):
            raise misfit(point, "placement", Placement)
        return Placer(made)
    return None
