"""The base class of all groups, with their batches, attributes and batch properties."""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from engine.hot.expressions.member_attributes import Aggregation, members_entry
from engine.hot.schema.type_schema import Constraint, Kind, Property, updatable
from engine.plan.expected_changes import contains_unknown
from engine.types.contract import (
    ActOnNested,
    Call,
    Child,
    DeleteNested,
    Done,
    Member,
    Outcome,
    ReconcileNested,
    ResourceType,
    run_nested,
)
from engine.types.groups.member_template import FAILED
from engine.types.nested_observation import AllowedSize, NestedStackState, observe_nested_stack
from engine.types.nested_state import adopt_nested, snapshot_nested
from engine.types.observation import Observation
from engine.types.placement import Placer
from engine.words import Json, Operation


@dataclass(frozen=True, slots=True)
class Policy:
    """most: members that change in one batch. in_service: the minimum number of members that do not
    change meanwhile, if there are that many. pause: seconds between two batches."""

    max_changes: int
    in_service: int = 0
    pause: float = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """size: of the group after the batch. changes: members that it creates or changes."""

    size: int
    changes: int


def next_batch(target: int, current: int, up_to_date: int, policy: Policy) -> Batch | None:
    """Return the next batch toward a size and a definition; None if the group has both.

    current: the number of members. up_to_date: those that already have the new definition.

    If a batch would leave too few members in service, the group grows temporarily: the new members
    are up to date, and a later batch removes the surplus.
    """
    if up_to_date >= current == target:
        return None
    changes = min(policy.max_changes, max(target - up_to_date, 0))
    untouched = max(min(current, target - changes), min(policy.in_service, target, current))
    return Batch(untouched + changes, changes)


class Group(ResourceType):
    """body_properties: the properties of which only the members use the values; a preview lists the
    members although parts of these are unknown."""

    has_nested_stack = True
    uses_credential = False
    body_properties: Collection[str] = ()

    def __init__(self, placer: Placer | None = None) -> None:
        self.placer = placer

    @abstractmethod
    def attributes(self, call: Call, child: Child) -> Mapping[str, Json]:
        """The attributes of the group after a successful operation."""

    @abstractmethod
    def preview_members(self, call: Call) -> ReconcileNested | None:
        """As `preview_nested`, if only parts of `body_properties` are unknown."""

    @abstractmethod
    def allowed_size(self, properties: Mapping[str, Json]) -> AllowedSize | None:
        """How many members a group with these recorded properties may have; None: any number."""

    def observe_nested(
        self, properties: Mapping[str, Json], found: NestedStackState | None
    ) -> Observation:
        return observe_nested_stack(found, self.allowed_size(properties))

    def preview_nested(self, call: Call) -> ReconcileNested | None:
        others = [one for name, one in call.properties.items() if name not in self.body_properties]
        return None if contains_unknown(others) else self.preview_members(call)

    def done(self, call: Call, child: Child) -> Done:
        return Done(str(child.id), self.attributes(call, child), call.data)

    def delete(self, call: Call) -> Outcome:
        return (
            Done(None)
            if call.child is None
            else run_nested(call, "delete", DeleteNested(), _end_delete)
        )

    def adopt(self, call: Call) -> Outcome:
        """Adopt the members of an exported group, with their names."""
        return adopt_nested(
            call,
            lambda exported: ReconcileNested(exported.template, exported.parameters),
            lambda own: lambda child: self.done(own, child),
        )

    def snapshot(self, call: Call) -> Outcome:
        return snapshot_nested(call)

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


def _end_delete(child: Child) -> Done:
    return Done(None)


def healthy_members(child: Child) -> list[Member]:
    """The members that have not failed, oldest first."""
    healthy = [one for one in child.members if one.status != FAILED]
    return sorted(healthy, key=lambda one: (one.created_at, one.name))


def member_attributes(
    members: Sequence[Member], aggregations: Mapping[str, Aggregation], *, of_each: bool = False,
    by_index: bool = False,
) -> dict[str, Json]:  # fmt: skip
    known = ((one.name, one.reference, one.attributes) for one in members)
    secret = {one.name: one.secret_attributes for one in members}
    return members_entry(known, aggregations, of_each=of_each, by_index=by_index, secret=secret)


def exact_size(size: int | None) -> AllowedSize | None:
    """size: None: not known."""
    return None if size is None else AllowedSize(size, size)


def whole_number(value: Json) -> int | None:
    """A value as an integer; None if it is not known yet."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def batch_properties(name: str, *, in_service: bool = True) -> dict[str, Property]:
    """The properties of a batch policy. name: the verb for their descriptions."""
    fields = {
        "max_batch_size": updatable(
            Kind.INTEGER,
            f"Maximum number of members to {name} at once.",
            default=1,
            constraints=(Constraint("range", min=1),),
        ),
        "pause_time": updatable(
            Kind.NUMBER,
            "Seconds between two batches.",
            default=0,
            constraints=(Constraint("range", min=0),),
        ),
    }
    if in_service:
        fields["min_in_service"] = updatable(
            Kind.INTEGER,
            "Minimum number of members in service meanwhile.",
            default=0,
            constraints=(Constraint("range", min=0),),
        )
    return fields


def policy_of(values: Mapping[str, Json] | None) -> Policy | None:
    """The policy from its properties; None without a policy."""
    if values is None:
        return None
    return Policy(
        values.get("max_batch_size") or 1,
        values.get("min_in_service") or 0,
        values.get("pause_time") or 0,
    )
