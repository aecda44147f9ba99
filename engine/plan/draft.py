"""Data of planning: current rows, planned nodes and rows, and the draft that the passes fill."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.hooks.rule import Rule
from engine.hot.definition.stack import ResourceDefinition
from engine.words import (
    DeletionPolicy,
    Direction,
    Json,
    Operation,
    Phase,
    ResourceAction,
    ResourceId,
    Status,
)


@dataclass(frozen=True, slots=True)
class Replacement:
    """The row that a running operation may create in place of another. requires: resource names."""

    id: ResourceId
    type: str
    requires: frozenset[str]


@dataclass(frozen=True, slots=True)
class Existing:
    """A resource's row as planning reads it.

    replaced_by: the row that has its name now. requires: rows that it used when last changed.
    running: (traversal, node) of an earlier traversal whose operation is still running; using:
    resource names that this operation reads; suspending: it is a suspend; replacement: the row that
    it may create instead of this one. physical_id of a row in INIT: the physical resource to adopt.
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

    @property
    def made(self) -> bool:
        """Return whether a physical resource may exist that the stack manages."""
        deleted = self.action is ResourceAction.DELETE and self.status is Status.COMPLETE
        return self.action is not ResourceAction.INIT and not self.adoptable and not deleted

    @property
    def adoptable(self) -> bool:
        """Return whether a physical resource was given and not adopted yet."""
        if self.action is ResourceAction.INIT:
            return self.physical_id is not None
        return self.action is ResourceAction.ADOPT and self.status is not Status.COMPLETE

    @property
    def suspended(self) -> bool:
        """Return whether the resource is suspended, is being suspended, or its resume failed."""
        half_awake = self.action is ResourceAction.RESUME and self.status is not Status.COMPLETE
        return self.suspending or self.action is ResourceAction.SUSPEND or half_awake


@dataclass(slots=True)
class PlannedNode:
    """One node. after: indices of the nodes it waits for. retained: delete the row and keep the
    physical resource.
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


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row that this plan creates in INIT_COMPLETE. adopted: the physical resource to adopt."""

    id: ResourceId
    name: str
    type: str
    requires: tuple[ResourceId, ...]
    rules: tuple[Rule, ...]
    adopted: "Adopted | None" = None


@dataclass(frozen=True, slots=True)
class Adopted:
    """A physical resource to adopt. data: the type's own data, as exported."""

    physical_id: str
    data: Mapping[str, Json] = field(default_factory=dict)
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason why a plan cannot be carried out."""

    place: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Plan:
    """nodes: in no particular order; `after` defines it. digest: of the whole plan. stale: names of
    resources that a partial update leaves out of date.
    """

    nodes: tuple[PlannedNode, ...]
    rows: tuple[NewRow, ...]
    digest: str
    stale: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """Differences from an ordinary update.

    chosen: whether a resource may change, by name; None: all (a partial update chooses some).
    adopted: physical resources by resource name. restored: resources that return to a snapshot,
    even if nothing else changes. adjusted: size changes of groups (`Call.adjusted`). retains:
    delete no physical resource.
    """

    chosen: Callable[[str], bool] | None = None
    adopted: Mapping[str, Adopted] = field(default_factory=dict)
    restored: frozenset[str] = frozenset()
    adjusted: Mapping[str, Json] = field(default_factory=dict)
    retains: bool = False


@dataclass(slots=True)
class Draft:
    """What the passes fill in. forward, resume, cleanup: indices of nodes. shadows: indices of the
    nodes that delete possible replacements, by the original row.

    settled: names whose rows are up to date and need not be in `existing`.
    """

    wanted: Mapping[str, ResourceDefinition]
    existing: Sequence[Existing]
    rules_of: Callable[[str, Sequence[Rule]], tuple[Rule, ...]]
    new_id: Callable[[], ResourceId]
    options: Options = field(default_factory=Options)
    settled: frozenset[str] = frozenset()
    current: dict[str, Existing] = field(default_factory=dict)
    rules: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    forward: dict[str, int] = field(default_factory=dict)
    resume: dict[str, int] = field(default_factory=dict)
    cleanup: dict[ResourceId, int] = field(default_factory=dict)
    shadows: dict[ResourceId, int] = field(default_factory=dict)
    nodes: list[PlannedNode] = field(default_factory=list)
    rows: list[NewRow] = field(default_factory=list)
    stale: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def add(self, node: PlannedNode) -> int:
        """Add a node and return its index."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def may_change(self, name: str) -> bool:
        return self.options.chosen is None or self.options.chosen(name)
