"""Groups compute their nested stack from properties, current members and answers."""

from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any

import pytest

from engine.hot.expressions.member_attributes import read_members
from engine.types.contract import (
    Child,
    Confirm,
    Confirmation,
    Done,
    Failed,
    ReconcileNested,
    ResourceType,
    RunNested,
)
from engine.types.group_size import Adjustment, SizeAdjustment, adjusted_size
from engine.types.groups.auto_scaling import AutoScalingGroup
from engine.types.groups.group_steps import Progress
from engine.types.groups.instance_group import AwsAutoScalingGroup, InstanceGroup
from engine.types.groups.member_changes import fresh_names
from engine.types.groups.member_template import build_template
from engine.types.groups.resource_chain import ResourceChain
from engine.types.groups.resource_group import ResourceGroup
from engine.types.groups.scaling_policy import AwsScalingPolicy
from engine.words import Json, TraversalState
from tests.unit.types.calls import KEY, NOW, a_call, findings_of
from tests.unit.types.child_stacks import CHILD, run_command
from tests.unit.types.nested_stack import NestedStack

GROUP, CHAIN, SCALING = ResourceGroup(), ResourceChain(), AutoScalingGroup()
INSTANCES = InstanceGroup()
AWS_GROUP = AwsAutoScalingGroup()
AWS_POLICY = AwsScalingPolicy()


def group_properties(count: int = 3, value: str = "v-%index%", **more: Json) -> dict[str, Any]:
    body = {"type": "T", "properties": {"value": value}}
    return {"count": count, "resource_def": body, **more}


def rolling(**policy: Json) -> dict[str, Json]:
    return {"rolling_update": policy}


def values(inside: NestedStack) -> dict[str, Json]:
    return {name: body["properties"]["value"] for name, body in inside.bodies.items()}


def size(nest: RunNested) -> int:
    assert isinstance(nest.goal, ReconcileNested)
    assert nest.goal.template is not None
    return len(nest.goal.template["resources"])


def steps(inside: NestedStack) -> list[str]:
    return [one.step for one in inside.goals]


# -- OS::Heat::ResourceGroup ----------------------------------------------------------------------


def test_the_index_variable_is_replaced_at_any_depth() -> None:
    body = {
        "type": "T",
        "properties": {"a": [{"b": "x-%index%-%index%", "%index%": 1}], "none": None},
        "metadata": {"m": "%index%"},
    }
    inside = NestedStack()
    inside.run(GROUP, "create", {"count": 2, "resource_def": body})
    assert inside.bodies == {
        name: {
            "type": "T",
            "properties": {"a": [{"b": f"x-{name}-{name}", "%index%": 1}]},
            "metadata": {"m": name},
        }
        for name in ("0", "1")
    }


def test_the_index_variable_can_have_another_name() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(1, "%index%-NUM", index_var="NUM"))
    assert values(inside) == {"0": "%index%-0"}


@pytest.mark.parametrize("count", [0, 1, 12])
def test_a_group_has_count_members(count: int) -> None:
    inside = NestedStack()
    done = inside.run(GROUP, "create", group_properties(count))
    assert isinstance(done, Done)
    names = [str(number) for number in range(count)]
    assert read_members(done.attributes, "refs", []) == [f"ref-{name}" for name in names]
    assert read_members(done.attributes, "output", []) == [f"of {name}" for name in names]
    assert steps(inside) == ["members-1"]


def test_values_in_the_form_of_functions_stay_values() -> None:
    value = {"get_param": "secret", "deep": [{"get_file": "/etc/passwd"}, {"Ref": "x"}]}
    inside = NestedStack()
    body = {"type": "T", "properties": {"value": value, "other": {"get_attr": ["a", "b"]}}}
    inside.run(GROUP, "create", {"count": 1, "resource_def": body})
    goal = inside.goals[0].goal
    assert isinstance(goal, ReconcileNested)
    assert "get_file" not in str(goal.template)
    assert inside.bodies["0"]["properties"] == body["properties"]


def test_possibly_hidden_values_are_passed_as_a_hidden_parameter() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(2, "secret"), has_secrets=True)
    assert inside.child is not None
    assert "secret" not in str(inside.child.template)
    assert inside.child.template["parameters"]["literals"]["hidden"] is True
    assert values(inside) == {"0": "secret", "1": "secret"}


