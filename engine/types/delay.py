"""OS::Heat::Delay: delays actions, and creates nothing."""

import random
from collections.abc import Mapping
from datetime import datetime, timedelta

from engine.hot.schema.type_schema import Constraint, Kind, Property, TypeSchema, updatable
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType, Wait
from engine.words import Json

ACTIONS = ("CREATE", "DELETE", "SUSPEND", "RESUME")
#: Seconds: a hundred years, the upper bound for a delay.
MAX_SECONDS = 3_155_760_000
_NOT_NEGATIVE = (Constraint("range", min=0),)


class Delay(ResourceType):
    """A delay ends early when its change ends early."""

    uses_credential = False
    supersedable = True
    schema = TypeSchema(
        "OS::Heat::Delay",
        description="Delays the named actions; creates nothing.",
        properties={
            "min_wait": updatable(
                Kind.NUMBER, "Minimum delay in seconds.", default=0, constraints=_NOT_NEGATIVE
            ),
            "max_jitter": updatable(
                Kind.NUMBER,
                "Maximum random addition to the delay, in units of jitter_multiplier.",
                default=0,
                constraints=_NOT_NEGATIVE,
            ),
            "jitter_multiplier": updatable(
                Kind.NUMBER,
                "Unit of max_jitter, in seconds.",
                default=1.0,
                constraints=_NOT_NEGATIVE,
            ),
            "actions": updatable(
                Kind.LIST,
                "The actions to delay.",
                items=Property(Kind.STRING),
                default=["CREATE"],
                constraints=(Constraint("allowed_values", allowed=ACTIONS),),
            ),
        },
    )

    def __init__(self, randomness: random.Random) -> None:
        self._randomness = randomness

    def create(self, call: Call) -> Outcome:
        return self._wait(call, "CREATE") or Done(str(call.resource_id))

    def update(self, call: Call) -> Outcome:
        return Done(call.physical_id)

    def delete(self, call: Call) -> Outcome:
        return self._wait(call, "DELETE") or Done(None)

    def suspend(self, call: Call) -> Outcome:
        return self._wait(call, "SUSPEND") or Done(call.physical_id)

    def resume(self, call: Call) -> Outcome:
        return self._wait(call, "RESUME") or Done(call.physical_id)

    def max_duration(self, properties: Mapping[str, Json]) -> float:
        min_seconds, jitter = _bounds(properties)
        return min_seconds + jitter

    def _wait(self, call: Call, action: str) -> Outcome | None:
        """None when the delay is over or does not apply to the action."""
        if action not in (call.properties.get("actions") or ()):
            return None
        min_seconds, jitter = _bounds(call.properties)
        until = (call.progress or {}).get("until")
        if until is None:
            seconds = min_seconds + jitter * self._randomness.random()
            end = call.now + timedelta(seconds=min(seconds, MAX_SECONDS))
        else:
            end = datetime.fromisoformat(until)
        if call.now >= end:
            return None
        if call.superseded:
            reason = "the change ended before the delay was over"
            return Failed(reason, public_reason=reason)
        return Wait(end, {"until": end.isoformat()})


def _bounds(properties: Mapping[str, Json]) -> tuple[float, float]:
    """(minimum seconds, maximum random seconds in addition). Defaults may not be filled in."""
    values = {
        name: float(default if properties.get(name) is None else properties[name])
        for name, default in (("min_wait", 0), ("max_jitter", 0), ("jitter_multiplier", 1))
    }
    return values["min_wait"], values["max_jitter"] * values["jitter_multiplier"]
