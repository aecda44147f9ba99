"""Wait conditions, and handles that receive signals for them."""

from engine.types.contract import ResourceType
from engine.types.wait_conditions.conditions import CONDITIONS, WaitCondition
from engine.types.wait_conditions.handles import CFN, SWIFT, SignedHandle, TransportHandle

WAITING: tuple[ResourceType, ...] = (
    TransportHandle(),
    SignedHandle(
        "AWS::CloudFormation::WaitConditionHandle",
        "A signed URL that accepts signals; it is the value of get_resource.",
        CFN,
    ),
    SignedHandle(
        "OS::Heat::UpdateWaitConditionHandle",
        "A signed URL that accepts signals; each update creates a new one.",
        CFN,
        renewed=True,
    ),
    SignedHandle(
        "OS::Heat::SwiftSignalHandle",
        "A signed URL that accepts signals; in Heat, a TempURL of Swift.",
        SWIFT,
        shows=True,
    ),
    *(WaitCondition(words) for words in CONDITIONS),
)