def test_members_are_created_in_batches_with_a_pause() -> None:
    inside = NestedStack()
    policy = {"batch_create": {"max_batch_size": 2, "pause_time": 30}}
    inside.run(GROUP, "create", group_properties(5), update_policy=policy)
    sizes = [*map(size, inside.goals)]
    assert (steps(inside), sizes) == (["batch-1", "batch-2", "batch-3"], [2, 4, 5])
    assert inside.waits == [timedelta(seconds=30)] * 2
    assert inside.confirmations == []


def test_a_group_without_a_policy_changes_all_members_at_once() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(3))
    inside.run(GROUP, "update", group_properties(4, "w"))
    assert values(inside) == dict.fromkeys("0123", "w")
    assert steps(inside) == ["members-1", "members-1"]


def test_a_rolling_update_changes_the_highest_numbers_first() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(3, "v"))
    inside.run(GROUP, "update", group_properties(3, "w"), update_policy=rolling(max_batch_size=2))
    seen = [one.seen["members"] for one in inside.confirmations]
    assert seen == [["2", "1"], ["0"]]
    assert values(inside) == dict.fromkeys("012", "w")


def test_an_answer_counts_for_one_batch_if_the_worker_crashes_after_its_start() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(3, "v"))
    inside.lost = {"batch-1"}
    done = inside.run(GROUP, "update", group_properties(3, "w"), update_policy=rolling())
    assert isinstance(done, Done)
    assert steps(inside)[1:] == ["batch-1", "batch-2", "batch-3"]
    assert [one.seen["members"] for one in inside.confirmations] == [["2"], ["1"], ["0"]]
    assert values(inside) == dict.fromkeys("012", "w")


def test_the_members_that_an_answer_has_removed_are_known_after_a_crash() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(3, "v"))
    inside.lost = {"scale-in-1"}
    inside.run(GROUP, "update", group_properties(2, "v"), answering=lambda _: {"victims": ["0"]})
    assert steps(inside)[1:] == ["scale-in-1"]
    assert set(inside.bodies) == {"1", "2"}


def test_a_group_grows_temporarily_to_keep_enough_members_in_service() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(2, "v"))
    policy = rolling(max_batch_size=2, min_in_service=2)
    inside.run(GROUP, "update", group_properties(2, "w"), update_policy=policy)
    sizes = [*map(size, inside.goals[1:])]
    assert sizes == [4, 4, 2]
    assert values(inside) == {"0": "w", "1": "w"}


def test_a_change_of_count_alone_is_no_rolling_update() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(2))
    inside.run(GROUP, "update", group_properties(4), update_policy=rolling())
    assert steps(inside)[1:] == ["members-1"]


def test_a_rolling_update_continues_an_interrupted_one() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(4, "v"))
    bodies = {**inside.bodies}
    bodies["3"] = {"type": "T", "properties": {"value": "w"}}
    inside.members(bodies)
    inside.run(GROUP, "update", group_properties(4, "w"), update_policy=rolling())
    assert [one.seen["members"] for one in inside.confirmations] == [["2"], ["1"], ["0"]]


def interrupted(inside: NestedStack, value: str, **members: Json) -> Child:
    """The nested stack after a step toward a value that ended before it had changed a member.
    members: fields of all members."""
    previous = inside.bodies
    bodies = {name: {"type": "T", "properties": {"value": value}} for name in inside.bodies}
    inside.members({})
    assert inside.child is not None
    goal = build_template(bodies, {}, previous=previous)
    after = run_command(inside.child, "batch-1", goal)
    changed = [replace(one, **members) for one in after.members]
    return replace(after, step="", state=TraversalState.FAILED, members=changed)


def test_members_that_a_superseded_batch_has_not_changed_keep_their_definitions() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(2, "v"))
    inside.child = interrupted(inside, "w", up_to_date=False)
    assert values(inside) == {"0": "v", "1": "v"}
    inside.run(GROUP, "update", group_properties(2, "x"), update_policy=rolling())
    assert [one.seen["members"] for one in inside.confirmations] == [["1"], ["0"]]
    first = inside.goals[1].goal
    assert isinstance(first, ReconcileNested)
    assert first.template is not None
    bodies = first.template["resources"]
    assert [bodies[name]["properties"]["value"] for name in "01"] == ["v", "x"]


