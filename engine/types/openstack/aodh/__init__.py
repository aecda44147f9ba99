"""The resource types of Aodh."""

from engine.types.contract import ResourceType
from engine.types.openstack.aodh.alarm import ALARMS, Alarm
from engine.types.openstack.cloud import Cloud


def aodh_types(cloud: Cloud) -> list[ResourceType]:
    return [Alarm(schema, kind, cloud) for schema, kind in ALARMS]
