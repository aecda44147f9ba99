"""Wait conditions, and handles that receive signals for them."""

from engine.types.contract import ResourceType
from engine.types.object_signals import NO_SERVICES, SignalServices
from engine.types.wait_conditions.conditions import CONDITIONS, WaitCondition
from engine.types.wait_conditions.handles import (
    CFN,
    SignedHandle,
    SwiftSignalHandle,
    TransportHandle,
)


def wait_types(services: SignalServices = NO_SERVICES) -> list[ResourceType]:
    """Handles and conditions. services: that servers can send signals to."""
    return [
        TransportHandle(services),
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
        SwiftSignalHandle(services),
        *(WaitCondition(words, services) for words in CONDITIONS),
    ]
