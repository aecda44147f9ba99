"""Wait conditions, and handles that receive signals for them."""

from engine.types.contract import ResourceType
from engine.types.object_signals import ObjectSignals
from engine.types.wait_conditions.conditions import CONDITIONS, WaitCondition
from engine.types.wait_conditions.handles import (
    CFN,
    SignedHandle,
    SwiftSignalHandle,
    TransportHandle,
)


def wait_types(objects: ObjectSignals | None = None) -> list[ResourceType]:
    """Handles and conditions. objects: signals that are objects; None: there is no Swift."""
    return [
        TransportHandle(objects),
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
        SwiftSignalHandle(objects),
        *(WaitCondition(words, objects) for words in CONDITIONS),
    ]
