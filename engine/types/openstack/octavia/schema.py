"""The schemas of the types of Octavia, as Heat has them."""

from typing import Final

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema, updatable
from engine.types.openstack.neutron.lookups import between, custom, one_of
from engine.types.openstack.neutron.networks import ADMIN_STATE, TENANT, name_of

_PROTOCOL: Final = Property(
    Kind.STRING,
    "Protocol.",
    required=True,
    constraints=one_of("TCP", "HTTP", "HTTPS", "TERMINATED_HTTPS", "PROXY", "UDP"),
)
_DESCRIPTION: Final = updatable(Kind.STRING, "Description.", default="")
_PORT: Final = Property(
    Kind.INTEGER, "Port that it listens on.", required=True, constraints=between(1, 65535)
)
_POOL: Final = Property(
    Kind.STRING, "Name or ID of the pool.", required=True, constraints=custom("octavia.pool")
)

LOAD_BALANCER: Final = TypeSchema(
    "OS::Octavia::LoadBalancer",
    description="A load balancer: an address that distributes traffic.",
    properties={
        "name": name_of("load balancer"),
        "description": _DESCRIPTION,
        "provider": Property(Kind.STRING, "Provider that implements it."),
        "vip_address": Property(Kind.STRING, "Its address.", constraints=custom("ip_addr")),
        "vip_subnet": Property(
            Kind.STRING,
            "Name or ID of the subnet of its address.",
            required=True,
            constraints=custom("neutron.subnet"),
        ),
        "admin_state_up": ADMIN_STATE,
        "tenant_id": Property(
            Kind.STRING,
            "ID of the owning project. For one of another project, be an administrator.",
            constraints=custom("keystone.project"),
        ),
        "flavor": Property(
            Kind.STRING, "Name or ID of a flavor of Octavia.", constraints=custom("octavia.flavor")
        ),
        "availability_zone": Property(
            Kind.STRING,
            "Name of an availability zone of Octavia.",
            constraints=custom("octavia.availabilityzone"),
        ),
    },
    attributes={
        "vip_address": Attribute(Kind.STRING, "Its address."),
        "vip_port_id": Attribute(Kind.STRING, "ID of the port with its address."),
        "vip_subnet_id": Attribute(Kind.STRING, "ID of the subnet of its address."),
        "pools": Attribute(Kind.LIST, "IDs of its pools."),
        "flavor_id": Attribute(Kind.STRING, "ID of its flavor."),
    },
)

LISTENER: Final = TypeSchema(
    "OS::Octavia::Listener",
    description="A port of a load balancer.",
    properties={
        "protocol_port": _PORT,
        "protocol": _PROTOCOL,
        "loadbalancer": Property(
            Kind.STRING,
            "Name or ID of the load balancer.",
            required=True,
            constraints=custom("octavia.loadbalancer"),
        ),
        "default_pool": updatable(
            Kind.STRING,
            "Name or ID of the pool that gets the traffic.",
            constraints=custom("octavia.pool"),
        ),
        "name": name_of("listener"),
        "admin_state_up": ADMIN_STATE,
        "description": _DESCRIPTION,
        "default_tls_container_ref": updatable(
            Kind.STRING, "URL of the container of the TLS certificate in Barbican."
        ),
        "sni_container_refs": updatable(
            Kind.LIST, "URLs of containers of further TLS certificates, chosen by SNI."
        ),
        "connection_limit": updatable(
            Kind.INTEGER,
            "Connections at the same time at most; -1 for any number.",
            default=-1,
            constraints=between(-1),
        ),
        "tenant_id": TENANT,
        "allowed_cidrs": updatable(
            Kind.LIST,
            "Addresses that may connect, in CIDR form.",
            items=Property(Kind.STRING, "A range.", constraints=custom("net_cidr")),
        ),
    },
    attributes={
        "loadbalancers": Attribute(Kind.LIST, "IDs of its load balancers."),
        "default_pool_id": Attribute(Kind.STRING, "ID of the pool that gets the traffic."),
    },
)

