"""Quality of service, metering and quotas: OS::Neutron::QoSPolicy, QoSBandwidthLimitRule,
QoSDscpMarkingRule, QoSMinimumBandwidthRule, QoSMinimumPacketRateRule, MeteringLabel, MeteringRule,
Quota."""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.errors import Findings
from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema, updatable
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.types.custom_constraints import ValidationContext
from engine.types.openstack.cloud import Cloud, Session, segment
from engine.types.openstack.neutron.lookups import (
    METERING_LABELS,
    PROJECTS,
    QOS_POLICIES,
    between,
    custom,
    one_of,
)
from engine.types.openstack.neutron.networks import TENANT, name_of
from engine.types.openstack.neutron.neutron_type import (
    NeutronType,
    UniqueContentType,
    describe,
    describe_ports,
)
from engine.types.openstack.object_type import Mark, ObjectRow
from engine.types.openstack.services import NETWORK
from engine.words import Json

QOS_POLICY: Final = TypeSchema(
    "OS::Neutron::QoSPolicy",
    description="A set of rules about the quality of service of ports and networks.",
    properties={
        "name": name_of("policy"),
        "description": updatable(Kind.STRING, "Description."),
        "shared": updatable(Kind.BOOLEAN, "Whether all projects may use it.", default=False),
        "tenant_id": TENANT,
    },
    attributes={"rules": Attribute(Kind.LIST, "Its rules.")},
)
_POLICY: Final = Property(
    Kind.STRING,
    "Name or ID of the QoS policy.",
    required=True,
    constraints=custom("neutron.qos_policy"),
)
_DIRECTION: Final = updatable(
    Kind.STRING,
    "Direction seen from the port.",
    default="egress",
    constraints=one_of("egress", "ingress"),
)
_DSCP_MARKS: Final = (
    0, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 46, 48, 56,
)  # fmt: skip


def _qos_rule(name: str, description: str, **properties: Property) -> TypeSchema:
    common = {"policy": _POLICY, "tenant_id": TENANT}
    return TypeSchema(name, {**common, **properties}, description=description)


BANDWIDTH_LIMIT: Final = _qos_rule(
    "OS::Neutron::QoSBandwidthLimitRule",
    "Limits the bandwidth of a port.",
    max_kbps=updatable(Kind.INTEGER, "kbit/s at most.", required=True, constraints=between(0)),
    max_burst_kbps=updatable(
        Kind.INTEGER, "kbit of a burst at most.", default=0, constraints=between(0)
    ),
    direction=_DIRECTION,
)
DSCP_MARKING: Final = _qos_rule(
    "OS::Neutron::QoSDscpMarkingRule",
    "Marks the packets of a port.",
    dscp_mark=updatable(
        Kind.INTEGER, "The DSCP mark.", required=True, constraints=one_of(*_DSCP_MARKS)
    ),
)
MINIMUM_BANDWIDTH: Final = _qos_rule(
    "OS::Neutron::QoSMinimumBandwidthRule",
    "Guarantees bandwidth to a port.",
    min_kbps=updatable(Kind.INTEGER, "kbit/s at least.", required=True, constraints=between(0)),
    direction=_DIRECTION,
)
MINIMUM_PACKET_RATE: Final = _qos_rule(
    "OS::Neutron::QoSMinimumPacketRateRule",
    "Guarantees a packet rate to a port.",
    min_kpps=updatable(
        Kind.INTEGER, "1,000 packets/s at least.", required=True, constraints=between(0)
    ),
    direction=updatable(
        Kind.STRING,
        "Direction seen from the port.",
        default="egress",
        constraints=one_of("any", "egress", "ingress"),
    ),
)

METERING_LABEL: Final = TypeSchema(
    "OS::Neutron::MeteringLabel",
    description="Counts the traffic of a project.",
    properties={
        "name": Property(Kind.STRING, "Name; the default is derived from the stack."),
        "description": Property(Kind.STRING, "Description."),
        "shared": Property(Kind.BOOLEAN, "Whether it counts all projects.", default=False),
    },
    attributes={
        "name": Attribute(Kind.STRING, "Name."),
        "description": Attribute(Kind.STRING, "Description."),
        "shared": Attribute(Kind.STRING, "Whether it counts all projects."),
    },
)
METERING_RULE: Final = TypeSchema(
    "OS::Neutron::MeteringRule",
    description="Which traffic a metering label counts.",
    properties={
        "metering_label_id": Property(
            Kind.STRING, "Name or ID of the metering label.", required=True
        ),
        "remote_ip_prefix": Property(Kind.STRING, "The other side, in CIDR form.", required=True),
        "direction": Property(
            Kind.STRING, "Direction.", default="ingress", constraints=one_of("ingress", "egress")
        ),
        "excluded": Property(Kind.BOOLEAN, "Whether the traffic is not counted.", default=False),
    },
    attributes={
        "direction": Attribute(Kind.STRING, "Direction."),
        "remote_ip_prefix": Attribute(Kind.STRING, "The other side, in CIDR form."),
        "metering_label_id": Attribute(Kind.STRING, "ID of the metering label."),
        "excluded": Attribute(Kind.STRING, "Whether the traffic is not counted."),
    },
)

