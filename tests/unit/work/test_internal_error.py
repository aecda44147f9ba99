"""The failure of a node whose documents cannot be written is the machine's decision."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from engine.node.machine import TABLE
from engine.node.node import OperationFailed
from engine.store.encryption.secret_values import EncryptedDocument
from engine.store.traversals.advance import Claim, Work
from engine.types.contract import Done
from engine.words import GATES, Json, Operation, Phase, State
from engine.work.nodes.internal_error import NodeContext, bare_failure
from engine.work.nodes.job import Job, NodeInput, decide_step, node_of
from engine.work.nodes.transition_encoder import Result

ID = UUID(int=1)
REASON = "internal error 7"
#: The phases in which a node can run, and so fail.
PHASES = sorted(
    phase for state, phase, kind in TABLE if (state, kind) == (State.RUNNING, OperationFailed)
)
#: Operations of resources in states in which their last failure could be lost.
ROWS = [("CREATE", "COMPLETE"), ("SUSPEND", "COMPLETE"), ("RESUME", "FAILED"), ("CHECK", "FAILED")]


def running(operation: str, phase: str, **columns: Json) -> Work:
    """A claimed node of a resource that exists."""
    values: dict[str, Any] = dict.fromkeys(
        (
            "replacement_id", "definition", "rules", "progress", "dependents",
            "reference", "masked_properties", "metadata", "digest", "deletion_policy", "inputs",
            "replaced_by", "properties", "attributes", "data",
        )
    )  # fmt: skip
    values |= {
        "key": Claim(ID, 2, 3, 4), "project": "p", "stack_name": "s", "resource_id": ID,
        "operation_key": ID, "name": "" if operation in GATES else "web", "type": "Test::Thing",
        "operation": operation, "direction": "forward", "phase": phase,
        "breakpoints_hit": ["pre-create"], "attempts": 0, "started": True,
        "row_type": "Test::Thing", "action": "CREATE", "status": "COMPLETE",
        "physical_id": "old", "tainted": False, "protected": False,
        "now": datetime(2026, 1, 1, tzinfo=UTC), "step_mode": "run",
    }  # fmt: skip
    return Work(**values | columns)


def of_the_machine(work: Work, result: Result) -> Json:
    """The step of the same failure with documents that can be written."""
    step = decide_step(
        Job(work, node_of(work)),
        NodeInput(OperationFailed(REASON), result),
        new_id=lambda: ID,
        default_timeout=timedelta(days=1),
    )
    assert step is not None
    return step


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("operation", [*Operation])
@pytest.mark.parametrize(("action", "status"), ROWS)
@pytest.mark.parametrize("replaced_by", [None, ID])
def test_a_failure_without_documents_is_the_one_that_the_machine_decides(
    operation: Operation, phase: Phase, action: str, status: str, replaced_by: UUID | None
) -> None:
    work = running(operation, phase, action=action, status=status, replaced_by=replaced_by)
    step, expected = bare_failure(NodeContext(work), REASON), of_the_machine(work, Result())
    resource, decided = step.pop("resource"), expected.pop("resource")
    assert step == expected
    assert (resource is None) is (decided is None) is (operation in GATES)
    if resource is not None:
        assert resource.pop("write") == "fail"
        assert resource.pop("physical_id") is None  # the row keeps its own
        assert resource == {name: decided[name] for name in resource}


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE, Operation.REPLACE])
def test_the_physical_resource_of_a_failed_operation_is_not_lost(operation: Operation) -> None:
    """A replacement has a row of its own, so its ID is not one of the old resource."""
    work = running(operation, Phase.EXECUTE)
    step = bare_failure(NodeContext(work, outcome=Done("new")), REASON)
    assert step["resource"]["physical_id"] == (None if operation == "replace" else "new")


@pytest.mark.parametrize("phase", [*Phase])
@pytest.mark.parametrize("operation", [*Operation])
def test_a_failure_without_documents_can_always_be_decided(
    operation: Operation, phase: Phase
) -> None:
    """Also in phases in which no node can run, and with values that could not be decrypted."""
    sealed = EncryptedDocument(b"damaged")
    damaged = running(
        operation, phase, properties=sealed, data=sealed, attributes=sealed, reference=sealed,
        metadata=sealed, lifecycle=sealed, rules="damaged", undecryptable="damaged",
    )  # fmt: skip
    step = bare_failure(NodeContext(damaged), REASON)
    assert (step["state"], step["phase"], step["reason"]) == (State.FAILED, phase, REASON)


def test_a_resource_whose_row_was_not_read_fails() -> None:
    unread = running(Operation.SNAPSHOT, Phase.EXECUTE, action=None, status=None)
    assert bare_failure(NodeContext(unread), REASON)["resource"]["action"] == "SNAPSHOT"
