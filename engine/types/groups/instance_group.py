"""OS::Heat::InstanceGroup and AWS::AutoScaling::AutoScalingGroup: AWS::EC2::Instance members from a
launch configuration."""

import re
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Final

from engine.errors import Findings
from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Grouping,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.contract import (
    Call,
    Child,
    Done,
    Failed,
    InternalType,
    Outcome,
    ReconcileNested,
)
from engine.types.groups.group import Policy, healthy_members, member_attributes
from engine.types.groups.member_template import Body, sample
from engine.types.groups.scaling_group import ScalingGroup
from engine.words import Json, Point

INSTANCE: Final = "AWS::EC2::Instance"
#: The size limit for scaling policies. Quotas count members when they are created.
MAX_MEMBERS: Final = 1_000_000
_PAUSE = re.compile(r"PT(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?")
#: Seconds; a longer PauseTime is shortened to this.
MAX_PAUSE: Final = 3600
#: The address that Heat lists for an instance without one.
NO_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - not used to bind a socket


class LaunchConfiguration(InternalType):
    schema = TypeSchema(
        "AWS::AutoScaling::LaunchConfiguration",
        description="Properties of the instances of an instance group.",
        properties={
            **{
                name: Property(Kind.STRING, "Passed to each instance unchanged.")
                for name in (
                    "ImageId", "InstanceType", "KeyName", "UserData", "KernelId", "RamDiskId"
                )
            },
            **{
                name: Property(Kind.LIST, "Passed to each instance unchanged.")
                for name in ("SecurityGroups", "BlockDeviceMappings", "NovaSchedulerHints")
            },
        },
    )  # fmt: skip

    def create(self, call: Call) -> Outcome:
        return Done(str(call.operation_key))


#: The properties and the update policy that both groups have.
_ZONES: Final = Property(
    Kind.LIST, "Accepted for compatibility with Heat; no effect.", required=True
)
_LOAD_BALANCERS: Final = Property(Kind.LIST, "Must be empty.")
_TAGS: Final = Property(
    Kind.LIST,
    "Tags of each member.",
    items=Property(
        Kind.MAP,
        fields={
            "Key": Property(Kind.STRING, "The key.", required=True),
            "Value": Property(Kind.STRING, "The value.", required=True),
        },
    ),
)
_INSTANCE_LIST: Final = Attribute(
    Kind.STRING, "The attribute PublicIp of each member, comma-separated."
)
_ROLLING: Final = Property(
    Kind.MAP,
    fields={
        "MinInstancesInService": Property(Kind.INTEGER, default=0),
        "MaxBatchSize": Property(
            Kind.INTEGER, default=1, constraints=(Constraint("range", min=1),)
        ),
        "PauseTime": Property(
            Kind.STRING,
            default="PT0S",
            constraints=(Constraint("allowed_pattern", pattern=_PAUSE.pattern),),
        ),
    },
)
_GROUPING: Final = Grouping(
    lambda properties: sample({"member": {"type": INSTANCE}}),
    lambda properties: None,
    lambda place: "LaunchConfigurationName",
    types_only=True,
)


class InstanceGroup(ScalingGroup):
    #: The name of the update policy.
    rolling = "RollingUpdate"
    schema = TypeSchema(
        "OS::Heat::InstanceGroup",
        description="Identical instances from a launch configuration.",
        properties={
            "AvailabilityZones": _ZONES,
            "LaunchConfigurationName": updatable(
                Kind.STRING, "Value of get_resource for a launch configuration.", required=True
            ),
            "Size": updatable(
                Kind.INTEGER,
                "Number of members.",
                required=True,
                constraints=(Constraint("range", min=0),),
            ),
            "LoadBalancerNames": _LOAD_BALANCERS,
            "Tags": _TAGS,
        },
        attributes={"InstanceList": _INSTANCE_LIST},
        update_policy={"RollingUpdate": _ROLLING},
        steps=(Point.PRE_BATCH, Point.PRE_SCALE_IN),
        grouping=_GROUPING,
    )

    def referenced_resource(self, properties: Mapping[str, Json]) -> str | None:
        name: str = properties["LaunchConfigurationName"]
        return name

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        if call.referenced is None:
            name = call.properties["LaunchConfigurationName"]
            reason = f"LaunchConfigurationName ({name}) reference can not be found."
            return Failed(reason, call.physical_id, call.data)
        return super().create(call)

    def preview_nested(self, call: Call) -> ReconcileNested | None:
        """The reference of a new launch configuration is unknown, but its properties are not."""
        if call.referenced is None:
            return None
        named = {**call.properties, "LaunchConfigurationName": None}
        return super().preview_nested(replace(call, properties=named))

    def body(self, call: Call) -> Body:
        properties = {
            name: value for name, value in (call.referenced or {}).items() if value is not None
        }
        tags = call.properties.get("Tags") or []
        return {"type": INSTANCE, "properties": {**properties, **({"Tags": tags} if tags else {})}}

    def wanted_size(self, properties: Mapping[str, Json]) -> int | None:
        size: int = properties["Size"]
        return size

    def bounds(self, properties: Mapping[str, Json]) -> tuple[int, int]:
        return 0, MAX_MEMBERS

    def policy(self, call: Call) -> Policy | None:
        rolling = call.update_policy.get(self.rolling)
        if rolling is None:
            return None
        return Policy(
            rolling.get("MaxBatchSize") or 1,
            rolling.get("MinInstancesInService") or 0,
            min(_seconds(rolling.get("PauseTime") or "PT0S"), MAX_PAUSE),
        )

    def attributes(self, call: Call, child: Child) -> Mapping[str, Json]:
        members = healthy_members(child)
        addresses = [str(one.attributes.get("PublicIp") or NO_ADDRESS) for one in members]
        listed = ",".join(addresses) or None
        return {"InstanceList": listed, **member_attributes(members, {}, by_index=True)}

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if properties.get("LoadBalancerNames"):
            reason = "members are not registered with load balancers"
            remedy = "Remove it, and pass InstanceList to the load balancer with get_attr."
            findings.add(f"{place}.LoadBalancerNames", reason, remedy)


