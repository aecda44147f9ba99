"""Labels: which label each operation of a plan has."""

from collections.abc import Sequence
from itertools import count
from uuid import UUID

import pytest

from engine.hot.definition.stack import ResourceDefinition
from engine.hot.environment.label_syntax import label_problem
from engine.hot.environment.registry import ResourceRegistry
from engine.plan.draft import ExistingResource, Plan, Replacement
from engine.plan.labels import (
    LabelRule,
    LabelRules,
    labels_without_node,
    set_labels,
)
from engine.plan.passes import plan, plan_in_place
from engine.words import Direction, Operation, ResourceAction, ResourceId, Status

EU, US = "region=eu", "region=us"
ALL_EU = LabelRules([LabelRule(EU)]).find_for("p")


def row(name: str, number: int, label: str | None, **changed: object) -> ExistingResource:
    fields: dict[str, object] = {
        "id": ResourceId(UUID(int=number)),
        "name": name,
        "type": "T",
        "action": ResourceAction.CREATE,
        "status": Status.COMPLETE,
        "digest": "old",
        "label": label,
    }
    return ExistingResource(**{**fields, **changed})  # type: ignore[arg-type]


def planned(names: Sequence[str], *rows: ExistingResource) -> Plan:
    wanted = {
        name: ResourceDefinition(
            name, "T", {}, None, {}, frozenset(), frozenset(), "Delete", "", "new", ""
        )
        for name in names
    }
    ids = count(1000)
    return plan(wanted, rows, lambda _name, _stored: (), lambda: ResourceId(UUID(int=next(ids))))


def labels_of(plan: Plan) -> dict[tuple[str, str], str | None]:
    return {(node.name, node.operation.value): node.label for node in plan.nodes}


@pytest.mark.parametrize(
    ("project", "type_name", "name", "label"),
    [
        ("a", "OS::Nova::Server", "web", EU),
        ("b", "OS::Nova::Server", "web", None),
        ("a", "OS::Heat::Value", "web", None),
        ("a", "OS::Nova::Server", "db1", US),  # the last rule that applies wins
        ("a", "OS::Nova::Server", "db-local", None),
    ],
)
def test_the_last_rule_that_applies_gives_the_label(
    project: str, type_name: str, name: str, label: str | None
) -> None:
    rules = LabelRules([
        LabelRule(EU, ["a"], ["OS::Nova::*", "OS::Neutron::*"]),
        LabelRule(US, ["a", "c"], ["OS::Nova::Server"], ["db*"]),
        LabelRule("", ["*"], [], ["db-*"]),
    ])  # fmt: skip
    label_of = rules.find_for(project)
    assert label_of is not None and label_of(type_name, name) == label


def test_a_project_without_rules_has_no_labels() -> None:
    assert LabelRules([LabelRule(EU, ["a*"])]).find_for("b") is None
    assert LabelRules().find_for("a") is None


@pytest.mark.parametrize(
    ("name", "type_name", "label"),
    [
        ("web1", "T", EU),
        ("web2", "T", None),  # the exact name takes precedence
        ("db", "T", None),  # requests nothing
        ("us", "T", None),  # the rule is of other types
        ("us", "OS::Nova::Server", US),
        ("web9", "T", US),  # the later rule needs no request
    ],
)
def test_a_rule_on_request_applies_to_what_the_environment_requests(
    name: str, type_name: str, label: str | None
) -> None:
    rules = LabelRules([
        LabelRule(EU, on_request=True),
        LabelRule(US, types=["OS::*"], on_request=True),
        LabelRule(US, resources=["*9"]),
    ])  # fmt: skip
    labels = (("w*", US), ("web*", EU), ("web2", ""), ("us", US))
    label_of = rules.find_for("p", ResourceRegistry(labels=labels))
    assert label_of is not None and label_of(type_name, name) == label


