"""The base class of groups whose size scaling policies adjust."""

from abc import abstractmethod
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from engine.types.contract import Call, Child, Done, Outcome
from engine.types.groups.batches import Policy
from engine.types.groups.group import Group
from engine.types.groups.group_steps import run_steps
from engine.types.groups.member_changes import fresh_names
from engine.types.groups.member_placement import with_placement
from engine.types.groups.member_template import Body, CurrentMembers, current_members
from engine.types.groups.step_plans import AgedPlan
from engine.words import Json

#: In a group's data: the end of the cooldown, and the cause of the current size.
COOLDOWN_END: Final = "cooldown_end"
SIZED_BY: Final = "sized_by"
#: Seconds: a hundred years.
LONGEST_COOLDOWN: Final = 3_155_760_000


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
        body = self.body(call)
        plan = AgedPlan(
            lambda there: self._size(call, there),
            with_placement(lambda name: body, current_members(call.child)),
            lambda number, there: fresh_names(call.operation_key, number, there.bodies),
            call.has_secrets,
            self.policy(call),
        )
        return run_steps(call, plan, lambda child: self._sized(call, child), self.placer)

    def update(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self.create(call)

    def _size(self, call: Call, there: CurrentMembers) -> int:
        """The size from the scaling policy, else from the template, else the current size."""
        least, most = self.bounds(call.properties)
        asked = (call.adjusted or {}).get("size")
        wanted = self.wanted_size(call.properties) if asked is None else asked
        if wanted is None:
            wanted = len(there.sound) if call.child is not None else least
        return max(least, min(most, wanted))

    def _sized(self, call: Call, child: Child) -> Done:
        asked = call.adjusted or {}
        seconds = asked.get("cooldown")
        seconds = self.cooldown(call.properties) if seconds is None else seconds
        span = timedelta(seconds=min(max(seconds, 0), LONGEST_COOLDOWN))
        end = max(call.now + span, cooldown_end(call.data) or call.now)
        done = self.done(call, child)
        by = asked.get("by") or f"exact_capacity: {len(child.members)}"
        return replace(done, data={**call.data, COOLDOWN_END: end.isoformat(), SIZED_BY: by})


def cooldown_end(data: Mapping[str, Json]) -> datetime | None:
    end = data.get(COOLDOWN_END)
    return datetime.fromisoformat(end) if end else None
