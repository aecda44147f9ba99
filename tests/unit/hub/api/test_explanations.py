"""Explanations of GET .../why."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from engine.service.reads.graphs import StackGraph
from engine.store.records import NodeRecord, TraversalRecord
from hub.api.headgate.explanations import explain

STACK = UUID(int=1)
UPDATE = TraversalRecord(
    1, "UPDATE", "running", "", "", 2, [], "ann", datetime(2026, 1, 1, tzinfo=UTC), None, 0.0
)


def node(id: int, direction: str, name: str, state: str, dependents: list[int]) -> NodeRecord:
    operation = "create" if direction == "forward" else "delete"
    return NodeRecord(
        STACK, id, name, "T", operation, direction, state, "pre", 0, dependents, [],
        None, None, None, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (("forward", "app"), ("cleanup", "app"), "app (delete) waits for its replacement."),
        (("cleanup", "app"), ("forward", "app"),
         "app (create) waits for the deletion of its old resource."),
        (("forward", "db"), ("forward", "app"), "app (create) waits for db."),
    ],
    ids=["replacement", "old-resource", "other-resource"],
)  # fmt: skip
def test_a_node_never_waits_for_itself(
    before: tuple[str, str], after: tuple[str, str], sentence: str
) -> None:
    nodes = [node(1, *before, "running", [2]), node(2, *after, "waiting", [])]
    found = explain([StackGraph(STACK, "s", "", 1, UPDATE, nodes)], {})
    assert [one["sentence"] for one in found][1:] == [sentence]


@pytest.mark.parametrize(
    ("label", "labels", "sentence"),
    [
        ("", ["", "a=b"], "app (create) is ready and waits for a worker."),
        ("", ["a=b"], "app (create) is ready and waits for a worker; no running process has one"
         " without labels."),
        ("a=b", ["", "a=b"], "app (create) is ready and waits for a worker with the label a=b."),
        ("a=b", ["", "a=c"], "app (create) is ready and waits for a worker with the label a=b; no"
         " running process has this label."),
    ],
    ids=["plain", "plain-missing", "label", "label-missing"],
)  # fmt: skip
def test_a_ready_node_names_the_workers_it_waits_for(
    label: str, labels: list[str], sentence: str
) -> None:
    ready = replace(node(1, "forward", "app", "ready", []), label=label)
    found = explain([StackGraph(STACK, "s", "", 1, UPDATE, [ready])], {}, labels)
    assert [one["sentence"] for one in found] == [sentence]
