"""The base class of groups whose size scaling policies adjust."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from engine.plan.expected_changes import contains_unknown, known_or_before
from engine.types.contract import Call, Child, Done, Outcome, ReconcileNested
from engine.types.groups.group import Group, Policy
from engine.types.groups.group_steps import preview_members, run_steps, with_placement
from engine.types.groups.member_changes import BodyOf, fresh_names, placeholder_names
from engine.types.groups.member_template import Body, CurrentMembers, current_members
from engine.types.groups.step_plans import AgedPlan
from engine.types.nested_observation import AllowedSize
from engine.words import Json

#: In a group's data: the end of the cooldown, and the cause of the current size.
COOLDOWN_END: Final = "cooldown_end"
SIZED_BY: Final = "sized_by"
#: Seconds: a hundred years.
MAX_COOLDOWN: Final = 3_155_760_000


class ScalingGroup(Group):
    @abstractmethod
    def body(self, call: Call) -> Body:
        """The definition of every member."""

    @abstractmethod
    def wanted_size(self, properties: Mapping[str, Json]) -> int | None:
        """The size in the template; None if it has none."""

    @abstractmethod
    def bounds(self, properties: Mapping[str, Json]) -> tuple[int, int]:
        """The minimum and maximum number of members."""

    def policy(self, call: Call) -> Policy | None:
        """The batch policy; None: all members change at once."""
        return None

    def cooldown(self, properties: Mapping[str, Json]) -> float:
        """The cooldown in seconds."""
        return 0

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        plan = self._plan(
            call, lambda number, current: fresh_names(call.operation_key, number, current.bodies)
        )
        return run_steps(call, plan, lambda child: self._record_size(call, child), self.placer)

    def _plan(
        self, call: Call, new_names: Callable[[int, CurrentMembers], Iterator[str]]
    ) -> AgedPlan:
        body = self.body(call)
        return AgedPlan(
            lambda current: self._size(call, current),
            with_placement(lambda name: body, current_members(call.child)),
            new_names,
            call.has_secrets,
            self.policy(call),
        )

    def preview_members(self, call: Call) -> ReconcileNested | None:
        before = current_members(call.child)
        used, body = set(before.bodies), self.body(call)
        if not isinstance(body, dict):
            return None
        plan = self._plan(call, lambda number, current: placeholder_names({*used, *current.bodies}))
        size = self._size(call, before)
        found = preview_members(call, plan, size, replace(plan, policy=None))
        if found is None or not contains_unknown(body):
            return found
        # If no unknown value differs, fewer batches may change the group, in which other members
        # take the place of some.
        plan = replace(plan, body_of=_with_values_of(plan.body_of, before))
        kept = preview_members(call, plan, size, replace(plan, policy=None))
        same = kept is not None and {*(kept.template or {})["resources"]} == {
            *(found.template or {})["resources"]
        }
        return replace(found, certain=found.certain and same)

    def update(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self.create(call)

    def _size(self, call: Call, current: CurrentMembers) -> int:
        """The size from the scaling policy, else from the template, else the current size."""
        min_size, max_size = self.bounds(call.properties)
        adjusted = (call.adjusted or {}).get("size")
        wanted = self.wanted_size(call.properties) if adjusted is None else adjusted
        if wanted is None:
            wanted = current.size if call.child is not None else min_size
        return max(min_size, min(max_size, wanted))

    def allowed_size(self, properties: Mapping[str, Json]) -> AllowedSize | None:
        """Scaling policies change the size within these bounds."""
        return AllowedSize(*self.bounds(properties)) if properties else None

    def _record_size(self, call: Call, child: Child) -> Done:
        adjusted = call.adjusted or {}
        seconds = adjusted.get("cooldown")
        seconds = self.cooldown(call.properties) if seconds is None else seconds
        span = timedelta(seconds=min(max(seconds, 0), MAX_COOLDOWN))
        end = max(call.now + span, cooldown_end(call.data) or call.now)
        done = self.done(call, child)
        by = adjusted.get("by") or f"exact_capacity: {len(child.members)}"
        return replace(done, data={**call.data, COOLDOWN_END: end.isoformat(), SIZED_BY: by})


def _with_values_of(body_of: BodyOf, before: CurrentMembers) -> BodyOf:
    """Definitions in which unknown values are those of the member before."""
    return lambda name: known_or_before(body_of(name), before.bodies.get(name))


def cooldown_end(data: Mapping[str, Json]) -> datetime | None:
    end = data.get(COOLDOWN_END)
    return datetime.fromisoformat(end) if end else None
