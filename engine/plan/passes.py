"""The plan of a traversal: an ordered list of passes.

Each pass is a function that fills in one part of the draft. Unchanged resources are not in the
graph, so the cost of an update depends on its changes.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from engine.hooks.rule import Rule, line_of
from engine.hot.definition.stack import ResourceDefinition
from engine.hot.gc_pause import pause_gc
from engine.plan.cleanup import break_cycles, order_cleanup, plan_deletes, plan_snapshots
from engine.plan.draft import Draft, Existing, Options, Plan
from engine.plan.forward import (
    add_rows,
    check_requirements,
    match_existing,
    order_forward,
    plan_forward,
    plan_resumes,
)
from engine.words import ResourceId

#: `break_cycles` precedes `plan_snapshots`, whose edges to deletes must not be removed.
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
    plan_snapshots,
)


def plan(
    wanted: Mapping[str, ResourceDefinition],
    existing: Sequence[Existing],
    rules_of: Callable[[str, Sequence[Rule]], tuple[Rule, ...]],
    new_id: Callable[[], ResourceId],
    options: Options | None = None,
    settled: frozenset[str] = frozenset(),
) -> Plan:
    """Plan the traversal that changes `existing` to `wanted`. An empty `wanted` deletes all.

    rules_of(name, stored): the hook rules of a resource; `stored` are those of a row whose resource
    is no longer wanted. settled: names whose rows are up to date and omitted from `existing`
    because nothing in the plan requires them.
    """
    draft = Draft(wanted, existing, rules_of, new_id, options or Options(), settled)
    with pause_gc():
        for fill in PASSES:
            fill(draft)
        return Plan(
            tuple(draft.nodes),
            tuple(draft.rows),
            digest_of(draft),
            tuple(sorted(draft.stale)),
            tuple(draft.problems),
        )


def digest_of(draft: Draft) -> str:
    """Return the plan digest, 64 hexadecimal digits: equal plans have equal digests.

    It includes the current rows and the hook rules, so it changes with either.
    """
    known = {row.id: row for row in draft.existing}
    digest = hashlib.sha256()
    for node in sorted(draft.nodes, key=lambda node: (node.name, node.direction, node.operation)):
        row, wanted = known.get(node.resource_id), draft.wanted.get(node.name)
        parts = (
            node.name,
            node.type,
            node.operation,
            node.direction,
            "" if row is None else f"{row.digest} {row.action}_{row.status} {row.physical_id}",
            wanted.digest if wanted else "",
            *(line_of(rule) for rule in node.rules),
        )
        digest.update("\0".join(parts).encode() + b"\n")
    digest.update("\0".join(sorted(draft.stale)).encode())
    return digest.hexdigest()
