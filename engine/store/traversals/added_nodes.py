"""The nodes that a node adds to the graph when it has replaced its resource: those that delete the
replaced one (`PlannedNode.added_by`).

The definition of the node has them in a short form, because each update of its row writes it again.
"""

from collections.abc import Mapping, Sequence

from engine.plan.draft import Plan
from engine.store.traversals.advance import Work
from engine.words import Json, Operation

#: Key of a definition.
IF_REPLACED = "if_replaced"


def encode_added_nodes(plan: Plan, dependents: Sequence[Sequence[int]]) -> dict[int, list[Json]]:
    """The short forms, without what is usual, by the node that adds them.

    after, dependents: also nodes that are added later, or never.
    """
    added: dict[int, list[Json]] = {}
    for index, node in enumerate(plan.nodes):
        if node.added_by is None:
            continue
        short: dict[str, Json] = {"id": index}
        if node.after != {node.added_by}:
            short["after"] = sorted(node.after)
        if dependents[index]:
            short["dependents"] = list(dependents[index])
        if node.operation is not Operation.DELETE:
            short |= {"operation": node.operation.value}
        if node.retained:
            short["retained"] = True
        if node.label:
            short["label"] = node.label
        added.setdefault(node.added_by, []).append(short)
    return added


def decode_added_nodes(work: Work) -> list[Json] | None:
    """The nodes that a replacement adds, as the routine `add_nodes` reads them; None: none."""
    definition: Mapping[str, Json] = work.definition or {}
    if IF_REPLACED not in definition:
        return None
    return [
        {
            "id": short["id"],
            "type": work.row_type,
            "operation": short.get("operation", Operation.DELETE),
            "definition": {"only_if_replaced": True, "retained": short.get("retained", False)},
            "after": short.get("after", [work.key.node]),
            "dependents": short.get("dependents", []),
            "label": short.get("label"),
        }
        for short in definition[IF_REPLACED]
    ]