RULES_WITH_TYPES = LabelRules([
    LabelRule(EU, types=["OS::Nova::*"], on_request=True),
    LabelRule(US, resources=["db"], on_request=True),
    LabelRule("", resources=["local"]),
])  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "unused"),
    [
        ([("web", EU)], []),
        ([("*", EU)], []),  # some of the resources get it
        ([("value", EU)], ["value (OS::Heat::Value). Remove it. Types with this label: OS::Nova"]),
        ([("v*", EU)], ["value (OS::Heat::Value)"]),
        ([("web", US)], ["web (OS::Nova::Server). Remove it, or ask the operator"]),
        ([("local", EU)], ["local (OS::Nova::Server)"]),  # a later rule wins
        ([("value", EU), ("v*", "")], ["value"]),  # the exact name takes precedence
        ([("v*", EU), ("value", "")], []),
        ([("shop", EU)], []),  # its nested stack may have servers
        ([("*p", US)], []),
        ([("nowhere", EU)], []),  # perhaps of an earlier template
    ],
)  # fmt: skip
def test_a_requested_label_that_no_resource_gets_is_a_warning(
    labels: Sequence[tuple[str, str]], unused: Sequence[str]
) -> None:
    types = {
        "web": "OS::Nova::Server", "db": "OS::Nova::Server", "local": "OS::Nova::Server",
        "value": "OS::Heat::Value", "shop": None,
    }  # fmt: skip
    requests = ResourceRegistry(labels=tuple(labels))
    found = RULES_WITH_TYPES.find_unused_requests("p", requests, types)
    assert [one.place for one in found] == [
        f"resource_registry.resources.{labels[0][0]}.label"
    ] * len(unused)
    for finding, text in zip(found, unused, strict=True):
        assert (
            f"do not give it to {text}" in f"{finding.reason.removesuffix('.')}. {finding.remedy}"
        )


def test_rules_give_labels_to_changes_and_rows_give_them_to_the_rest() -> None:
    rows = [row("kept", 1, US), row("gone", 2, US), row("plain", 3, None)]
    found = set_labels(planned(["kept", "new"], *rows), rows, ALL_EU)
    assert labels_of(found) == {
        ("kept", "update"): EU,
        ("new", "create"): EU,
        ("kept", "delete"): US,  # if it is replaced
        ("gone", "delete"): US,
        ("plain", "delete"): None,
    }
    assert [(one.name, one.label) for one in found.rows] == [("new", EU)]


def test_without_rules_a_change_removes_the_label() -> None:
    rows = [row("kept", 1, US)]
    found = set_labels(planned(["kept"], *rows), rows, None)
    assert labels_of(found) == {("kept", "update"): None, ("kept", "delete"): US}


@pytest.mark.parametrize("operation", [Operation.CHECK, Operation.SUSPEND, Operation.SNAPSHOT])
def test_actions_in_place_have_the_stored_label(operation: Operation) -> None:
    rows = [row("a", 1, US), row("b", 2, None)]
    found = set_labels(plan_in_place(operation, rows, lambda _name, _stored: ()), rows, None)
    assert labels_of(found) == {("a", operation.value): US, ("b", operation.value): None}


def test_what_a_running_operation_may_create_is_deleted_with_its_label() -> None:
    other = Replacement(ResourceId(UUID(int=9)), "T", frozenset(), EU)
    rows = [row("a", 1, US, running=(1, 0), replacement=other)]
    found = set_labels(planned([], *rows), rows, None)
    deletes = {node.resource_id.int: node.label for node in found.nodes}
    assert deletes == {1: US, 9: EU}


def test_gates_have_no_label() -> None:
    rows = [row(f"r{number}", number, EU) for number in range(1, 60)]
    names = [f"n{number}" for number in range(60)]
    found = set_labels(planned(names, *rows), rows, ALL_EU)
    gates = [node for node in found.nodes if node.operation is Operation.FINISH]
    assert [node.label for node in gates] == [None]  # a barrier between changes and deletes
    assert all(node.label == EU for node in found.nodes if node.operation is not Operation.FINISH)


def test_resources_that_the_plan_does_not_change_get_the_label_of_the_rules() -> None:
    rows = [row("a", 1, US), row("b", 2, US, digest="new")]
    found = planned(["a", "b"], *rows)
    assert [node.name for node in found.nodes if node.direction is Direction.FORWARD] == ["a"]
    assert labels_without_node(found, {"a": "T", "b": "T"}, ALL_EU) == {"b": EU}
    assert labels_without_node(found, {"a": "T", "b": "T"}, None) == {"b": None}


@pytest.mark.parametrize("text", ["region=eu", "a=B", "example.org/zone=eu-1.a", "k_1=0"])
def test_labels_are_valid(text: str) -> None:
    assert label_problem(text) == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("region", '"region" is not a label: it has no ='),
        ("Region=eu", '"Region=eu" is not a label'),
        ("region=", '"region=" is not a label'),
        ("=eu", '"=eu" is not a label'),
        ("region=eu west", '"region=eu west" is not a label'),
        ("region=eu=us", '"region=eu=us" is not a label'),
        ("region=eu\n", '"region=eu\n" is not a label'),
        ("region=*", '"region=*" is not a label'),
        (f"region={'e' * 100}", "has 107 characters, and a label has at most 100"),
    ],
)
def test_other_texts_are_not(text: str, reason: str) -> None:
    assert label_problem(text) == reason
