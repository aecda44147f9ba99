"""AWS::EC2::Instance, a server of Nova."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from engine.errors import Findings
from engine.types.contract import Call
from engine.types.openstack.aws.mapped_type import MappedType, listed_tags, pairs, tags
from engine.types.openstack.nova import server_state
from engine.words import Json

#: The address that Heat shows for an instance without one.
NO_ADDRESS = "0.0.0.0"  # noqa: S104 - not used to bind a socket
_ADDRESSES = ("PrivateDnsName", "PublicDnsName", "PrivateIp", "PublicIp")


class Instance(MappedType):
    names: ClassVar = {
        "ImageId": ("image",),
        "InstanceType": ("flavor",),
        "KeyName": ("key_name",),
        "AvailabilityZone": ("availability_zone",),
        "SecurityGroups": ("security_groups",),
        "SecurityGroupIds": ("security_groups",),
        "NetworkInterfaces": ("networks",),
        "SubnetId": ("networks",),
        "Tags": ("metadata",),
        "NovaSchedulerHints": ("scheduler_hints",),
        "UserData": ("user_data",),
        "Volumes": ("block_device_mapping_v2",),
        "BlockDeviceMappings": ("block_device_mapping",),
    }
    not_implemented: ClassVar = tuple(
        f"BlockDeviceMappings.*.{name}"
        for name in ("Ebs.Iops", "Ebs.VolumeType", "NoDevice", "VirtualName")
    )

    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        given = properties.get
        groups = [*(given("SecurityGroups") or []), *(given("SecurityGroupIds") or [])]
        return {
            "image": given("ImageId"),
            "flavor": given("InstanceType"),
            "key_name": given("KeyName"),
            "availability_zone": given("AvailabilityZone"),
            "security_groups": groups,
            "networks": _networks(properties),
            "metadata": tags(given("Tags")),
            "scheduler_hints": pairs(given("NovaSchedulerHints")) or None,
            "user_data": given("UserData"),
            "block_device_mapping_v2": [_volume(one) for one in given("Volumes") or []],
            "block_device_mapping": [_device(one) for one in given("BlockDeviceMappings") or []],
        }

    def own_attributes(self, call: Call, attributes: Mapping[str, Json]) -> dict[str, Json]:
        server = attributes.get("show") or {}
        address = server_state.first_address(server) or NO_ADDRESS
        zone = server.get("OS-EXT-AZ:availability_zone") or None
        return {"AvailabilityZone": zone, **dict.fromkeys(_ADDRESSES, address)}

    def own_value(self, name: str, value: Json) -> Json:
        return listed_tags(value) if name == "Tags" else value

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        super().check_properties(properties, place, findings)
        has_groups = properties.get("SecurityGroups") or properties.get("SecurityGroupIds")
        if has_groups and properties.get("NetworkInterfaces"):
            findings.add(
                place,
                "Cannot define the following properties at the same time: "
                "SecurityGroups/SecurityGroupIds, NetworkInterfaces.",
                "Remove one of them: a port has its own groups.",
            )
        check_devices(properties, place, findings)


def check_devices(properties: Mapping[str, Json], place: str, findings: Findings) -> None:
    """Report block devices without a snapshot."""
    devices = properties.get("BlockDeviceMappings")
    for number, one in enumerate(devices if isinstance(devices, list) else []):
        if isinstance(one, Mapping) and not one.get("Ebs"):
            findings.add(
                f"{place}.BlockDeviceMappings[{number}]",
                "Ebs is missing, this is required when specifying BlockDeviceMappings.",
                "Add Ebs with a SnapshotId.",
            )


def _networks(properties: Mapping[str, Json]) -> list[Json]:
    """The ports in the order of DeviceIndex; else the subnet; else what Nova chooses."""
    if given := properties.get("NetworkInterfaces"):
        return [{"port": port} for port in _ports(given)]
    if subnet := properties.get("SubnetId"):
        return [{"subnet": subnet}]
    return [{"allocate_network": "auto"}]


def _ports(given: Sequence[Json]) -> list[Json]:
    """An entry that is only an ID has its place in the list as its index."""
    indexed = []
    for number, one in enumerate(given):
        if isinstance(one, Mapping):
            index = str(one.get("DeviceIndex", number))
            place = int(index) if index.lstrip("-").isdecimal() else number
            indexed.append((place, one.get("NetworkInterfaceId")))
        else:
            indexed.append((number, one))
    return [port for _, port in sorted(indexed, key=lambda entry: entry[0])]


def _volume(one: Json) -> dict[str, Json]:
    given = one if isinstance(one, Mapping) else {}
    return {
        "volume_id": given.get("VolumeId"),
        "device_name": given.get("Device"),
        "boot_index": -1,
        "delete_on_termination": False,
    }


def _device(one: Json) -> dict[str, Json]:
    given = one if isinstance(one, Mapping) else {}
    ebs = given.get("Ebs") or {}
    size = str(ebs.get("VolumeSize") or "")
    return {
        "device_name": given.get("DeviceName"),
        "snapshot_id": ebs.get("SnapshotId"),
        "volume_size": int(size) if size.isdecimal() else None,
        "delete_on_termination": ebs.get("DeleteOnTermination"),
    }
