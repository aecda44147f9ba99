"""The plan of a traversal: an ordered list of passes.

Each pass is a function that fills in one thing of the draft. Reading PASSES is reading what a
traversal consists of. Nothing unchanged is in the graph: an update costs what it changes.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from engine.hooks.rule import Rule, line_of
from engine.hot.collector import held_back
from engine.hot.definition import DefinedResource
from engine.plan.cleanup import clear_away, keep_first, order_cleanup, untie
from engine.plan.draft import Draft, Existing, Options, Plan
from engine.plan.forward import (
    add_rows,
    go_forward,
    order_forward,
    pair,
    require_what_is_there,
    resume_first,
)
from engine.words import ResourceId

#: `untie` comes before `keep_first`, which must not be cut off from the delete it stands before.
PASSES: tuple[Callable[[Draft], None], ...] = (
    pair,
    go_forward,
    require_what_is_there,
    resume_first,
    add_rows,
    clear_away,
    order_forward,
    order_cleanup,
    untie,
    keep_first,
)


def plan(
    wanted: Mapping[str, DefinedResource],
    existing: Sequence[Existing],
    rules_of: Callable[[str, Sequence[Rule]], tuple[Rule, ...]],
    new_id: Callable[[], ResourceId],
    options: Options | None = None,
    settled: frozenset[str] = frozenset(),
) -> Plan:
    """Plan the traversal that makes `wanted` of `existing`. An empty `wanted` deletes all.

    rules_of(name, stored): the breakpoints of a resource; `stored` are those kept with a row whose
    resource is no longer wanted. settled: names whose rows are as wanted, and are left out of
    `existing` because nothing in the plan requires them.
    """
    draft = Draft(wanted, existing, rules_of, new_id, options or Options(), settled)
    with held_back():
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
    """What is to be done to what, as 64 hexadecimal digits: the same plan, the same digest.

    What exists is in it, too, and where the plan stops: another answer to either, another digest.
    """
    known = {row.id: row for row in draft.existing}
    told = hashlib.sha256()
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
        told.update("\0".join(parts).encode() + b"\n")
    told.update("\0".join(sorted(draft.stale)).encode())
    return told.hexdigest()
