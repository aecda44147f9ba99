"""The resource types of Zaqar."""

from engine.types.contract import ResourceType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.zaqar.mistral_trigger import MistralTrigger
from engine.types.openstack.zaqar.queue import Queue
from engine.types.openstack.zaqar.queue_names import QueueConstraint
from engine.types.openstack.zaqar.signed_url import SignedQueueUrl
from engine.types.openstack.zaqar.subscription import QueueSubscription


def zaqar_types(cloud: Cloud) -> list[ResourceType]:
    """The types; the first one has the custom constraint of all."""
    types: list[ResourceType] = [
        Queue(cloud),
        QueueSubscription(cloud),
        SignedQueueUrl(cloud),
        MistralTrigger(cloud),
    ]
    types[0].constraints = (QueueConstraint(),)
    return types
