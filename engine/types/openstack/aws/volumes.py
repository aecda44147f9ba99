"""AWS::EC2::Volume and VolumeAttachment, of Cinder."""

from collections.abc import Mapping
from typing import ClassVar

from engine.types.openstack.aws.mapped_type import MappedType, listed_tags, tags
from engine.words import Json


class Ec2Volume(MappedType):
    names: ClassVar = {
        "AvailabilityZone": ("availability_zone",),
        "Size": ("size",),
        "SnapshotId": ("backup_id",),
        "Tags": ("metadata",),
    }

    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        return {
            "availability_zone": properties.get("AvailabilityZone") or None,
            "size": properties.get("Size"),
            "backup_id": properties.get("SnapshotId"),
            "metadata": tags(properties.get("Tags")),
        }

    def own_value(self, name: str, value: Json) -> Json:
        return listed_tags(value) if name == "Tags" else value


class Ec2VolumeAttachment(MappedType):
    names: ClassVar = {
        "InstanceId": ("instance_uuid",),
        "VolumeId": ("volume_id",),
        "Device": ("mountpoint",),
    }

    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        return {
            other: properties.get(own) for own, others in self.names.items() for other in others
        }
