"""OS::Heat::InstanceGroup: members of type AWS::EC2::Instance, as a launch configuration says."""

import re
from collections.abc import Awaitable, Mapping
from typing import Final

from engine.errors import Findings
from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Grouping,
    Kind,
    Property,
    TypeSchema,
)
from engine.types.contract import Call, Child, Done, Failed, Outcome, ResourceType
from engine.types.groups.batches import Policy
from engine.types.groups.group import read_inside, sound
from engine.types.groups.member_template import Body, sample
from engine.types.groups.scaling_group import ScalingGroup
from engine.words import Json, Point

INSTANCE: Final = "AWS::EC2::Instance"
#: Members are counted against quotas when they are made; this bounds what a policy may ask for.
MOST: Final = 1_000_000
_PAUSE = re.compile(r"PT(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?")
LONGEST_PAUSE: Final = 3600
#: What Heat lists where an instance has none.
NO_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - nothing is bound to it


class LaunchConfiguration(ResourceType):
    uses_credential = False
    schema = TypeSchema(
        "AWS::AutoScaling::LaunchConfiguration",
        description="What the instances of an instance group are.",
        properties={
            **{
                name: Property(Kind.STRING, "Handed to each instance as it is.")
                for name in (
                    "ImageId", "InstanceType", "KeyName", "UserData", "KernelId", "RamDiskId"
                )
            },
            **{
                name: Property(Kind.LIST, "Handed to each instance as it is.")
                for name in ("SecurityGroups", "BlockDeviceMappings", "NovaSchedulerHints")
            },
        },
    )  # fmt: skip

    def create(self, call: Call) -> Outcome:
        return Done(str(call.operation_key))

    def delete(self, call: Call) -> Outcome:
        return Done(None)


class InstanceGroup(ScalingGroup):
    schema = TypeSchema(
        "OS::Heat::InstanceGroup",
        description="Instances that are alike, as a launch configuration says.",
        properties={
            "AvailabilityZones": Property(Kind.LIST, "Taken for Heat's sake.", required=True),
            "LaunchConfigurationName": Property(
                Kind.STRING,
                "What get_resource gives of a launch configuration.",
                required=True,
                update_allowed=True,
            ),
            "Size": Property(
                Kind.INTEGER,
                "How many members.",
                required=True,
                constraints=(Constraint("range", min=0),),
                update_allowed=True,
            ),
            "LoadBalancerNames": Property(Kind.LIST, "Must be empty."),
            "Tags": Property(
                Kind.LIST,
                "Tags of each member.",
                items=Property(
                    Kind.MAP,
                    fields={
                        "Key": Property(Kind.STRING, required=True),
                        "Value": Property(Kind.STRING, required=True),
                    },
                ),
            ),
        },
        attributes={
            "InstanceList": Attribute(
                Kind.STRING, "The attribute PublicIp of each member, with commas."
            )
        },
        update_policy={
            "RollingUpdate": Property(
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
        },
        steps=(Point.PRE_BATCH, Point.PRE_SCALE_IN),
        grouping=Grouping(
            lambda properties: sample({"member": {"type": INSTANCE}}),
            lambda properties: None,
            lambda place: "LaunchConfigurationName",
            types_only=True,
        ),
    )

    def referenced_resource(self, properties: Mapping[str, Json]) -> str | None:
        name: str = properties["LaunchConfigurationName"]
        return name

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        if call.referenced is None:
            name = call.properties["LaunchConfigurationName"]
            said = f"LaunchConfigurationName ({name}) reference can not be found."
            return Failed(said, call.physical_id, call.data)
        return super().create(call)

    def body(self, call: Call) -> Body:
        given = {
            name: value for name, value in (call.referenced or {}).items() if value is not None
        }
        tags = call.properties.get("Tags") or []
        return {"type": INSTANCE, "properties": {**given, **({"Tags": tags} if tags else {})}}

    def wanted_size(self, properties: Mapping[str, Json]) -> int | None:
        size: int = properties["Size"]
        return size

    def bounds(self, properties: Mapping[str, Json]) -> tuple[int, int]:
        return 0, MOST

    def policy(self, call: Call) -> Policy | None:
        said = call.update_policy.get("RollingUpdate")
        if said is None:
            return None
        return Policy(
            said.get("MaxBatchSize") or 1,
            said.get("MinInstancesInService") or 0,
            min(_seconds(said.get("PauseTime") or "PT0S"), LONGEST_PAUSE),
        )

    def attributes(self, call: Call, child: Child) -> Mapping[str, Json]:
        members = sound(child)
        addresses = [str(one.attributes.get("PublicIp") or NO_ADDRESS) for one in members]
        listed = ",".join(addresses) or None
        return {"InstanceList": listed, **read_inside(members, {}, by_place=True)}

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if properties.get("LoadBalancerNames"):
            reason = "members are not registered with load balancers"
            remedy = "Leave it out, and give the load balancer InstanceList with get_attr."
            findings.add(f"{place}.LoadBalancerNames", reason, remedy)


def _seconds(text: str) -> int:
    """Of ``PT1H2M3S``."""
    match = _PAUSE.fullmatch(text)
    hours, minutes, seconds = (
        int(part or 0) for part in (match.groups() if match else ()) or (0, 0, 0)
    )
    return 3600 * hours + 60 * minutes + seconds
