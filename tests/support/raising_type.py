"""A resource type that raises in chosen methods, as a faulty plug-in does."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.words import Json

#: The text of the exception, which must not reach a log or a user.
TEXT = "text-of-the-exception-4711"


class Raising(ResourceType):
    """methods: the methods that raise. error: creates the exception. waits: operations
    yield first.
    """

    schema = TypeSchema(
        "Test::Raising",
        properties={
            "size": Property(Kind.ANY, update_allowed=True, default=1),
            "place": Property(Kind.ANY, default="here"),
        },
        snapshots=True,
        steps=("look",),
    )

    def __init__(
        self, methods: Sequence[str], error: Callable[[str], BaseException], *, waits: bool = False
    ) -> None:
        self.change(methods, error, waits=waits)

    def change(
        self, methods: Sequence[str], error: Callable[[str], BaseException], *, waits: bool = False
    ) -> None:
        self._methods = methods
        self._error = error
        self._waits = waits

    def _raise_in(self, method: str) -> None:
        if method in self._methods:
            raise self._error(TEXT)

    def needs_replace(self, call: Call) -> bool:
        self._raise_in("needs_replace")
        return False

    def reference(self, name: str, physical_id: str | None, data: Mapping[str, Json]) -> str:
        self._raise_in("reference")
        return physical_id or name

    async def _yield_first(self, method: str, outcome: Outcome) -> Outcome:
        await asyncio.sleep(0)
        self._raise_in(method)
        return outcome

    def _operation(
        self, method: str, call: Call, physical_id: str | None
    ) -> Outcome | Awaitable[Outcome]:
        outcome = Done(physical_id, {}, {"made": call.resource_name})
        if self._waits:
            return self._yield_first(method, outcome)
        self._raise_in(method)
        return outcome

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self._operation("create", call, call.resource_name)

    def update(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self._operation("update", call, call.physical_id)

    def delete(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self._operation("delete", call, None)

    def check(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self._operation("check", call, call.physical_id)

    def suspend(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self._operation("suspend", call, call.physical_id)

    def resume(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self._operation("resume", call, call.physical_id)

    def snapshot(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self._operation("snapshot", call, call.physical_id)

    def adopt(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self._operation("adopt", call, call.physical_id)
