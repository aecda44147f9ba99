"""Reads notifications of providers, in the form in which oslo.messaging sends them. Pure.

A notification only says which objects may have changed; what it claims about them is not read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import orjson

from engine.words import Json

#: Maximum size of a message in bytes, characters of an ID, and IDs of one notification.
MAX_BODY_BYTES, MAX_ID, MAX_IDS = 1_048_576, 1_000, 1_000
#: Characters of an event type in a reason.
MAX_SHOWN = 100
#: A segment of a pointer that stands for each item of a list.
EACH = "*"

#: A physical ID, and a resource type; None: any type.
ChangedObject = tuple[str, str | None]


class InvalidNotification(Exception):
    """The message cannot be read; the text has the reason."""


@dataclass(frozen=True, slots=True)
class NotificationRule:
    """events: globs on event types. ids: JSON Pointers (RFC 6901) to the physical ID in the
    payload, tried in turn; in them, the segment ``*`` stands for each item of a list. types: of the
    resources; empty: any."""

    events: Sequence[str]
    ids: Sequence[str]
    types: Sequence[str] = ()


#: Of Nova (versioned and unversioned), Neutron and Cinder. Starts of operations are left out: the
#: object changes later.
OPENSTACK = (
    NotificationRule(
        ("instance.*.end", "instance.*.error", "instance.update",
         "compute.instance.*.end", "compute.instance.*.error", "compute.instance.update"),
        ("/nova_object.data/uuid", "/instance_id"),
    ),
    NotificationRule(("server_group.*",), ("/nova_object.data/uuid", "/server_group_id")),
    *(
        NotificationRule(
            (f"{name}.create.end", f"{name}.update.end", f"{name}.delete.end"),
            (f"/{name}/id", f"/{name}_id", f"/{name}s/{EACH}/id"),
        )
        for name in ("network", "subnet", "port", "router", "floatingip", "security_group")
    ),
    NotificationRule(("router.interface.*",), ("/router_interface/id",)),
    NotificationRule(
        ("security_group_rule.*.end",),
        ("/security_group_rule/security_group_id", "/security_group_rule_id"),
    ),
    NotificationRule(("volume.*.end", "volume.*.error"), ("/volume_id",)),
    NotificationRule(("snapshot.*.end", "snapshot.*.error"), ("/snapshot_id",)),
)  # fmt: skip


def read(body: bytes, rules: Sequence[NotificationRule]) -> list[ChangedObject] | None:
    """The objects that may have changed, by the first rule that matches; None: no rule does.

    Raises InvalidNotification.
    """
    if len(body) > MAX_BODY_BYTES:
        raise InvalidNotification(f"it is longer than {MAX_BODY_BYTES} bytes")
    notification = _parse(body, "the body")
    if "oslo.message" in notification:
        notification = _parse(notification["oslo.message"], "oslo.message")
    event_type = notification.get("event_type")
    if not isinstance(event_type, str) or not event_type:
        raise InvalidNotification("it has no event_type")
    for rule in rules:
        if any(fnmatchcase(event_type, pattern) for pattern in rule.events):
            return _changes(event_type, notification.get("payload"), rule)
    return None


def _parse(text: Json, place: str) -> dict[str, Json]:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidNotification(f"{place} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise InvalidNotification(f"{place} is not an object")
    return document


def _changes(event_type: str, payload: Json, rule: NotificationRule) -> list[ChangedObject]:
    for pointer in rule.ids:
        ids = [found for value in resolve(pointer, payload) if (found := _id(value)) is not None]
        if len(ids) > MAX_IDS:
            raise InvalidNotification(f"it has more than {MAX_IDS} IDs")
        if ids:
            return [(one, name) for one in ids for name in (rule.types or (None,))]
    shown = event_type[:MAX_SHOWN]
    raise InvalidNotification(f'the payload of "{shown}" has no ID at {" or ".join(rule.ids)}')


def _id(value: Json) -> str | None:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    usable = isinstance(text, str) and 0 < len(text) <= MAX_ID and "\0" not in text
    return text if usable else None


def resolve(pointer: str, value: Json) -> Iterator[Json]:
    """Yield the values that a pointer refers to; none: it does not exist."""
    if not pointer:
        yield value
        return
    head, separator, tail = pointer[1:].partition("/")
    rest = separator + tail
    if isinstance(value, dict):
        name = head.replace("~1", "/").replace("~0", "~")
        if name in value:
            yield from resolve(rest, value[name])
    elif isinstance(value, list):
        if head == EACH:
            for item in value:
                yield from resolve(rest, item)
        elif head.isdecimal() and len(head) < 10 and int(head) < len(value):
            yield from resolve(rest, value[int(head)])
