"""Groups compute their nested stack from properties, current members and answers."""

from datetime import timedelta
from itertools import islice
from typing import Any

import pytest

from engine.hot.expressions.member_attributes import read_members
from engine.types.contract import Done, Failed, ReconcileNested, ResourceType, RunNested
from engine.types.group_size import Adjustment, adjusted_size
from engine.types.groups.auto_scaling import AutoScalingGroup
from engine.types.groups.instance_group import InstanceGroup
from engine.types.groups.member_changes import fresh_names
from engine.types.groups.resource_chain import ResourceChain
from engine.types.groups.resource_group import ResourceGroup
from engine.words import Json
from tests.unit.types.calls import KEY, NOW, findings_of
from tests.unit.types.child_stacks import CHILD
from tests.unit.types.stack_inside import Inside

GROUP, CHAIN, SCALING = ResourceGroup(), ResourceChain(), AutoScalingGroup()
INSTANCES = InstanceGroup()


def a_group(count: int = 3, value: str = "v-%index%", **more: Json) -> dict[str, Any]:
    body = {"type": "T", "properties": {"value": value}}
    return {"count": count, "resource_def": body, **more}


def rolling(**policy: Json) -> dict[str, Json]:
    return {"rolling_update": policy}


def values(inside: Inside) -> dict[str, Json]:
    return {name: body["properties"]["value"] for name, body in inside.bodies.items()}


def size(nest: RunNested) -> int:
    assert isinstance(nest.goal, ReconcileNested)
    assert nest.goal.template is not None
    return len(nest.goal.template["resources"])


def steps(inside: Inside) -> list[str]:
    return [one.step for one in inside.goals]


# -- OS::Heat::ResourceGroup ----------------------------------------------------------------------


def test_members_are_numbered_and_their_number_stands_for_the_variable_at_any_depth() -> None:
    body = {
        "type": "T",
        "properties": {"a": [{"b": "x-%index%-%index%", "%index%": 1}], "none": None},
        "metadata": {"m": "%index%"},
    }
    inside = Inside()
    inside.run(GROUP, "create", {"count": 2, "resource_def": body})
    assert inside.bodies == {
        name: {
            "type": "T",
            "properties": {"a": [{"b": f"x-{name}-{name}", "%index%": 1}]},
            "metadata": {"m": name},
        }
        for name in ("0", "1")
    }


def test_another_variable_may_stand_for_the_number() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(1, "%index%-NUM", index_var="NUM"))
    assert values(inside) == {"0": "%index%-0"}


@pytest.mark.parametrize("count", [0, 1, 12])
def test_a_group_has_as_many_members_as_it_says(count: int) -> None:
    inside = Inside()
    done = inside.run(GROUP, "create", a_group(count))
    assert isinstance(done, Done)
    names = [str(number) for number in range(count)]
    assert read_members(done.attributes, "refs", []) == [f"ref-{name}" for name in names]
    assert read_members(done.attributes, "output", []) == [f"of {name}" for name in names]
    assert steps(inside) == ["members-1"]


def test_values_that_look_like_functions_stay_values() -> None:
    value = {"get_param": "secret", "deep": [{"get_file": "/etc/passwd"}, {"Ref": "x"}]}
    inside = Inside()
    body = {"type": "T", "properties": {"value": value, "other": {"get_attr": ["a", "b"]}}}
    inside.run(GROUP, "create", {"count": 1, "resource_def": body})
    goal = inside.goals[0].goal
    assert isinstance(goal, ReconcileNested)
    assert "get_file" not in str(goal.template)
    assert inside.bodies["0"]["properties"] == body["properties"]


def test_what_may_be_hidden_is_handed_over_as_a_hidden_parameter() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(2, "secret"), has_secrets=True)
    assert inside.child is not None
    assert "secret" not in str(inside.child.template)
    assert inside.child.template["parameters"]["literals"]["hidden"] is True
    assert values(inside) == {"0": "secret", "1": "secret"}