def test_definitions_of_an_interrupted_batch_can_be_secret() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(1, "v"), has_secrets=True)
    inside.run(GROUP, "update", group_properties(1, "w"), has_secrets=True)
    goal = inside.goals[-1].goal
    assert isinstance(goal, ReconcileNested)
    assert goal.template is not None
    shown = [name for name, one in goal.template["parameters"].items() if not one.get("hidden")]
    assert "v" in str(goal.parameters["previous"])
    assert shown == ["group"]


def test_members_on_which_a_superseded_batch_operates_are_the_next_batch() -> None:
    """Also if they have the definition already: the operation may fail."""
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(3, "v"))
    after = interrupted(inside, "w")
    members = [replace(one, under_way=one.name == "0") for one in after.members]
    inside.child = replace(after, members=members)
    inside.run(GROUP, "update", group_properties(3, "w"), update_policy=rolling(max_batch_size=2))
    assert [one.seen["members"] for one in inside.confirmations] == [["0"]]
    assert steps(inside)[1:] == ["batch-1"]


def test_an_answer_approves_the_members_that_the_hook_shows() -> None:
    """Also if an operation of a superseded batch has ended meanwhile."""
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(2, "v"))
    after = interrupted(inside, "w")
    members = [replace(one, under_way=one.name == "0") for one in after.members]
    call = replace(
        a_call(GROUP, group_properties(2, "x"), update_policy=rolling()),
        child=replace(after, members=members),
    )
    asked = GROUP.update(call)
    assert isinstance(asked, Confirm)
    assert asked.seen["members"] == ["0"]
    answered = GROUP.update(
        replace(
            call, child=after, progress=asked.progress,
            confirmation=Confirmation(asked.step, True, "dba", ""),
        )
    )  # fmt: skip
    assert isinstance(answered, RunNested)
    assert isinstance(answered.goal, ReconcileNested)
    assert [*answered.goal.parameters["previous"]] == ["0"]


def test_an_update_without_changes_reconciles_the_nested_stack() -> None:
    """The templates of its members may have changed."""
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(2))
    done = inside.run(GROUP, "update", group_properties(2))
    assert isinstance(done, Done)
    assert [one.goal for one in inside.goals[:1]] == [one.goal for one in inside.goals[1:]]


def test_a_failed_member_fails_the_group_and_the_next_update_repairs_it() -> None:
    inside = NestedStack(broken={"1"})
    failed = inside.run(GROUP, "create", group_properties(2))
    assert isinstance(failed, Failed)
    assert (failed.reason, failed.physical_id) == ("a member failed", str(CHILD))
    inside.broken.clear()
    assert isinstance(inside.run(GROUP, "update", group_properties(2)), Done)


# -- removal policies -----------------------------------------------------------------------------


def removing(*names: Json, **more: Json) -> dict[str, Json]:
    return {"removal_policies": [{"resource_list": [*names]}], **more}


@pytest.mark.parametrize("named", ["1", 1, "ref-1"])
def test_the_name_of_a_removed_member_is_never_reused(named: Json) -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(3))
    done = inside.run(GROUP, "update", group_properties(3, **removing(named)))
    assert isinstance(done, Done)
    assert [*inside.bodies] == ["0", "2", "3"]
    assert done.attributes["removed_rsrc_list"] == ["1"]
    inside.run(GROUP, "update", group_properties(4))
    assert [*inside.bodies] == ["0", "2", "3", "4"]


def test_unknown_names_in_removal_policies_are_ignored() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(2))
    done = inside.run(GROUP, "update", group_properties(2, **removing("7", "web", {})))
    assert isinstance(done, Done)
    assert (sorted(inside.bodies), done.attributes["removed_rsrc_list"]) == (["0", "1"], [])


def test_names_removed_from_the_beginning_are_never_used() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(2, **removing("0")))
    assert [*inside.bodies] == ["1", "2"]


