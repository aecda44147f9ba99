"""Observes objects of Headgate::HTTP: each by its own request, or many by one list."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.types.contract import Call
from engine.types.http.json_paths import InvalidPath
from engine.types.http.observation import observation_of
from engine.types.http.remote_object import RemoteObject, object_of, parse_json
from engine.types.http.requests import PlaceholderError
from engine.types.http.service import HttpService
from engine.types.http_client import GONE, ServiceError
from engine.types.observation import Observation
from engine.words import Json, ObservedState, ResourceId

#: Items of a list between which other work of the process continues.
ITEMS_AT_ONCE = 50
_ABSENT = "the list of the service does not have it"


@dataclass(frozen=True, slots=True)
class ObjectObserver:
    """Observes objects with the requests `check`, `read` and `list` of their properties."""

    service: HttpService

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        """Return the observations of objects with the same list or without one.

        An object that one list lacks may have moved between its pages: only if a second list lacks
        it as well, it is missing.
        """
        if not calls[0].properties.get("list"):
            return {call.resource_id: await self._observe_alone(call) for call in calls}
        try:
            found = await self._observe_listed(calls)
            if absent := [call for call in calls if call.resource_id not in found]:
                found |= await self._observe_listed(absent)
            missing = Observation(ObservedState.MISSING, (), _ABSENT, _ABSENT)
            return {call.resource_id: found.get(call.resource_id, missing) for call in calls}
        except (ServiceError, InvalidPath, PlaceholderError) as error:
            unknown = self._unknown(calls[0], object_of(calls[0]), error)
            return {call.resource_id: unknown for call in calls}

    async def _observe_alone(self, call: Call) -> Observation:
        remote, name = object_of(call), "check" if call.properties.get("check") else "read"
        try:
            content = parse_json(name, await self.service.send(call, name, remote))
        except ServiceError as error:
            if error.status in GONE:
                gone = f"the service answered {error.status}"
                return Observation(ObservedState.MISSING, (), gone, gone)
            return self._unknown(call, remote, error)
        except (InvalidPath, PlaceholderError) as error:
            return self._unknown(call, remote, error)
        return self.observe_object(call, content)

    async def _observe_listed(self, calls: Sequence[Call]) -> dict[ResourceId, Observation]:
        """The objects that are in the list, one page after another: no page is kept. Raises
        ServiceError, InvalidPath, PlaceholderError.
        """
        by_id: dict[str, list[Call]] = {}
        for call in calls:
            by_id.setdefault(str(call.physical_id), []).append(call)
        found: dict[ResourceId, Observation] = {}
        first = calls[0]
        values = object_of(first).values()
        async for page in self.service.pages(first.project, first.properties, values):
            for number, (item_id, item) in enumerate(page):
                for call in by_id.get(item_id, ()):
                    found[call.resource_id] = self.observe_object(call, item)
                if number % ITEMS_AT_ONCE == 0:
                    await asyncio.sleep(0)  # a page may have any number of items
        return found

    def observe_object(self, call: Call, content: Json) -> Observation:
        """Return the observation of an object. content: of the response that describes it."""
        remote = object_of(call)
        try:
            return observation_of(call.properties, content, self.service.secrets(call, remote))
        except InvalidPath as error:
            return self._unknown(call, remote, error)

    def _unknown(self, call: Call, remote: RemoteObject, error: Exception) -> Observation:
        service = error if isinstance(error, ServiceError) else ServiceError("")
        text = self.service.mask_text(call, remote, str(error))
        return Observation.unknown(text, service.public, service.throttled)
