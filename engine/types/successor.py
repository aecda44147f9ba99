"""The resource that has replaced another one.

A template can choose the ID of a physical resource, such as the name of a queue. A replacement then
has the ID of the resource that it replaces, and is the same object: the delete of the replaced
resource would delete it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from engine.words import Json, ResourceId, StackId


@dataclass(frozen=True, slots=True)
class Successor:
    """properties: as last applied."""

    properties: Mapping[str, Json] = field(repr=False)
    data: Mapping[str, Json] = field(repr=False)


class Successors(Protocol):
    async def read(self, stack_id: StackId, resource_id: ResourceId) -> Successor | None:
        """The current resource that has replaced a resource, if it has the same type and physical
        ID; None: there is none. Raises Unavailable."""
