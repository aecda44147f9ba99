"""The resource types of Swift."""

from engine.types.contract import ResourceType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.swift.container import Container


def swift_types(cloud: Cloud) -> list[ResourceType]:
    return [Container(cloud)]
