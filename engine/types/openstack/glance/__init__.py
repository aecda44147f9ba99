"""The resource types of Glance."""

from engine.types.contract import ResourceType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.glance.web_image import WebImage


def glance_types(cloud: Cloud) -> list[ResourceType]:
    return [WebImage(cloud)]
