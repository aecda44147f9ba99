"""A list of a service that has the physical resources of many resources.

The objects are compared page by page as they arrive, so that no list is kept in memory.
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, TypeVar

from engine.types.failure_scope import FailureScope
from engine.types.observation import Observation, admit_requests, pace_requests
from engine.words import Json, ResourceId

if TYPE_CHECKING:
    from engine.types.contract import Call

#: Objects between which other work of the process continues.
OBJECTS_AT_ONCE = 50

Wanted = TypeVar("Wanted")


class ListUnreadable(Exception):
    """The list cannot be read, or not to its end. unknown: the observation of the resources whose
    objects were not found until then."""

    def __init__(self, unknown: Observation) -> None:
        super().__init__(unknown.public_reason)
        self.unknown = unknown


@dataclass(frozen=True, slots=True)
class ObservedList:
    """read_pages: reads the list from its beginning, and yields the physical IDs and the objects of
    each page. Raises ListUnreadable. compare: returns the observation of a resource whose object
    the list has; None: its entry lacks values, and `missing` reads the object by itself. missing:
    returns that of a resource whose object the list lacks. reads: how often the list is read until
    then; more than once if nothing else shows that the object has not just moved between two pages.
    reads_alone: whether `missing` sends a request about a resource, which needs the budget.
    comparable: the same text for different spellings of an ID; None: there is one spelling.
    similar: the observation of a resource whose object cannot be read alone and whose ID the list
    lacks, but has in this other spelling: it may be the object, or another one. spellings: those
    that the list has, by physical ID.
    """

    read_pages: Callable[[], AsyncIterator[Iterable[tuple[str, Json]]]]
    compare: Callable[["Call", Json], Observation | None]
    missing: Callable[["Call"], Observation | Awaitable[Observation]]
    reads: int = 2
    reads_alone: Callable[["Call"], bool] = lambda _: True
    comparable: Callable[[str], str] | None = None
    similar: Callable[["Call", str], Observation] | None = None
    spellings: dict[str, str] = field(default_factory=dict)

    async def find(
        self, wanted: MutableMapping[str, list[Wanted]]
    ) -> AsyncIterator[Sequence[tuple[Wanted, Json]]]:
        """Read the list until it has had all wanted objects, or `reads` times. Yields for each page
        who wants an object of it, with the object, and removes these from `wanted`.
        wanted: by physical ID. Raises ListUnreadable."""
        comparable, exact = self.comparable, {*wanted} if self.comparable else set[str]()
        known = {comparable(one): one for one in wanted} if comparable else {}
        for _ in range(self.reads):
            async for page in self.read_pages():
                found: list[tuple[Wanted, Json]] = []
                for number, (object_id, one) in enumerate(page):
                    if comparable and object_id not in exact:
                        self._note_spelling(known.get(comparable(object_id)), object_id)
                    found += [(waiting, one) for waiting in wanted.pop(object_id, ())]
                    if number % OBJECTS_AT_ONCE == 0:
                        await asyncio.sleep(0)  # a page may have any number of objects
                yield found
                if not wanted:
                    return
                await pace_requests()

    async def observe(self, calls: Sequence["Call"]) -> Mapping[ResourceId, Observation]:
        """Return the observations of resources. All are unknown if the list cannot be read. Those
        that must be read alone are left out if the budget has no requests for them."""
        wanted: dict[str, list[Call]] = {}
        for call in calls:
            wanted.setdefault(str(call.physical_id), []).append(call)
        observed: dict[ResourceId, Observation] = {}
        left: list[Call] = []
        try:
            async for page in self.find(wanted):
                for number, (call, one) in enumerate(page):
                    observation = self.compare(call, one)
                    if observation is None:
                        left.append(call)
                    else:
                        observed[call.resource_id] = observation
                    if number % OBJECTS_AT_ONCE == 0:
                        await asyncio.sleep(0)
        except ListUnreadable as error:
            return {call.resource_id: error.unknown for call in calls}
        left += (call for absent in wanted.values() for call in absent)
        alone = [call for call in left if self.reads_alone(call)]
        later = {call.resource_id for call in alone[await admit_requests(len(alone)) :]}
        for call in left:
            if call.resource_id not in later:
                observed[call.resource_id] = await self.observe_missing(call)
        return observed

    async def observe_missing(self, call: "Call") -> Observation:
        """The observation of a resource whose object the list lacks. Its failure says nothing about
        the list, which has been read."""
        spelling = self.spellings.get(str(call.physical_id))
        if spelling is not None and self.similar is not None and not self.reads_alone(call):
            return self.similar(call, spelling)
        missing = self.missing(call)
        observation = await missing if isawaitable(missing) else missing
        return replace(observation, scope=FailureScope.OBJECT)

    def _note_spelling(self, wanted: str | None, object_id: str) -> None:
        """wanted: a physical ID in another spelling; None: no resource has one."""
        if wanted is not None:
            self.spellings[wanted] = object_id