def test_in_the_mode_update_only_the_current_list_is_removed() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(3))
    inside.run(GROUP, "update", group_properties(3, **removing("0")))
    more = removing("2", removal_policies_mode="update")
    done = inside.run(GROUP, "update", group_properties(3, **more))
    assert isinstance(done, Done)
    assert sorted(inside.bodies) == ["0", "1", "3"]
    assert done.attributes["removed_rsrc_list"] == ["2"]


def test_removed_names_are_stored_even_if_the_update_fails() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(3))
    inside.broken.add("3")
    failed = inside.run(GROUP, "update", group_properties(3, **removing("1")))
    assert isinstance(failed, Failed)
    inside.broken.clear()
    inside.run(GROUP, "update", group_properties(3))
    assert sorted(inside.bodies) == ["0", "2", "3"]


# -- answers --------------------------------------------------------------------------------------


def test_an_answer_chooses_the_members_of_a_batch() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(4, "v"))
    answers = iter([{"members": ["0", "2"]}, {"members": ["1"]}, None])
    inside.run(
        GROUP, "update", group_properties(4, "w"), update_policy=rolling(max_batch_size=2),
        answering=lambda confirm: next(answers),
    )  # fmt: skip
    seen = [(one.seen["members"], one.seen["may_choose"]) for one in inside.confirmations]
    assert seen == [(["3", "2"], ["3", "2", "1", "0"]), (["3", "1"], ["3", "1"]), (["3"], ["3"])]
    assert values(inside) == dict.fromkeys("0123", "w")


def test_a_rejected_batch_fails_the_group() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(2, "v"))
    failed = inside.run(
        GROUP, "update", group_properties(2, "w"), update_policy=rolling(),
        answering=lambda confirm: "not now" if len(inside.confirmations) == 1 else None,
    )  # fmt: skip
    assert isinstance(failed, Failed)
    assert failed.reason == "pre-batch rejected by dba: not now"
    assert values(inside) == {"0": "v", "1": "w"}


def test_an_answer_with_unavailable_members_is_ignored() -> None:
    """Answers are validated when they arrive; this one belongs to an earlier batch."""
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(2, "v"))
    inside.run(
        GROUP, "update", group_properties(2, "w"), update_policy=rolling(),
        answers={"pre-batch": {"members": ["9"]}},
    )  # fmt: skip
    assert values(inside) == {"0": "w", "1": "w"}


def test_an_answer_chooses_the_removed_members_of_a_shrinking_group() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(5))
    done = inside.run(
        GROUP, "update", group_properties(3), answering=lambda confirm: {"victims": ["4", "0"]}
    )
    assert isinstance(done, Done)
    assert inside.confirmations[0].seen["victims"] == ["3", "4"]
    assert [*inside.bodies] == ["1", "2", "3"]
    assert done.attributes["removed_rsrc_list"] == ["0"]
    inside.run(GROUP, "update", group_properties(4))
    assert [*inside.bodies] == ["1", "2", "3", "4"]


def test_a_group_shrinks_before_it_is_updated() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(4, "v"))
    inside.run(GROUP, "update", group_properties(2, "w"), update_policy=rolling())
    assert steps(inside)[1:] == ["scale-in-1", "batch-2", "batch-3"]
    assert values(inside) == {"0": "w", "1": "w"}


def test_a_newer_change_ends_a_pause() -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", group_properties(2, "v"))
    policy = rolling(pause_time=60)
    failed = inside.run(
        GROUP, "update", group_properties(2, "w"), update_policy=policy, superseded=True
    )
    assert isinstance(failed, Failed)
    assert failed.reason == "superseded between two batches"
    assert inside.waits == []


# -- OS::Heat::ResourceChain ----------------------------------------------------------------------


def test_the_members_of_a_chain_depend_on_each_other() -> None:
    inside = NestedStack()
    properties = {"resources": ["A", "B", "C"], "resource_properties": {"x": 1}}
    done = inside.run(CHAIN, "create", properties)
    assert inside.bodies == {
        "0": {"type": "A", "properties": {"x": 1}},
        "1": {"type": "B", "properties": {"x": 1}, "depends_on": ["0"]},
        "2": {"type": "C", "properties": {"x": 1}, "depends_on": ["1"]},
    }
    assert isinstance(done, Done)
    assert read_members(done.attributes, "refs", []) == ["ref-0", "ref-1", "ref-2"]
    assert read_members(done.attributes, "attributes", ["output"])["2"] == "of 2"


