"""Plans of in-place actions: check, suspend, resume, snapshot."""

from collections.abc import Callable, Sequence

from engine.hooks.rule import Rule
from engine.plan.draft import Draft, Existing, Plan
from engine.plan.forward import visit
from engine.plan.graph import bridged
from engine.plan.passes import digest_of
from engine.words import Operation, ResourceAction, ResourceId, Status

Graph = dict[ResourceId, set[ResourceId]]


def plan_visits(
    operation: Operation,
    existing: Sequence[Existing],
    rules_of: Callable[[str, Sequence[Rule]], tuple[Rule, ...]],
) -> Plan:
    """Return one node for each resource to which the operation applies, in order.

    Resources are suspended before those they use, and resumed after them. Checks and snapshots are
    independent of each other: none waits for another, and a failure does not stop the others.
    """
    rows = [row for row in existing if row.replaced_by is None and row.made]
    chosen = {row.id: index for index, row in enumerate(_concerned(operation, rows))}
    draft = Draft({}, existing, rules_of, _no_new_id)
    for row in rows:
        if row.id in chosen:
            draft.add(visit(row, operation, rules_of(row.name, row.rules)))
    for row_id, before in _order(operation, rows, chosen).items():
        draft.nodes[chosen[row_id]].after = {chosen[one] for one in before}
    return Plan(tuple(draft.nodes), (), digest_of(draft))


def _concerned(operation: Operation, rows: Sequence[Existing]) -> list[Existing]:
    if operation is Operation.SUSPEND:
        return [row for row in rows if not _is(row, ResourceAction.SUSPEND)]
    if operation is Operation.RESUME:
        return [row for row in rows if row.suspended]
    return list(rows)


def _is(row: Existing, action: ResourceAction) -> bool:
    return row.action is action and row.status is Status.COMPLETE


def _order(operation: Operation, rows: Sequence[Existing], chosen: dict[ResourceId, int]) -> Graph:
    if operation not in (Operation.SUSPEND, Operation.RESUME):
        return {}
    known = {row.id for row in rows}
    uses: Graph = {row.id: set(row.requires) & known for row in rows}
    if operation is Operation.RESUME:
        return bridged(uses, chosen)
    used_by: Graph = {row.id: set() for row in rows}
    for user, used in uses.items():
        for one in used:
            used_by[one].add(user)
    return bridged(used_by, chosen)


def _no_new_id() -> ResourceId:
    raise AssertionError("an in-place action creates no resources")
