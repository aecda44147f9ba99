"""OS::Heat::Delay: takes its time, and makes nothing."""

import random
from collections.abc import Mapping
from datetime import datetime, timedelta

from engine.hot.schema.type_schema import Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType, Wait
from engine.words import Json

ACTIONS = ("CREATE", "DELETE", "SUSPEND", "RESUME")
#: Seconds; more is a mistake: a hundred years.
LONGEST = 3_155_760_000
_NOT_LESS = (Constraint("range", min=0),)


class Delay(ResourceType):
    """What it waits for is but time: whatever ends its change early ends its wait."""

    uses_credential = False
    gives_up = True
    schema = TypeSchema(
        "OS::Heat::Delay",
        description="Delays the named actions; creates nothing.",
        properties={
            "min_wait": Property(
                Kind.NUMBER,
                "Seconds that it takes at least.",
                default=0,
                update_allowed=True,
                constraints=_NOT_LESS,
            ),
            "max_jitter": Property(
                Kind.NUMBER,
                "It takes longer by chance, by up to so many times the multiplier.",
                default=0,
                update_allowed=True,
                constraints=_NOT_LESS,
            ),
            "jitter_multiplier": Property(
                Kind.NUMBER,
                "Seconds; what max_jitter counts.",
                default=1.0,
                update_allowed=True,
                constraints=_NOT_LESS,
            ),
            "actions": Property(
                Kind.LIST,
                "When.",
                items=Property(Kind.STRING),
                default=["CREATE"],
                update_allowed=True,
                constraints=(Constraint("allowed_values", allowed=ACTIONS),),
            ),
        },
    )

    def __init__(self, randomness: random.Random) -> None:
        self._randomness = randomness

    def create(self, call: Call) -> Outcome:
        return self._taken(call, "CREATE") or Done(str(call.resource_id))

    def update(self, call: Call) -> Outcome:
        return Done(call.physical_id)

    def delete(self, call: Call) -> Outcome:
        return self._taken(call, "DELETE") or Done(None)

    def suspend(self, call: Call) -> Outcome:
        return self._taken(call, "SUSPEND") or Done(call.physical_id)

    def resume(self, call: Call) -> Outcome:
        return self._taken(call, "RESUME") or Done(call.physical_id)

    def longest(self, properties: Mapping[str, Json]) -> float:
        least, jitter = _bounds(properties)
        return least + jitter

    def _taken(self, call: Call, action: str) -> Outcome | None:
        """None when it has waited long enough, or need not."""
        if action not in (call.properties.get("actions") or ()):
            return None
        least, jitter = _bounds(call.properties)
        until = (call.progress or {}).get("until")
        if until is None:
            seconds = least + jitter * self._randomness.random()
            end = call.now + timedelta(seconds=min(seconds, LONGEST))
        else:
            end = datetime.fromisoformat(until)
        if call.now >= end:
            return None
        if call.superseded:
            return Failed("something newer came before the delay was over")
        return Wait(end, {"until": end.isoformat()})


def _bounds(properties: Mapping[str, Json]) -> tuple[float, float]:
    """(seconds at least, seconds by chance on top at most); defaults may not be filled in."""
    said = {
        name: float(default if properties.get(name) is None else properties[name])
        for name, default in (("min_wait", 0), ("max_jitter", 0), ("jitter_multiplier", 1))
    }
    return said["min_wait"], said["max_jitter"] * said["jitter_multiplier"]