def test_the_members_of_a_concurrent_chain_do_not_wait() -> None:
    inside = NestedStack()
    inside.run(CHAIN, "create", {"resources": ["A", "B"], "concurrent": True})
    assert inside.bodies == {"0": {"type": "A"}, "1": {"type": "B"}}


def test_a_chain_becomes_shorter_and_longer() -> None:
    inside = NestedStack()
    for types in (["A", "B"], ["A"], ["C", "B", "A"]):
        inside.run(CHAIN, "update", {"resources": types})
        assert [body["type"] for body in inside.bodies.values()] == types


# -- OS::Heat::AutoScalingGroup -------------------------------------------------------------------


def scaling(value: str = "v", min_size: int = 0, max_size: int = 9, **more: Json) -> dict[str, Any]:
    body = {"type": "T", "properties": {"value": value}}
    return {"resource": body, "min_size": min_size, "max_size": max_size, **more}


@pytest.mark.parametrize(
    ("min_size", "desired", "size"), [(2, None, 2), (1, 3, 3), (0, 0, 0)], ids=str
)
def test_a_scaling_group_starts_with_its_desired_capacity(
    min_size: int, desired: int | None, size: int
) -> None:
    inside = NestedStack()
    done = inside.run(SCALING, "create", scaling(min_size=min_size, desired_capacity=desired))
    assert isinstance(done, Done)
    assert read_members(done.attributes, "current_size", []) == len(inside.bodies) == size


def test_names_are_the_same_in_a_repeated_operation() -> None:
    first, again = NestedStack(), NestedStack()
    for one in (first, again):
        one.run(SCALING, "create", scaling(min_size=3))
    assert [*first.bodies] == [*again.bodies]
    assert len({*first.bodies}) == 3


def test_a_group_without_a_desired_capacity_keeps_its_size_within_its_bounds() -> None:
    inside = NestedStack()
    inside.run(SCALING, "create", scaling(desired_capacity=4))
    names = [*inside.bodies]
    inside.run(SCALING, "update", scaling(max_size=7))
    assert [*inside.bodies] == names
    inside.run(SCALING, "update", scaling(max_size=3))
    assert [*inside.bodies] == names[1:]
    inside.run(SCALING, "update", scaling(min_size=5))
    assert [*inside.bodies][:3] == names[1:]
    assert len(inside.bodies) == 5


def test_failed_members_are_removed_first_then_the_oldest() -> None:
    body = {"type": "T", "properties": {"value": "v"}}
    inside = NestedStack().members(dict.fromkeys("abcd", body), failed=("c",))
    inside.run(SCALING, "update", scaling(), adjusted={"size": 2})
    assert inside.confirmations[0].seen["victims"] == ["c", "a"]
    assert [*inside.bodies] == ["b", "d"]


def test_an_answer_chooses_the_victims() -> None:
    body = {"type": "T", "properties": {"value": "v"}}
    inside = NestedStack().members(dict.fromkeys("abcd", body))
    inside.run(
        SCALING, "update", scaling(), adjusted={"size": 2},
        answering=lambda confirm: {"victims": ["d", "b"]},
    )  # fmt: skip
    assert inside.confirmations[0].seen == {
        "victims": ["a", "b"], "may_choose": ["a", "b", "c", "d"],
        "changed": [], "created": [], "removed": ["a", "b"],
    }  # fmt: skip
    assert [*inside.bodies] == ["a", "c"]


def test_members_are_updated_one_by_one_without_a_policy() -> None:
    inside = NestedStack().members(
        {key: {"type": "T", "properties": {"value": "v"}} for key in "abc"}
    )
    inside.run(SCALING, "update", scaling("w"))
    assert [one.seen["members"] for one in inside.confirmations] == [["a"], ["b"], ["c"]]
    assert values(inside) == dict.fromkeys("abc", "w")


