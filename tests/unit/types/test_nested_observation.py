"""The observed state of resources that own nested stacks."""

from random import Random
from typing import Any

import pytest

from engine.types.groups.group import Group
from engine.types.nested_observation import AllowedSize, NestedStackState, observe_nested_stack
from engine.types.registry import built_in
from engine.types.software.deployment_group import deployment_groups
from engine.types.template_resource import TemplateResource
from engine.words import ObservedState, TraversalState

UPDATED = NestedStackState("UPDATE", TraversalState.COMPLETE, 3)


def deleted(state: TraversalState) -> NestedStackState:
    return NestedStackState("DELETE", state, 1)


STATES: dict[str, tuple[NestedStackState | None, AllowedSize | None, str, str]] = {
    "gone": (None, None, "missing", "its nested stack does not exist"),
    "group is gone": (None, AllowedSize(0, 0), "missing", "its nested stack does not exist"),
    "deleted": (
        deleted(TraversalState.COMPLETE), None, "missing", "its nested stack does not exist"
    ),
    "being deleted": (
        deleted(TraversalState.RUNNING), None, "unknown", "its nested stack is being deleted"
    ),
    "delete ends": (
        deleted(TraversalState.ENDING), None, "unknown", "its nested stack is being deleted"
    ),
    "delete failed": (
        deleted(TraversalState.FAILED), AllowedSize(1, 1), "degraded",
        "the delete of its nested stack did not complete",
    ),
    "delete stopped": (
        deleted(TraversalState.STOPPED), None, "degraded",
        "the delete of its nested stack did not complete",
    ),
    "updated": (UPDATED, None, "present", ""),
    "size": (UPDATED, AllowedSize(3, 3), "present", ""),
    "within the limits": (UPDATED, AllowedSize(1, 5), "present", ""),
    "fewer": (
        UPDATED, AllowedSize(4, 4), "degraded", "it has 3 members, and its definition says 4"
    ),
    "more": (
        UPDATED, AllowedSize(0, 2), "degraded", "it has 3 members, and its definition says 0 to 2"
    ),
    "one": (
        NestedStackState("CREATE", TraversalState.COMPLETE, 1), AllowedSize(2, 2), "degraded",
        "it has 1 member, and its definition says 2",
    ),
    # Its operation has failed, which the recorded state says.
    "failed": (NestedStackState("UPDATE", TraversalState.FAILED, 3), None, "present", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", STATES)
def test_the_state_follows_from_the_nested_stack(case: str) -> None:
    found, size, state, reason = STATES[case]
    observed = observe_nested_stack(found, size)
    assert (observed.state, observed.reason, observed.public_reason) == (state, reason, reason)
    assert observed.differences == ()


SIZES: dict[str, tuple[dict[str, Any], AllowedSize | None]] = {
    "OS::Heat::ResourceGroup": ({"count": 2}, AllowedSize(2, 2)),
    "OS::Heat::ResourceChain": ({"resources": ["A", "B"]}, AllowedSize(2, 2)),
    "OS::Heat::AutoScalingGroup": ({"min_size": 1, "max_size": 4}, AllowedSize(1, 4)),
    "OS::Heat::InstanceGroup": ({"Size": 2}, AllowedSize(0, 1_000_000)),
    "AWS::AutoScaling::AutoScalingGroup": ({"MinSize": 1, "MaxSize": 4}, AllowedSize(1, 4)),
    "OS::Heat::SoftwareDeploymentGroup": ({"servers": {"a": "1"}}, AllowedSize(1, 1)),
    "OS::Heat::SoftwareDeployments": ({"servers": {"a": "1"}}, AllowedSize(1, 1)),
    "OS::Heat::StructuredDeploymentGroup": ({"servers": {"a": "1"}}, AllowedSize(1, 1)),
    "OS::Heat::StructuredDeployments": ({"servers": {"a": "1"}}, AllowedSize(1, 1)),
}


def test_every_type_with_a_nested_stack_says_how_many_members_it_may_have() -> None:
    registry = built_in(Random(1), *deployment_groups(()))
    names = {name for name in registry.names() if registry.has_nested_stack(name)}
    assert names == {*SIZES, "AWS::CloudFormation::Stack"}
    for name, (properties, size) in SIZES.items():
        type_ = registry.get(name)
        assert isinstance(type_, Group)
        assert type_.allowed_size(properties) == size, name
        # Without a recorded state, for example after a failed create.
        assert type_.observe_nested({}, None).state is ObservedState.MISSING
        assert type_.observe_nested({}, UPDATED).state in ("present", "degraded"), name
        assert type_.observe_nested(properties, None).state is ObservedState.MISSING
    for name in ("server.yaml", "AWS::CloudFormation::Stack"):
        template = registry.get(name)
        assert isinstance(template, TemplateResource)
        assert template.observe_nested({}, UPDATED).state is ObservedState.PRESENT
        assert template.observe_nested({}, None).state is ObservedState.MISSING
