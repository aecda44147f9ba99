"""A resource type with scripted outcomes, and the simulated service with its objects."""

from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType
from engine.types.live_object import LiveObject, UnreadableCode, UnreadableObject
from engine.types.observation import PRESENT, Difference, Observation
from engine.words import Json, ObservedState, ResourceId


@dataclass
class World:
    """The objects that exist, by physical ID, and the calls so far: (operation, resource name)."""

    things: dict[str, Json] = field(default_factory=dict)
    done: list[tuple[str, str]] = field(default_factory=list)
    effects: Counter[str] = field(default_factory=Counter)
    calls: list[Call] = field(default_factory=list)
    #: Outcomes to return first, by (operation, resource name).
    scripted: dict[tuple[str, str], deque[Outcome]] = field(default_factory=dict)
    #: Observations by resource name; of others, whether the object exists. An exception is raised.
    observed: dict[str, Observation | Exception] = field(default_factory=dict)

    def script(self, operation: str, name: str, *outcomes: Outcome) -> None:
        self.scripted[operation, name] = deque(outcomes)

    def operations(self, name: str) -> list[str]:
        return [operation for operation, of in self.done if of == name]


class Thing(ResourceType):
    """An object of the world. A change of `size` is an update, a change of `place` a
    replacement.
    """

    replaces_tainted = True
    schema = TypeSchema(
        "Test::Thing",
        properties={
            "size": Property(Kind.ANY, update_allowed=True, default=1),
            "place": Property(Kind.ANY, default="here"),
        },
        attributes={"size": Attribute(Kind.ANY), "kept": Attribute(Kind.ANY)},
        snapshots=True,
        steps=("resize",),
        signals=True,
    )

    def __init__(self, world: World) -> None:
        self.world = world

    def world_of(self, call: Call) -> World:
        return self.world

    def observation_key(self, call: Call) -> str:
        return call.stack_name

    def observe(self, calls: Sequence[Call]) -> dict[ResourceId, Observation]:
        return {call.resource_id: self._observe(call) for call in calls}

    def _observe(self, call: Call) -> Observation:
        found = self.world_of(call).observed.get(call.resource_name)
        if isinstance(found, Exception):
            raise found
        exists = call.physical_id in self.world_of(call).things
        return found or (PRESENT if exists else Observation(ObservedState.MISSING))

    async def read_live(self, call: Call, imported: Collection[str]) -> LiveObject:
        if call.physical_id not in self.world_of(call).things:
            code = UnreadableCode.MISSING
            raise UnreadableObject(code, "id", "there is no such thing", "Use another ID.")
        unread = {"place": "the world does not return it"}
        return LiveObject("thing", call.properties, unread, [Difference("size", 5, 7)])

    def _next_outcome(self, operation: str, call: Call) -> Outcome | None:
        self.world_of(call).done.append((operation, call.resource_name))
        self.world_of(call).calls.append(call)
        left = self.world_of(call).scripted.get((operation, call.resource_name))
        return left.popleft() if left else None

    def _done(self, operation: str, call: Call, physical_id: str) -> Outcome:
        self.world_of(call).effects[f"{operation} {call.operation_key}"] += 1
        return Done(physical_id, {"size": call.properties.get("size")}, {"mine": physical_id})

    def create(self, call: Call) -> Outcome:
        outcome = self._next_outcome("create", call)
        if outcome is not None:
            return outcome
        physical_id = f"{call.resource_name}-{call.operation_key.hex[:8]}"
        self.world_of(call).things[physical_id] = call.properties.get("size")
        return self._done("create", call, physical_id)

    def update(self, call: Call) -> Outcome:
        outcome = self._next_outcome("update", call)
        if outcome is not None:
            return outcome
        assert call.physical_id is not None
        kept: Mapping[str, Json] = call.kept or {}
        self.world_of(call).things[call.physical_id] = kept.get("size", call.properties.get("size"))
        return self._done("update", call, call.physical_id)

    def delete(self, call: Call) -> Outcome:
        outcome = self._next_outcome("delete", call)
        if outcome is not None:
            return outcome
        self.world_of(call).things.pop(call.physical_id or "", None)
        return Done(None)

    def check(self, call: Call) -> Outcome:
        outcome = self._next_outcome("check", call)
        if outcome is not None:
            return outcome
        if call.physical_id not in self.world_of(call).things:
            return Failed("it is gone")
        return Done(
            call.physical_id, {"size": self.world_of(call).things[call.physical_id]}, call.data
        )

    def suspend(self, call: Call) -> Outcome:
        return self._next_outcome("suspend", call) or Done(
            call.physical_id, call.attributes, call.data
        )

    def resume(self, call: Call) -> Outcome:
        return self._next_outcome("resume", call) or Done(
            call.physical_id, call.attributes, call.data
        )

    def snapshot(self, call: Call) -> Outcome:
        outcome = self._next_outcome("snapshot", call)
        kept = {"size": self.world_of(call).things.get(call.physical_id or "")}
        return outcome or Done(call.physical_id, call.attributes, kept)


class SharedThing(Thing):
    """An object of the world of its project."""

    def __init__(self, worlds: Mapping[str, World]) -> None:
        super().__init__(World())
        self._worlds = worlds

    def world_of(self, call: Call) -> World:
        return self._worlds[call.project]
