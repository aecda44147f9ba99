"""What all groups have in common, whatever their members are."""

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
        """What is read of it, once its members are as they should be."""

    def done(self, call: Call, child: Child) -> Done:
        return Done(str(child.id), self.attributes(call, child), call.data)

    def delete(self, call: Call) -> Outcome:
        return (
            Done(None) if call.child is None else run_nested(call, "delete", DeleteNested(), _gone)
        )

    def check(self, call: Call) -> Outcome:
        return self._visit(call, Operation.CHECK)

    def suspend(self, call: Call) -> Outcome:
        return self._visit(call, Operation.SUSPEND)

    def resume(self, call: Call) -> Outcome:
        return self._visit(call, Operation.RESUME)

    def _visit(self, call: Call, operation: Operation) -> Outcome:
        return run_nested(
            call, operation, ActOnNested(operation), lambda child: self.done(call, child)
        )


def _gone(child: Child) -> Done:
    return Done(None)


def sound(child: Child) -> list[Member]:
    """Members that did not fail, the oldest first."""
    there = [one for one in child.members if one.status != FAILED]
    return sorted(there, key=lambda one: (one.created_at, one.name))


def read_inside(
    members: Sequence[Member], ways: Mapping[str, Aggregation], *, of_each: bool = False,
    by_place: bool = False,
) -> dict[str, Json]:  # fmt: skip
    known = ((one.name, one.reference, one.attributes) for one in members)
    secret = {one.name: one.secret for one in members}
    return members_entry(known, ways, of_each=of_each, by_index=by_place, secret=secret)


def whole_number(value: Json) -> int | None:
    """What is written as one; None where that is not known yet."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def of_batches(name: str, *, in_service: bool = True) -> dict[str, Property]:
    """What a policy about batches may say. name: what is done in them."""
    fields = {
        "max_batch_size": Property(
            Kind.INTEGER,
            f"Members to {name} at once.",
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
            "Members that stay in service meanwhile.",
            default=0,
            constraints=(Constraint("range", min=0),),
            update_allowed=True,
        )
    return fields


def policy_of(said: Mapping[str, Json] | None) -> Policy | None:
    """None: nothing is said of batches."""
    if said is None:
        return None
    return Policy(
        said.get("max_batch_size") or 1,
        said.get("min_in_service") or 0,
        said.get("pause_time") or 0,
    )
