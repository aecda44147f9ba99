"""The plan of a traversal: an ordered list of passes; or one operation on each resource in place.

Each pass is a function that fills in one part of the draft. Unchanged resources are not in the
graph, so the cost of an update depends on its changes.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from engine.hooks.rule import Rule, line_of
from engine.hot.definition.stack import ResourceDefinition
from engine.hot.gc_pause import pause_gc
from engine.plan.cleanup import (
    break_cycles,
    delete_last,
    order_cleanup,
    plan_deletes,
    plan_snapshots,
)
from engine.plan.draft import Draft, ExistingResource, Options, Plan
from engine.plan.forward import (
    add_rows,
    in_place_node,
    match_existing,
    order_forward,
    plan_forward,
    plan_resumes,
)
from engine.plan.graph import bridge_edges
from engine.plan.partial_update import check_requirements
from engine.words import Operation, ResourceAction, ResourceId, Status

#: `break_cycles` precedes `delete_last` and `plan_snapshots`, whose edges must not be removed.
PASSES: tuple[Callable[[Draft], None], ...] = (
    match_existing,
    plan_forward,
    check_requirements,
    plan_resumes,
    add_rows,
    plan_deletes,
    order_forward,
    order_cleanup,
    break_cycles,
    delete_last,
    plan_snapshots,
)


def plan(
    desired: Mapping[str, ResourceDefinition],
    existing: Sequence[ExistingResource],
    rules_of: Callable[[str, Sequence[Rule]], tuple[Rule, ...]],
    new_id: Callable[[], ResourceId],
    options: Options | None = None,
    settled: frozenset[str] = frozenset(),
) -> Plan:
    """Plan the traversal that changes `existing` to `desired`. An empty `desired` deletes all.

    rules_of(name, stored): the hook rules of a resource; `stored` are those of a row whose resource
    is no longer defined. settled: names whose rows are up to date and omitted from `existing`
    because nothing in the plan requires them.
    """
    draft = Draft(desired, existing, rules_of, new_id, options or Options(), settled)
    with pause_gc():
        for fill in PASSES:
            fill(draft)
        return Plan(
            tuple(draft.nodes),
            tuple(draft.rows),
            digest_of(draft),
            tuple(sorted(draft.out_of_date)),
            tuple(draft.problems),
        )


def digest_of(draft: Draft) -> str:
    """Return the plan digest, 64 hexadecimal digits: equal plans have equal digests.

    It includes the current rows and the hook rules, so it changes with either.
    """
    known = {row.id: row for row in draft.existing}
    digest = hashlib.sha256()
    for node in sorted(draft.nodes, key=lambda node: (node.name, node.direction, node.operation)):
        row, desired = known.get(node.resource_id), draft.desired.get(node.name)
        parts = (
            node.name,
            node.type,
            node.operation,
            node.direction,
            "" if row is None else f"{row.digest} {row.action}_{row.status} {row.physical_id}",
            desired.digest if desired else "",
            *(line_of(rule) for rule in node.rules),
        )
        digest.update("\0".join(parts).encode() + b"\n")
    digest.update("\0".join(sorted(draft.out_of_date)).encode())
    return digest.hexdigest()


Graph = dict[ResourceId, set[ResourceId]]


def plan_in_place(
    operation: Operation,
    existing: Sequence[ExistingResource],
    rules_of: Callable[[str, Sequence[Rule]], tuple[Rule, ...]],
) -> Plan:
    """Return one node for each resource to which the operation applies, in order.

    Resources are suspended before those they use, and resumed after them. Checks and snapshots are
    independent of each other: none waits for another, and a failure does not stop the others. A
    check includes resources that do not exist, which fail it.
    """
    checks = operation is Operation.CHECK
    rows = [
        row
        for row in existing
        if row.replaced_by is None and (row.is_managed or (checks and not row.is_deleted))
    ]
    if not checks:
        rows = [row for row in rows if not row.is_data]
    chosen = {row.id: index for index, row in enumerate(_applicable_rows(operation, rows))}
    draft = Draft({}, existing, rules_of, _no_new_id)
    for row in rows:
        if row.id in chosen:
            draft.add(in_place_node(row, operation, rules_of(row.name, row.rules)))
    for row_id, before in _order(operation, rows, chosen).items():
        draft.nodes[chosen[row_id]].after = {chosen[one] for one in before}
    return Plan(tuple(draft.nodes), (), digest_of(draft))


def _applicable_rows(
    operation: Operation, rows: Sequence[ExistingResource]
) -> list[ExistingResource]:
    if operation is Operation.SUSPEND:
        return [row for row in rows if not _has_action(row, ResourceAction.SUSPEND)]
    if operation is Operation.RESUME:
        return [row for row in rows if row.suspended]
    return list(rows)


def _has_action(row: ExistingResource, action: ResourceAction) -> bool:
    return row.action is action and row.status is Status.COMPLETE


def _order(
    operation: Operation, rows: Sequence[ExistingResource], chosen: dict[ResourceId, int]
) -> Graph:
    if operation not in (Operation.SUSPEND, Operation.RESUME):
        return {}
    known = {row.id for row in rows}
    uses: Graph = {row.id: set(row.requires) & known for row in rows}
    if operation is Operation.RESUME:
        return bridge_edges(uses, chosen)
    used_by: Graph = {row.id: set() for row in rows}
    for user, used in uses.items():
        for one in used:
            used_by[one].add(user)
    return bridge_edges(used_by, chosen)


def _no_new_id() -> ResourceId:
    raise AssertionError("an in-place action creates no resources")
