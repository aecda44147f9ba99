"""Types of OpenStack Heat 27 that Headgate does not have: why, and what to use instead. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class AbsentType:
    """reason, remedy: sentences for the author of a template."""

    reason: str
    remedy: str


_WITHOUT_REPLACEMENT: Final = (
    "Map it to a template in the environment's resource_registry, for example one that manages the "
    "object with Headgate::HTTP."
)


def _in_place_of(reason: str, replacements: Mapping[str, str]) -> dict[str, AbsentType]:
    """Types with the type to use instead, or with a sentence."""
    return {
        name: AbsentType(reason, other if other.endswith(".") else f"Use {other}.")
        for name, other in replacements.items()
    }


def _of_service(
    prefix: str, service: str, names: str, reason: str = "Headgate has no types of {}."
) -> dict[str, AbsentType]:
    """Types of a service without any replacement."""
    absent = AbsentType(reason.format(service), _WITHOUT_REPLACEMENT)
    return {f"{prefix}::{name}": absent for name in names.split()}


_HIDDEN: Final = "Heat has hidden this former type."
_NO_LONGER: Final = "Heat has hidden the types of {}."
_EXTENSION: Final = "It needs an extension of Neutron that Headgate does not support: {}."

#: By name.
ABSENT_TYPES: Final[Mapping[str, AbsentType]] = MappingProxyType(
    {
        **_in_place_of(
            "Headgate does not have this type, which imitates Amazon Web Services.",
            {
                "AWS::CloudWatch::Alarm": _WITHOUT_REPLACEMENT,
                "AWS::ElasticLoadBalancing::LoadBalancer": "OS::Octavia::LoadBalancer",
                "AWS::IAM::AccessKey": _WITHOUT_REPLACEMENT,
                "AWS::IAM::User": "OS::Keystone::User",
                "AWS::RDS::DBInstance": _WITHOUT_REPLACEMENT,
                "AWS::S3::Bucket": _WITHOUT_REPLACEMENT,
            },
        ),
        **_in_place_of(
            _HIDDEN,
            {
                "OS::Designate::Domain": "OS::Designate::Zone",
                "OS::Designate::Record": "OS::Designate::RecordSet",
                "OS::Glance::Image": "OS::Glance::WebImage",
                "OS::Heat::HARestarter": "an update of the stack: it replaces failed resources",
                "OS::Magnum::Bay": "OS::Magnum::Cluster",
                "OS::Magnum::BayModel": "OS::Magnum::ClusterTemplate",
                "OS::Neutron::HealthMonitor": "OS::Octavia::HealthMonitor",
                **{
                    f"OS::Neutron::LBaaS::{name}": f"OS::Octavia::{name}"
                    for name in (
                        "HealthMonitor",
                        "L7Policy",
                        "L7Rule",
                        "Listener",
                        "LoadBalancer",
                        "Pool",
                        "PoolMember",
                    )
                },
                "OS::Neutron::LoadBalancer": "OS::Octavia::LoadBalancer",
                "OS::Neutron::Pool": "OS::Octavia::Pool",
                "OS::Neutron::PoolMember": "OS::Octavia::PoolMember",
            },
        ),
        **_of_service("OS::Aodh", "Aodh", "Alarm CombinationAlarm"),
        **_of_service("OS::Blazar", "Blazar", "Host Lease"),
        **_of_service("OS::Ironic", "Ironic", "Port"),
        **_of_service("OS::Monasca", "Monasca", "AlarmDefinition Notification", _NO_LONGER),
        **_of_service(
            "OS::Neutron", "firewalls", "Firewall FirewallPolicy FirewallRule", _EXTENSION
        ),
        **_of_service(
            "OS::Neutron",
            "layer 2 gateways",
            "L2Gateway L2GatewayConnection NetworkGateway",
            _EXTENSION,
        ),
        **_of_service(
            "OS::Neutron",
            "service function chaining",
            "FlowClassifier PortChain PortPair PortPairGroup",
            _EXTENSION,
        ),
        **_of_service("OS::Neutron::TaaS", "taps of ports", "TapFlow TapService", _EXTENSION),
        **_of_service(
            "OS::Neutron",
            "virtual private networks",
            "IKEPolicy IPsecPolicy IPsecSiteConnection VPNService",
            _EXTENSION,
        ),
        **_of_service(
            "OS::Sahara",
            "Sahara",
            "Cluster ClusterTemplate DataSource ImageRegistry Job JobBinary NodeGroupTemplate",
            _NO_LONGER,
        ),
        **_of_service("OS::Senlin", "Senlin", "Cluster Node Policy Profile Receiver"),
        **_of_service("OS::Vitrage", "Vitrage", "Template", _NO_LONGER),
        **_of_service("OS::Zun", "Zun", "Container"),
    }
)
