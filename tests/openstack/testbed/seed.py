"""What a new cloud has: users, the catalog, a public network, flavors, an image, volume types.

Everything that exists already is kept, so that a test bed can start again with other ports.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from openstack.connection import Connection

from tests.openstack.cloud import Identity, identity_of
from tests.openstack.testbed.configuration import VOLUME_BACKENDS
from tests.openstack.testbed.layout import OBJECTS_ADMIN, REGION, SERVICE, Layout

# Type, name, service of the layout, and path of the URL.
CATALOG = (
    ("identity", "keystone", "keystone", "/v3"),
    ("placement", "placement", "placement", ""),
    ("image", "glance", "glance", ""),
    ("compute", "nova", "nova", "/v2.1"),
    ("network", "neutron", "neutron", ""),
    ("block-storage", "cinder", "cinder", "/v3"),
)
OPTIONAL_CATALOG: Mapping[str, Sequence[tuple[str, str, str, str]]] = {
    "aodh": (("alarming", "aodh", "aodh", ""),),
    "gnocchi": (("metric", "gnocchi", "gnocchi", ""),),
    "heat": (
        ("orchestration", "heat", "heat", "/v1/%(tenant_id)s"),
        ("cloudformation", "heat-cfn", "heat-cfn", "/v1"),
    ),
    "octavia": (("load-balancer", "octavia", "octavia", ""),),
    "barbican": (("key-manager", "barbican", "barbican", ""),),
    "designate": (("dns", "designate", "designate", ""),),
    "magnum": (("container-infra", "magnum", "magnum", "/v1"),),
    "manila": (("shared-file-system", "manila", "manila", "/v2"),),
    "mistral": (("workflow", "mistral", "mistral", "/v2"),),
    "trove": (("database", "trove", "trove", "/v1.0/%(tenant_id)s"),),
    "zaqar": (("messaging", "zaqar", "zaqar", ""),),
    "swift": (("object-store", "swift", "swift", "/v1/AUTH_%(tenant_id)s"),),
}
ROLES = ("service", "heat_stack_owner", "heat_stack_user", "creator", OBJECTS_ADMIN)
#: Roles of each user in a project, besides those that Keystone starts with.
GRANTS = (
    (SERVICE, SERVICE, ("admin", "service")),
    ("demo", "demo", ("member", "heat_stack_owner")),
    ("admin", "demo", ("admin",)),
    ("admin", "admin", ("heat_stack_owner", OBJECTS_ADMIN)),
)
# Name, memory in MB, disk in GB, virtual CPUs.
FLAVORS = (
    ("m1.nano", 64, 1, 1),
    ("m1.tiny", 512, 1, 1),
    ("m1.small", 2048, 20, 1),
    ("m1.medium", 4096, 40, 2),
    ("m1.large", 8192, 80, 4),
)
#: No hypervisor has so much memory.
TOO_LARGE_FLAVOR = ("testbed.too-large", 900_000, 1, 1)
IMAGE = "cirros"
PUBLIC_NETWORK = "public"


def administrator(layout: Layout) -> Identity:
    return Identity(layout.auth_url, REGION, "admin", layout.password, "admin")


def seed_identity(layout: Layout) -> None:
    """Users, roles, and the catalog with the ports of this start."""
    with administrator(layout).connect(identity_url=layout.auth_url) as admin:
        api = identity_of(admin)
        projects = {one.name: one for one in api.projects(domain_id="default")}
        users = {one.name: one for one in api.users(domain_id="default")}
        roles = {one.name: one for one in api.roles()}
        for name in {project for _, project, _ in GRANTS} - set(projects):
            projects[name] = api.create_project(name=name, domain_id="default")
        for name in {user for user, _, _ in GRANTS} - set(users):
            users[name] = api.create_user(name=name, password=layout.password, domain_id="default")
        for name in set(ROLES) - set(roles):
            roles[name] = api.create_role(name=name)
        for user, project, names in GRANTS:
            for name in names:
                api.assign_project_role_to_user(projects[project], users[user], roles[name])
        optional = [one for service in layout.optional for one in OPTIONAL_CATALOG[service]]
        core = [one for one in CATALOG if one[1] in layout.core]
        register(layout, admin, (*core, *optional))
        if "heat" in layout.optional and not list(api.domains(name="heat")):
            domain = api.create_domain(name="heat")
            owner = api.create_user(
                name="heat_domain_admin", password=layout.password, domain_id=domain.id
            )
            api.assign_domain_role_to_user(domain, owner, roles["admin"])


def register(
    layout: Layout, admin: Connection, catalog: Sequence[tuple[str, str, str, str]]
) -> None:
    """Register a public and an internal endpoint of each service."""
    api = identity_of(admin)
    services = {one.type: one for one in api.services()}
    endpoints = {(one.service_id, one.interface): one for one in api.endpoints()}
    for kind, name, service, path in catalog:
        owner = services.get(kind) or api.create_service(type=kind, name=name)
        url = f"{layout.url(service)}{path}"
        for interface in ("public", "internal"):
            endpoint = endpoints.get((owner.id, interface))
            if endpoint is not None:
                api.update_endpoint(endpoint, url=url)
            else:
                api.create_endpoint(
                    service_id=owner.id, interface=interface, region_id=REGION, url=url
                )


def seed_cloud(layout: Layout) -> None:
    with administrator(layout).connect() as admin:
        seed_network(admin)
        present = names(admin.compute.flavors(is_public=None))
        for name, memory, disk, cpus in (*FLAVORS, TOO_LARGE_FLAVOR):
            if name not in present:
                admin.compute.create_flavor(name=name, ram=memory, disk=disk, vcpus=cpus)
        if IMAGE not in names(admin.image.images(status="active")):
            admin.image.create_image(
                name=IMAGE, data=b"\0" * 1024, disk_format="raw", container_format="bare",
                visibility="public", min_disk=0, min_ram=0, wait=True, timeout=60,
            )  # fmt: skip
        present = names(admin.block_storage.types())
        for name, backend in VOLUME_BACKENDS.items():
            if name not in present:
                admin.block_storage.create_type(
                    name=name, extra_specs={"volume_backend_name": backend}
                )


def seed_network(admin: Connection) -> None:
    if PUBLIC_NETWORK in names(admin.network.networks()):
        return
    network = admin.network.create_network(
        name=PUBLIC_NETWORK, is_router_external=True, is_shared=False,
        provider_network_type="flat", provider_physical_network=PUBLIC_NETWORK,
    )  # fmt: skip
    admin.network.create_subnet(
        name=f"{PUBLIC_NETWORK}-subnet", network_id=network.id, ip_version=4,
        cidr="172.24.4.0/22", is_dhcp_enabled=False,
    )  # fmt: skip


def names(found: Iterable[Any]) -> set[str]:
    return {one.name for one in found}