def test_members_are_made_in_batches_with_a_pause_between_them() -> None:
    inside = Inside()
    policy = {"batch_create": {"max_batch_size": 2, "pause_time": 30}}
    inside.run(GROUP, "create", a_group(5), update_policy=policy)
    sizes = [*map(size, inside.goals)]
    assert (steps(inside), sizes) == (["batch-1", "batch-2", "batch-3"], [2, 4, 5])
    assert inside.waits == [timedelta(seconds=30)] * 2
    assert inside.asked == []


def test_a_group_without_a_policy_changes_all_members_at_once() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(3))
    inside.run(GROUP, "update", a_group(4, "w"))
    assert values(inside) == dict.fromkeys("0123", "w")
    assert steps(inside) == ["members-1", "members-1"]


def test_a_rolling_update_changes_the_highest_numbers_first() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(3, "v"))
    inside.run(GROUP, "update", a_group(3, "w"), update_policy=rolling(max_batch_size=2))
    seen = [one.seen["members"] for one in inside.asked]
    assert seen == [["2", "1"], ["0"]]
    assert values(inside) == dict.fromkeys("012", "w")


def test_a_group_grows_for_a_while_where_too_few_would_stay_in_service() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(2, "v"))
    policy = rolling(max_batch_size=2, min_in_service=2)
    inside.run(GROUP, "update", a_group(2, "w"), update_policy=policy)
    sizes = [*map(size, inside.goals[1:])]
    assert sizes == [4, 4, 2]
    assert values(inside) == {"0": "w", "1": "w"}


def test_a_change_of_count_alone_is_no_rolling_update() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(2))
    inside.run(GROUP, "update", a_group(4), update_policy=rolling())
    assert steps(inside)[1:] == ["members-1"]


def test_a_rolling_update_goes_on_from_where_another_one_ended() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(4, "v"))
    bodies = {**inside.bodies}
    bodies["3"] = {"type": "T", "properties": {"value": "w"}}
    inside.members(bodies)
    inside.run(GROUP, "update", a_group(4, "w"), update_policy=rolling())
    assert [one.seen["members"] for one in inside.asked] == [["2"], ["1"], ["0"]]


def test_an_update_without_changes_reconciles_the_nested_stack() -> None:
    """The templates of its members may have changed."""
    inside = Inside()
    inside.run(GROUP, "create", a_group(2))
    done = inside.run(GROUP, "update", a_group(2))
    assert isinstance(done, Done)
    assert [one.goal for one in inside.goals[:1]] == [one.goal for one in inside.goals[1:]]


def test_a_member_that_fails_fails_the_group_and_the_next_update_mends_it() -> None:
    inside = Inside(broken={"1"})
    failed = inside.run(GROUP, "create", a_group(2))
    assert isinstance(failed, Failed)
    assert (failed.reason, failed.physical_id) == ("a member failed", str(CHILD))
    inside.broken.clear()
    assert isinstance(inside.run(GROUP, "update", a_group(2)), Done)


# -- removal policies -----------------------------------------------------------------------------


def removing(*names: Json, **more: Json) -> dict[str, Json]:
    return {"removal_policies": [{"resource_list": [*names]}], **more}


@pytest.mark.parametrize("named", ["1", 1, "ref-1"])
def test_a_removed_member_goes_and_its_name_is_never_used_again(named: Json) -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(3))
    done = inside.run(GROUP, "update", a_group(3, **removing(named)))
    assert isinstance(done, Done)
    assert [*inside.bodies] == ["0", "2", "3"]
    assert done.attributes["removed_rsrc_list"] == ["1"]
    inside.run(GROUP, "update", a_group(4))
    assert [*inside.bodies] == ["0", "2", "3", "4"]


def test_unknown_names_in_removal_policies_are_ignored() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(2))
    done = inside.run(GROUP, "update", a_group(2, **removing("7", "web", {})))
    assert isinstance(done, Done)
    assert (sorted(inside.bodies), done.attributes["removed_rsrc_list"]) == (["0", "1"], [])


def test_names_removed_from_the_beginning_are_never_used() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(2, **removing("0")))
    assert [*inside.bodies] == ["1", "2"]