POOL: Final = TypeSchema(
    "OS::Octavia::Pool",
    description="A group of members that share traffic.",
    properties={
        "admin_state_up": ADMIN_STATE,
        "session_persistence": updatable(
            Kind.MAP,
            "How the requests of a client get to the same member.",
            fields={
                "type": Property(
                    Kind.STRING,
                    "Method.",
                    required=True,
                    constraints=one_of("SOURCE_IP", "HTTP_COOKIE", "APP_COOKIE"),
                ),
                "cookie_name": Property(Kind.STRING, "Name of the cookie, for APP_COOKIE."),
            },
        ),
        "name": name_of("pool"),
        "description": _DESCRIPTION,
        "lb_algorithm": updatable(
            Kind.STRING,
            "How traffic is distributed.",
            required=True,
            constraints=one_of("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT"),
        ),
        "listener": Property(
            Kind.STRING,
            "Name or ID of the listener whose default pool it is.",
            constraints=custom("octavia.listener"),
        ),
        "loadbalancer": Property(
            Kind.STRING,
            "Name or ID of the load balancer.",
            constraints=custom("octavia.loadbalancer"),
        ),
        "protocol": _PROTOCOL,
        "tls_enabled": updatable(
            Kind.BOOLEAN, "Whether connections to members use TLS.", default=False
        ),
    },
    attributes={
        "healthmonitor_id": Attribute(Kind.STRING, "ID of its health monitor."),
        "listeners": Attribute(Kind.STRING, "IDs of its listeners."),
        "members": Attribute(Kind.LIST, "IDs of its members."),
    },
)

POOL_MEMBER: Final = TypeSchema(
    "OS::Octavia::PoolMember",
    description="A server of a pool.",
    properties={
        "pool": _POOL,
        "address": Property(
            Kind.STRING, "Address of the server.", required=True, constraints=custom("ip_addr")
        ),
        "protocol_port": Property(
            Kind.INTEGER, "Port of the server.", required=True, constraints=between(1, 65535)
        ),
        "monitor_address": updatable(
            Kind.STRING,
            "Address that the health monitor checks; the default is the address of the server.",
            constraints=custom("ip_addr"),
        ),
        "monitor_port": updatable(
            Kind.INTEGER,
            "Port that the health monitor checks; the default is the port of the server.",
            constraints=between(1, 65535),
        ),
        "weight": updatable(
            Kind.INTEGER,
            "Share of the traffic. 0: no new connections.",
            default=1,
            constraints=between(0, 256),
        ),
        "admin_state_up": ADMIN_STATE,
        "subnet": Property(
            Kind.STRING,
            "Name or ID of the subnet of the address.",
            constraints=custom("neutron.subnet"),
        ),
        "tags": updatable(Kind.LIST, "Tags; they replace all others."),
    },
)

HEALTH_MONITOR: Final = TypeSchema(
    "OS::Octavia::HealthMonitor",
    description="Checks the members of a pool.",
    properties={
        "admin_state_up": ADMIN_STATE,
        "delay": updatable(
            Kind.INTEGER, "Seconds between two checks.", required=True, constraints=between(0)
        ),
        "expected_codes": updatable(
            Kind.STRING, "HTTP status codes of a healthy member, as 200, 200,202 or 200-204."
        ),
        "http_method": updatable(
            Kind.STRING,
            "HTTP method of the check.",
            constraints=one_of(
                "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "PATCH"
            ),
        ),
        "max_retries": updatable(
            Kind.INTEGER,
            "Successful checks until a member is healthy.",
            required=True,
            constraints=between(1, 10),
        ),
        "pool": _POOL,
        "timeout": updatable(
            Kind.INTEGER,
            "Seconds that a check takes at most; fewer than delay.",
            required=True,
            constraints=between(0),
        ),
        "type": Property(
            Kind.STRING,
            "Kind of check.",
            required=True,
            constraints=one_of("PING", "TCP", "HTTP", "HTTPS", "UDP-CONNECT"),
        ),
        "url_path": updatable(Kind.STRING, "Path of the check."),
        "tenant_id": TENANT,
    },
    attributes={"pools": Attribute(Kind.LIST, "IDs of its pools.")},
)

