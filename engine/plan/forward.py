"""Passes toward the new template: create, change and resume resources, in order."""

from collections.abc import Sequence

from engine.hooks.rule import Rule
from engine.node.points import rules_at
from engine.plan.draft import Adopted, Draft, Existing, NewRow, PlannedNode, Problem
from engine.plan.graph import bridged, downstream, upstream
from engine.words import Direction, Operation, Phase, Point, ResourceAction, Status


def match_existing(draft: Draft) -> None:
    """Find the current row of each name, and the hook rules of resources that may be in the
    plan.
    """
    draft.current = {row.name: row for row in draft.existing if row.replaced_by is None}
    draft.rules = {
        name: draft.rules_of(name, ()) for name in draft.wanted if name not in draft.settled
    }


def plan_forward(draft: Draft) -> None:
    """Add a node for each resource that is new, changed, incomplete or tainted, and for all that
    read it.

    Resources that a partial update does not include become out of date instead.
    """
    changed = [
        name for name in draft.wanted if name not in draft.settled and _needs_node(draft, name)
    ]
    if not draft.current and not draft.settled:
        names: Sequence[str] = changed
    else:
        reads = {name: resource.reads for name, resource in draft.wanted.items()}
        reached = downstream(reads, changed)
        names = [name for name in draft.wanted if name in reached]
    for name in names:
        if draft.may_change(name):
            draft.forward[name] = draft.add(_forward_node(draft, name))
        else:
            draft.stale.add(name)


def _needs_node(draft: Draft, name: str) -> bool:
    row = draft.current.get(name)
    if row is None or row.digest != draft.wanted[name].digest or row.running is not None:
        return True
    gone = row.action in (ResourceAction.INIT, ResourceAction.DELETE)
    if gone or row.status is not Status.COMPLETE:
        return True
    if (
        name in draft.options.restored | draft.options.adjusted.keys()
        or draft.wanted[name].pauses_every_update
    ):
        return True
    return any(rule.short and rule.point == Point.PRE_UPDATE for rule in draft.rules[name])


def _forward_node(draft: Draft, name: str) -> PlannedNode:
    row, wanted, rules = draft.current.get(name), draft.wanted[name], draft.rules[name]
    operation = _first_guess(draft, name)
    creates = operation is not Operation.UPDATE
    held = holds(rules, operation)
    certain = creates and not held and (row is None or row.running is None)
    return PlannedNode(
        resource_id=row.id if row else draft.new_id(),
        name=name,
        type=wanted.type,
        operation=operation,
        direction=Direction.FORWARD,
        phase=Phase.ACT if certain else Phase.PRE,
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
        return Operation.ADOPT if adopted(draft, name) else Operation.CREATE
    if row.adoptable:
        return Operation.ADOPT
    return Operation.UPDATE if row.made else Operation.CREATE


def adopted(draft: Draft, name: str) -> Adopted | None:
    """Return the physical resource that a new resource adopts, if any."""
    external = draft.wanted[name].external_id
    return Adopted(external) if external else draft.options.adopted.get(name)


def holds(rules: Sequence[Rule], operation: Operation) -> bool:
    """Return whether a hook rule applies before the operation."""
    return bool(rules_at(rules, operation, Phase.PRE))


def check_requirements(draft: Draft) -> None:
    """A partial update must include missing resources that the chosen ones require."""
    for name in draft.forward:
        for one in sorted(draft.wanted[name].requires & draft.stale):
            row = draft.current.get(one)
            if row is None or row.action is ResourceAction.INIT:
                reason = f'"{name}" requires "{one}", which is not there and not chosen'
                remedy = f'Choose "{one}", too.'
                draft.problems.append(Problem(f"resources.{name}", reason, remedy))


def plan_resumes(draft: Draft) -> None:
    """Resume suspended resources before any other operation."""
    for name in draft.wanted:
        row = draft.current.get(name)
        if row is None or not row.suspended or not draft.may_change(name):
            continue
        draft.resume[name] = draft.add(visit(row, Operation.RESUME, draft.rules[name]))
        if name in draft.forward:
            draft.nodes[draft.forward[name]].waits_for_running = None


def visit(row: Existing, operation: Operation, rules: tuple[Rule, ...]) -> PlannedNode:
    """Return a node for an operation that does not change the resource's definition (check,
    suspend, resume, snapshot).
    """
    certain = not holds(rules, operation) and row.running is None
    return PlannedNode(
        resource_id=row.id,
        name=row.name,
        type=row.type,
        operation=operation,
        direction=Direction.FORWARD,
        phase=Phase.ACT if certain else Phase.PRE,
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
            for one in draft.wanted[name].requires
            if one in ids or one in draft.current
        )
        node = draft.nodes[index]
        draft.rows.append(
            NewRow(node.resource_id, name, node.type, requires, node.rules, adopted(draft, name))
        )


def order_forward(draft: Draft) -> None:
    """Order each resource after those it requires, also through resources that are not in the
    plan.
    """
    first, last = draft.forward | draft.resume, draft.resume | draft.forward
    requires = {name: resource.requires for name, resource in draft.wanted.items()}
    concerned = upstream(requires, last)
    for name, before in bridged(concerned, last).items():
        draft.nodes[first[name]].after |= {last[one] for one in before}
        if first[name] != last[name]:
            draft.nodes[last[name]].after.add(first[name])
