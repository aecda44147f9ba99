"""The resource types of Mistral."""

from engine.types.contract import ResourceType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.mistral.cron_trigger import CronTrigger
from engine.types.openstack.mistral.external_resource import ExternalResource
from engine.types.openstack.mistral.lookups import workflow_constraint
from engine.types.openstack.mistral.workflow import Workflow


def mistral_types(cloud: Cloud) -> list[ResourceType]:
    """The types; the first one has the custom constraint of all."""
    types: list[ResourceType] = [Workflow(cloud), CronTrigger(cloud), ExternalResource(cloud)]
    types[0].constraints = (workflow_constraint(cloud),)
    return types
