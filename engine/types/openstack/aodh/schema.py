"""The schemas of the types of Aodh, as Heat has them."""

from typing import Final

from engine.hot.schema.type_schema import Constraint, Kind, Property, TypeSchema, updatable
from engine.types.openstack.neutron.lookups import between, custom, one_of

_OPERATORS: Final = one_of("le", "ge", "eq", "lt", "gt", "ne")


def _queues(state: str) -> Property:
    return updatable(
        Kind.LIST,
        f"Queues of Zaqar that get a message when the state becomes {state}.",
        default=[],
        items=Property(Kind.STRING, "Name of a queue.", constraints=custom("zaqar.queue")),
    )


_COMMON: Final = {
    "description": updatable(Kind.STRING, "Description."),
    "enabled": updatable(Kind.BOOLEAN, "Whether Aodh evaluates the alarm.", default=True),
    "alarm_actions": updatable(Kind.LIST, "URLs that Aodh calls when the state becomes alarm."),
    "ok_actions": updatable(Kind.LIST, "URLs that Aodh calls when the state becomes ok."),
    "insufficient_data_actions": updatable(
        Kind.LIST, "URLs that Aodh calls when the state becomes insufficient data."
    ),
    "alarm_queues": _queues("alarm"),
    "ok_queues": _queues("ok"),
    "insufficient_data_queues": _queues("insufficient data"),
    "repeat_actions": updatable(
        Kind.BOOLEAN, "Whether Aodh repeats the actions while the state stays.", default=True
    ),
    "severity": updatable(
        Kind.STRING,
        "Severity.",
        default="low",
        constraints=one_of("low", "moderate", "critical"),
    ),
    "time_constraints": Property(
        Kind.LIST,
        "When Aodh evaluates the alarm; by default always.",
        default=[],
        items=Property(
            Kind.MAP,
            "Period.",
            fields={
                "name": Property(Kind.STRING, "Name.", required=True),
                "start": Property(
                    Kind.STRING,
                    "When it begins, as an expression of cron.",
                    required=True,
                    constraints=custom("cron_expression"),
                ),
                "description": Property(Kind.STRING, "Description."),
                "duration": Property(
                    Kind.INTEGER, "Seconds.", required=True, constraints=between(0)
                ),
                "timezone": Property(Kind.STRING, "Time zone.", constraints=custom("timezone")),
            },
        ),
    ),
}
_COMPARISON: Final = updatable(
    Kind.STRING, "How the value is compared with the threshold.", constraints=_OPERATORS
)
_THRESHOLD: Final = updatable(Kind.NUMBER, "Threshold.", required=True)
_GNOCCHI: Final = {
    "comparison_operator": _COMPARISON,
    "evaluation_periods": updatable(Kind.INTEGER, "Number of values that are compared."),
    "aggregation_method": updatable(Kind.STRING, "Aggregation of the values, such as mean."),
    "granularity": updatable(Kind.INTEGER, "Seconds of one value."),
    "threshold": _THRESHOLD,
}
_METRIC: Final = updatable(Kind.STRING, "Name of the metric.", required=True)
_RESOURCE_TYPE: Final = updatable(Kind.STRING, "Type of the resource.", required=True)

EVENT: Final = TypeSchema(
    "OS::Aodh::EventAlarm",
    description="An alarm about an event.",
    properties={
        "event_type": updatable(Kind.STRING, "Type of the event.", default="*"),
        "query": updatable(
            Kind.LIST,
            "Conditions on the event.",
            items=Property(
                Kind.MAP,
                "Condition.",
                fields={
                    "field": Property(Kind.STRING, "Name of a trait."),
                    "type": Property(
                        Kind.STRING,
                        "Type of the trait.",
                        default="string",
                        constraints=one_of("integer", "float", "string", "boolean", "datetime"),
                    ),
                    "op": Property(Kind.STRING, "Comparison.", constraints=_OPERATORS),
                    "value": Property(Kind.STRING, "Value."),
                },
            ),
        ),
        **_COMMON,
    },
    attributes={},
)
COMPOSITE: Final = TypeSchema(
    "OS::Aodh::CompositeAlarm",
    description="An alarm about several rules.",
    properties={
        "composite_rule": updatable(
            Kind.MAP,
            "The rules.",
            required=True,
            fields={
                "operator": Property(
                    Kind.STRING,
                    "Whether one or all rules must be true.",
                    required=True,
                    constraints=one_of("or", "and"),
                ),
                "rules": Property(
                    Kind.LIST,
                    "Rules, each with its type, or rules below `and` or `or`.",
                    required=True,
                    constraints=(Constraint("length", min=2),),
                ),
            },
        ),
        **_COMMON,
    },
    attributes={},
)
RESOURCES: Final = TypeSchema(
    "OS::Aodh::GnocchiResourcesAlarm",
    description="An alarm about a metric of a resource in Gnocchi.",
    properties={
        "metric": _METRIC,
        "resource_id": updatable(Kind.STRING, "ID of the resource.", required=True),
        "resource_type": _RESOURCE_TYPE,
        **_GNOCCHI,
        **_COMMON,
    },
    attributes={},
)
BY_METRICS: Final = TypeSchema(
    "OS::Aodh::GnocchiAggregationByMetricsAlarm",
    description="An alarm about metrics in Gnocchi.",
    properties={
        "metrics": updatable(Kind.LIST, "IDs of the metrics.", required=True),
        **_GNOCCHI,
        **_COMMON,
    },
    attributes={},
)
BY_RESOURCES: Final = TypeSchema(
    "OS::Aodh::GnocchiAggregationByResourcesAlarm",
    description="An alarm about a metric of several resources in Gnocchi.",
    properties={
        "metric": _METRIC,
        "query": updatable(Kind.STRING, "Which resources, as JSON.", required=True),
        "resource_type": _RESOURCE_TYPE,
        **_GNOCCHI,
        **_COMMON,
    },
    attributes={},
)
MEMBER_HEALTH: Final = TypeSchema(
    "OS::Aodh::LBMemberHealthAlarm",
    description="An alarm about the health of the members of a load balancer's pool.",
    properties={
        "pool": updatable(Kind.STRING, "Name or ID of the pool.", required=True),
        "stack": Property(
            Kind.STRING, "ID of the root stack that has the pool and the members.", required=True
        ),
        "autoscaling_group_id": updatable(
            Kind.STRING, "ID of the group that has the members.", required=True
        ),
        **_COMMON,
    },
    attributes={},
)
PROMETHEUS: Final = TypeSchema(
    "OS::Aodh::PrometheusAlarm",
    description="An alarm about a query of Prometheus.",
    properties={
        "comparison_operator": _COMPARISON,
        "query": updatable(Kind.STRING, "Query of Prometheus.", required=True),
        "threshold": _THRESHOLD,
        **_COMMON,
    },
    attributes={},
)