_QUOTAS: Final = (
    "subnet", "network", "floatingip", "security_group_rule", "security_group", "router", "port",
    "subnetpool", "rbac_policy",
)  # fmt: skip
QUOTA: Final = TypeSchema(
    "OS::Neutron::Quota",
    description="How many objects of Neutron a project may have.",
    properties={
        "project": Property(
            Kind.STRING,
            "Name or ID of the project.",
            required=True,
            constraints=custom("keystone.project"),
        ),
        **{
            name: updatable(
                Kind.INTEGER,
                f"Objects of the kind {name} at most; -1 for any number.",
                constraints=between(-1),
            )
            for name in _QUOTAS
        },
    },
)


class QosPolicyType(NeutronType):
    async def users(self, session: Session, path: str, object_id: str) -> Sequence[str]:
        query = {"qos_policy_id": object_id}
        networks = await session.list(NETWORK, "/networks", "networks", query)
        ports = await session.list(NETWORK, "/ports", "ports", query)
        return [*(describe("network", one) for one in networks[:5]), *describe_ports(ports)]


class QosRuleType(UniqueContentType):
    """A policy has one rule of each kind and direction."""


class QuotaType(NeutronType):
    """The quota of a project. The physical ID is that of the project; a delete resets it."""

    async def _create(self, call: Call, session: Session) -> Outcome:
        project = await PROJECTS.find_id(session, str(call.properties["project"]))
        return await self._set(call, session, project)

    async def _update(self, call: Call, session: Session) -> Outcome:
        return await self._set(call, session, str(call.physical_id))

    async def _set(self, call: Call, session: Session, project: str) -> Outcome:
        given = call.properties
        fields = {name: given[name] for name in _QUOTAS if given.get(name) is not None}
        await self.put(session, "/quotas", project, fields)
        return Done(project)

    async def _check(self, call: Call, session: Session) -> Outcome:
        await self.get(session, "/quotas", str(call.physical_id))
        return Done(call.physical_id)

    async def _delete(self, call: Call, session: Session) -> Outcome:
        if call.physical_id is None:
            return Done(None)
        path = f"/quotas/{segment(call.physical_id)}"
        await session.delete(NETWORK, path, "reset the quota")
        return Done(None)

    def mark(self, call: Call) -> Mark:
        return Mark({}, {})

    def observation_key(self, call: Call) -> str | None:
        return None

    async def check_external(self, physical_id: str, context: ValidationContext) -> str | None:
        return None

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if set(properties) <= {"project"}:
            remedy = f"Add one of {', '.join(_QUOTAS)}."
            findings.add(place, "at least one quota must be given", remedy)


def policy_types(cloud: Cloud) -> list[ResourceType]:
    def qos_rule(schema: TypeSchema, kind: str) -> QosRuleType:
        path = f"/qos/policies/{{policy}}/{kind}_rules"
        return QosRuleType(
            schema,
            ObjectRow(
                "QoS rule", NETWORK, path, f"{kind}_rule", f"{kind}_rules",
                lookups={"policy": QOS_POLICIES}, separate=frozenset({"tenant_id"}),
                cleared={"max_burst_kbps": 0}, named=False, marked=False,
            ),
            cloud,
        )  # fmt: skip

    policies = ObjectRow("QoS policy", NETWORK, "/qos/policies", "policy", "policies")
    return [
        QosPolicyType(QOS_POLICY, policies, cloud),
        qos_rule(BANDWIDTH_LIMIT, "bandwidth_limit"),
        qos_rule(DSCP_MARKING, "dscp_marking"),
        qos_rule(MINIMUM_BANDWIDTH, "minimum_bandwidth"),
        qos_rule(MINIMUM_PACKET_RATE, "minimum_packet_rate"),
        NeutronType(
            METERING_LABEL,
            ObjectRow(
                "metering label", NETWORK, "/metering/metering-labels", "metering_label",
                "metering_labels",
            ),
            cloud,
        ),
        UniqueContentType(
            METERING_RULE,
            ObjectRow(
                "metering rule", NETWORK, "/metering/metering-label-rules", "metering_label_rule",
                "metering_label_rules", lookups={"metering_label_id": METERING_LABELS},
                named=False, marked=False,
            ),
            cloud,
        ),
        QuotaType(
            QUOTA,
            ObjectRow("quota", NETWORK, "/quotas", "quota", "quotas", named=False, marked=False),
            cloud,
        ),
    ]  # fmt: skip