def test_surplus_members_after_a_rolling_update_are_the_old_ones() -> None:
    inside = NestedStack().members(
        {key: {"type": "T", "properties": {"value": "v"}} for key in "ab"}
    )
    policy = {"min_in_service": 2, "max_batch_size": 2}
    inside.run(SCALING, "update", scaling("w", rolling_updates=policy))
    assert {*values(inside).values()} == {"w"}
    assert not {"a", "b"} & {*inside.bodies}


def test_updated_members_are_not_removed_before_old_ones() -> None:
    body = {"type": "T", "properties": {"value": "v"}}
    inside = NestedStack().members({name: body for name in "abcd"})
    policy = {"min_in_service": 3, "max_batch_size": 2}
    inside.run(SCALING, "update", scaling("w", rolling_updates=policy))
    assert [*inside.bodies][:3] == ["a", "b", "c"]
    assert steps(inside) == ["batch-1", "batch-2", "batch-3"]


def test_a_new_name_is_unique() -> None:
    first, second = islice(fresh_names(KEY, 1, ()), 2)
    assert [*islice(fresh_names(KEY, 1, {first}), 1)] == [second]
    assert first != next(fresh_names(KEY, 2, ()))


def test_a_group_has_the_end_of_its_cooldown() -> None:
    inside = NestedStack()
    done = inside.run(SCALING, "create", scaling(min_size=1, cooldown=60))
    assert isinstance(done, Done)
    assert done.data == {
        "cooldown_end": (NOW + timedelta(seconds=60)).isoformat(), "sized_by": "exact_capacity: 1"
    }  # fmt: skip
    policies = {"size": 3, "cooldown": 5, "by": "change_in_capacity: 2"}
    done = inside.run(
        SCALING, "update", scaling(min_size=1, cooldown=60), adjusted=policies, data=done.data
    )
    assert isinstance(done, Done)
    assert done.data == {
        "cooldown_end": (NOW + timedelta(seconds=60)).isoformat(),
        "sized_by": "change_in_capacity: 2",
    }
    assert len(inside.bodies) == 3


@pytest.mark.parametrize("operation", ["check", "suspend", "resume"])
@pytest.mark.parametrize("group", [GROUP, CHAIN, SCALING], ids=lambda one: one.schema.name)
def test_in_place_actions_of_a_group_run_on_its_nested_stack(group: Any, operation: str) -> None:
    properties = {
        GROUP: group_properties(2),
        CHAIN: {"resources": ["A"]},
        SCALING: scaling(min_size=2),
    }[group]
    inside = NestedStack()
    done = inside.run(group, "create", properties)
    assert isinstance(done, Done)
    assert inside.run(group, operation, properties, data=done.data) == done
    assert steps(inside)[-1] == operation
    assert isinstance(inside.run(group, "delete", properties), Done)
    assert steps(inside)[-1] == "delete"


# -- OS::Heat::InstanceGroup -----------------------------------------------------------------------


def instances(size: int = 2, **more: Json) -> dict[str, Any]:
    return {"AvailabilityZones": [], "LaunchConfigurationName": "lc", "Size": size, **more}


def test_instances_follow_their_launch_configuration() -> None:
    inside = NestedStack()
    tags = [{"Key": "k", "Value": "v"}]
    named = {"ImageId": "old", "KeyName": None}
    done = inside.run(INSTANCES, "create", instances(Tags=tags), referenced=named)
    assert isinstance(done, Done)
    body = {"type": "AWS::EC2::Instance", "properties": {"ImageId": "old", "Tags": tags}}
    assert [*inside.bodies.values()] == [body, body]
    assert done.attributes["InstanceList"] == "0.0.0.0,0.0.0.0"
    policy = {"RollingUpdate": {"MaxBatchSize": 1, "PauseTime": "PT1M30S"}}
    inside.run(
        INSTANCES, "update", instances(), referenced={"ImageId": "new"}, update_policy=policy
    )
    assert {one["properties"]["ImageId"] for one in inside.bodies.values()} == {"new"}
    assert inside.waits == [timedelta(seconds=90)]


def test_instances_without_a_launch_configuration_are_not_created() -> None:
    failed = NestedStack().run(INSTANCES, "create", instances(), referenced=None)
    assert isinstance(failed, Failed)
    assert failed.reason == "LaunchConfigurationName (lc) reference can not be found."


