"""Passes that delete resources that the new template does not need, after all resources that used
them and after everything else that the traversal changes.

A plan that would delete a protected resource is refused here. engine/work/nodes/refusals.py refuses
the operation if a node turns out to delete or replace one when it executes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace as but

from engine.plan.draft import STACK_TYPE, Draft, ExistingResource, PlannedNode, Problem, Replacement
from engine.plan.forward import blocks
from engine.plan.partial_update import keep_unchosen
from engine.plan.protection import destroy_refusal
from engine.topological_order import sort_topologically
from engine.words import DeletionPolicy, Direction, Operation, Phase, ResourceId


def plan_deletes(draft: Draft) -> None:
    """Add a node for each row that is unwanted, replaced, or may be replaced by this traversal.

    Most updates replace nothing, so the delete of a row that may be replaced is only planned: the
    node that replaces the row adds it to the graph (`PlannedNode.added_by`). If an earlier
    operation still runs on the row, that one may replace it too, and the delete is in the graph
    from the start.
    """
    kept = keep_unchosen(draft)
    for row in draft.existing:
        unwanted = row.replaced_by is not None or row.name not in draft.desired
        if not unwanted and row.name not in draft.forward:
            continue
        if row.id in kept:
            continue
        if unwanted and row.replaced_by is None and (problem := _destroy_problem(draft, row)):
            draft.problems.append(problem)
        draft.cleanup[row.id] = draft.add(_cleanup_node(draft, row, unwanted))
        if row.replacement is not None:
            draft.shadows[row.id] = draft.add(_shadow_node(draft, row, row.replacement, unwanted))


def _cleanup_node(draft: Draft, row: ExistingResource, unwanted: bool) -> PlannedNode:
    rules = draft.rules_of(row.name, row.rules) if unwanted else draft.rules[row.name]
    usual = row.deletion_policy is DeletionPolicy.DELETE and not draft.options.retains_physical(
        row.name
    )
    refused = row.protected or row.prevented
    blocked = blocks(rules, Operation.DELETE) or refused or row.running is not None
    certain = unwanted and row.is_managed and usual and not blocked
    passed_on = row.name in draft.forward and row.replaced_by is None
    return PlannedNode(
        resource_id=row.id,
        name=row.name,
        type=row.type,
        operation=Operation.DELETE,
        direction=Direction.CLEANUP,
        phase=Phase.EXECUTE if certain else Phase.PRE,
        rules=rules,
        only_if_replaced=not unwanted,
        retained=draft.options.retains_physical(row.name),
        waits_for_running=None if passed_on else row.running,
        added_by=None if unwanted or row.running is not None else draft.forward[row.name],
    )


def _shadow_node(
    draft: Draft, row: ExistingResource, shadow: Replacement, unwanted: bool
) -> PlannedNode:
    """Return the node for the replacement that a running operation may create; no other node would
    delete it.
    """
    real = draft.nodes[draft.cleanup[row.id]]
    shadowing = but(real, resource_id=shadow.id, type=shadow.type, phase=Phase.PRE, after=set())
    if unwanted:
        real.waits_for_running, real.phase = None, Phase.PRE
    return shadowing


def _destroy_problem(draft: Draft, row: ExistingResource) -> Problem | None:
    """Return why the row must not be deleted, or None. `prevent_destroy` allows that the stack
    gives up a physical resource that stays.
    """
    stays = draft.options.retains_physical(row.name) or row.deletion_policy is DeletionPolicy.RETAIN
    found = destroy_refusal(
        row.name,
        Operation.DELETE,
        protected=row.protected,
        prevented=row.prevented and row.is_managed and not stays,
    )
    return None if found is None else Problem(f"resources.{row.name}", found.reason, found.remedy)


def order_cleanup(draft: Draft) -> None:
    """Order each cleanup node after its own forward node, and after all users have changed or are
    deleted.
    """
    users: dict[ResourceId, list[ExistingResource]] = {}
    for row in draft.existing:
        for one in sorted(draft.used_by(row)):
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
    draft: Draft, row_id: ResourceId, users: Iterable[ExistingResource], last: Mapping[str, int]
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
    policies = {
        row.id: row.deletion_policy for row in draft.existing if row.is_managed or row.running
    }
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
            added_by=node.added_by,
        )
        node.after = {draft.add(keeping)}
        node.waits_for_running = None


#: Maximum number of edges between forward nodes and deletes without a barrier.
MAX_DIRECT_EDGES = 1_000


def delete_last(draft: Draft) -> None:
    """Order the deletes of resources that leave the stack after all forward nodes, so that a failed
    update leaves them as they are.

    An old resource that this traversal replaces is deleted after its users only (`order_cleanup`).
    The number of edges is linear: many deletes after many forward nodes wait for one barrier.
    """
    forward = {*draft.forward.values(), *draft.resume.values()}
    removed = {
        index
        for index in (*draft.cleanup.values(), *draft.shadows.values())
        if not draft.nodes[index].only_if_replaced
    }
    first = [index for index in removed if draft.nodes[index].after.isdisjoint(removed)]
    last = forward.difference(*(draft.nodes[index].after for index in forward))
    if not (first and last):
        return
    if len(first) * len(last) > MAX_DIRECT_EDGES:
        last = {draft.add(_barrier(draft, last))}
    for index in first:
        draft.nodes[index].after |= last


def _barrier(draft: Draft, after: set[int]) -> PlannedNode:
    """Return a gate without hooks, which passes when these nodes are done."""
    return PlannedNode(
        resource_id=draft.new_id(),
        name="",
        type=STACK_TYPE,
        operation=Operation.FINISH,
        direction=Direction.CLEANUP,
        phase=Phase.EXECUTE,
        after=after,
    )


def break_cycles(draft: Draft) -> None:
    """Remove edges between cleanup nodes in a dependency cycle, so that cleanup ends.

    A cycle exists only after failed updates that reversed a dependency.
    """
    reached = set(sort_topologically({index: node.after for index, node in enumerate(draft.nodes)}))
    if len(reached) == len(draft.nodes):
        return
    tied = {
        index
        for index, node in enumerate(draft.nodes)
        if node.direction is Direction.CLEANUP and index not in reached
    }
    for index in tied:
        draft.nodes[index].after -= tied
