"""The observer reads the objects of different regions with different calls and budgets."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from engine.hot.schema.type_schema import TypeSchema
from engine.store.observer.observation_schedule import ClaimedStack
from engine.store.observer.observations import RecordedResource
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.types.registry import TypeRegistry
from engine.work.observer.provider_calls import ProviderCalls
from engine.work.observer.stack_observation import StackObservation

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Listed(ResourceType):
    schema = TypeSchema("Test::Listed")

    def create(self, call: Call) -> Outcome:
        return Done("x")

    def delete(self, call: Call) -> Outcome:
        return Done(None)

    def observation_key(self, call: Call) -> str | None:
        return "all"

    def observation_endpoint(self, call: Call) -> str:
        return "Nova"


def a_stack(number: int, region: str) -> StackObservation:
    stack = ClaimedStack(
        UUID(int=number), 1, NOW, "p", requested=False, reported=False, resources=None,
        deferred=False, rest=False, differs=False, observed_at=None, drifted_at=None,
        changed_at=None, name="s", path="", region=region, root_id=UUID(int=number), section=None,
    )  # fmt: skip
    return StackObservation(stack, None, 0.5)


def a_resource(number: int) -> RecordedResource:
    one = UUID(int=number)
    return RecordedResource(one, one, "a", "Test::Listed", "x", {}, {}, {}, NOW, False, NOW)


def test_one_call_reads_the_objects_of_one_region() -> None:
    unused: Any = None
    calls = ProviderCalls(
        TypeRegistry([Listed()]), unused, guard=unused, new_id=lambda: UUID(int=9),
        timeout=NOW - NOW,
    )  # fmt: skip
    regions = {1: "", 2: "RegionTwo", 3: "", 4: "RegionTwo"}
    pending = {UUID(int=number): a_stack(number, name) for number, name in regions.items()}
    groups = calls.group(pending, [a_resource(number) for number in regions], "")
    found = {one.endpoint[2]: [call.region for call in one.calls] for one in groups}
    assert found == {"Nova": ["", ""], "Nova in RegionTwo": ["RegionTwo", "RegionTwo"]}
