"""Types whose stack inside holds members that are alike.

All of it is pure. A group decides turn by turn (turns.py): from its properties, from what the stack
inside holds now and from what was answered, to the next template of the stack inside (document.py).
"""

from collections.abc import Sequence

from engine.types.contract import ResourceType
from engine.types.groups.auto_scaling import AutoScalingGroup
from engine.types.groups.instance_group import InstanceGroup, LaunchConfiguration
from engine.types.groups.resource_chain import ResourceChain
from engine.types.groups.resource_group import ResourceGroup
from engine.types.groups.scaling_policy import ScalingPolicy
from engine.types.placement import Placer


def groups(placer: Placer | None = None) -> Sequence[ResourceType]:
    """placer: says where new members come to be."""
    return (
        ResourceGroup(placer),
        ResourceChain(),
        AutoScalingGroup(placer),
        InstanceGroup(placer),
        LaunchConfiguration(),
        ScalingPolicy(),
    )
