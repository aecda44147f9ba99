"""What a type reads of a physical resource that no stack has, for a template that imports it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from engine.types.observation import Difference
from engine.words import Json

#: Why the value of a property is not in a template that imports its resource.
NOT_READABLE = "secret: services do not return it"
NOT_RETURNED = "the service does not return it"


class UnreadableCode(StrEnum):
    """Why an object could not be read; the code of the error."""

    MISSING = "EntityNotFound"
    FORBIDDEN = "Forbidden"
    UNSUPPORTED = "ImportNotSupported"
    INVALID = "Invalid"
    UNAVAILABLE = "Unavailable"


class UnreadableObject(Exception):
    """A physical resource that cannot be read. The text is the reason. place: below the entry of
    the request: ``id``, ``type`` or ``properties``."""

    def __init__(self, code: UnreadableCode, place: str, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.code = code
        self.place = place
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class LiveObject:
    """A physical resource. name: "" if it has none. properties: as a template has them, with IDs in
    place of names. unread: the reasons for properties that it may have and that could not be read.
    differences: values that the properties, with their defaults, do not have. secrets: the paths to
    values in the properties that a template must not contain.
    """

    name: str
    properties: Mapping[str, Json] = field(repr=False)
    unread: Mapping[str, str] = field(default_factory=dict)
    differences: Sequence[Difference] = ()
    secrets: Sequence[tuple[str, ...]] = ()
