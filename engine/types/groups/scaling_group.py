"""What groups have in common whose members have an age, and whose size policies adjust."""

from abc import abstractmethod
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from engine.types.contract import Call, Child, Done, Outcome
from engine.types.groups.batches import Policy
from engine.types.groups.group import Group
from engine.types.groups.group_steps import go
from engine.types.groups.member_changes import fresh_names
from engine.types.groups.member_placement import in_place
from engine.types.groups.member_template import Body, CurrentMembers, present
from engine.types.groups.step_plans import AgedPlan
from engine.words import Json

#: Of a group's data: until when no policy adjusts it, and what its size came from.
COOLDOWN_END: Final = "cooldown_end"
SIZED_BY: Final = "sized_by"
#: Seconds: a hundred years.
LONGEST_COOLDOWN: Final = 3_155_760_000


class ScalingGroup(Group):
    @abstractmethod
    def body(self, call: Call) -> Body:
        """Of every member."""

    @abstractmethod
    def wanted_size(self, properties: Mapping[str, Json]) -> int | None:
        """What the template says of the size; None: nothing."""

    @abstractmethod
    def bounds(self, properties: Mapping[str, Json]) -> tuple[int, int]:
        """The least and the most members."""

    def policy(self, call: Call) -> Policy | None:
        """How members change in batches; None: all at once."""
        return None

    def cooldown(self, properties: Mapping[str, Json]) -> float:
        """Seconds for which no policy adjusts it after its size was decided."""
        return 0

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        body = self.body(call)
        plan = AgedPlan(
            lambda there: self._size(call, there),
            in_place(lambda name: body, present(call.child)),
            lambda number, there: fresh_names(call.operation_key, number, there.bodies),
            call.has_secrets,
            self.policy(call),
        )
        return go(call, plan, lambda child: self._sized(call, child), self.placer)

    def update(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self.create(call)

    def _size(self, call: Call, there: CurrentMembers) -> int:
        """What a policy asks for, else what the template does; else it stays."""
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
    said = data.get(COOLDOWN_END)
    return datetime.fromisoformat(said) if said else None
