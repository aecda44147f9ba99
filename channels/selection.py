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

    stacks: names of stacks, of those around an event's stack the outermost. resources: names or
    paths. types: resource types. points: hook points. tags: of the outermost stack, as they are
    when the event is published. stack_id: of this stack. nested: and of those inside; without it,
    of none that is inside of another. root_id, path: where the stack of stack_id is, if that is not
    an outermost one. A list that asks for something an event does not have (points, of an event
    that is no hook's) keeps it out.
    """

    events: Sequence[str] = ()
    stacks: Sequence[str] = ()
    resources: Sequence[str] = ()
    types: Sequence[str] = ()
    points: Sequence[str] = ()
    tags: Sequence[str] = ()
    stack_id: UUID | None = None
    nested: bool = True
    root_id: UUID | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class Traits:
    """What of an event can be asked for.

    stack_name: None: the event is of no stack. root_id, root_name: of the outermost stack, where
    the event's is inside of it; stack_path: the names of the resources that lead from there to it.
    about: the subscription that an event about a subscription or delivery is about.
    """

    project: str
    type: str
    stack_id: UUID
    stack_name: str | None = None
    root_id: UUID | None = None
    root_name: str | None = None
    stack_path: str = ""
    resource_name: str | None = None
    resource_type: str | None = None
    point: str | None = None
    about: str | None = None
    tags: Sequence[str] = ()

    @property
    def path(self) -> str | None:
        """Of the resource, from the outermost stack on."""
        return path_of(self.stack_path, self.resource_name)


def path_of(stack_path: str, resource_name: str | None) -> str | None:
    """``web/0/server``; None: the event is of no resource."""
    return f"{stack_path}/{resource_name}".lstrip("/") if resource_name else None


def wants(selection: Selection, traits: Traits) -> bool:
    return (
        _is_of(selection, traits)
        and _any(selection.events, traits.type)
        and _any(selection.stacks, traits.stack_name, traits.root_name)
        and _any(selection.resources, traits.resource_name, traits.path)
        and _any(selection.types, traits.resource_type)
        and _any(selection.points, traits.point)
        and _any(selection.tags, *traits.tags)
    )


def _is_of(selection: Selection, traits: Traits) -> bool:
    """Whether it is of a stack that is asked about."""
    if selection.stack_id == traits.stack_id:
        return True
    if traits.root_id is None:
        return selection.stack_id is None
    if not selection.nested or selection.stack_id is None:
        return selection.nested
    if traits.root_id != (selection.root_id or selection.stack_id):
        return False
    return not selection.path or traits.stack_path.startswith(f"{selection.path}/")


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