# -- AWS::AutoScaling ------------------------------------------------------------------------------


def aws_group(low: int = 1, high: int = 3, **more: Json) -> dict[str, Any]:
    named = {"AvailabilityZones": [], "LaunchConfigurationName": "lc"}
    return {**named, "MinSize": low, "MaxSize": high, **more}


@pytest.mark.parametrize(
    ("given", "size"),
    [({}, 1), ({"DesiredCapacity": 2}, 2), ({"DesiredCapacity": 0, "MinSize": 0}, 0)],
)
def test_the_size_of_an_auto_scaling_group(given: Json, size: int) -> None:
    inside = NestedStack()
    done = inside.run(AWS_GROUP, "create", aws_group(**given), referenced={"ImageId": "i"})
    assert isinstance(done, Done) and len(inside.bodies) == size


def test_instances_of_an_auto_scaling_group_are_in_its_subnet() -> None:
    inside = NestedStack()
    given = aws_group(VPCZoneIdentifier=["sub"], Cooldown=60)
    done = inside.run(AWS_GROUP, "create", given, referenced={"ImageId": "i"})
    assert isinstance(done, Done)
    properties = {"ImageId": "i", "SubnetId": "sub"}
    assert [*inside.bodies.values()] == [{"type": "AWS::EC2::Instance", "properties": properties}]
    assert done.data["cooldown_end"] == (NOW + timedelta(seconds=60)).isoformat()
    assert done.attributes["InstanceList"] == "0.0.0.0"
    policy = {"AutoScalingRollingUpdate": {"MaxBatchSize": 1, "PauseTime": "PT2S"}}
    grown = aws_group(VPCZoneIdentifier=["sub"], DesiredCapacity=2)
    inside.run(AWS_GROUP, "update", grown, referenced={"ImageId": "n"}, update_policy=policy)
    assert len(inside.bodies) == 2 and inside.waits == [timedelta(seconds=2)]


def test_an_auto_scaling_group_keeps_the_size_of_a_scaling_policy() -> None:
    inside = NestedStack()
    inside.run(AWS_GROUP, "create", aws_group(), referenced={})
    inside.run(AWS_GROUP, "update", aws_group(), referenced={}, adjusted={"size": 3})
    inside.run(AWS_GROUP, "update", aws_group(high=5), referenced={})
    assert len(inside.bodies) == 3


def test_a_desired_capacity_of_none_keeps_the_size() -> None:
    """As in Heat, 0 is none."""
    inside = NestedStack()
    inside.run(AWS_GROUP, "create", aws_group(0, DesiredCapacity=2), referenced={})
    inside.run(AWS_GROUP, "update", aws_group(0, DesiredCapacity=0), referenced={})
    assert len(inside.bodies) == 2


def test_an_auto_scaling_group_without_a_launch_configuration_is_not_created() -> None:
    given = {**aws_group(), "LaunchConfigurationName": None}
    failed = NestedStack().run(AWS_GROUP, "create", given, referenced=None)
    assert isinstance(failed, Failed)
    assert failed.reason == "LaunchConfigurationName must be provided."


def test_a_scaling_policy_of_amazon() -> None:
    given = {
        "AutoScalingGroupName": "g", "AdjustmentType": "PercentChangeInCapacity",
        "ScalingAdjustment": -50, "MinAdjustmentStep": 2, "Cooldown": 30,
    }  # fmt: skip
    expected = SizeAdjustment("g", Adjustment.PERCENT, -50, 2, 30)
    assert AWS_POLICY.adjust(given) == expected
    call = a_call(AWS_POLICY, given)
    done = AWS_POLICY.create(call)
    assert isinstance(done, Done)
    url = call.signal_url.signed_url
    assert done.attributes == {"AlarmUrl": url}
    assert AWS_POLICY.reference("r", done.physical_id, done.data) == url
    assert AWS_POLICY.reference("r", None, {}) == "r"
    assert AWS_POLICY.schema.has_secret_reference()
    again = AWS_POLICY.update(replace(call, physical_id="old"))
    assert isinstance(again, Done) and again.physical_id == "old"


# -- sizes ----------------------------------------------------------------------------------------

