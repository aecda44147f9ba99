"""What has to be done to a resource, seen from what exists; and what ends a traversal."""

from dataclasses import replace

import pytest

from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.plan.change import Actual, cleanup_change, differing, forward_change
from engine.plan.dry_run import expected_change
from engine.plan.verdict import EndedNode, verdict
from engine.words import Action, Operation, ResourceAction, State, Status, TraversalState

SCHEMA = TypeSchema(
    "T",
    properties={"free": Property(Kind.STRING, update_allowed=True), "fixed": Property(Kind.STRING)},
)
MADE = {"free": "1", "fixed": "1"}


def actual(**changed: object) -> Actual:
    fields: dict[str, object] = {
        "type": "T",
        "action": ResourceAction.CREATE,
        "status": Status.COMPLETE,
        "physical_id": "p",
        "properties": MADE,
        "broken": False,
        "replaced": False,
    }
    return Actual(**{**fields, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("exists", "properties", "operation"),
    [
        (None, MADE, Operation.CREATE),
        (actual(action=ResourceAction.INIT, properties=None), MADE, Operation.CREATE),
        (actual(status=Status.FAILED), MADE, Operation.CREATE),
        (actual(status=Status.FAILED, broken=True), MADE, Operation.REPLACE),
        (actual(), MADE, None),
        (actual(), {"free": "2", "fixed": "1"}, Operation.UPDATE),
        (actual(), {"free": "1", "fixed": "2"}, Operation.REPLACE),
        (actual(type="Other"), MADE, Operation.REPLACE),
        (actual(action=ResourceAction.UPDATE, broken=True), MADE, Operation.REPLACE),
        (actual(action=ResourceAction.DELETE, status=Status.FAILED), MADE, Operation.REPLACE),
    ],
)
def test_what_is_done_follows_from_what_exists(
    exists: Actual | None, properties: dict[str, str], operation: Operation | None
) -> None:
    assert forward_change(exists, "T", SCHEMA, properties).operation is operation


def test_a_type_may_try_a_broken_update_again() -> None:
    broken = actual(action=ResourceAction.UPDATE, broken=True)
    change = forward_change(broken, "T", SCHEMA, MADE, replaces_tainted=False)
    assert change.operation is Operation.UPDATE


@pytest.mark.parametrize(
    "action", [ResourceAction.CREATE, ResourceAction.UPDATE, ResourceAction.DELETE]
)
@pytest.mark.parametrize("broken", [True, False])
def test_what_holds_a_stack_is_mended_in_place(action: ResourceAction, broken: bool) -> None:
    """However it failed: what is well inside stays. One that was never begun is made."""
    failed = actual(action=action, status=Status.FAILED, broken=broken)
    begun = broken or action is not ResourceAction.CREATE
    wanted = Operation.UPDATE if begun else Operation.CREATE
    assert forward_change(failed, "T", SCHEMA, MADE, repairs=True).operation is wanted
    gone = actual(action=ResourceAction.DELETE)
    assert forward_change(gone, "T", SCHEMA, MADE, repairs=True).operation is Operation.CREATE
    other = actual(type="Other", status=Status.FAILED, broken=True)
    assert forward_change(other, "T", SCHEMA, MADE, repairs=True).operation is Operation.REPLACE


@pytest.mark.parametrize("repairs", [True, False])
def test_a_plan_tells_what_a_type_mends(repairs: bool) -> None:
    failed = actual(status=Status.FAILED, broken=True)
    said = expected_change(
        failed, "T", SCHEMA, MADE, replaces_tainted=True, restores=False, repairs=repairs
    ).change  # fmt: skip
    assert said.operation is (Operation.UPDATE if repairs else Operation.REPLACE)


def test_null_equals_absent() -> None:
    assert differing({"a": None}, {}) == frozenset()
    assert differing({"a": 1}, {"a": 2, "b": None}) == {"a"}


def test_cleanup_leaves_alone_what_was_not_replaced_and_what_never_was() -> None:
    assert cleanup_change(actual(), only_if_replaced=True).operation is None
    gone = cleanup_change(actual(replaced=True), only_if_replaced=True)
    assert gone.operation is Operation.DELETE
    never = actual(action=ResourceAction.INIT)
    assert cleanup_change(never, only_if_replaced=False).operation is None


def ended(state: State, name: str = "web") -> EndedNode:
    return EndedNode(name, "T", "create", state, "why")


def test_a_traversal_ends_as_its_nodes_did() -> None:
    assert verdict(Action.CREATE, []).state is TraversalState.COMPLETE
    failed = verdict(Action.CREATE, [ended(State.STOPPED), ended(State.FAILED)])
    assert failed.state is TraversalState.FAILED
    assert failed.reason == "Resource CREATE failed: T: resources.web: why"


def test_a_stop_is_shown_as_failed_to_clients_that_know_no_other_end() -> None:
    said = verdict(Action.UPDATE, [ended(State.STOPPED)])
    assert (said.status, said.shown) == (Status.STOPPED, Status.FAILED)
    assert said.reason.startswith("Stopped: web (why)") and "update the stack" in said.reason


def test_what_is_immutable_changes_with_a_replacement_for_another_reason_alone() -> None:
    never = replace(
        SCHEMA, properties={**SCHEMA.properties, "kept": Property(Kind.STRING, immutable=True)}
    )
    after = {**MADE, "free": "2", "kept": "2"}
    change = forward_change(actual(properties={**MADE, "kept": "1"}), "T", never, after)
    assert change.operation is Operation.UPDATE and change.fixed == frozenset({"kept"})
    for there in (None, actual(broken=True, status=Status.FAILED), actual(type="Other")):
        assert forward_change(there, "T", never, after).fixed == frozenset()
