"""Explanations of GET .../why."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from engine.plan.convergence import ConvergencePolicy
from engine.service.reads.graphs import StackGraph
from engine.store.observer.drift_rows import DriftedResource
from engine.store.records import NodeRecord, TraversalRecord
from engine.words import OnDrift
from hub.api.headgate.explanations import explain, explain_unrepaired

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


NOW = datetime(2026, 1, 2, tzinfo=UTC)


def differing(name: str, state: str = "changed", unrepaired: str | None = None) -> DriftedResource:
    since = NOW - timedelta(hours=1)
    return DriftedResource(
        STACK, "s", "", UUID(int=2), name, "T", "p", state, [], "", since, NOW, unrepaired, None
    )


@pytest.mark.parametrize(
    ("policy", "status", "reason"),
    [
        (None, "CREATE_COMPLETE", "the stack has no convergence policy"),
        ({}, "CREATE_COMPLETE", "its convergence policy has `on_drift: ignore`"),
        ({"on_drift": OnDrift.NOTIFY}, "CREATE_COMPLETE",
         "its convergence policy has `on_drift: notify`"),
        ({"on_drift": OnDrift.REPAIR, "tolerate": timedelta(hours=2)}, "CREATE_COMPLETE",
         "its convergence policy tolerates drift for 2h"),
        ({"on_drift": OnDrift.HOLD}, "CREATE_COMPLETE",
         "its hook is answered, or opens after the next observation"),
        ({"on_drift": OnDrift.HOLD}, "UPDATE_IN_PROGRESS",
         "no hook about drift opens during a change of the stack"),
        ({"on_drift": OnDrift.REPAIR}, "UPDATE_FAILED", "the status of the stack is UPDATE_FAILED"),
        ({"on_drift": OnDrift.REPAIR}, "UPDATE_COMPLETE", "a repair has not started yet"),
    ],
)  # fmt: skip
def test_drift_without_a_hook_says_why_nothing_repairs_it(
    policy: dict[str, Any] | None, status: str, reason: str
) -> None:
    rules = None if policy is None else ConvergencePolicy(timedelta(minutes=10), **policy)
    found = [differing("b"), differing("c", "unknown"), differing("a"), differing("held")]
    (one,) = explain_unrepaired(found, rules, status, {(STACK, "held")}, NOW)
    assert one["sentence"] == (
        "2 resources have differed from the recorded state since 2026-01-01T23:00:00.000000Z"
        f" (a, b), without a repair: {reason}."
    )
    assert (one["resources"], one["reason"]) == (["a", "b"], reason)


def test_drift_is_explained_by_the_refusal_of_its_repair() -> None:
    policy = ConvergencePolicy(timedelta(minutes=10), OnDrift.REPAIR)
    found = [differing("a", unrepaired="the limit is reached."), differing("b")]
    reasons = [
        one["reason"] for one in explain_unrepaired(found, policy, "UPDATE_COMPLETE", (), NOW)
    ]
    assert reasons == ["the limit is reached", "a repair has not started yet"]
