"""What the model consists of: one stack, whole, as immutable and hashable values.

A `World` is the database's rows of one stack, reduced to what the protocol decides by, and beside
them what the workers hold in their hands. Time is not in it: whatever has a wake-up time may be
claimed now, so a lease that has run out and a timer that has come are simply a claim.

Workers are all alike, so they have no names: a worker is what it holds. A worker that dies is a
hand that is gone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from engine.hooks.rule import Rule
from engine.node.inputs import Input
from engine.words import Action, Direction, Operation, Phase, State

HALF = "half"
#: In place of a digest that is written: the row keeps its own.
KEPT = "kept"


class Want(NamedTuple):
    """A resource of a template. A value with an exclamation mark asks for a new one."""

    name: str
    requires: tuple[str, ...] = ()
    value: str = "1"
    rules: tuple[Rule, ...] = ()
    policy: str = "Delete"
    restricted: tuple[str, ...] = ()


class Request(NamedTuple):
    """What somebody asks of the stack. action None: end what runs, as `ends` says: failed, stopped,
    or rolled back."""

    action: Action | None
    template: tuple[Want, ...] = ()
    ends: str = ""


class Luck(NamedTuple):
    """How often yet each thing that nobody wants may happen; it bounds what is explored.

    lease: leases lost, by death or by slowness. twice: settles sent a second time. wait, retry,
    fail, leave, replace: outcomes other than success; leave: a failure that names what it left
    behind. no: rejections and deadlines of hooks. late: time-outs of a stack.
    """

    lease: int = 0
    twice: int = 0
    wait: int = 0
    retry: int = 0
    fail: int = 0
    leave: int = 0
    replace: int = 0
    no: int = 0
    late: int = 0


class Size(NamedTuple):
    """What is explored. requests: in this order, each at any instant after the one before.

    hands: how many things workers hold at once. stack: hook rules of the whole stack. patient:
    a request comes only when nothing is under way. rolls_back: a change that fails is rolled
    back. known: names of the rules that the engine is known to break here; nothing is explored
    behind such a break, and one that is not found any more fails the test.
    """

    name: str
    requests: tuple[Request, ...]
    luck: Luck = Luck()
    hands: int = 2
    patient: bool = False
    rolls_back: bool = False
    known: frozenset[str] = frozenset()
    stack: tuple[Rule, ...] = ()


class Fixed(NamedTuple):
    """What never changes of a node. after: what it waits for, from the plan itself. requires: names
    to be found in the rows when it has ended; None: its row knows them. uses: what it does use."""

    name: str
    resource: int
    replacement: int | None
    direction: Direction
    only_if_replaced: bool
    rules: tuple[Rule, ...]
    after: frozenset[int]
    requirers: tuple[int, ...]
    requires: tuple[str, ...] | None
    uses: tuple[str, ...]
    value: str
    restricted: tuple[str, ...]
    policy: str


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """The fixed parts of a traversal. Made once for equal parts, so that being it is enough.

    before: what was last said of each resource before it began.
    """

    nodes: tuple[Fixed, ...]
    template: tuple[Want, ...]
    before: tuple[Want, ...]


class Node(NamedTuple):
    """A row of table `node`. wake: it has a wake-up time. key: of its operation. resource: its row,
    that of the plan or what an older operation has put in its place.

    acted and outcomes are the model's own record: the keys under which it took effect, what
    that was and how it went; and how many outcomes of it were written.
    """

    state: State
    phase: Phase
    operation: Operation
    passed: tuple[str, ...]
    waits: int
    claim: int
    wake: bool
    resource: int
    attempts: int = 0
    successor: int | None = None
    key: int | None = None
    acted: frozenset[tuple[int, Operation, str]] = frozenset()
    outcomes: int = 0


class Traversal(NamedTuple):
    """A row of table `traversal`. nodes: None where the row was deleted. late: its time is over."""

    action: Action
    state: str
    active: int
    wake: bool
    graph: Graph
    nodes: tuple[Node | None, ...]
    late: bool = False


class Row(NamedTuple):
    """A row of table `resource`. value: its properties. made: it has a physical id."""

    id: int
    name: str
    action: str
    status: str
    digest: str
    value: str | None = None
    made: bool = False
    broken: bool = False
    requires: tuple[int, ...] = ()
    replaced_by: int | None = None
    rules: tuple[Rule, ...] = ()
    policy: str = "Delete"


class Hook(NamedTuple):
    """A row of table `hook`. said: waiting, continue, reject, stop or superseded.
    approved: the keys of the principals that approved it."""

    traversal: int
    node: int
    point: str
    said: str
    approved: tuple[str, ...] = ()


class Write(NamedTuple):
    """What a step does to resources. kind: update, insert, leave or remove."""

    kind: str
    row: Row
    replaces: int | None = None


class Told(NamedTuple):
    """A step on its way to the store: what engine/work/transition_documents.py writes. said: upon
    what it was decided, where it opens hooks and so may be refused."""

    state: State
    phase: Phase
    operation: Operation
    passed: tuple[str, ...]
    wake: bool
    write: Write | None
    hooks: tuple[tuple[str, str], ...]
    outcome: bool
    attempts: int = 0
    said: Input | None = None


class Seen(NamedTuple):
    """What a worker was shown of a node when it got it. uses: the rows whose values it reads."""

    operation: Operation
    phase: Phase
    passed: tuple[str, ...]
    key: int | None
    row: Row | None
    attempts: int = 0
    uses: frozenset[int] = frozenset()


class Hand(NamedTuple):
    """What a worker holds. stage: call (it is about to), tell (an outcome, not settled yet), told
    (settled, but its worker does not know), end (a traversal to end)."""

    traversal: int
    node: int
    claim: int
    stage: str
    seen: Seen | None = None
    told: Told | None = None


class World(NamedTuple):
    """asked: how many requests were made. current: the stack's traversal, counted from 1.

    things: what there really is, by row and value, with the rows whose things it uses; a half-made
    thing has the value HALF. left: rows that went while their things were to stay. rolls_back,
    timed, stack: as the stack was made. reached: what the last traversal that came to a good end
    was toward, deletes apart.
    """

    asked: int
    current: int
    buried: bool
    traversals: tuple[Traversal, ...]
    rows: tuple[Row, ...]
    hooks: tuple[Hook, ...]
    hands: tuple[Hand, ...]
    luck: Luck
    things: tuple[tuple[int, str, frozenset[int]], ...] = ()
    left: frozenset[int] = frozenset()
    rolls_back: bool = False
    timed: bool = False
    reached: Graph | None = None
    stack: tuple[Rule, ...] = ()

    @property
    def template(self) -> tuple[Want, ...]:
        return self.traversals[-1].graph.template if self.traversals else ()

    def traversal(self, number: int) -> Traversal:
        return self.traversals[number - 1]

    def node(self, number: int, node: int) -> Node | None:
        return self.traversals[number - 1].nodes[node]

    def row(self, row_id: int) -> Row | None:
        return next((row for row in self.rows if row.id == row_id), None)

    def with_traversal(self, number: int, changed: Traversal) -> "World":
        all_of = self.traversals
        return self._replace(traversals=(*all_of[: number - 1], changed, *all_of[number:]))

    def with_node(self, number: int, node: int, changed: Node | None) -> "World":
        before = self.traversals[number - 1]
        nodes = (*before.nodes[:node], changed, *before.nodes[node + 1 :])
        return self.with_traversal(number, before._replace(nodes=nodes))

    def with_rows(self, rows: Iterable[Row]) -> "World":
        return self._replace(rows=tuple(sorted(rows, key=lambda row: row.id)))

    def with_hooks(self, hooks: Iterable[Hook]) -> "World":
        return self._replace(hooks=tuple(sorted(hooks)))

    def with_thing(
        self, row: int, value: str | None, uses: frozenset[int] = frozenset()
    ) -> "World":
        """value None: it is gone."""
        others = [thing for thing in self.things if thing[0] != row]
        fresh = [] if value is None else [(row, value, uses)]
        return self._replace(things=tuple(sorted((*others, *fresh), key=lambda one: one[0])))

    def without(self, hand: Hand) -> "World":
        at = self.hands.index(hand)
        return self._replace(hands=(*self.hands[:at], *self.hands[at + 1 :]))

    def holding(self, hand: Hand) -> "World":
        # By what tells hands apart; the rest follows from it.
        hands = sorted((*self.hands, hand), key=lambda one: (one[:4], repr(one[5])))
        return self._replace(hands=tuple(hands))

    def spent(self, what: str) -> "World":
        left = getattr(self.luck, what) - 1
        return self._replace(luck=self.luck._replace(**{what: left}))


EMPTY = World(0, 0, False, (), (), (), (), Luck())
