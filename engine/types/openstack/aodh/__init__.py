"""The resource types of Aodh."""

from engine.types.contract import ResourceType
from engine.types.openstack.aodh.alarm import ALARMS, Alarm, MemberHealthAlarm
from engine.types.openstack.cloud import Cloud


def aodh_types(cloud: Cloud) -> list[ResourceType]:
    alarms = [Alarm(schema, kind, cloud) for schema, kind in ALARMS]
    return [*alarms, MemberHealthAlarm(cloud)]
