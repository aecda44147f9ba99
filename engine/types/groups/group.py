"""The base class and shared functions of all groups."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from engine.hot.expressions.member_attributes import Aggregation, members_entry
from engine.hot.schema.type_schema import Constraint, Kind, Property
from engine.types.contract import (
    ActOnNested,
    Call,
    Child,
    DeleteNested,
    Done,
    Member,
    Outcome,
    ResourceType,
)
from engine.types.groups.batches import Policy
from engine.types.groups.member_template import FAILED
from engine.types.nested_commands import run_nested
from engine.types.placement import Placer
from engine.words import Json, Operation


class Group(ResourceType):
    has_nested_stack = True
    uses_credential = False

    def __init__(self, placer: Placer | None = None) -> None:
        self.placer = placer

    @abstractmethod
    def attributes(self, call: Call, child: Child) -> Mapping[str, Json]:
        """The attributes of the group after a successful operation."""

    def done(self, call: Call, child: Child) -> Done:
        return Done(str(child.id), self.attributes(call, child), call.data)

    def delete(self, call: Call) -> Outcome:
        return (
            Done(None) if call.child is None else run_nested(call, "delete", DeleteNested(), _gone)
        )

    def check(self, call: Call) -> Outcome:
        return self._act(call, Operation.CHECK)

    def suspend(self, call: Call) -> Outcome:
        return self._act(call, Operation.SUSPEND)

    def resume(self, call: Call) -> Outcome:
        return self._act(call, Operation.RESUME)

    def _act(self, call: Call, operation: Operation) -> Outcome:
        return run_nested(
            call, operation, ActOnNested(operation), lambda child: self.done(call, child)
        )


def _gone(child: Child) -> Done:
    return Done(None)


def sound_members(child: Child) -> list[Member]:
    """The members that have not failed, oldest first."""
    there = [one for one in child.members if one.status != FAILED]
    return sorted(there, key=lambda one: (one.created_at, one.name))


def member_attributes(
    members: Sequence[Member], aggregations: Mapping[str, Aggregation], *, of_each: bool = False,
    by_index: bool = False,
) -> dict[str, Json]:  # fmt: skip
    known = ((one.name, one.reference, one.attributes) for one in members)
    secret = {one.name: one.secret for one in members}
    return members_entry(known, aggregations, of_each=of_each, by_index=by_index, secret=secret)


def whole_number(value: Json) -> int | None:
    """A value as an integer; None if it is not known yet."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def batch_properties(name: str, *, in_service: bool = True) -> dict[str, Property]:
    """The properties of a batch policy. name: the verb for their descriptions."""
    fields = {
        "max_batch_size": Property(
            Kind.INTEGER,
            f"Maximum number of members to {name} at once.",
            default=1,
            constraints=(Constraint("range", min=1),),
            update_allowed=True,
        ),
        "pause_time": Property(
            Kind.NUMBER,
            "Seconds between two batches.",
            default=0,
            constraints=(Constraint("range", min=0),),
            update_allowed=True,
        ),
    }
    if in_service:
        fields["min_in_service"] = Property(
            Kind.INTEGER,
            "Minimum number of members in service meanwhile.",
            default=0,
            constraints=(Constraint("range", min=0),),
            update_allowed=True,
        )
    return fields


def policy_of(given: Mapping[str, Json] | None) -> Policy | None:
    """The policy from its properties; None without a policy."""
    if given is None:
        return None
    return Policy(
        given.get("max_batch_size") or 1,
        given.get("min_in_service") or 0,
        given.get("pause_time") or 0,
    )