def test_in_the_mode_update_only_the_current_list_is_removed() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(3))
    inside.run(GROUP, "update", a_group(3, **removing("0")))
    more = removing("2", removal_policies_mode="update")
    done = inside.run(GROUP, "update", a_group(3, **more))
    assert isinstance(done, Done)
    assert sorted(inside.bodies) == ["0", "1", "3"]
    assert done.attributes["removed_rsrc_list"] == ["2"]


def test_removed_names_are_stored_even_if_the_update_fails() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(3))
    inside.broken.add("3")
    failed = inside.run(GROUP, "update", a_group(3, **removing("1")))
    assert isinstance(failed, Failed)
    inside.broken.clear()
    inside.run(GROUP, "update", a_group(3))
    assert sorted(inside.bodies) == ["0", "2", "3"]


# -- answers --------------------------------------------------------------------------------------


def test_an_answer_exchanges_the_members_of_a_batch() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(4, "v"))
    said = iter([{"members": ["0", "2"]}, {"members": ["1"]}, None])
    inside.run(
        GROUP, "update", a_group(4, "w"), update_policy=rolling(max_batch_size=2),
        answering=lambda asked: next(said),
    )  # fmt: skip
    seen = [(one.seen["members"], one.seen["may_choose"]) for one in inside.asked]
    assert seen == [(["3", "2"], ["3", "2", "1", "0"]), (["3", "1"], ["3", "1"]), (["3"], ["3"])]
    assert values(inside) == dict.fromkeys("0123", "w")


def test_a_batch_that_is_rejected_fails_the_group_where_it_is() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(2, "v"))
    failed = inside.run(
        GROUP, "update", a_group(2, "w"), update_policy=rolling(),
        answering=lambda asked: "not now" if len(inside.asked) == 1 else None,
    )  # fmt: skip
    assert isinstance(failed, Failed)
    assert failed.reason == "pre-batch rejected by dba: not now"
    assert values(inside) == {"0": "v", "1": "w"}


def test_an_answer_with_unavailable_members_is_ignored() -> None:
    """Answers are validated when they arrive; this one belongs to an earlier batch."""
    inside = Inside()
    inside.run(GROUP, "create", a_group(2, "v"))
    inside.run(
        GROUP, "update", a_group(2, "w"), update_policy=rolling(),
        answers={"pre-batch": {"members": ["9"]}},
    )  # fmt: skip
    assert values(inside) == {"0": "w", "1": "w"}


def test_an_answer_chooses_the_removed_members_of_a_shrinking_group() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(5))
    done = inside.run(GROUP, "update", a_group(3), answering=lambda asked: {"victims": ["4", "0"]})
    assert isinstance(done, Done)
    assert inside.asked[0].seen["victims"] == ["3", "4"]
    assert [*inside.bodies] == ["1", "2", "3"]
    assert done.attributes["removed_rsrc_list"] == ["0"]
    inside.run(GROUP, "update", a_group(4))
    assert [*inside.bodies] == ["1", "2", "3", "4"]


def test_a_group_that_shrinks_and_changes_shrinks_first() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(4, "v"))
    inside.run(GROUP, "update", a_group(2, "w"), update_policy=rolling())
    assert steps(inside)[1:] == ["scale-in-1", "batch-2", "batch-3"]
    assert values(inside) == {"0": "w", "1": "w"}


def test_a_pause_ends_when_something_newer_waits_for_it() -> None:
    inside = Inside()
    inside.run(GROUP, "create", a_group(2, "v"))
    policy = rolling(pause_time=60)
    failed = inside.run(GROUP, "update", a_group(2, "w"), update_policy=policy, superseded=True)
    assert isinstance(failed, Failed)
    assert failed.reason == "superseded between two batches"
    assert inside.waits == []


# -- OS::Heat::ResourceChain ----------------------------------------------------------------------


def test_the_members_of_a_chain_come_one_after_the_other() -> None:
    inside = Inside()
    given = {"resources": ["A", "B", "C"], "resource_properties": {"x": 1}}
    done = inside.run(CHAIN, "create", given)
    assert inside.bodies == {
        "0": {"type": "A", "properties": {"x": 1}},
        "1": {"type": "B", "properties": {"x": 1}, "depends_on": ["0"]},
        "2": {"type": "C", "properties": {"x": 1}, "depends_on": ["1"]},
    }
    assert isinstance(done, Done)
    assert read_members(done.attributes, "refs", []) == ["ref-0", "ref-1", "ref-2"]
    assert read_members(done.attributes, "attributes", ["output"])["2"] == "of 2"


