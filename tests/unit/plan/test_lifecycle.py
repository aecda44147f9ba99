"""The lifecycle of a resource decides its operation."""

import pytest

from engine.hot.definition.lifecycle import Lifecycle
from engine.plan.expected_changes import ExpectedChange, expected_replacement
from engine.plan.lifecycle import (
    Triggers,
    keep_ignored,
    trigger_digest,
    with_replacement,
)
from engine.plan.resource_change import ResourceChange
from engine.words import Operation, ResourceAction
from tests.unit.plan.test_resource_change import actual

UPDATE = ResourceChange(Operation.UPDATE, frozenset({"free"}))


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        (Lifecycle(), {"free": "2", "new": "3"}),
        (Lifecycle(ignored=frozenset({"free"})), {"free": "1", "new": "3"}),
        (Lifecycle(ignored=frozenset({"new", "fixed"})), {"free": "2", "fixed": "1"}),
        (Lifecycle(ignores_all=True), {"free": "1", "fixed": "1"}),
    ],
)
def test_ignored_properties_keep_their_applied_values(
    rules: Lifecycle, kept: dict[str, str]
) -> None:
    assert keep_ignored(rules, actual(), {"free": "2", "new": "3"}) == kept


@pytest.mark.parametrize("row", [None, actual(action=ResourceAction.INIT, properties=None)])
def test_a_resource_that_does_not_exist_gets_the_values_of_its_template(row: object) -> None:
    rules = Lifecycle(ignores_all=True)
    assert keep_ignored(rules, row, {"free": "2"}) == {"free": "2"}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rules", "before", "now", "change", "operation"),
    [
        (Lifecycle(), {}, {}, UPDATE, Operation.UPDATE),
        (Lifecycle(replace_on=frozenset({"free"})), {}, {}, UPDATE, Operation.REPLACE),
        (Lifecycle(replace_on=frozenset({"other"})), {}, {}, UPDATE, Operation.UPDATE),
        (Lifecycle(), {"x": "1"}, {"x": "2"}, ResourceChange(None), Operation.REPLACE),
        (Lifecycle(), {"x": "1"}, {"x": "1"}, ResourceChange(None), None),
        (Lifecycle(), {}, {"x": "1"}, ResourceChange(None), None),
        (Lifecycle(), {"x": "1"}, {"x": None}, ResourceChange(None), None),
        (Lifecycle(), {"x": "1"}, {"x": "2"}, ResourceChange(Operation.CREATE), Operation.CREATE),
    ],
)
def test_a_changed_cause_replaces(
    rules: Lifecycle,
    before: dict[str, str],
    now: dict[str, str | None],
    change: ResourceChange,
    operation: Operation | None,
) -> None:
    found = with_replacement(rules, Triggers(before, now), change)
    assert found.operation is operation
    assert bool(found.cause) == (operation is Operation.REPLACE)


def test_an_immutable_property_may_be_a_cause() -> None:
    change = ResourceChange(Operation.UPDATE, frozenset({"a", "b"}), fixed=frozenset({"a", "b"}))
    one = with_replacement(Lifecycle(replace_on=frozenset({"a"})), Triggers(), change)
    assert (one.operation, one.fixed) == (Operation.UPDATE, frozenset({"b"}))
    both = with_replacement(Lifecycle(replace_on=frozenset({"a", "b"})), Triggers(), change)
    assert (both.operation, both.fixed) == (Operation.REPLACE, frozenset())


def test_a_dry_run_is_certain_only_of_known_causes() -> None:
    rules = Lifecycle(replace_on=frozenset({"free"}))
    known = expected_replacement(rules, Triggers(), ExpectedChange(UPDATE, True))
    assert (known.change.operation, known.certain) == (Operation.REPLACE, True)
    unknown = expected_replacement(rules, Triggers(), ExpectedChange(UPDATE, False, ("free",)))
    assert (unknown.change.operation, unknown.certain) == (Operation.REPLACE, False)
    later = expected_replacement(
        Lifecycle(), Triggers({}, {"x": None}), ExpectedChange(ResourceChange(None), True)
    )
    assert (later.change.operation, later.certain) == (None, False)


def test_equal_values_have_equal_digests() -> None:
    assert trigger_digest({"a": 1, "b": 2}) == trigger_digest({"b": 2, "a": 1})
    assert trigger_digest(1) != trigger_digest("1")
    assert trigger_digest(2**80) != trigger_digest(2**81)
