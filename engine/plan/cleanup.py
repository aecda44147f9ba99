"""Passes that delete resources that the new template does not need, after all resources that used
them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace as but

from engine.plan.draft import Draft, Existing, PlannedNode, Problem, Replacement
from engine.plan.forward import holds
from engine.plan.graph import downstream
from engine.topological_order import ordered
from engine.words import DeletionPolicy, Direction, Operation, Phase, ResourceId


def plan_deletes(draft: Draft) -> None:
    """Add a node for each row that is unwanted, replaced, or may be replaced by this traversal."""
    kept = _kept(draft)
    for row in draft.existing:
        unwanted = row.replaced_by is not None or row.name not in draft.wanted
        if not unwanted and row.name not in draft.forward:
            continue
        if row.id in kept:
            if row.replaced_by is None and unwanted:
                draft.stale.add(row.name)
            continue
        if row.protected and row.replaced_by is None and unwanted:
            draft.problems.append(_protected(row))
        draft.cleanup[row.id] = draft.add(_cleanup_node(draft, row, unwanted))
        if row.replacement is not None:
            draft.shadows[row.id] = draft.add(_shadow_node(draft, row, row.replacement, unwanted))


def _cleanup_node(draft: Draft, row: Existing, unwanted: bool) -> PlannedNode:
    rules = draft.rules_of(row.name, row.rules) if unwanted else draft.rules[row.name]
    usual = row.deletion_policy is DeletionPolicy.DELETE and not draft.options.retains
    held = holds(rules, Operation.DELETE) or row.protected or row.running is not None
    certain = unwanted and row.made and usual and not held
    passed_on = row.name in draft.forward and row.replaced_by is None
    return PlannedNode(
        resource_id=row.id,
        name=row.name,
        type=row.type,
        operation=Operation.DELETE,
        direction=Direction.CLEANUP,
        phase=Phase.ACT if certain else Phase.PRE,
        rules=rules,
        only_if_replaced=not unwanted,
        retained=draft.options.retains,
        waits_for_running=None if passed_on else row.running,
    )


def _shadow_node(draft: Draft, row: Existing, shadow: Replacement, unwanted: bool) -> PlannedNode:
    """Return the node for the replacement that a running operation may create; no other node would
    delete it.
    """
    real = draft.nodes[draft.cleanup[row.id]]
    shadowing = but(real, resource_id=shadow.id, type=shadow.type, phase=Phase.PRE, after=set())
    if unwanted:
        real.waits_for_running, real.phase = None, Phase.PRE
    return shadowing


def _protected(row: Existing) -> Problem:
    reason = f'"{row.name}" is protected, and this would delete it'
    remedy = f"Lift its protection first: headgate resource unprotect STACK {row.name}"
    return Problem(f"resources.{row.name}", reason, remedy)


def _kept(draft: Draft) -> set[ResourceId]:
    """Return the rows that a partial update keeps: those not chosen, and all that these use."""
    if draft.options.chosen is None:
        return set()
    left = [
        row
        for row in draft.existing
        if row.name in draft.stale
        or (row.name not in draft.wanted and not draft.may_change(row.name))
    ]
    known = {row.id for row in draft.existing}
    uses: dict[ResourceId, list[ResourceId]] = {row.id: [] for row in draft.existing}
    for row in draft.existing:
        for one in _used_by(draft, row) & known:
            uses[one].append(row.id)
    return downstream(uses, [row.id for row in left])


def _used_by(draft: Draft, row: Existing) -> set[ResourceId]:
    """Return what the row used when it was last changed, and what a running operation makes it
    use.
    """
    current = (draft.current.get(name) for name in row.using)
    return {*row.requires, *(used.id for used in current if used is not None)}


def order_cleanup(draft: Draft) -> None:
    """Order each cleanup node after its own forward node, and after all users have changed or are
    deleted.
    """
    users: dict[ResourceId, list[Existing]] = {}
    for row in draft.existing:
        for one in sorted(_used_by(draft, row)):
            users.setdefault(one, []).append(row)
    last = draft.resume | draft.forward
    for row_id, index in draft.cleanup.items():
        before = _before(draft, row_id, users.get(row_id, ()), last)
        draft.nodes[index].after |= before
        if row_id in draft.shadows:
            draft.nodes[draft.shadows[row_id]].after |= before
            draft.nodes[index].after.add(draft.shadows[row_id])
    _order_shadows(draft)


def _order_shadows(draft: Draft) -> None:
    """Order what a replacement will use after it; by name, because the replacement has no row
    yet.
    """
    current = {row.name: row.id for row in draft.existing if row.replaced_by is None}
    uses = {row.id: row.replacement.requires for row in draft.existing if row.replacement}
    for row_id, index in draft.shadows.items():
        for name in uses[row_id]:
            used = current.get(name)
            if used in draft.cleanup and used != row_id:
                draft.nodes[draft.cleanup[used]].after.add(index)


def _before(
    draft: Draft, row_id: ResourceId, users: Iterable[Existing], last: Mapping[str, int]
) -> set[int]:
    name = draft.nodes[draft.cleanup[row_id]].name
    before = {last[name]} if name in last else set()
    for user in users:
        if user.name in last and user.replaced_by is None:
            before.add(last[user.name])
        if user.id in draft.cleanup and user.id != row_id:
            before.add(draft.cleanup[user.id])
    return before


def plan_snapshots(draft: Draft) -> None:
    """Deletion policy Snapshot: add a snapshot node before the delete."""
    policies = {row.id: row.deletion_policy for row in draft.existing if row.made or row.running}
    going = [*draft.cleanup.items(), *draft.shadows.items()]
    for row_id, index in going:
        node = draft.nodes[index]
        if policies.get(row_id) is not DeletionPolicy.SNAPSHOT or node.retained:
            continue
        keeping = PlannedNode(
            resource_id=node.resource_id,
            name=node.name,
            type=node.type,
            operation=Operation.SNAPSHOT,
            direction=Direction.CLEANUP,
            only_if_replaced=node.only_if_replaced,
            after=node.after,
            waits_for_running=node.waits_for_running,
        )
        node.after = {draft.add(keeping)}
        node.waits_for_running = None


def break_cycles(draft: Draft) -> None:
    """Remove edges between cleanup nodes in a dependency cycle, so that cleanup ends.

    A cycle exists only after failed updates that reversed a dependency.
    """
    reached = set(ordered({index: node.after for index, node in enumerate(draft.nodes)}))
    if len(reached) == len(draft.nodes):
        return
    tied = {
        index
        for index, node in enumerate(draft.nodes)
        if node.direction is Direction.CLEANUP and index not in reached
    }
    for index in tied:
        draft.nodes[index].after -= tied
