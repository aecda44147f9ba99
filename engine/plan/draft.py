"""Data of planning: current rows, planned nodes and rows, and the draft that the passes fill."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.hooks.rule import Rule
from engine.hot.definition.stack import ResourceDefinition
from engine.hot.syntax.data_names import is_data_name
from engine.words import (
    GATES,
    DeletionPolicy,
    Direction,
    Json,
    Operation,
    Phase,
    ResourceAction,
    ResourceId,
    Status,
)

#: Type of the nodes that belong to the stack instead of a resource.
STACK_TYPE = "Headgate::Stack"


@dataclass(frozen=True, slots=True)
class Replacement:
    """The row that a running operation may create in place of another. requires: resource names.
    label: of the operation."""

    id: ResourceId
    type: str
    requires: frozenset[str]
    label: str | None = None


@dataclass(frozen=True, slots=True)
class ExistingResource:
    """A resource's row as planning reads it.

    replaced_by: the row that has its name now. requires: rows that it used when last changed.
    running: (traversal, node) of an earlier traversal whose operation is still running; using:
    resource names that this operation reads; suspending: it is a suspend; replacement: the row that
    it may create instead of this one. physical_id of a row in INIT: the physical resource to adopt.
    prevented: the template that was applied last has `prevent_destroy`. label: of its last
    operation (engine/plan/labels.py).
    """

    id: ResourceId
    name: str
    type: str
    action: ResourceAction
    status: Status
    digest: str
    requires: tuple[ResourceId, ...] = ()
    rules: tuple[Rule, ...] = ()
    replaced_by: ResourceId | None = None
    running: tuple[int, int] | None = None
    using: frozenset[str] = frozenset()
    suspending: bool = False
    replacement: Replacement | None = None
    physical_id: str | None = None
    deletion_policy: DeletionPolicy = DeletionPolicy.DELETE
    protected: bool = False
    prevented: bool = False
    label: str | None = None

    @property
    def is_managed(self) -> bool:
        """Return whether a physical resource may exist that the stack manages."""
        return not (self.action is ResourceAction.INIT or self.adoptable or self.is_deleted)

    @property
    def is_data(self) -> bool:
        """Return whether the physical resource is read only (the section `data`)."""
        return is_data_name(self.name) and self.deletion_policy is DeletionPolicy.RETAIN

    @property
    def is_deleted(self) -> bool:
        return self.action is ResourceAction.DELETE and self.status is Status.COMPLETE

    @property
    def adoptable(self) -> bool:
        """Return whether a physical resource is to be adopted and has not been yet."""
        if self.action is ResourceAction.INIT:
            return self.physical_id is not None
        return self.action is ResourceAction.ADOPT and self.status is not Status.COMPLETE

    @property
    def suspended(self) -> bool:
        """Return whether the resource is suspended, is being suspended, or its resume failed."""
        return self.suspending or may_be_suspended(self.action, self.status)


#: Actions after whose failure a resource is incomplete.
_CHANGES = frozenset({
    ResourceAction.ADOPT,
    ResourceAction.CREATE,
    ResourceAction.DELETE,
    ResourceAction.UPDATE,
})  # fmt: skip


def is_checkable(action: ResourceAction, status: Status) -> bool:
    """Return whether a check can compare a resource in this state. Otherwise, the check fails
    without an operation: the resource does not exist, or its last change failed.
    """
    if action is ResourceAction.INIT:
        return False
    return status is not Status.FAILED or action not in _CHANGES


def may_be_suspended(action: ResourceAction, status: Status) -> bool:
    """Return whether a resource of this status may be suspended."""
    partly_resumed = action is ResourceAction.RESUME and status is not Status.COMPLETE
    return action is ResourceAction.SUSPEND or partly_resumed


@dataclass(slots=True)
class PlannedNode:
    """One node. after: indices of the nodes it waits for. retained: delete the row and keep the
    physical resource. added_by: index of the node that adds it to the graph when it has replaced
    the resource; None: it is in the graph from the start. label: of the workers that execute it;
    None: those without a label.
    """

    resource_id: ResourceId
    name: str
    type: str
    operation: Operation
    direction: Direction
    phase: Phase = Phase.PRE
    rules: tuple[Rule, ...] = ()
    replacement_id: ResourceId | None = None
    only_if_replaced: bool = False
    retained: bool = False
    after: set[int] = field(default_factory=set)
    waits_for_running: tuple[int, int] | None = None
    added_by: int | None = None
    label: str | None = None

    @property
    def is_gate(self) -> bool:
        """Return whether it is a gate of the stack, at which hooks can open; a barrier in front of
        deletes is none."""
        return self.operation in GATES and self.direction is Direction.FORWARD


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row that this plan creates in INIT_COMPLETE. adopted: the physical resource to adopt."""

    id: ResourceId
    name: str
    type: str
    requires: tuple[ResourceId, ...]
    rules: tuple[Rule, ...]
    adopted: "AdoptedResource | None" = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class AdoptedResource:
    """A physical resource to adopt. data: the type's own data, as exported."""

    physical_id: str
    data: Mapping[str, Json] = field(default_factory=dict)
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason why a plan cannot be executed."""

    place: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Plan:
    """nodes: in no particular order; `after` defines it. digest: of the whole plan. out_of_date:
    names of resources that a partial update leaves out of date.
    """

    nodes: tuple[PlannedNode, ...]
    rows: tuple[NewRow, ...]
    digest: str
    out_of_date: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """Differences from an ordinary update.

    chosen: whether a resource may change, by name; None: all (a partial update chooses some).
    adopted: physical resources by resource name. restored: resources that return to a snapshot,
    even if nothing else changes. adjusted: size changes of groups (`Call.adjusted`). retains:
    delete no physical resource. retained: names of resources whose physical resource is not
    deleted.
    """

    chosen: Callable[[str], bool] | None = None
    adopted: Mapping[str, AdoptedResource] = field(default_factory=dict)
    restored: frozenset[str] = frozenset()
    adjusted: Mapping[str, Json] = field(default_factory=dict)
    retains: bool = False
    retained: frozenset[str] = frozenset()

    def retains_physical(self, name: str) -> bool:
        """Return whether the physical resource of a resource that is removed stays."""
        return self.retains or name in self.retained


@dataclass(slots=True)
class Draft:
    """What the passes fill in. forward, resume, cleanup: indices of nodes. shadows: indices of the
    nodes that delete possible replacements, by the original row.

    settled: names whose rows are up to date and need not be in `existing`.
    """

    desired: Mapping[str, ResourceDefinition]
    existing: Sequence[ExistingResource]
    rules_of: Callable[[str, Sequence[Rule]], tuple[Rule, ...]]
    new_id: Callable[[], ResourceId]
    options: Options = field(default_factory=Options)
    settled: frozenset[str] = frozenset()
    current: dict[str, ExistingResource] = field(default_factory=dict)
    rules: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    forward: dict[str, int] = field(default_factory=dict)
    resume: dict[str, int] = field(default_factory=dict)
    cleanup: dict[ResourceId, int] = field(default_factory=dict)
    shadows: dict[ResourceId, int] = field(default_factory=dict)
    nodes: list[PlannedNode] = field(default_factory=list)
    rows: list[NewRow] = field(default_factory=list)
    out_of_date: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def add(self, node: PlannedNode) -> int:
        """Add a node and return its index."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def used_by(self, row: ExistingResource) -> set[ResourceId]:
        """Return what the row used when it was last changed, and what a running operation makes it
        use.
        """
        current = (self.current.get(name) for name in row.using)
        return {*row.requires, *(used.id for used in current if used is not None)}

    def may_change(self, name: str) -> bool:
        return self.options.chosen is None or self.options.chosen(name)
