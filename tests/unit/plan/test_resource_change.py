"""The operation for a resource, given its state; and the result of a traversal."""

from dataclasses import replace

import pytest

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.plan.expected_changes import expected_change
from engine.plan.resource_change import (
    ResourceState,
    cleanup_change,
    differing_names,
    forward_change,
)
from engine.plan.traversal_result import EndedNode, result_of
from engine.words import Action, Operation, ResourceAction, State, Status, TraversalState

SCHEMA = TypeSchema(
    "T",
    properties={"free": Property(Kind.STRING, update_allowed=True), "fixed": Property(Kind.STRING)},
)
CREATED = {"free": "1", "fixed": "1"}


def actual(**changed: object) -> ResourceState:
    fields: dict[str, object] = {
        "type": "T",
        "action": ResourceAction.CREATE,
        "status": Status.COMPLETE,
        "physical_id": "p",
        "properties": CREATED,
        "tainted": False,
        "replaced": False,
    }
    return ResourceState(**{**fields, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("exists", "properties", "operation"),
    [
        (None, CREATED, Operation.CREATE),
        (actual(action=ResourceAction.INIT, properties=None), CREATED, Operation.CREATE),
        (actual(status=Status.FAILED), CREATED, Operation.CREATE),
        (actual(status=Status.FAILED, tainted=True), CREATED, Operation.REPLACE),
        (actual(), CREATED, None),
        (actual(), {"free": "2", "fixed": "1"}, Operation.UPDATE),
        (actual(), {"free": "1", "fixed": "2"}, Operation.REPLACE),
        (actual(type="Other"), CREATED, Operation.REPLACE),
        (actual(action=ResourceAction.UPDATE, tainted=True), CREATED, Operation.REPLACE),
        (actual(action=ResourceAction.DELETE, status=Status.FAILED), CREATED, Operation.REPLACE),
    ],
)
def test_the_operation_follows_from_the_existing_state(
    exists: ResourceState | None, properties: dict[str, str], operation: Operation | None
) -> None:
    assert forward_change(exists, "T", SCHEMA, properties).operation is operation


@pytest.mark.parametrize(
    ("changed", "operation"),
    [
        ({"unhealthy": True, "tainted": True}, Operation.REPLACE),
        ({"tainted": True}, Operation.UPDATE),
        ({"unhealthy": True}, Operation.UPDATE),
    ],
    ids=["marked", "check-failed", "check-succeeded-since"],
)
def test_a_nested_stack_is_replaced_only_if_a_user_has_marked_it(
    changed: dict[str, bool], operation: Operation
) -> None:
    found = actual(action=ResourceAction.CHECK, status=Status.FAILED, **changed)
    assert forward_change(found, "T", SCHEMA, CREATED, nests=True).operation is operation


def test_a_type_can_retry_a_failed_update() -> None:
    tainted = actual(action=ResourceAction.UPDATE, tainted=True)
    change = forward_change(tainted, "T", SCHEMA, CREATED, replaces_tainted=False)
    assert change.operation is Operation.UPDATE


@pytest.mark.parametrize(
    "action", [ResourceAction.CREATE, ResourceAction.UPDATE, ResourceAction.DELETE]
)
@pytest.mark.parametrize("tainted", [True, False])
def test_a_resource_with_a_nested_stack_is_repaired_in_place(
    action: ResourceAction, tainted: bool
) -> None:
    """After any failure, healthy members stay. A nested stack that was not created is created."""
    failed = actual(action=action, status=Status.FAILED, tainted=tainted)
    begun = tainted or action is not ResourceAction.CREATE
    expected = Operation.UPDATE if begun else Operation.CREATE
    assert forward_change(failed, "T", SCHEMA, CREATED, repairs=True).operation is expected
    gone = actual(action=ResourceAction.DELETE)
    assert forward_change(gone, "T", SCHEMA, CREATED, repairs=True).operation is Operation.CREATE
    other = actual(type="Other", status=Status.FAILED, tainted=True)
    assert forward_change(other, "T", SCHEMA, CREATED, repairs=True).operation is Operation.REPLACE


@pytest.mark.parametrize("repairs", [True, False])
def test_a_plan_shows_repairs_by_the_type(repairs: bool) -> None:
    failed = actual(status=Status.FAILED, tainted=True)
    found = expected_change(
        failed, "T", SCHEMA, CREATED, replaces_tainted=True, repairs=repairs
    ).change  # fmt: skip
    assert found.operation is (Operation.UPDATE if repairs else Operation.REPLACE)


def test_null_equals_absent() -> None:
    assert differing_names({"a": None}, {}) == frozenset()
    assert differing_names({"a": 1}, {"a": 2, "b": None}) == {"a"}


def test_cleanup_ignores_resources_that_were_not_replaced_or_never_existed() -> None:
    assert cleanup_change(actual(), only_if_replaced=True).operation is None
    gone = cleanup_change(actual(replaced=True), only_if_replaced=True)
    assert gone.operation is Operation.DELETE
    never = actual(action=ResourceAction.INIT)
    assert cleanup_change(never, only_if_replaced=False).operation is None


def ended(state: State, name: str = "web") -> EndedNode:
    return EndedNode(name, "T", "create", state, "why")


def test_the_result_of_a_traversal_follows_from_its_nodes() -> None:
    assert result_of(Action.CREATE, []).state is TraversalState.COMPLETE
    failed = result_of(Action.CREATE, [ended(State.STOPPED), ended(State.FAILED)])
    assert failed.state is TraversalState.FAILED
    assert failed.reason == "Resource CREATE failed: T: resources.web: why"


def test_a_stop_is_shown_as_failed_to_heat_clients() -> None:
    found = result_of(Action.UPDATE, [ended(State.STOPPED)])
    assert (found.status, found.shown) == (Status.STOPPED, Status.FAILED)
    assert found.reason.startswith("Stopped: web (why)") and "update the stack" in found.reason


def test_immutable_properties_change_only_in_a_replacement_for_another_reason() -> None:
    never = replace(
        SCHEMA, properties={**SCHEMA.properties, "kept": Property(Kind.STRING, immutable=True)}
    )
    after = {**CREATED, "free": "2", "kept": "2"}
    change = forward_change(actual(properties={**CREATED, "kept": "1"}), "T", never, after)
    assert change.operation is Operation.UPDATE and change.fixed == frozenset({"kept"})
    for there in (None, actual(tainted=True, status=Status.FAILED), actual(type="Other")):
        assert forward_change(there, "T", never, after).fixed == frozenset()
