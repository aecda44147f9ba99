"""Groups: types whose nested stack contains members of the same kind. All of them are pure.

A group changes in steps (group_steps.py). It computes each step, and the template of the nested
stack for it (member_template.py), from its properties, its current members and the answers.
"""

from collections.abc import Sequence

from engine.types.contract import ResourceType
from engine.types.groups.auto_scaling import AutoScalingGroup
from engine.types.groups.instance_group import (
    AwsAutoScalingGroup,
    InstanceGroup,
    LaunchConfiguration,
)
from engine.types.groups.resource_chain import ResourceChain
from engine.types.groups.resource_group import ResourceGroup
from engine.types.groups.scaling_policy import AwsScalingPolicy, ScalingPolicy
from engine.types.placement import Placer


def groups(placer: Placer | None = None) -> Sequence[ResourceType]:
    """The group types. placer: places new members."""
    return (
        ResourceGroup(placer),
        ResourceChain(),
        AutoScalingGroup(placer),
        InstanceGroup(placer),
        LaunchConfiguration(),
        ScalingPolicy(),
        AwsAutoScalingGroup(placer),
        AwsScalingPolicy(),
    )
