"""Observes objects of Headgate::HTTP: each by its own request, or many by one list."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.hot.expressions.masking import iterate_texts
from engine.types.contract import Call
from engine.types.http.json_paths import InvalidPath
from engine.types.http.observation import observation_of
from engine.types.http.remote_object import (
    KEPT,
    RemoteObject,
    comparable_id,
    object_of,
    parse_json,
)
from engine.types.http.requests import PlaceholderError
from engine.types.http.service import HttpService
from engine.types.http_client import GONE, ServiceError
from engine.types.observation import Observation
from engine.types.observed_list import ListUnreadable, ObservedList
from engine.words import Json, ObservedState, ResourceId

_ABSENT = "the list of the service does not have it"
_SIMILAR = "the list has the ID of the object in another spelling"
_SIMILAR_REMEDY = "Define `read`, so that the object is read by itself."
_MISSING = Observation(ObservedState.MISSING, (), _ABSENT, _ABSENT)


@dataclass(frozen=True, slots=True)
class ObjectObserver:
    """Observes objects with the requests `check`, `read` and `list` of their properties."""

    service: HttpService

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        """Return the observations of objects with the same list or without one."""
        if (listed := self.observed_list(calls[0])) is not None:
            return await listed.observe(calls)
        return {call.resource_id: await self._observe_alone(call) for call in calls}

    def observed_list(self, call: Call) -> ObservedList | None:
        if not call.properties.get("list"):
            return None
        return ObservedList(
            lambda: self._pages(call), self._observe_listed, self._observe_unlisted,
            reads_alone=_is_readable, comparable=comparable_id, similar=self._observe_similar,
        )  # fmt: skip

    def _observe_listed(self, call: Call, content: Json) -> Observation | None:
        """None: the entry of the list lacks values, and the object is read by itself."""
        observation = self.observe_object(call, content)
        return None if observation.incomplete and _is_readable(call) else observation

    async def _observe_unlisted(self, call: Call) -> Observation:
        """What lists lack is read by itself if it can be: they may be incomplete."""
        return await self._observe_alone(call) if _is_readable(call) else _MISSING

    def _observe_similar(self, call: Call, spelling: str) -> Observation:
        """Not missing: a repair would create a second object if the service writes the ID
        differently in its list."""
        text = (
            f'the list has the ID "{spelling[:KEPT]}", and this object has'
            f' "{str(call.physical_id)[:KEPT]}". {_SIMILAR_REMEDY}'
        )
        masked = self.service.mask_text(call, object_of(call), text)
        return Observation.lacking(masked, f"{_SIMILAR}. {_SIMILAR_REMEDY}")

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
        return self.observe_object(call, content, alone=True)

    async def _pages(self, call: Call) -> AsyncIterator[Iterable[tuple[str, Json]]]:
        """The pages of the list. Raises ListUnreadable, also while a page is read."""
        remote = object_of(call)

        def readable(page: Iterable[tuple[str, Json]]) -> Iterator[tuple[str, Json]]:
            try:
                yield from page
            except (ServiceError, InvalidPath) as error:
                raise ListUnreadable(self._unknown(call, remote, error)) from None

        try:
            values = remote.values()
            async for page in self.service.pages(call.project, call.properties, values):
                yield readable(page)
        except (ServiceError, InvalidPath, PlaceholderError) as error:
            raise ListUnreadable(self._unknown(call, remote, error)) from None

    def observe_object(self, call: Call, content: Json, *, alone: bool = False) -> Observation:
        """Return the observation of an object. content: of the response that describes it. alone:
        whether it is the response to a request about this object only."""
        remote = object_of(call)
        own = remote if alone else None
        secrets = [*self.service.secrets(call, remote), *iterate_texts(remote.secrets)]
        try:
            return observation_of(call.properties, content, secrets, own)
        except InvalidPath as error:
            return self._unknown(call, remote, error)

    def _unknown(self, call: Call, remote: RemoteObject, error: Exception) -> Observation:
        service = error if isinstance(error, ServiceError) else ServiceError("")
        text = self.service.mask_text(call, remote, str(error))
        return Observation.unknown(text, service.public, service.throttled, service.scope)


def _is_readable(call: Call) -> bool:
    """Whether a request reads the object by itself."""
    return bool(call.properties.get("check") or call.properties.get("read"))
