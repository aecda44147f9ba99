"""The resource types of Cinder."""

from engine.types.contract import ResourceType
from engine.types.openstack.cinder.qos import QoSAssociation, QoSSpecs
from engine.types.openstack.cinder.schema import QUOTA
from engine.types.openstack.cinder.volume import Volume
from engine.types.openstack.cinder.volume_attachment import VolumeAttachment
from engine.types.openstack.cinder.volume_type import EncryptedVolumeType, VolumeType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.quota import Quota
from engine.types.openstack.services import VOLUME as CINDER


def cinder_types(cloud: Cloud) -> list[ResourceType]:
    return [
        Volume(cloud),
        VolumeAttachment(cloud),
        VolumeType(cloud),
        EncryptedVolumeType(cloud),
        QoSSpecs(cloud),
        QoSAssociation(cloud),
        Quota(QUOTA, CINDER, cloud),
    ]
