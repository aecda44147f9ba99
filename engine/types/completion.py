"""Operations that a service has accepted, and that the observer completes.

A type whose service only accepts an operation does not poll each object. It calls
`Completions.wait` and returns `Wait` with a time limit. The observer then reads the objects of all
such operations of a project with the same key by one request (`ResourceType.read_objects`), and
has an operation called again when its object is complete (`ResourceType.is_complete`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from engine.words import Json, StackId


@dataclass(frozen=True, eq=False, slots=True)
class AcceptedOperation:
    """type: its name. key: one request reads the objects of all operations with the same key; it
    must have no secret. object_id: as `read_objects` returns it. definition: what the type needs to
    send the request and to judge the object; stored encrypted. max_pause: seconds between two
    requests at most, unless they fail.
    """

    project: str
    stack_id: StackId
    operation_key: UUID
    type: str
    key: str
    object_id: str
    definition: Mapping[str, Json] = field(repr=False)
    max_pause: float


class ObjectsUnknown(Exception):
    """The objects cannot be read now. The text is the reason, without secrets. retry_after: as of
    `engine.types.observation.Observation`."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Completions(Protocol):
    async def wait(self, accepted: AcceptedOperation) -> Json | None:
        """Have the observer complete the operation. Returns the complete object, or None: then the
        operation must return `Wait`, and is called again when the object is complete.

        Idempotent. Raises Unavailable.
        """