#: current, kind, amount, least step, size.
SIZES = [
    (4, "change_in_capacity", 2, 0, 6),
    (4, "change_in_capacity", -2, 0, 2),
    (4, "change_in_capacity", -9, 0, 1),
    (4, "exact_capacity", 7, 0, 7),
    (4, "exact_capacity", 99, 0, 10),
    (4, "percent_change_in_capacity", 50, 0, 6),
    (3, "percent_change_in_capacity", 50, 0, 4),
    (3, "percent_change_in_capacity", -50, 0, 2),
    (3, "percent_change_in_capacity", 10, 0, 4),
    (3, "percent_change_in_capacity", -10, 0, 2),
    (3, "percent_change_in_capacity", 10, 2, 5),
    (5, "percent_change_in_capacity", -10, 3, 2),
    (5, "percent_change_in_capacity", 0, 3, 5),
]


@pytest.mark.parametrize(("current", "kind", "amount", "step", "size"), SIZES)
def test_the_size_after_an_adjustment(
    current: int, kind: str, amount: int, step: int, size: int
) -> None:
    assert (
        adjusted_size(current, Adjustment(kind), amount, min_step=step, min_size=1, max_size=10)
        == size
    )


def test_an_empty_group_grows_in_percent_by_the_minimum_step() -> None:
    assert adjusted_size(0, Adjustment.PERCENT, 50, min_step=2, min_size=0, max_size=9) == 2


# -- validation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "properties", "error"),
    [
        (
            GROUP,
            group_properties(-1),
            "resources.r.properties.count: -1 is out of range (min: 0, max: None)",
        ),
        (GROUP, group_properties(1, index_var="%i"), "resources.r.properties.index_var: "),
        (GROUP, {"resource_def": {}}, "resources.r.properties.resource_def: Property type not"),
        (GROUP, group_properties(1, removal_policies_mode="never"), "removal_policies_mode: "),
        (CHAIN, {}, "Property resources not assigned"),
        (
            SCALING,
            scaling(min_size=3, max_size=2),
            "min_size (3) can not be greater than max_size (2)",
        ),
        (SCALING, scaling(max_size=2, desired_capacity=3), "must be between min_size and max_size"),
        (SCALING, scaling(min_size=-1), "min_size: -1 is out of range"),
        (INSTANCES, instances(-1), "Size: -1 is out of range"),
        (
            INSTANCES,
            instances(LoadBalancerNames=["lb"]),
            "members are not registered with load balancers",
        ),
        (AWS_GROUP, aws_group(3, 2), "MinSize can not be greater than MaxSize"),
        (AWS_GROUP, aws_group(-1), "The size of AutoScalingGroup can not be less than zero"),
        (
            AWS_GROUP,
            aws_group(DesiredCapacity=4),
            "DesiredCapacity must be between MinSize and MaxSize",
        ),
        (AWS_GROUP, aws_group(2, DesiredCapacity=1), "must be between MinSize and MaxSize"),
        (AWS_GROUP, aws_group(InstanceId="i"), "InstanceId: is not supported"),
        (AWS_GROUP, aws_group(VPCZoneIdentifier=["a", "b"]), "other than one VPCZoneIdentifier"),
        (AWS_GROUP, aws_group(LoadBalancerNames=["lb"]), "not registered with load balancers"),
        (
            AWS_POLICY,
            {
                "AutoScalingGroupName": "g",
                "AdjustmentType": "ExactCapacity",
                "ScalingAdjustment": 1,
                "MinAdjustmentStep": 1,
            },
            "MinAdjustmentStep is valid only with PercentChangeInCapacity",
        ),
    ],
    ids=lambda one: one.schema.name if isinstance(one, ResourceType) else None,
)
def test_errors_of_a_group_have_their_place(
    group: Any, properties: dict[str, Json], error: str
) -> None:
    assert error in " ".join(map(str, findings_of(group, properties)))


def test_the_progress_of_a_group_is_read_by_the_release_before_and_after() -> None:
    """The one before knows no field that is new and empty; the one after may have more."""
    at = Progress(number=2, last="batch")
    assert at.document() == {"number": 2, "last": "batch"}
    assert Progress.read({**at.document(), "of_the_next_release": 1}) == at