def test_the_members_of_a_concurrent_chain_do_not_wait() -> None:
    inside = Inside()
    inside.run(CHAIN, "create", {"resources": ["A", "B"], "concurrent": True})
    assert inside.bodies == {"0": {"type": "A"}, "1": {"type": "B"}}


def test_a_chain_becomes_shorter_and_longer() -> None:
    inside = Inside()
    for types in (["A", "B"], ["A"], ["C", "B", "A"]):
        inside.run(CHAIN, "update", {"resources": types})
        assert [body["type"] for body in inside.bodies.values()] == types


# -- OS::Heat::AutoScalingGroup -------------------------------------------------------------------


def scaling(value: str = "v", least: int = 0, most: int = 9, **more: Json) -> dict[str, Any]:
    body = {"type": "T", "properties": {"value": value}}
    return {"resource": body, "min_size": least, "max_size": most, **more}


@pytest.mark.parametrize(
    ("least", "desired", "size"), [(2, None, 2), (1, 3, 3), (0, 0, 0)], ids=str
)
def test_a_scaling_group_begins_with_its_desired_capacity(
    least: int, desired: int | None, size: int
) -> None:
    inside = Inside()
    done = inside.run(SCALING, "create", scaling(least=least, desired_capacity=desired))
    assert isinstance(done, Done)
    assert read_members(done.attributes, "current_size", []) == len(inside.bodies) == size


def test_names_are_the_same_when_an_operation_is_carried_out_again() -> None:
    first, again = Inside(), Inside()
    for one in (first, again):
        one.run(SCALING, "create", scaling(least=3))
    assert [*first.bodies] == [*again.bodies]
    assert len({*first.bodies}) == 3


def test_a_group_without_a_desired_capacity_keeps_its_size_within_its_bounds() -> None:
    inside = Inside()
    inside.run(SCALING, "create", scaling(desired_capacity=4))
    names = [*inside.bodies]
    inside.run(SCALING, "update", scaling(most=7))
    assert [*inside.bodies] == names
    inside.run(SCALING, "update", scaling(most=3))
    assert [*inside.bodies] == names[1:]
    inside.run(SCALING, "update", scaling(least=5))
    assert [*inside.bodies][:3] == names[1:]
    assert len(inside.bodies) == 5


def test_failed_members_go_first_then_the_oldest() -> None:
    body = {"type": "T", "properties": {"value": "v"}}
    inside = Inside().members(dict.fromkeys("abcd", body), failed=("c",))
    inside.run(SCALING, "update", scaling(), adjusted={"size": 2})
    assert inside.asked[0].seen["victims"] == ["c", "a"]
    assert [*inside.bodies] == ["b", "d"]


def test_an_answer_chooses_the_victims() -> None:
    body = {"type": "T", "properties": {"value": "v"}}
    inside = Inside().members(dict.fromkeys("abcd", body))
    inside.run(
        SCALING, "update", scaling(), adjusted={"size": 2},
        answering=lambda asked: {"victims": ["d", "b"]},
    )  # fmt: skip
    assert inside.asked[0].seen == {
        "victims": ["a", "b"], "may_choose": ["a", "b", "c", "d"],
        "altered": [], "made": [], "gone": ["a", "b"],
    }  # fmt: skip
    assert [*inside.bodies] == ["a", "c"]


def test_members_change_one_by_one_unless_a_policy_says_otherwise() -> None:
    inside = Inside().members({key: {"type": "T", "properties": {"value": "v"}} for key in "abc"})
    inside.run(SCALING, "update", scaling("w"))
    assert [one.seen["members"] for one in inside.asked] == [["a"], ["b"], ["c"]]
    assert values(inside) == dict.fromkeys("abc", "w")


def test_what_is_too_much_after_a_rolling_update_is_what_was_there_before() -> None:
    inside = Inside().members({key: {"type": "T", "properties": {"value": "v"}} for key in "ab"})
    policy = {"min_in_service": 2, "max_batch_size": 2}
    inside.run(SCALING, "update", scaling("w", rolling_updates=policy))
    assert {*values(inside).values()} == {"w"}
    assert not {"a", "b"} & {*inside.bodies}


