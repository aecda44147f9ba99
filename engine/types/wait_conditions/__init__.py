"""Handles that take signals from outside, and conditions that wait for them."""

from engine.types.contract import ResourceType
from engine.types.wait_conditions.conditions import CONDITIONS, WaitCondition
from engine.types.wait_conditions.handles import SignedHandle, TransportHandle
from engine.types.wait_conditions.signals import CFN, SWIFT

WAITING: tuple[ResourceType, ...] = (
    TransportHandle(),
    SignedHandle(
        "AWS::CloudFormation::WaitConditionHandle",
        "A signed URL that takes signals; get_resource gives it.",
        CFN,
    ),
    SignedHandle(
        "OS::Heat::UpdateWaitConditionHandle",
        "A signed URL that takes signals; each update makes another.",
        CFN,
        renewed=True,
    ),
    SignedHandle(
        "OS::Heat::SwiftSignalHandle",
        "A signed URL that takes signals, where Heat has one of Swift's.",
        SWIFT,
        shows=True,
    ),
    *(WaitCondition(words) for words in CONDITIONS),
)
