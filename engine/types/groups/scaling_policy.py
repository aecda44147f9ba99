"""OS::Heat::ScalingPolicy and AWS::AutoScaling::ScalingPolicy: each signal adjusts the size of a
group."""

from collections.abc import Mapping
from typing import Final

from engine.errors import Findings
from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.contract import Call, Done, InternalType, Outcome
from engine.types.group_size import Adjustment, SizeAdjustment
from engine.words import Json

#: By the words of Amazon.
AWS_ADJUSTMENTS: Final[Mapping[str, Adjustment]] = {
    "ChangeInCapacity": Adjustment.CHANGE,
    "ExactCapacity": Adjustment.EXACT,
    "PercentChangeInCapacity": Adjustment.PERCENT,
}


class ScalingPolicy(InternalType):
    schema = TypeSchema(
        "OS::Heat::ScalingPolicy",
        description="Adjusts the size of a scaling group at each signal.",
        properties={
            "auto_scaling_group_id": Property(
                Kind.STRING, "Value of get_resource for the group.", required=True
            ),
            "scaling_adjustment": updatable(
                Kind.NUMBER, "Amount of the adjustment.", required=True
            ),
            "adjustment_type": updatable(
                Kind.STRING,
                "Change by a number of members, set a size, or change by a percentage.",
                required=True,
                constraints=(Constraint("allowed_values", allowed=tuple(Adjustment)),),
            ),
            "cooldown": updatable(
                Kind.NUMBER, "Seconds without further adjustments; overrides the group's cooldown."
            ),
            "min_adjustment_step": updatable(
                Kind.INTEGER,
                "The minimum number of members that a percentage change adds or removes.",
                constraints=(Constraint("range", min=0),),
            ),
        },
        attributes={
            "alarm_url": Attribute(Kind.STRING, "Signal URL with the token in it.", secret=True),
            "signal_url": Attribute(Kind.STRING, "Signal URL, which requires authentication."),
        },
        signals=True,
    )

    def create(self, call: Call) -> Outcome:
        signal_url = call.signal_url
        attributes = {"alarm_url": signal_url.signed_url, "signal_url": signal_url.api_url}
        return Done(call.physical_id or str(call.operation_key), attributes)

    def update(self, call: Call) -> Outcome:
        return self.create(call)

    def adopt(self, call: Call) -> Outcome:
        """An adopted resource gets a new signal URL; the one of its former server is not valid."""
        return self.create(call)

    def adjust(self, properties: Mapping[str, Json]) -> SizeAdjustment | None:
        return SizeAdjustment(
            properties["auto_scaling_group_id"],
            Adjustment(properties["adjustment_type"]),
            properties["scaling_adjustment"],
            properties.get("min_adjustment_step") or 0,
            properties.get("cooldown"),
        )

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        kind, step = properties.get("adjustment_type"), properties.get("min_adjustment_step")
        if step is not None and kind not in (None, Adjustment.PERCENT):
            reason = f"min_adjustment_step is valid only with {Adjustment.PERCENT}"
            findings.add(f"{place}.min_adjustment_step", reason, "Remove it.")


class AwsScalingPolicy(ScalingPolicy):
    """The result of get_resource is the signal URL with the token in it, as in Heat."""

    schema = TypeSchema(
        "AWS::AutoScaling::ScalingPolicy",
        description="Adjusts the size of an auto-scaling group at each signal.",
        properties={
            "AutoScalingGroupName": Property(
                Kind.STRING, "Value of get_resource for the group.", required=True
            ),
            "ScalingAdjustment": updatable(
                Kind.INTEGER, "Amount of the adjustment.", required=True
            ),
            "AdjustmentType": updatable(
                Kind.STRING,
                "Change by a number of members, set a size, or change by a percentage.",
                required=True,
                constraints=(Constraint("allowed_values", allowed=tuple(AWS_ADJUSTMENTS)),),
            ),
            "Cooldown": updatable(
                Kind.INTEGER, "Seconds without further adjustments; overrides the group's cooldown."
            ),
            "MinAdjustmentStep": updatable(
                Kind.INTEGER,
                "The minimum number of members that a percentage change adds or removes.",
                constraints=(Constraint("range", min=0),),
            ),
        },
        attributes={
            "AlarmUrl": Attribute(Kind.STRING, "Signal URL with the token in it.", secret=True),
        },
        signals=True,
    )

    def create(self, call: Call) -> Outcome:
        signed = call.signal_url.signed_url
        physical_id = call.physical_id or str(call.operation_key)
        return Done(physical_id, {"AlarmUrl": signed}, {_SIGNED_URL: signed})

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        return str(data.get(_SIGNED_URL) or resource_name)

    def adjust(self, properties: Mapping[str, Json]) -> SizeAdjustment | None:
        return SizeAdjustment(
            properties["AutoScalingGroupName"],
            AWS_ADJUSTMENTS[properties["AdjustmentType"]],
            properties["ScalingAdjustment"],
            properties.get("MinAdjustmentStep") or 0,
            properties.get("Cooldown"),
        )

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        kind, step = properties.get("AdjustmentType"), properties.get("MinAdjustmentStep")
        if step is not None and kind not in (None, "PercentChangeInCapacity"):
            reason = "MinAdjustmentStep is valid only with PercentChangeInCapacity"
            findings.add(f"{place}.MinAdjustmentStep", reason, "Remove it.")


#: In the data: the signal URL.
_SIGNED_URL: Final = "signed_url"
