"""From a definition and what exists to the nodes of a traversal: an ordered list of passes.

Each pass is a function that fills in one thing of the draft. Reading PASSES is reading what a
traversal consists of. Nothing unchanged is in the graph: an update costs what it changes.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.hooks.rules import Rule
from engine.hot.definition import DefinedResource
from engine.node.machine import POINTS
from engine.plan.graph import bridged, downstream, ordered
from engine.words import (
    Direction,
    Operation,
    Phase,
    Point,
    ResourceAction,
    ResourceId,
    Status,
)


@dataclass(frozen=True, slots=True)
class Existing:
    """A resource's row as planning sees it.

    replaced_by: another row stands for its name now. requires: rows it used when last changed.
    running: (traversal, node) of an older traversal that still acts on it.
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


@dataclass(slots=True)
class PlannedNode:
    """One node. after: the nodes it waits for, as indices of the plan."""

    resource_id: ResourceId
    name: str
    type: str
    operation: Operation
    direction: Direction
    phase: Phase = Phase.PRE
    rules: tuple[Rule, ...] = ()
    replacement_id: ResourceId | None = None
    only_if_replaced: bool = False
    after: set[int] = field(default_factory=set)
    waits_for_running: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class NewRow:
    """A resource that comes into being with this plan, INIT_COMPLETE."""

    id: ResourceId
    name: str
    type: str
    requires: tuple[ResourceId, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """nodes: each after those it waits for is not promised; `after` tells. digest: of all of it."""

    nodes: tuple[PlannedNode, ...]
    rows: tuple[NewRow, ...]
    digest: str


@dataclass(slots=True)
class Draft:
    """What the passes work on."""

    wanted: Mapping[str, DefinedResource]
    existing: Sequence[Existing]
    rules_of: Callable[[str, Sequence[Rule]], tuple[Rule, ...]]
    new_id: Callable[[], ResourceId]
    current: dict[str, Existing] = field(default_factory=dict)
    rules: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    forward: dict[str, int] = field(default_factory=dict)
    cleanup: dict[ResourceId, int] = field(default_factory=dict)
    nodes: list[PlannedNode] = field(default_factory=list)
    rows: list[NewRow] = field(default_factory=list)


def plan(
    wanted: Mapping[str, DefinedResource],
    existing: Sequence[Existing],
    rules_of: Callable[[str, Sequence[Rule]], tuple[Rule, ...]],
    new_id: Callable[[], ResourceId],
) -> Plan:
    """Plan the traversal that makes `wanted` of `existing`. An empty `wanted` deletes all.

    rules_of(name, stored): the breakpoints of a resource; `stored` are those kept with a row whose
    resource is no longer wanted.
    """
    draft = Draft(wanted, existing, rules_of, new_id)
    for fill in PASSES:
        fill(draft)
    return Plan(tuple(draft.nodes), tuple(draft.rows), _digest(draft))


def pair(draft: Draft) -> None:
    """Find the row that stands for each name, and the breakpoints of each wanted resource."""
    draft.current = {row.name: row for row in draft.existing if row.replaced_by is None}
    draft.rules = {name: draft.rules_of(name, ()) for name in draft.wanted}


def go_forward(draft: Draft) -> None:
    """A node for whatever is new, changed, unfinished or broken, and for all that reads it."""
    changed = [name for name in draft.wanted if _needs_node(draft, name)]
    if not draft.current:
        names: Sequence[str] = changed
    else:
        reads = {name: resource.reads for name, resource in draft.wanted.items()}
        reached = downstream(reads, changed)
        names = [name for name in draft.wanted if name in reached]
    for name in names:
        draft.forward[name] = len(draft.nodes)
        draft.nodes.append(_forward_node(draft, name))


def _needs_node(draft: Draft, name: str) -> bool:
    row = draft.current.get(name)
    if row is None or row.digest != draft.wanted[name].digest or row.running is not None:
        return True
    if row.action is ResourceAction.INIT or row.status is not Status.COMPLETE:
        return True
    return any(rule.short and rule.point is Point.PRE_UPDATE for rule in draft.rules[name])


def _forward_node(draft: Draft, name: str) -> PlannedNode:
    row, wanted, rules = draft.current.get(name), draft.wanted[name], draft.rules[name]
    creates = row is None or row.action is ResourceAction.INIT
    held = any(rule.point in POINTS[Operation.CREATE, Phase.PRE] for rule in rules)
    certain = creates and not held and (row is None or row.running is None)
    return PlannedNode(
        resource_id=row.id if row else draft.new_id(),
        name=name,
        type=wanted.type,
        operation=Operation.CREATE if creates else Operation.UPDATE,
        direction=Direction.FORWARD,
        phase=Phase.ACT if certain else Phase.PRE,
        rules=rules,
        replacement_id=None if row is None else draft.new_id(),
        waits_for_running=row.running if row else None,
    )


def add_rows(draft: Draft) -> None:
    """A row for each resource that did not exist, so that it can be seen before it is begun."""
    ids = {name: draft.nodes[index].resource_id for name, index in draft.forward.items()}
    for name, index in draft.forward.items():
        if name in draft.current:
            continue
        requires = tuple(
            ids[one] if one in ids else draft.current[one].id for one in draft.wanted[name].requires
        )
        node = draft.nodes[index]
        draft.rows.append(NewRow(node.resource_id, name, node.type, requires, node.rules))


def clear_away(draft: Draft) -> None:
    """A node for each row that nobody wants, that was replaced, or that may be replaced now."""
    for row in draft.existing:
        unwanted = row.replaced_by is not None or row.name not in draft.wanted
        if not unwanted and row.name not in draft.forward:
            continue
        rules = draft.rules_of(row.name, row.rules) if unwanted else draft.rules[row.name]
        held = any(rule.point in POINTS[Operation.DELETE, Phase.PRE] for rule in rules)
        made = row.action is not ResourceAction.INIT
        certain = unwanted and made and not held and row.running is None
        passed_on = row if row.name in draft.forward and row.replaced_by is None else None
        draft.cleanup[row.id] = len(draft.nodes)
        draft.nodes.append(
            PlannedNode(
                resource_id=row.id,
                name=row.name,
                type=row.type,
                operation=Operation.DELETE,
                direction=Direction.CLEANUP,
                phase=Phase.ACT if certain else Phase.PRE,
                rules=rules,
                only_if_replaced=not unwanted,
                waits_for_running=None if row is passed_on else row.running,
            )
        )


def order_forward(draft: Draft) -> None:
    """A resource comes after what it requires, also through resources that are not in the plan."""
    requires = {name: resource.requires for name, resource in draft.wanted.items()}
    for name, before in bridged(requires, draft.forward).items():
        draft.nodes[draft.forward[name]].after = {draft.forward[one] for one in before}


def order_cleanup(draft: Draft) -> None:
    """A row goes after its own forward node, and after whatever used it has moved or gone."""
    users: dict[ResourceId, list[Existing]] = {}
    for row in draft.existing:
        for one in row.requires:
            users.setdefault(one, []).append(row)
    for row_id, index in draft.cleanup.items():
        node = draft.nodes[index]
        if node.name in draft.forward:
            node.after.add(draft.forward[node.name])
        for user in users.get(row_id, ()):
            if user.name in draft.forward and user.replaced_by is None:
                node.after.add(draft.forward[user.name])
            if user.id in draft.cleanup and user.id != row_id:
                node.after.add(draft.cleanup[user.id])


def untie(draft: Draft) -> None:
    """Cleanup must not fail to end: edges among rows that require each other in a ring are cut.

    A ring is only possible after failed updates that turned a dependency round.
    """
    reached = set(ordered({index: node.after for index, node in enumerate(draft.nodes)}))
    if len(reached) == len(draft.nodes):
        return
    tied = {index for index in draft.cleanup.values() if index not in reached}
    for index in tied:
        draft.nodes[index].after -= tied


PASSES: tuple[Callable[[Draft], None], ...] = (
    pair,
    go_forward,
    add_rows,
    clear_away,
    order_forward,
    order_cleanup,
    untie,
)


def _digest(draft: Draft) -> str:
    """What is to be done to what, as 64 hexadecimal digits: the same plan, the same digest."""
    known = {row.id: row.digest for row in draft.existing}
    told = hashlib.sha256()
    for node in sorted(draft.nodes, key=lambda node: (node.name, node.direction, node.operation)):
        wanted = draft.wanted.get(node.name)
        parts = (
            node.name,
            node.type,
            node.operation,
            node.direction,
            known.get(node.resource_id, ""),
            wanted.digest if wanted else "",
        )
        told.update("\0".join(parts).encode() + b"\n")
    return told.hexdigest()
