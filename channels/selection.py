"""The filters of subscriptions and event streams."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from uuid import UUID

from engine.hooks.rule_patterns import matches_resource
from engine.words import Json

WAITING = "headgate.hook.waiting"
DELIVERED = "headgate.delivery.delivered"

#: The project of subscriptions that select the events of every project.
EVERY_PROJECT = "*"


@dataclass(frozen=True, slots=True)
class Selection:
    """Filters of globs; an empty list matches every event.

    stacks: names of the event's stack or its root stack. resources: names or paths. types: resource
    types. points: hook points. tags: of the root stack at the time of publication. stack_id: this
    stack only. nested: also its nested stacks; False: no nested stacks at all. root_id, path: of
    the stack in stack_id if it is nested. A list does not match an event without such a value, for
    example `points` an event that is not about a hook.
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
    """The values of an event that filters match.

    stack_name: None: the event does not belong to a stack. root_id, root_name, stack_path: set for
    nested stacks: the root stack, and the path from there. about: the subject of an event about a
    subscription or delivery.
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
        """The path of the resource from the root stack."""
        return path_of(self.stack_path, self.resource_name)


def path_of(stack_path: str, resource_name: str | None) -> str | None:
    """Such as ``web/0/server``; None: the event is not about a resource."""
    return f"{stack_path}/{resource_name}".lstrip("/") if resource_name else None


def matches(selection: Selection, traits: Traits) -> bool:
    return (
        _matches_stack(selection, traits)
        and _any(selection.events, traits.type)
        and _any(selection.stacks, traits.stack_name, traits.root_name)
        and _any_resource(selection.resources, traits.resource_name, traits.path)
        and _any(selection.types, traits.resource_type)
        and _any(selection.points, traits.point)
        and _any(selection.tags, *traits.tags)
    )


def _matches_stack(selection: Selection, traits: Traits) -> bool:
    """Whether the stack of the event matches stack_id, nested, root_id and path."""
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
    """Whether a subscription gets an event: of its project, selected, and not about the
    subscription.

    It does get `headgate.delivery.delivered` about itself; otherwise the sequence numbers of the
    stack's events would have a gap.
    """
    if project not in (EVERY_PROJECT, traits.project):
        return False
    if traits.about == str(subscription_id) and traits.type != DELIVERED:
        return False
    return matches(selection, traits)


def subject_of(data: Json) -> str | None:
    """The subscription that is the subject of an event, from its stored data."""
    subscription = data.get("subscription") if isinstance(data, dict) else None
    return subscription if isinstance(subscription, str) else None


def _any(globs: Sequence[str], *values: str | None) -> bool:
    return not globs or any(
        value is not None and _pattern(glob).match(value) is not None
        for glob in globs
        for value in values
    )


def _any_resource(globs: Sequence[str], *names: str | None) -> bool:
    return not globs or any(
        name is not None and matches_resource(name, glob) for glob in globs for name in names
    )


# fnmatch caches 256 patterns (Python 3.11), too few for many subscriptions.
@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob))