L7_POLICY: Final = TypeSchema(
    "OS::Octavia::L7Policy",
    description="What a listener does with requests that match rules.",
    properties={
        "name": name_of("policy"),
        "description": updatable(Kind.STRING, "Description."),
        "admin_state_up": ADMIN_STATE,
        "action": updatable(
            Kind.STRING,
            "What happens to a matching request.",
            required=True,
            constraints=one_of("REJECT", "REDIRECT_TO_POOL", "REDIRECT_TO_URL"),
        ),
        "redirect_pool": updatable(
            Kind.STRING,
            "Name or ID of the pool, for REDIRECT_TO_POOL.",
            constraints=custom("octavia.pool"),
        ),
        "redirect_url": updatable(Kind.STRING, "URL, for REDIRECT_TO_URL."),
        "position": updatable(
            Kind.NUMBER, "Position among the policies of the listener.", constraints=between(1)
        ),
        "listener": Property(
            Kind.STRING,
            "Name or ID of the listener.",
            required=True,
            constraints=custom("octavia.listener"),
        ),
    },
    attributes={"rules": Attribute(Kind.LIST, "IDs of its rules.")},
)

L7_RULE: Final = TypeSchema(
    "OS::Octavia::L7Rule",
    description="Which requests an L7 policy matches.",
    properties={
        "admin_state_up": ADMIN_STATE,
        "l7policy": Property(
            Kind.STRING,
            "Name or ID of the L7 policy.",
            required=True,
            constraints=custom("octavia.l7policy"),
        ),
        "type": updatable(
            Kind.STRING,
            "What is compared.",
            required=True,
            constraints=one_of("HOST_NAME", "PATH", "FILE_TYPE", "HEADER", "COOKIE"),
        ),
        "compare_type": updatable(
            Kind.STRING,
            "How it is compared.",
            required=True,
            constraints=one_of("REGEX", "STARTS_WITH", "ENDS_WITH", "CONTAINS", "EQUAL_TO"),
        ),
        "invert": updatable(Kind.BOOLEAN, "Whether other requests match.", default=False),
        "key": updatable(Kind.STRING, "Name of the header or cookie."),
        "value": updatable(Kind.STRING, "Value to compare with.", required=True),
    },
)

FLAVOR: Final = TypeSchema(
    "OS::Octavia::Flavor",
    description="A flavor of load balancers.",
    properties={
        "description": _DESCRIPTION,
        "enabled": updatable(Kind.BOOLEAN, "Whether it can be used.", default=True),
        "flavor_profile": Property(
            Kind.STRING,
            "Name or ID of the flavor profile.",
            required=True,
            constraints=custom("octavia.flavorprofile"),
        ),
        "name": name_of("flavor"),
    },
    attributes={"flavor_profile_id": Attribute(Kind.STRING, "ID of the flavor profile.")},
)

FLAVOR_PROFILE: Final = TypeSchema(
    "OS::Octavia::FlavorProfile",
    description="The settings of a flavor of load balancers.",
    properties={
        "name": name_of("profile"),
        "flavor_data": updatable(
            Kind.STRING,
            "Settings of the provider, as JSON.",
            required=True,
            constraints=custom("json_string"),
        ),
        "provider_name": updatable(Kind.STRING, "Name of the provider."),
    },
)

ZONE: Final = TypeSchema(
    "OS::Octavia::AvailabilityZone",
    description="An availability zone of load balancers.",
    properties={
        "availability_zone_profile": Property(
            Kind.STRING,
            "Name or ID of the availability zone profile.",
            required=True,
            constraints=custom("octavia.availabilityzoneprofile"),
        ),
        "description": _DESCRIPTION,
        "enabled": updatable(Kind.BOOLEAN, "Whether it can be used.", default=True),
        "name": name_of("availability zone"),
    },
    attributes={
        "availability_zone_profile_id": Attribute(
            Kind.STRING, "ID of the availability zone profile."
        )
    },
)

ZONE_PROFILE: Final = TypeSchema(
    "OS::Octavia::AvailabilityZoneProfile",
    description="The settings of an availability zone of load balancers.",
    properties={
        "name": name_of("profile"),
        "availability_zone_data": updatable(
            Kind.STRING,
            "Settings of the provider, as JSON.",
            required=True,
            constraints=custom("json_string"),
        ),
        "provider_name": updatable(Kind.STRING, "Name of the provider."),
    },
)

#: Quotas that Octavia has.
QUOTAS: Final = ("loadbalancer", "listener", "pool", "member", "healthmonitor")
QUOTA: Final = TypeSchema(
    "OS::Octavia::Quota",
    description="How many objects of Octavia a project may have.",
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
            for name in QUOTAS
        },
    },
)
