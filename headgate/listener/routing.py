"""Which handler gets which notification."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.listener.answers import HookAnswer
    from headgate.listener.notification import HookNotification

Json = Any
HookHandler = Callable[["HookNotification"], Awaitable["HookAnswer | None"]]
EventHandler = Callable[[Mapping[str, Json]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class HookRoute:
    """points, at, types, stack: globs; empty: all. at: on the name of the resource, or, with a
    slash, on its path. operator: only hooks of operator rules, or of other rules; None: all.
    extend: keep extending the deadline while the handler runs.
    """

    handler: HookHandler
    points: tuple[str, ...] = ()
    at: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    stack: str = ""
    operator: bool | None = None
    extend: bool = True

    @property
    def name(self) -> str:
        return getattr(self.handler, "__name__", type(self.handler).__name__)

    def matches(self, notification: "HookNotification") -> bool:
        hook, resource = notification.hook, notification.data["resource"]
        if self.operator is not None and hook["by_operator"] is not self.operator:
            return False
        if self.points and not any(fnmatchcase(hook["point"], one) for one in self.points):
            return False
        if self.stack and not fnmatchcase(hook["root_stack_name"], self.stack):
            return False
        if self.types and not _matches_type(resource, self.types):
            return False
        return not self.at or any(_matches_place(hook, one) for one in self.at)


@dataclass(frozen=True, slots=True)
class EventRoute:
    """types: globs on the event type."""

    handler: EventHandler
    types: tuple[str, ...]

    def matches(self, event: Mapping[str, Json]) -> bool:
        return any(fnmatchcase(event["type"], one) for one in self.types)


def _matches_type(resource: Any, types: tuple[str, ...]) -> bool:
    kind = (resource or {}).get("type")
    return kind is not None and any(fnmatchcase(kind, one) for one in types)


def _matches_place(hook: Any, glob: str) -> bool:
    if hook["resource_name"] is None:
        return False
    place = hook["path"] if "/" in glob else hook["resource_name"]
    return _path_pattern(glob).fullmatch(place) is not None


@cache
def _path_pattern(glob: str) -> re.Pattern[str]:
    """`*` and `?` within one level, as in the rules of hooks."""
    parts = {"*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(parts.get(one, re.escape(one)) for one in glob))
