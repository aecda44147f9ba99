"""The schemas of the types of Magnum, as Heat has them."""

from typing import Final

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema, updatable
from engine.types.openstack.neutron.lookups import between, custom, one_of

CLUSTER_TEMPLATE: Final = TypeSchema(
    "OS::Magnum::ClusterTemplate",
    description="The settings of clusters that are created from it.",
    properties={
        "name": Property(
            Kind.STRING,
            "Name; by default derived from the names of the stack and the resource.",
        ),
        "image": Property(
            Kind.STRING,
            "Name or ID of the image of the nodes, which has the property os_distro.",
            required=True,
            constraints=custom("glance.image"),
        ),
        "flavor": Property(
            Kind.STRING, "Name or ID of the flavor of the nodes.", constraints=custom("nova.flavor")
        ),
        "master_flavor": Property(
            Kind.STRING,
            "Name or ID of the flavor of the master nodes.",
            constraints=custom("nova.flavor"),
        ),
        "keypair": Property(
            Kind.STRING, "Name of the key pair of the nodes.", constraints=custom("nova.keypair")
        ),
        "external_network": Property(
            Kind.STRING,
            "Name or ID of the external network of clusters.",
            required=True,
            constraints=custom("neutron.network"),
        ),
        "fixed_network": Property(
            Kind.STRING,
            "Name or ID of the network of the nodes; by default, Magnum creates one.",
            constraints=custom("neutron.network"),
        ),
        "fixed_subnet": Property(
            Kind.STRING,
            "Name or ID of the subnet of the nodes.",
            constraints=custom("neutron.subnet"),
        ),
        "dns_nameserver": Property(
            Kind.STRING, "Address of the name server.", constraints=custom("ip_addr")
        ),
        "docker_volume_size": Property(
            Kind.INTEGER,
            "Size in GiB of the volume with the images of containers.",
            constraints=between(1),
        ),
        "docker_storage_driver": Property(
            Kind.STRING,
            "Storage driver of the container runtime.",
            default="devicemapper",
            constraints=one_of("devicemapper", "overlay"),
        ),
        "coe": Property(
            Kind.STRING,
            "What runs containers in clusters. Magnum 23 accepts kubernetes only.",
            required=True,
            constraints=one_of("kubernetes", "swarm", "mesos"),
        ),
        "network_driver": Property(
            Kind.STRING, "Driver of the network of containers; by default that of the cloud."
        ),
        "volume_driver": Property(
            Kind.STRING,
            "Driver of the volumes of containers.",
            constraints=one_of("cinder", "rexray"),
        ),
        "http_proxy": Property(Kind.STRING, "Proxy of the nodes for HTTP."),
        "https_proxy": Property(Kind.STRING, "Proxy of the nodes for HTTPS."),
        "no_proxy": Property(
            Kind.STRING, "Addresses that are reached without the proxy, separated by commas."
        ),
        "labels": Property(Kind.MAP, "Further settings, by name."),
        "tls_disabled": Property(
            Kind.BOOLEAN, "Whether the API of clusters is not encrypted.", default=False
        ),
        "public": updatable(
            Kind.BOOLEAN,
            "Whether all projects may use the template. For administrators.",
            default=False,
        ),
        "registry_enabled": Property(
            Kind.BOOLEAN, "Whether clusters have a registry of images.", default=False
        ),
        "server_type": Property(
            Kind.STRING,
            "Virtual machines or bare metal.",
            default="vm",
            constraints=one_of("vm", "bm"),
        ),
        "master_lb_enabled": Property(
            Kind.BOOLEAN, "Whether the master nodes have a load balancer.", default=True
        ),
        "floating_ip_enabled": Property(
            Kind.BOOLEAN, "Whether the nodes have floating IPs.", default=True
        ),
    },
    attributes={},
)
CLUSTER: Final = TypeSchema(
    "OS::Magnum::Cluster",
    description="A cluster of machines that run containers.",
    properties={
        "name": Property(
            Kind.STRING,
            "Name; by default derived from the names of the stack and the resource.",
        ),
        "cluster_template": Property(
            Kind.STRING,
            "Name or ID of the cluster template.",
            required=True,
            constraints=custom("magnum.cluster_template"),
        ),
        "keypair": Property(
            Kind.STRING,
            "Name of the key pair of the nodes; by default that of the template.",
            constraints=custom("nova.keypair"),
        ),
        "node_count": updatable(
            Kind.INTEGER, "Number of worker nodes.", default=1, constraints=between(1)
        ),
        "master_count": updatable(
            Kind.INTEGER,
            "Number of master nodes. Magnum refuses to change it.",
            default=1,
            constraints=between(1),
        ),
        "discovery_url": updatable(
            Kind.STRING, "URL where nodes find each other. Magnum refuses to change it."
        ),
        "create_timeout": updatable(
            Kind.INTEGER,
            "Minutes until a create fails; 0: never. Magnum refuses to change it.",
            default=60,
            constraints=between(0),
        ),
    },
    attributes={
        "api_address": Attribute(Kind.STRING, "URL of the API of the cluster."),
        "stack_id": Attribute(Kind.STRING, "ID of the cluster at its driver."),
        "coe_version": Attribute(Kind.STRING, "Version of what runs containers."),
        "container_version": Attribute(Kind.STRING, "Version of the container runtime."),
        "master_addresses": Attribute(Kind.LIST, "Addresses of the master nodes."),
        "node_addresses": Attribute(Kind.LIST, "Addresses of the worker nodes."),
        "status": Attribute(Kind.STRING, "Status.", public=True),
        "status_reason": Attribute(Kind.STRING, "Reason of the status."),
        "master_count": Attribute(Kind.INTEGER, "Number of master nodes."),
        "node_count": Attribute(Kind.INTEGER, "Number of worker nodes."),
        "name": Attribute(Kind.STRING, "Name."),
        "discovery_url": Attribute(Kind.STRING, "URL where nodes find each other."),
        "cluster_template_id": Attribute(Kind.STRING, "ID of the cluster template."),
        "keypair": Attribute(Kind.STRING, "Name of the key pair."),
        "create_timeout": Attribute(Kind.INTEGER, "Minutes until a create fails."),
    },
)
