"""OS::Heat::TestResource: stores a value; fails, waits and is replaced on request."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType, Wait
from engine.types.operation_outcomes import CANCELLED
from engine.words import Json

#: The interval of the calls of an operation that waits forever.
STEP = timedelta(hours=1)
#: The longest wait in seconds: a hundred years.
MAX_SECONDS = 3_155_760_000
_FAILED = "Test Resource failed"


class TestResource(ResourceType):
    uses_credential = False
    cancellable = True
    __test__ = False  # pytest: this is not a test class
    schema = TypeSchema(
        "OS::Heat::TestResource",
        description="Stores a value and returns it; for tests.",
        properties={
            "value": updatable(Kind.STRING, "What to store.", default="test_string"),
            "fail": updatable(
                Kind.BOOLEAN, "Whether create and update fail, after the wait.", default=False
            ),
            "wait_secs": updatable(
                Kind.NUMBER, "Seconds that each operation takes; -1: forever.", default=0
            ),
            "action_wait_secs": updatable(
                Kind.MAP,
                "Seconds by operation; overrides wait_secs.",
                fields={name: updatable(Kind.NUMBER) for name in ("create", "update", "delete")},
            ),
            "update_replace": updatable(
                Kind.BOOLEAN, "Whether a change of value replaces the resource.", default=False
            ),
            "update_replace_value": Property(Kind.STRING, "A change replaces the resource."),
            "constraint_prop_secs": updatable(
                Kind.NUMBER,
                "Accepted for compatibility with Heat; no effect.",
                default=0,
                constraints=(Constraint("custom_constraint", name="test_constr"),),
            ),
            "attr_wait_secs": updatable(
                Kind.NUMBER, "Accepted for compatibility with Heat; no effect.", default=0
            ),
            "client_name": updatable(
                Kind.STRING, "Accepted for compatibility with Heat; no effect.", default=""
            ),
            "entity_name": updatable(
                Kind.STRING, "Accepted for compatibility with Heat; no effect.", default=""
            ),
        },
        attributes={"output": Attribute(Kind.ANY, "The value.")},
        snapshots=True,
    )

    def create(self, call: Call) -> Outcome:
        waiting = _wait(call, "create")
        if waiting is not None:
            return waiting
        if call.properties.get("fail"):
            return Failed(_FAILED, public_reason=_FAILED)
        return Done(call.own_name, _attributes(call.properties))

    def update(self, call: Call) -> Outcome:
        waiting = _wait(call, "update")
        if waiting is not None:
            return waiting
        if call.properties.get("fail"):
            return Failed(_FAILED, public_reason=_FAILED)
        return Done(call.physical_id, _attributes(call.properties))

    def delete(self, call: Call) -> Outcome:
        return _wait(call, "delete") or Done(None)

    def check(self, call: Call) -> Outcome:
        return Done(call.physical_id, _attributes(call.properties), call.data)

    def snapshot(self, call: Call) -> Outcome:
        return Done(call.physical_id, call.attributes, {"value": call.properties.get("value")})

    def needs_replace(self, call: Call) -> bool:
        return bool(call.properties.get("update_replace")) and "value" in call.changed


def _attributes(properties: Mapping[str, Json]) -> Mapping[str, Json]:
    return {"output": properties.get("value")}


def _wait(call: Call, operation: str) -> Wait | Failed | None:
    """None when the wait is over; Failed if the operation is cancelled before."""
    by_operation = call.properties.get("action_wait_secs") or {}
    seconds = by_operation.get(operation)
    seconds = call.properties.get("wait_secs") if seconds is None else seconds
    if not seconds:
        return None
    if call.cancelled:
        return Failed(CANCELLED, public_reason=CANCELLED)
    if seconds < 0:
        return Wait(call.now + STEP, {})
    progress = call.progress or {}
    until = progress.get("until")
    end = (
        datetime.fromisoformat(until)
        if until
        else call.now + timedelta(seconds=min(seconds, MAX_SECONDS))
    )
    return None if call.now >= end else Wait(end, {"until": end.isoformat()})
