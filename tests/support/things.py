"""Resource types whose operations do what a test says."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType
from engine.words import Json


@dataclass
class World:
    """What is really there, by physical id, and what was done: (operation, resource name)."""

    things: dict[str, Json] = field(default_factory=dict)
    done: list[tuple[str, str]] = field(default_factory=list)
    effects: Counter[str] = field(default_factory=Counter)
    calls: list[Call] = field(default_factory=list)
    #: Outcomes to give first, by (operation, resource name).
    say: dict[tuple[str, str], deque[Outcome]] = field(default_factory=dict)

    def will(self, operation: str, name: str, *outcomes: Outcome) -> None:
        self.say[operation, name] = deque(outcomes)

    def operations(self, name: str) -> list[str]:
        return [operation for operation, of in self.done if of == name]


class Thing(ResourceType):
    """A thing of the world. `size` is changed in place, `place` by another thing."""

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

    def _said(self, operation: str, call: Call) -> Outcome | None:
        self.world.done.append((operation, call.resource_name))
        self.world.calls.append(call)
        waiting = self.world.say.get((operation, call.resource_name))
        return waiting.popleft() if waiting else None

    def _done(self, operation: str, call: Call, physical_id: str) -> Outcome:
        self.world.effects[f"{operation} {call.operation_key}"] += 1
        return Done(physical_id, {"size": call.properties.get("size")}, {"mine": physical_id})

    def create(self, call: Call) -> Outcome:
        said = self._said("create", call)
        if said is not None:
            return said
        physical_id = f"{call.resource_name}-{call.operation_key.hex[:8]}"
        self.world.things[physical_id] = call.properties.get("size")
        return self._done("create", call, physical_id)

    def update(self, call: Call) -> Outcome:
        said = self._said("update", call)
        if said is not None:
            return said
        assert call.physical_id is not None
        kept: Mapping[str, Json] = call.kept or {}
        self.world.things[call.physical_id] = kept.get("size", call.properties.get("size"))
        return self._done("update", call, call.physical_id)

    def delete(self, call: Call) -> Outcome:
        said = self._said("delete", call)
        if said is not None:
            return said
        self.world.things.pop(call.physical_id or "", None)
        return Done(None)

    def check(self, call: Call) -> Outcome:
        said = self._said("check", call)
        if said is not None:
            return said
        if call.physical_id not in self.world.things:
            return Failed("it is gone")
        return Done(call.physical_id, {"size": self.world.things[call.physical_id]}, call.data)

    def suspend(self, call: Call) -> Outcome:
        return self._said("suspend", call) or Done(call.physical_id, call.attributes, call.data)

    def resume(self, call: Call) -> Outcome:
        return self._said("resume", call) or Done(call.physical_id, call.attributes, call.data)

    def snapshot(self, call: Call) -> Outcome:
        said = self._said("snapshot", call)
        kept = {"size": self.world.things.get(call.physical_id or "")}
        return said or Done(call.physical_id, call.attributes, kept)
