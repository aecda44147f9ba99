"""The state of the model: one stack as immutable, hashable values.

A `SystemState` has the database's rows of one stack, reduced to the columns on which the protocol
depends, and the workers. It has no clock: each row with a wake-up time can be claimed now, so an
expired lease and a due timer are the same move.

Workers are identical, so the state of a worker is its claim, and a crash removes it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from engine.hooks.rule import Rule
from engine.node.node import Input
from engine.words import Action, Direction, Operation, Phase, State, StepMode

INCOMPLETE = "incomplete"
#: In a write: the row keeps its digest.
KEPT = "kept"


class ResourceSpec(NamedTuple):
    """A resource of a template. A value with an exclamation mark requires a replacement.

    confirms: the steps that its create, update and replace must have confirmed, in this order.
    computes: its create only computes. nested: the template of its nested stack; its value is a
    parameter, which is to differ whenever the template does. data: an entry of the section `data`,
    whose name begins with "data.". batch: a group whose members, in `nested`, have its value; so
    many of them change at once. previous: of a member that a step changes: its value before.
    """

    name: str
    requires: tuple[str, ...] = ()
    value: str = "1"
    rules: tuple[Rule, ...] = ()
    policy: str = "Delete"
    restricted: tuple[str, ...] = ()
    confirms: tuple[str, ...] = ()
    computes: bool = False
    nested: tuple["ResourceSpec", ...] = ()
    data: bool = False
    batch: int = 0
    previous: str = ""


class Request(NamedTuple):
    """A request. action None: end the traversal under way, as in `ends`: failed, stopped or rolled
    back; or set a breakpoint before the create of the resource `breakpoint`; or run to the resource
    `run_to`, a path of two names in a stack tree."""

    action: Action | None
    template: tuple[ResourceSpec, ...] = ()
    ends: str = ""
    breakpoint: str = ""
    run_to: str = ""


class Incidents(NamedTuple):
    """How often each incident may still happen; this bounds the exploration.

    lease: leases lost, because a worker crashes or is slow. duplicate: steps committed twice.
    wait, retry, fail, leave, replace: outcomes other than success; leave: a failure that reports a
    physical resource. refusal: rejections and deadlines of hooks. timeout: reached time limits of a
    stack. step: answers that change the step mode.
    """

    lease: int = 0
    duplicate: int = 0
    wait: int = 0
    retry: int = 0
    fail: int = 0
    leave: int = 0
    replace: int = 0
    refusal: int = 0
    timeout: int = 0
    step: int = 0


class Scenario(NamedTuple):
    """requests: in this order, each at any time after the one before.

    workers: the number of concurrent workers. stack: hook rules of the whole stack. sequential: a
    request arrives only when no work is left. rolls_back: a failed change is rolled back.
    known_violations: names of invariants that the engine is known to violate here. States after a
    violation are not explored, and a known violation that does not occur fails the test.
    """

    name: str
    requests: tuple[Request, ...]
    incidents: Incidents = Incidents()
    workers: int = 2
    sequential: bool = False
    rolls_back: bool = False
    known_violations: frozenset[str] = frozenset()
    stack: tuple[Rule, ...] = ()


class NodePlan(NamedTuple):
    """The fixed part of a node. after: its predecessors, from the plan. requires: names of the rows
    to record as requirements when it ends; None: its row has them. uses: names that it reads.
    added_by: the node that adds it when it has replaced the resource; None: it is there at once."""

    name: str
    resource: int
    replacement: int | None
    direction: Direction
    only_if_replaced: bool
    rules: tuple[Rule, ...]
    after: frozenset[int]
    dependents: tuple[int, ...]
    requires: tuple[str, ...] | None
    uses: tuple[str, ...]
    value: str
    restricted: tuple[str, ...]
    policy: str
    confirms: tuple[str, ...] = ()
    computes: bool = False
    nests: bool = False
    added_by: int | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """The fixed part of a traversal, compared by identity.

    before: the last definition of each resource before it began.
    """

    nodes: tuple[NodePlan, ...]
    template: tuple[ResourceSpec, ...]
    before: tuple[ResourceSpec, ...]


class Node(NamedTuple):
    """A row of table `node`. wake: it has a wake-up time. key: of its operation. resource: its row,
    that of the plan or what an older operation has put in its place.

    effects, outcomes and steps are records of the model: (key, operation, outcome) of each effect,
    the number of outcomes written, and (key, number, step) of each performed step. begun: column
    `started_at` is set. progress: see `worker._progress`. confirmed: step, and whether accepted.
    cancelled, call_again: the columns. due: a cancelled node whose wake-up time is now.
    group_progress: the progress of a group's operation, as JSON.
    """

    state: State
    phase: Phase
    operation: Operation
    breakpoints_hit: tuple[str, ...]
    pending_dependencies: int
    claim: int
    wake: bool
    resource: int
    attempts: int = 0
    successor: int | None = None
    key: int | None = None
    effects: frozenset[tuple[int, Operation, str]] = frozenset()
    outcomes: int = 0
    begun: bool = False
    progress: int = 0
    confirmation: tuple[str, bool] | None = None
    steps: frozenset[tuple[int, int, str]] = frozenset()
    cancelled: bool = False
    call_again: bool = False
    due: bool = False
    group_progress: str = ""


class Traversal(NamedTuple):
    """A row of table `traversal`. nodes: None where the row was deleted, or was not added.
    timed_out: the time limit is reached."""

    action: Action
    state: str
    active_nodes: int
    wake: bool
    graph: Graph
    nodes: tuple[Node | None, ...]
    timed_out: bool = False
    step_mode: StepMode | None = None


class Row(NamedTuple):
    """A row of table `resource`. value: its properties."""

    id: int
    name: str
    action: str
    status: str
    digest: str
    value: str | None = None
    has_physical_id: bool = False
    tainted: bool = False
    requires: tuple[int, ...] = ()
    replaced_by: int | None = None
    rules: tuple[Rule, ...] = ()
    policy: str = "Delete"


class Hook(NamedTuple):
    """A row of table `hook`. state: waiting, continue, reject, stop or superseded.
    approved: the keys of the principals that approved it."""

    traversal: int
    node: int
    point: str
    state: str
    approved: tuple[str, ...] = ()
    stepped: bool = False


class Write(NamedTuple):
    """The change of resource rows by a step. kind: update, insert, leave or remove."""

    kind: str
    row: Row
    replaces: int | None = None
    snapshot: bool = False


class Transition(NamedTuple):
    """A step for the store, as engine/work/nodes/transition_encoder.py writes it. input: the input
    that led to it, if it can be refused."""

    state: State
    phase: Phase
    operation: Operation
    breakpoints_hit: tuple[str, ...]
    wake: bool
    write: Write | None
    hooks: tuple[tuple[str, str, bool], ...]
    outcome: bool
    attempts: int = 0
    input: Input | None = None
    progress: int = 0
    confirmation: tuple[str, bool] | None = None
    group_progress: str = ""


class NodeView(NamedTuple):
    """A claimed node as its worker reads it. uses: the rows whose values it reads. superseded: its
    traversal had ended; only of operations that run a nested stack."""

    operation: Operation
    phase: Phase
    breakpoints_hit: tuple[str, ...]
    key: int | None
    row: Row | None
    attempts: int = 0
    uses: frozenset[int] = frozenset()
    progress: int = 0
    confirmation: tuple[str, bool] | None = None
    step_mode: StepMode | None = None
    begun: bool = False
    cancelled: bool = False
    superseded: bool = False
    group_progress: str = ""


class LaterNode(NamedTuple):
    """A waiting node that a worker has read with a claim, to execute it in the same run. claim: its
    number when it was read. transition: None before it is executed."""

    node: int
    claim: int
    view: NodeView
    transition: Transition | None = None


class Worker(NamedTuple):
    """A worker and its claim. stage: call (call the operation), commit (commit a step), committed
    (not acknowledged), end (end a traversal). later: the other nodes of its run."""

    traversal: int
    node: int
    claim: int
    stage: str
    view: NodeView | None = None
    transition: Transition | None = None
    later: tuple[LaterNode, ...] = ()


class SystemState(NamedTuple):
    """accepted: the number of requests. current: number of the current traversal.

    physical_resources: row, value and the rows that they use; the value of an incomplete one is
    INCOMPLETE. retained: deleted rows whose physical resources stay. rolls_back, timed, stack:
    settings of the stack. last_complete: the graph of the last completed traversal that applied a
    template. suspended: rows whose physical resources are suspended. snapshots: (traversal, row,
    value).
    """

    accepted: int
    current: int
    deleted: bool
    traversals: tuple[Traversal, ...]
    rows: tuple[Row, ...]
    hooks: tuple[Hook, ...]
    workers: tuple[Worker, ...]
    incidents: Incidents
    physical_resources: tuple[tuple[int, str, frozenset[int]], ...] = ()
    retained: frozenset[int] = frozenset()
    rolls_back: bool = False
    timed: bool = False
    last_complete: Graph | None = None
    stack: tuple[Rule, ...] = ()
    suspended: frozenset[int] = frozenset()
    snapshots: frozenset[tuple[int, int, str | None]] = frozenset()

    @property
    def template(self) -> tuple[ResourceSpec, ...]:
        return self.traversals[-1].graph.template if self.traversals else ()

    def traversal(self, number: int) -> Traversal:
        return self.traversals[number - 1]

    def node(self, number: int, node: int) -> Node | None:
        return self.traversals[number - 1].nodes[node]

    def row(self, row_id: int) -> Row | None:
        return next((row for row in self.rows if row.id == row_id), None)

    def with_traversal(self, number: int, changed: Traversal) -> "SystemState":
        traversals = self.traversals
        return self._replace(traversals=(*traversals[: number - 1], changed, *traversals[number:]))

    def with_node(self, number: int, node: int, changed: Node | None) -> "SystemState":
        before = self.traversals[number - 1]
        nodes = (*before.nodes[:node], changed, *before.nodes[node + 1 :])
        return self.with_traversal(number, before._replace(nodes=nodes))

    def with_rows(self, rows: Iterable[Row]) -> "SystemState":
        return self._replace(rows=tuple(sorted(rows, key=lambda row: row.id)))

    def with_hooks(self, hooks: Iterable[Hook]) -> "SystemState":
        return self._replace(hooks=tuple(sorted(hooks)))

    def with_physical_resource(
        self, row: int, value: str | None, uses: frozenset[int] = frozenset()
    ) -> "SystemState":
        """value None: deleted."""
        others = [resource for resource in self.physical_resources if resource[0] != row]
        replacement = [] if value is None else [(row, value, uses)]
        return self._replace(
            physical_resources=tuple(sorted((*others, *replacement), key=lambda one: one[0]))
        )

    def without_worker(self, worker: Worker) -> "SystemState":
        at = self.workers.index(worker)
        return self._replace(workers=(*self.workers[:at], *self.workers[at + 1 :]))

    def with_worker(self, worker: Worker) -> "SystemState":
        # These fields identify a claim.
        workers = sorted((*self.workers, worker), key=lambda one: (one[:4], repr(one[5])))
        return self._replace(workers=tuple(workers))

    def spent(self, incident: str) -> "SystemState":
        remaining = getattr(self.incidents, incident) - 1
        return self._replace(incidents=self.incidents._replace(**{incident: remaining}))


EMPTY = SystemState(0, 0, False, (), (), (), (), Incidents())