class AwsAutoScalingGroup(InstanceGroup):
    """An instance group whose size scaling policies adjust."""

    rolling = "AutoScalingRollingUpdate"
    schema = TypeSchema(
        "AWS::AutoScaling::AutoScalingGroup",
        description="Instances from a launch configuration, adjusted by scaling policies.",
        properties={
            "AvailabilityZones": _ZONES,
            "LaunchConfigurationName": updatable(
                Kind.STRING, "Value of get_resource for a launch configuration."
            ),
            "InstanceId": Property(
                Kind.STRING,
                "Not supported: an instance in place of a launch configuration.",
                constraints=(Constraint("custom_constraint", name="nova.server"),),
            ),
            "MaxSize": updatable(Kind.INTEGER, "Maximum number of members.", required=True),
            "MinSize": updatable(Kind.INTEGER, "Minimum number of members.", required=True),
            "Cooldown": updatable(
                Kind.INTEGER,
                "Seconds after a change of size in which scaling policies have no effect.",
            ),
            "DesiredCapacity": updatable(
                Kind.INTEGER, "Number of members until a scaling policy changes it."
            ),
            "LoadBalancerNames": _LOAD_BALANCERS,
            "VPCZoneIdentifier": Property(
                Kind.LIST,
                "The ID of the subnet of the members: one item.",
                items=Property(Kind.STRING, "ID of a subnet."),
            ),
            "Tags": _TAGS,
        },
        attributes={"InstanceList": _INSTANCE_LIST},
        update_policy={"AutoScalingRollingUpdate": _ROLLING},
        steps=(Point.PRE_BATCH, Point.PRE_SCALE_IN),
        grouping=_GROUPING,
    )

    def referenced_resource(self, properties: Mapping[str, Json]) -> str | None:
        name: str | None = properties.get("LaunchConfigurationName")
        return name

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        if not call.properties.get("LaunchConfigurationName"):
            return Failed(_NO_CONFIGURATION, call.physical_id, call.data)
        return super().create(call)

    def body(self, call: Call) -> Body:
        body = super().body(call)
        subnets = call.properties.get("VPCZoneIdentifier")
        return {**body, "properties": {**body["properties"], **_subnet(subnets)}}

    def wanted_size(self, properties: Mapping[str, Json]) -> int | None:
        """As in Heat, 0 is no desired capacity."""
        return properties.get("DesiredCapacity") or None

    def bounds(self, properties: Mapping[str, Json]) -> tuple[int, int]:
        return properties["MinSize"], properties["MaxSize"]

    def cooldown(self, properties: Mapping[str, Json]) -> float:
        return properties.get("Cooldown") or 0

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        super().check_properties(properties, place, findings)
        if properties.get("InstanceId"):
            reason = "is not supported"
            findings.add(f"{place}.InstanceId", reason, "Use a launch configuration.")
        subnets = properties.get("VPCZoneIdentifier")
        if isinstance(subnets, list) and len(subnets) > 1:
            findings.add(
                f"{place}.VPCZoneIdentifier",
                "Anything other than one VPCZoneIdentifier is not supported.",
                "Give one subnet.",
            )
        self._check_sizes(properties, place, findings)

    def _check_sizes(self, properties: Mapping[str, Json], place: str, findings: Findings) -> None:
        names = ("MinSize", "MaxSize", "DesiredCapacity")
        low, high, size = (_read_integer(properties.get(name)) for name in names)
        if low is not None and low < 0:
            reason = "The size of AutoScalingGroup can not be less than zero"
            findings.add(f"{place}.MinSize", reason, "Use 0 or more.")
        elif low is not None and high is not None and high < low:
            reason = "MinSize can not be greater than MaxSize"
            findings.add(f"{place}.MinSize", reason, "Lower it, or raise MaxSize.")
        elif size is not None and (size < (low or 0) or (high is not None and size > high)):
            reason = "DesiredCapacity must be between MinSize and MaxSize"
            remedy = f"Use a value from {low or 0} to {size if high is None else high}."
            findings.add(f"{place}.DesiredCapacity", reason, remedy)


_NO_CONFIGURATION: Final = "LaunchConfigurationName must be provided."


def _subnet(subnets: Json) -> dict[str, Json]:
    return {"SubnetId": subnets[0]} if isinstance(subnets, list) and subnets else {}


def _read_integer(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _seconds(text: str) -> int:
    """The seconds of a duration such as ``PT1H2M3S``."""
    match = _PAUSE.fullmatch(text)
    hours, minutes, seconds = (
        int(part or 0) for part in (match.groups() if match else ()) or (0, 0, 0)
    )
    return 3600 * hours + 60 * minutes + seconds