def test_what_was_changed_is_not_taken_away_while_something_else_was_not() -> None:
    body = {"type": "T", "properties": {"value": "v"}}
    inside = Inside().members({name: body for name in "abcd"})
    policy = {"min_in_service": 3, "max_batch_size": 2}
    inside.run(SCALING, "update", scaling("w", rolling_updates=policy))
    assert [*inside.bodies][:3] == ["a", "b", "c"]
    assert steps(inside) == ["batch-1", "batch-2", "batch-3"]


def test_a_new_name_is_unique() -> None:
    first, second = islice(fresh_names(KEY, 1, ()), 2)
    assert [*islice(fresh_names(KEY, 1, {first}), 1)] == [second]
    assert first != next(fresh_names(KEY, 2, ()))


def test_a_group_knows_when_policies_may_adjust_it_again() -> None:
    inside = Inside()
    done = inside.run(SCALING, "create", scaling(least=1, cooldown=60))
    assert isinstance(done, Done)
    assert done.data == {
        "cooldown_end": (NOW + timedelta(seconds=60)).isoformat(), "sized_by": "exact_capacity: 1"
    }  # fmt: skip
    asked = {"size": 3, "cooldown": 5, "by": "change_in_capacity: 2"}
    done = inside.run(
        SCALING, "update", scaling(least=1, cooldown=60), adjusted=asked, data=done.data
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
    given = {GROUP: a_group(2), CHAIN: {"resources": ["A"]}, SCALING: scaling(least=2)}[group]
    inside = Inside()
    made = inside.run(group, "create", given)
    assert isinstance(made, Done)
    assert inside.run(group, operation, given, data=made.data) == made
    assert steps(inside)[-1] == operation
    assert isinstance(inside.run(group, "delete", given), Done)
    assert steps(inside)[-1] == "delete"


# -- OS::Heat::InstanceGroup -----------------------------------------------------------------------


def instances(size: int = 2, **more: Json) -> dict[str, Any]:
    return {"AvailabilityZones": [], "LaunchConfigurationName": "lc", "Size": size, **more}


def test_instances_are_what_their_launch_configuration_says() -> None:
    inside = Inside()
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
    failed = Inside().run(INSTANCES, "create", instances(), referenced=None)
    assert isinstance(failed, Failed)
    assert failed.reason == "LaunchConfigurationName (lc) reference can not be found."


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
        adjusted_size(current, Adjustment(kind), amount, least_step=step, least=1, most=10) == size
    )


def test_a_group_of_none_grows_by_per_cent_as_far_as_the_least_step() -> None:
    assert adjusted_size(0, Adjustment.PERCENT, 50, least_step=2, least=0, most=9) == 2


# -- validation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "given", "said"),
    [
        (
            GROUP,
            a_group(-1),
            "resources.r.properties.count: -1 is out of range (min: 0, max: None)",
        ),
        (GROUP, a_group(1, index_var="%i"), "resources.r.properties.index_var: "),
        (GROUP, {"resource_def": {}}, "resources.r.properties.resource_def: Property type not"),
        (GROUP, a_group(1, removal_policies_mode="never"), "removal_policies_mode: "),
        (CHAIN, {}, "Property resources not assigned"),
        (SCALING, scaling(least=3, most=2), "min_size (3) can not be greater than max_size (2)"),
        (SCALING, scaling(most=2, desired_capacity=3), "must be between min_size and max_size"),
        (SCALING, scaling(least=-1), "min_size: -1 is out of range"),
        (INSTANCES, instances(-1), "Size: -1 is out of range"),
        (
            INSTANCES,
            instances(LoadBalancerNames=["lb"]),
            "members are not registered with load balancers",
        ),
    ],
    ids=lambda one: one.schema.name if isinstance(one, ResourceType) else None,
)
def test_what_is_wrong_with_a_group_is_said_with_its_place(
    group: Any, given: dict[str, Json], said: str
) -> None:
    assert said in " ".join(map(str, findings_of(group, given)))
