"""What planning works with: rows that exist, nodes and rows to be, and the draft between them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.hooks.rule import Rule
from engine.hot.definition import DefinedResource
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
    """The row that an operation under way may put in another's place. requires: by name."""

    id: ResourceId
    type: str
    requires: frozenset[str]


@dataclass(frozen=True, slots=True)
class Existing:
    """A resource's row as planning sees it.

    replaced_by: another row stands for its name now. requires: rows it used when last changed.
    running: (traversal, node) of an older traversal that still acts on it; using: names of what
    that uses; suspending: it is a suspend; replacement: what it may put in this row's place.
    physical_id of a row in INIT: it is to be adopted, not created.
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
        """Whether there may be a real thing that we are to look after."""
        deleted = self.action is ResourceAction.DELETE and self.status is Status.COMPLETE
        return self.action is not ResourceAction.INIT and not self.adoptable and not deleted

    @property
    def adoptable(self) -> bool:
        """Whether what exists was named, and not taken over yet."""
        if self.action is ResourceAction.INIT:
            return self.physical_id is not None
        return self.action is ResourceAction.ADOPT and self.status is not Status.COMPLETE

    @property
    def suspended(self) -> bool:
        half_awake = self.action is ResourceAction.RESUME and self.status is not Status.COMPLETE
        return self.suspending or self.action is ResourceAction.SUSPEND or half_awake


@dataclass(slots=True)
class PlannedNode:
    """One node. after: the nodes it waits for, as indices of the plan.

    retained: the row goes, the real thing stays.
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
    """A resource that comes into being with this plan, INIT_COMPLETE. adopted: what exists."""

    id: ResourceId
    name: str
    type: str
    requires: tuple[ResourceId, ...]
    rules: tuple[Rule, ...]
    adopted: "Adopted | None" = None


@dataclass(frozen=True, slots=True)
class Adopted:
    """A real thing that a resource is to take over. data: the type's own, as exported."""

    physical_id: str
    data: Mapping[str, Json] = field(default_factory=dict)
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a plan may not be carried out."""

    place: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Plan:
    """nodes: each after those it waits for is not promised; `after` tells. digest: of all of it.

    stale: names of resources that this plan leaves other than they should be.
    """

    nodes: tuple[PlannedNode, ...]
    rows: tuple[NewRow, ...]
    digest: str
    stale: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """How a plan differs from the usual one.

    chosen: which resources may change, by name; None: all (a partial update chooses some).
    adopted: real things by the names of the resources that take them over.
    restored: resources that go back to what a snapshot kept, even if nothing else changes.
    adjusted: groups that get another size, and how (`Call.adjusted`).
    retains: clear away without deleting anything real.
    """

    chosen: Callable[[str], bool] | None = None
    adopted: Mapping[str, Adopted] = field(default_factory=dict)
    restored: frozenset[str] = frozenset()
    adjusted: Mapping[str, Json] = field(default_factory=dict)
    retains: bool = False


@dataclass(slots=True)
class Draft:
    """What the passes work on. forward, resume, cleanup: indices of nodes; shadows: of those that
    clear away what may yet be put in a row's place, by that row.

    settled: names whose rows are as wanted and need not be in `existing`.
    """

    wanted: Mapping[str, DefinedResource]
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
        """Add a node; return its index."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def may_change(self, name: str) -> bool:
        return self.options.chosen is None or self.options.chosen(name)
