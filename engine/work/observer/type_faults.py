"""What the observer makes of errors of resource types: their resources are unknown."""

import orjson

from engine.loop_guard import Guard
from engine.types.contract import ResourceType
from engine.types.failure_scope import FailureScope
from engine.types.observation import Observation
from engine.work.observer.provider_endpoints import MAX_REASON


def unknown_because(reason: str, scope: FailureScope = FailureScope.REQUEST) -> Observation:
    """reason: without values of a resource."""
    return Observation.unknown(reason, reason, scope=scope)


NO_ANSWER = unknown_because("the type did not report a state of the resource")


def no_answer_within(seconds: float) -> Observation:
    reason = f"there was no answer within {seconds:g} s"
    return unknown_because(reason, FailureScope.ENDPOINT)


def not_sent_within(seconds: float) -> Observation:
    reason = f"other requests took all of the {seconds:g} s, so that this one was not sent"
    return unknown_because(reason, FailureScope.OBJECT)


class TypeFaults:
    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def report(self, type_: ResourceType, error: Exception) -> Observation:
        """Report an error of a type; return the observation of the resources concerned."""
        return unknown_because(str(self._guard.report(error, resource_type=type_.schema.name)))

    def check(self, type_: ResourceType, observation: Observation) -> Observation:
        """The observation of a type, or an unknown state if it cannot be stored."""
        try:
            values = [[one.path, one.desired, one.observed] for one in observation.differences]
            orjson.dumps([observation.state, values, observation.reason[:MAX_REASON],
                          observation.public_reason[:MAX_REASON]])  # fmt: skip
        except Exception as error:
            return self.report(type_, error)
        return observation
