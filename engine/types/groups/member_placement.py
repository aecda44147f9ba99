"""Members with properties from a placement plug-in."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine.types.contract import Call
from engine.types.groups.member_template import FAILED, Body, CurrentMembers
from engine.types.placement import GroupView, PlacedMember
from engine.words import Json

#: In the group's records: the properties from the plug-in, by member.
PLACED: Final = "placed"


def placed(body: Body, place: Mapping[str, Json]) -> Body:
    return {**body, "properties": {**(body.get("properties") or {}), **place}} if place else body


def with_placement(body_of: Callable[[str], Body], there: CurrentMembers) -> Callable[[str], Body]:
    """Definitions of existing members, with the properties of their placement."""
    known = there.group.get(PLACED) or {}
    return lambda name: placed(body_of(name), known.get(name, {}))


def group_view(
    call: Call, bodies: Mapping[str, Body], new: Sequence[str], there: CurrentMembers
) -> GroupView:
    """The argument of the plug-in."""
    body, known = bodies[new[0]], there.group.get(PLACED) or {}
    return GroupView(
        call.project,
        call.stack_id,
        call.stack_name,
        call.resource_name,
        str(body["type"]),
        {} if call.has_secrets else body.get("properties") or {},
        tuple(
            PlacedMember(name, "COMPLETE" if name in there.sound else FAILED, known.get(name, {}))
            for name in there.bodies
            if name not in new
        ),
        tuple(new),
    )
