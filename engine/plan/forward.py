"""Passes toward the new template: create, change and resume resources, in order."""

from collections.abc import Mapping, Sequence

from engine.hooks.rule import Rule
from engine.node.pending_breakpoints import rules_at
from engine.plan.draft import (
    AdoptedResource,
    Draft,
    ExistingResource,
    NewRow,
    PlannedNode,
    Problem,
    is_checkable,
)
from engine.plan.graph import bridge_edges, downstream, upstream
from engine.plan.partial_update import leave_unchosen
from engine.words import Direction, Operation, Phase, Point, ResourceAction, Status


def match_existing(draft: Draft) -> None:
    """Find the current row of each name, and the hook rules of resources that may be in the
    plan.
    """
    draft.current = {row.name: row for row in draft.existing if row.replaced_by is None}
    draft.rules = {
        name: draft.rules_of(name, ()) for name in draft.desired if name not in draft.settled
    }


def plan_forward(draft: Draft) -> None:
    """Add a node for each resource that is new, changed, incomplete or tainted, and for all that
    read it, as far as a partial update includes them.
    """
    changed = [
        name for name in draft.desired if name not in draft.settled and _needs_node(draft, name)
    ]
    reads = {name: one.reads for name, one in draft.desired.items() if one.reads}
    if not draft.current and not draft.settled:
        names: Sequence[str] = changed
    else:
        reached = downstream(reads, changed)
        names = [name for name in draft.desired if name in reached]
    _check_data(draft)
    chosen = leave_unchosen(draft, names)
    for name in _with_data(draft, chosen, reads):
        draft.forward[name] = draft.add(_forward_node(draft, name))


def _check_data(draft: Draft) -> None:
    """Data cannot become something else: there may be resources that the stack owns."""
    for name, one in draft.desired.items():
        row = draft.current.get(name) if one.is_data else None
        if row is None or not row.is_managed or (row.type == one.type and row.is_data):
            continue
        reason = f'"{name}" has another type or is a resource of the stack.'
        draft.problems.append(Problem(name, reason, "Choose another name for the data."))


def _with_data(
    draft: Draft, names: Sequence[str], reads: Mapping[str, frozenset[str]]
) -> Sequence[str]:
    """Add the data to read again, and the resources that read them. names: of resources that the
    update changes. A partial update reads the data that it chooses, and those that it needs.
    """
    known = {
        name
        for name, one in draft.desired.items()
        if one.reads_data and name in draft.current and name not in names
    }
    if not known:
        return names
    needed = frozenset().union(*(draft.desired[name].requires for name in names))
    again = {name for name in known if draft.may_change(name) or name in needed}
    readers = {name for name in downstream(reads, again) if draft.may_change(name)}
    wanted = {*names, *again, *readers}
    return [name for name in draft.desired if name in wanted and name not in draft.out_of_date]


def _needs_node(draft: Draft, name: str) -> bool:
    row = draft.current.get(name)
    if row is None or row.digest != draft.desired[name].digest or row.running is not None:
        return True
    gone = row.action in (ResourceAction.INIT, ResourceAction.DELETE)
    if gone or row.status is not Status.COMPLETE:
        return True
    if (
        name in draft.options.restored | draft.options.adjusted.keys()
        or draft.desired[name].pauses_every_update
    ):
        return True
    return any(rule.short and rule.point == Point.PRE_UPDATE for rule in draft.rules[name])


def _forward_node(draft: Draft, name: str) -> PlannedNode:
    row, desired, rules = draft.current.get(name), draft.desired[name], draft.rules[name]
    operation = _first_guess(draft, name)
    creates = operation is not Operation.UPDATE
    blocked = blocks(rules, operation)
    checked = desired.assertions is not None and desired.assertions.preconditions
    certain = creates and not blocked and not checked and (row is None or row.running is None)
    return PlannedNode(
        resource_id=row.id if row else draft.new_id(),
        name=name,
        type=desired.type,
        operation=operation,
        direction=Direction.FORWARD,
        phase=Phase.EXECUTE if certain else Phase.PRE,
        rules=rules,
        replacement_id=None if row is None else draft.new_id(),
        waits_for_running=row.running if row else None,
    )


def _first_guess(draft: Draft, name: str) -> Operation:
    """Return the operation as far as it is known; an update may become a replacement when it is
    claimed.
    """
    row = draft.current.get(name)
    if row is None:
        return Operation.ADOPT if adopted_resource(draft, name) else Operation.CREATE
    if row.adoptable or draft.desired[name].is_data:
        return Operation.ADOPT
    return Operation.UPDATE if row.is_managed else Operation.CREATE


def adopted_resource(draft: Draft, name: str) -> AdoptedResource | None:
    """Return the physical resource that a new resource adopts, if any."""
    external = draft.desired[name].external_id
    return AdoptedResource(external) if external else draft.options.adopted.get(name)


def blocks(rules: Sequence[Rule], operation: Operation) -> bool:
    """Return whether a hook rule applies before the operation."""
    return bool(rules_at(rules, operation, Phase.PRE))


def plan_resumes(draft: Draft) -> None:
    """Resume suspended resources before any other operation."""
    for name in draft.desired:
        row = draft.current.get(name)
        if row is None or not row.suspended or not draft.may_change(name):
            continue
        draft.resume[name] = draft.add(in_place_node(row, Operation.RESUME, draft.rules[name]))
        if name in draft.forward:
            draft.nodes[draft.forward[name]].waits_for_running = None


def in_place_node(
    row: ExistingResource, operation: Operation, rules: tuple[Rule, ...]
) -> PlannedNode:
    """Return a node for an operation that does not change the resource's definition (check,
    suspend, resume, snapshot).
    """
    refused = operation is Operation.CHECK and not is_checkable(row.action, row.status)
    certain = not refused and not blocks(rules, operation) and row.running is None
    return PlannedNode(
        resource_id=row.id,
        name=row.name,
        type=row.type,
        operation=operation,
        direction=Direction.FORWARD,
        phase=Phase.EXECUTE if certain else Phase.PRE,
        rules=rules,
        waits_for_running=row.running,
    )


def add_rows(draft: Draft) -> None:
    """Add a row for each new resource, so that it is visible before its operation starts."""
    ids = {name: draft.nodes[index].resource_id for name, index in draft.forward.items()}
    for name, index in draft.forward.items():
        if name in draft.current:
            continue
        requires = tuple(
            ids[one] if one in ids else draft.current[one].id
            for one in draft.desired[name].requires
            if one in ids or one in draft.current
        )
        node = draft.nodes[index]
        draft.rows.append(
            NewRow(
                node.resource_id,
                name,
                node.type,
                requires,
                node.rules,
                adopted_resource(draft, name),
            )
        )


def order_forward(draft: Draft) -> None:
    """Order each resource after those it requires, also through resources that are not in the
    plan.
    """
    first, last = draft.forward | draft.resume, draft.resume | draft.forward
    concerned = upstream(lambda name: draft.desired[name].requires, last, draft.desired)
    for name, before in bridge_edges(concerned, last).items():
        draft.nodes[first[name]].after |= {last[one] for one in before}
        if first[name] != last[name]:
            draft.nodes[last[name]].after.add(first[name])
