"""Which events a subscription wants. Pure; asked by publishing and by the event stream."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from uuid import UUID

from engine.words import Json

WAITING = "headgate.hook.waiting"
DELIVERED = "headgate.delivery.delivered"

#: The project of subscriptions that hear of every project.
EVERY_PROJECT = "*"


@dataclass(frozen=True, slots=True)
class Selection:
    """Globs; an empty list asks for nothing, so everything passes.

    resources: names or paths. types: resource types. points: hook points. tags: of the stack, as
    they are when the event is published. stack_id: of this stack alone. A list that asks for
    something an event does not have (points, of an event that is no hook's) keeps it out.
    """

    events: Sequence[str] = ()
    stacks: Sequence[str] = ()
    resources: Sequence[str] = ()
    types: Sequence[str] = ()
    points: Sequence[str] = ()
    tags: Sequence[str] = ()
    stack_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Traits:
    """What of an event can be asked for. path: of the resource, reaching into nested stacks.

    stack_name: None: the event is of no stack. about: the subscription that an event about a
    subscription or delivery is about.
    """

    project: str
    type: str
    stack_id: UUID
    stack_name: str | None = None
    resource_name: str | None = None
    path: str | None = None
    resource_type: str | None = None
    point: str | None = None
    about: str | None = None
    tags: Sequence[str] = ()


def wants(selection: Selection, traits: Traits) -> bool:
    return (
        selection.stack_id in (None, traits.stack_id)
        and _any(selection.events, traits.type)
        and _any(selection.stacks, traits.stack_name)
        and _any(selection.resources, traits.resource_name, traits.path)
        and _any(selection.types, traits.resource_type)
        and _any(selection.points, traits.point)
        and _any(selection.tags, *traits.tags)
    )


def is_for(subscription_id: UUID, project: str, selection: Selection, traits: Traits) -> bool:
    """Whether a subscription gets an event: of its project, and no news of itself but good news.

    What has arrived is told to whom it has arrived, too: else they would miss a number of the
    stack's events.
    """
    if project not in (EVERY_PROJECT, traits.project):
        return False
    if traits.about == str(subscription_id) and traits.type != DELIVERED:
        return False
    return wants(selection, traits)


def about(data: Json) -> str | None:
    """The subscription that an event's stored data speaks of, if it does."""
    said = data.get("subscription") if isinstance(data, dict) else None
    return said if isinstance(said, str) else None


def _any(globs: Sequence[str], *values: str | None) -> bool:
    return not globs or any(
        value is not None and _pattern(glob).match(value) is not None
        for glob in globs
        for value in values
    )


# fnmatch itself keeps 256 (Python 3.11), which many subscriptions would turn over all the time.
@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob))
