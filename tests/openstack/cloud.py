"""The OpenStack of the tests: connections, projects of the tests' own, and what they left behind.

All calls block; call them with `asyncio.to_thread` while a server of this process has to work.
"""

import secrets
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session
from openstack.connection import Connection
from openstack.identity.v3._proxy import Proxy as IdentityApi

from tests.openstack.testbed.control import start_optional
from tests.openstack.testbed.layout import running_services

#: Seconds until everything that a test left behind must have been deleted.
CLEANUP_SECONDS = 60
#: The project of the services' own users.
SERVICE_PROJECT = "service"

Lists = dict[str, Callable[[Connection], Iterable[Any]]]
#: In the user agent of Headgate, and of no service or client of OpenStack.
AGENT = "aiohttp"


@dataclass(frozen=True)
class StoredObject:
    """An object of Barbican, or a cluster of Trove."""

    id: str
    name: str | None
    project_id: None = None


@dataclass(frozen=True)
class AlarmObject:
    """An alarm of Aodh. fields: as Aodh shows them."""

    id: str
    name: str
    project_id: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class SharedObject:
    """An object of Manila. fields: as Manila shows them."""

    id: str
    name: str | None
    fields: Mapping[str, Any]
    project_id: None = None


def alarms_of(cloud: Connection) -> list[AlarmObject]:
    """The alarms that a project has in Aodh."""
    root = cloud.session.get_endpoint(service_type="alarming", interface="public")
    found = cloud.session.get(f"{root}/v2/alarms").json()
    return [AlarmObject(one["alarm_id"], one["name"], one["project_id"], one) for one in found]


def stored_objects(cloud: Connection, kind: str) -> list[StoredObject]:
    """The objects of one kind in Barbican, of which a project has less than a page."""
    found = cloud.key_manager.get(f"/{kind}s?limit=100").json()[f"{kind}s"]
    return [StoredObject(one[f"{kind}_ref"].rpartition("/")[2], one.get("name")) for one in found]


def shared_objects(cloud: Connection, path: str, key: str) -> list[SharedObject]:
    """The objects of one list of Manila. key: of the objects in the response."""
    headers = {"X-OpenStack-Manila-API-Version": "2.13"}
    found = cloud.shared_file_system.get(path, headers=headers).json()[key]
    return [SharedObject(one["id"], one["name"], one) for one in found]


def security_services_of(cloud: Connection) -> list[SharedObject]:
    return shared_objects(cloud, "/security-services/detail", "security_services")


def share_types_of(cloud: Connection) -> list[SharedObject]:
    return shared_objects(cloud, "/types?is_public=all", "share_types")


def database_clusters_of(cloud: Connection) -> list[StoredObject]:
    found = cloud.database.get("/clusters").json()["clusters"]
    return [StoredObject(one["id"], one["name"]) for one in found]


# What a project owns in a service: kind, and the list of it. A list includes shared and public
# objects.
PROJECT_LISTS: dict[str, Lists] = {
    "nova": {
        "server": lambda cloud: cloud.compute.servers(details=False),
        "server group": lambda cloud: cloud.compute.server_groups(),
        "key pair": lambda cloud: cloud.compute.keypairs(),
    },
    "cinder": {
        "volume": lambda cloud: cloud.block_storage.volumes(details=False),
        "volume snapshot": lambda cloud: cloud.block_storage.snapshots(details=False),
        "volume backup": lambda cloud: cloud.block_storage.backups(details=False),
    },
    "glance": {"image": lambda cloud: cloud.image.images()},
    "neutron": {
        "port": lambda cloud: cloud.network.ports(),
        "network": lambda cloud: cloud.network.networks(),
        "subnet": lambda cloud: cloud.network.subnets(),
        "subnet pool": lambda cloud: cloud.network.subnet_pools(),
        "address scope": lambda cloud: cloud.network.address_scopes(),
        "router": lambda cloud: cloud.network.routers(),
        "floating IP": lambda cloud: cloud.network.ips(),
        "trunk": lambda cloud: cloud.network.trunks(),
        "security group": lambda cloud: cloud.network.security_groups(),
    },
    "octavia": {"load balancer": lambda cloud: cloud.load_balancer.load_balancers()},
    "barbican": {
        kind: partial(stored_objects, kind=kind) for kind in ("order", "container", "secret")
    },
    "designate": {"zone": lambda cloud: cloud.dns.zones()},
    "swift": {"container": lambda cloud: cloud.object_store.containers()},
    "aodh": {"alarm": alarms_of},
    "magnum": {
        "cluster": lambda cloud: cloud.container_infrastructure_management.clusters(),
        "cluster template": lambda cloud: (
            cloud.container_infrastructure_management.cluster_templates()
        ),
    },
    "manila": {
        "share": lambda cloud: cloud.shared_file_system.shares(),
        "share network": lambda cloud: cloud.shared_file_system.share_networks(),
        "security service": security_services_of,
    },
    "mistral": {
        "workflow": lambda cloud: cloud.workflow.workflows(),
        "cron trigger": lambda cloud: cloud.workflow.cron_triggers(),
    },
    "trove": {
        "database instance": lambda cloud: cloud.database.instances(),
        "database cluster": database_clusters_of,
    },
    "zaqar": {"queue": lambda cloud: cloud.message.queues()},
}
#: Each project gets a security group of this name from Neutron.
DEFAULT_SECURITY_GROUP = "default"
# What a service has for all projects.
CLOUD_LISTS: dict[str, Lists] = {
    "nova": {
        "flavor": lambda cloud: cloud.compute.flavors(is_public=None),
        "host aggregate": lambda cloud: cloud.compute.aggregates(),
    },
    "cinder": {"volume type": lambda cloud: cloud.block_storage.types()},
    "neutron": {"QoS policy": lambda cloud: cloud.network.qos_policies()},
    "manila": {"share type": share_types_of},
}


@dataclass(frozen=True, slots=True)
class Identity:
    """Who connects. project, project_id: of its scope."""

    auth_url: str
    region: str
    username: str
    password: str = field(repr=False)
    project: str

    def connect(self, identity_url: str | None = None) -> Connection:
        """A new connection, which the caller closes. identity_url: instead of the catalog's."""
        auth = Password(
            self.auth_url,
            username=self.username,
            password=self.password,
            project_name=self.project,
            user_domain_name="Default",
            project_domain_name="Default",
        )
        session = Session(auth, app_name="headgate-tests", collect_timing=False)
        return Connection(
            session=session, region_name=self.region, identity_endpoint_override=identity_url
        )


def identity_of(cloud: Connection) -> IdentityApi:
    """Version 3 of the identity API."""
    api = cloud.identity
    assert isinstance(api, IdentityApi)
    return api


class Project:
    """A project of one test, with a member.

    member: the user that tests act as; cloud: its connection. users: all users of the project.
    services: those that run.
    """

    def __init__(
        self, admin: Connection, auth_url: str, region: str, services: Collection[str]
    ) -> None:
        self._admin = admin
        self._services = services
        self._lists = lists_of(PROJECT_LISTS, services)
        self._auth_url = auth_url
        self._region = region
        self.name = f"test-{secrets.token_hex(4)}"
        self.id: str = identity_of(admin).create_project(name=self.name, domain_id="default").id
        self._user_ids: list[str] = []
        self._connections: list[Connection] = []
        self.member = self.add_user(("member",))
        self.cloud = self.connect(self.member)

    def add_user(self, roles: Sequence[str]) -> Identity:
        """A new user with these roles in the project; creates roles that do not exist."""
        identity = Identity(
            self._auth_url,
            self._region,
            username=f"user-{secrets.token_hex(4)}",
            password=secrets.token_hex(8),
            project=self.name,
        )
        create_user(self._admin, identity, self.id, roles, self._user_ids)
        return identity

    @contextmanager
    def application_credential(self, **properties: Any) -> Iterator[Any]:
        """A new application credential of the member, with `id` and `secret`."""
        identity, member = identity_of(self.cloud), self._user_ids[0]
        name = f"credential-{self.name}"
        created = identity.create_application_credential(member, name=name, **properties)
        try:
            yield created
        finally:
            identity.delete_application_credential(member, created.id)

    def connect(self, identity: Identity) -> Connection:
        """A connection that is closed with the project."""
        connection = identity.connect()
        self._connections.append(connection)
        return connection

    def token(self) -> str:
        """A token of the member."""
        token = self.cloud.auth_token
        assert token is not None
        return token

    def leftovers(self) -> list[str]:
        """What the project owns, as ``kind name (ID)``."""
        found = [
            describe(kind, one)
            for kind, read in self._lists.items()
            for one in read(self.cloud)
            if self._owns(kind, one)
        ]
        for user_id in self._user_ids:
            trusts = identity_of(self._admin).trusts(trustor_user_id=user_id)
            found += [f"trust {one.id}" for one in trusts]
        credentials = identity_of(self.cloud).application_credentials(self._user_ids[0])
        found += [describe("application credential", one) for one in credentials]
        return found

    def _owns(self, kind: str, one: Any) -> bool:
        if kind == "security group" and one.name == DEFAULT_SECURITY_GROUP:
            return False
        owner = getattr(one, "owner_id", None) or getattr(one, "project_id", None)
        return owner in (None, self.id)

    def delete_leftovers(self) -> None:
        for service, delete in CLEANUPS.items():
            if service in self._services:
                delete(self.cloud)
        if "designate" in self._services:
            for zone in sorted(self.cloud.dns.zones(), key=lambda one: -len(one.name)):
                self.cloud.dns.delete_zone(zone)
                self.cloud.dns.wait_for_delete(zone, wait=CLEANUP_SECONDS)
        if "octavia" in self._services:
            for balancer in self.cloud.load_balancer.load_balancers():
                self.cloud.load_balancer.delete_load_balancer(balancer, cascade=True)
                self.cloud.load_balancer.wait_for_delete(balancer, wait=CLEANUP_SECONDS)
        if "nova" in self._services:
            self.cloud.project_cleanup(dry_run=False, wait_timeout=CLEANUP_SECONDS)
            for pair in self.cloud.compute.keypairs():
                self.cloud.compute.delete_keypair(pair)

    def close(self) -> None:
        """Delete the project with its users and its default security group."""
        for connection in self._connections:
            connection.close()
        group_ids: list[str] = []
        if "neutron" in self._services:
            groups = self._admin.network.security_groups(project_id=self.id)
            group_ids = [group.id for group in groups if group.project_id == self.id]
        for user_id in self._user_ids:
            identity_of(self._admin).delete_user(user_id)
        identity_of(self._admin).delete_project(self.id)
        for group_id in group_ids:
            self._admin.network.delete_security_group(group_id)


class OpenStack:
    """A running cloud.

    directory: has clouds.yaml, with an administrator named admin. is_shared: others use it at the
    same time, so that objects outside of a test's project may be theirs.
    """

    def __init__(self, directory: Path, *, is_shared: bool) -> None:
        self.directory = directory
        self.is_shared = is_shared
        self.admin_identity = read_identity(directory / "clouds.yaml", "admin")
        self.auth_url = self.admin_identity.auth_url
        self.region = self.admin_identity.region
        self.admin = self.admin_identity.connect()
        self._user_ids: list[str] = []
        self.headgate_identity = self._create_service_user()

    @property
    def broker_url(self) -> str:
        """Of the RabbitMQ of the services, to which they publish notifications."""
        return (self.directory / "broker").read_text()

    @property
    def services(self) -> list[str]:
        """The services that run."""
        return running_services(self.directory)

    def start(self, service: str) -> None:
        """Start an optional service, unless it runs."""
        start_optional(self.directory, service)
        # The catalog of the former connection may lack the service.
        self.admin.close()
        self.admin = self.admin_identity.connect()

    def requests(self, service: str) -> list[str]:
        """The requests to a service since the cloud began: `GET /v2.1/servers`."""
        return [" ".join(line.split(" ", 2)[:2]) for line in self._request_lines(service)]

    def requests_of_headgate(self, service: str) -> list[str]:
        """The same without those of other clients, such as the other services."""
        lines = (line.split(" ", 2) for line in self._request_lines(service))
        return [" ".join(line[:2]) for line in lines if AGENT in line[-1]]

    def _request_lines(self, service: str) -> list[str]:
        log = self.directory / "log" / f"{service}-requests.log"
        return log.read_text().splitlines()

    def query(self, statement: str) -> str:
        """Execute a statement in the database of the services."""
        socket = str(self.directory / "mariadb.sock")
        command = ["mariadb", "--no-defaults", "-S", socket, "-u", "root", "-N", "-e", statement]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def _create_service_user(self) -> Identity:
        """The user that Headgate validates tokens as."""
        identity = Identity(
            self.auth_url,
            self.region,
            username=f"headgate-{secrets.token_hex(4)}",
            password=secrets.token_hex(8),
            project=SERVICE_PROJECT,
        )
        project = identity_of(self.admin).find_project(SERVICE_PROJECT, ignore_missing=False)
        create_user(self.admin, identity, project.id, ("admin", "service"), self._user_ids)
        return identity

    @contextmanager
    def reader(self, name: str, **properties: Any) -> Iterator[Any]:
        """A new application credential of the administrator, with `id` and `secret`."""
        identity, admin = identity_of(self.admin), str(self.admin.current_user_id)
        created = identity.create_application_credential(admin, name=name, **properties)
        try:
            yield created
        finally:
            identity.delete_application_credential(admin, created.id)

    @contextmanager
    def project(self) -> Iterator[Project]:
        """A new project.

        Raises AssertionError at the end if the test has left something behind, which is deleted.
        """
        before = {} if self.is_shared else self._global_objects()
        project = Project(self.admin, self.auth_url, self.region, self.services)
        left: list[str] = []
        try:
            yield project
            left = project.leftovers()
            after = {} if self.is_shared else self._global_objects()
            left += [text for key, text in after.items() if key not in before]
        finally:
            if left:
                project.delete_leftovers()
            project.close()
        assert not left, "the test left objects behind in the cloud: " + ", ".join(left)

    def _global_objects(self) -> dict[tuple[str, str], str]:
        return {
            (kind, one.id): describe(kind, one)
            for kind, read in lists_of(CLOUD_LISTS, self.services).items()
            for one in read(self.admin)
        }

    def close(self) -> None:
        for user_id in self._user_ids:
            identity_of(self.admin).delete_user(user_id)
        self.admin.close()


def create_user(
    admin: Connection,
    identity: Identity,
    project_id: str,
    roles: Sequence[str],
    user_ids: list[str],
) -> None:
    """Create the user with roles in a project; add its ID to user_ids."""
    user = identity_of(admin).create_user(
        name=identity.username, password=identity.password, domain_id="default"
    )
    user_ids.append(user.id)
    known = {role.name: role for role in identity_of(admin).roles()}
    for name in roles:
        role = known.get(name) or identity_of(admin).create_role(name=name)
        identity_of(admin).assign_project_role_to_user(project_id, user.id, role.id)


def lists_of(by_service: Mapping[str, Lists], services: Collection[str]) -> Lists:
    """The lists of the services that run, by kind."""
    return {
        kind: read
        for service, lists in by_service.items()
        if service in services
        for kind, read in lists.items()
    }


def delete_stored_objects(cloud: Connection) -> None:
    """Delete everything that a project has in Barbican."""
    for kind in ("order", "container", "secret"):
        for one in stored_objects(cloud, kind):
            cloud.key_manager.delete(f"/{kind}s/{one.id}")


def delete_containers(cloud: Connection) -> None:
    """Delete all containers of a project with their objects."""
    for container in list(cloud.object_store.containers()):
        for one in list(cloud.object_store.objects(container)):
            cloud.object_store.delete_object(one, container=container)
        cloud.object_store.delete_container(container)


def delete_alarms(cloud: Connection) -> None:
    """Delete all alarms of a project."""
    root = cloud.session.get_endpoint(service_type="alarming", interface="public")
    for one in alarms_of(cloud):
        cloud.session.delete(f"{root}/v2/alarms/{one.id}")


def delete_queues(cloud: Connection) -> None:
    """Delete all queues of a project."""
    for queue in list(cloud.message.queues()):
        cloud.message.delete_queue(queue)


def delete_shares(cloud: Connection) -> None:
    """Delete all shares, share networks and security services of a project."""
    for share in list(cloud.shared_file_system.shares()):
        cloud.shared_file_system.delete_share(share)
        cloud.shared_file_system.wait_for_delete(share, wait=CLEANUP_SECONDS)
    for network in list(cloud.shared_file_system.share_networks()):
        cloud.shared_file_system.delete_share_network(network)
    for one in security_services_of(cloud):
        cloud.shared_file_system.delete(f"/security-services/{one.id}")


def delete_clusters(cloud: Connection) -> None:
    """Delete all clusters and cluster templates of a project."""
    api = cloud.container_infrastructure_management
    for cluster in list(api.clusters()):
        api.delete_cluster(cluster)
        api.wait_for_delete(cluster, wait=CLEANUP_SECONDS)
    for template in list(api.cluster_templates()):
        api.delete_cluster_template(template)


def delete_databases(cloud: Connection) -> None:
    """Delete all database instances and clusters of a project."""
    for cluster in database_clusters_of(cloud):
        cloud.database.delete(f"/clusters/{cluster.id}")
    for instance in list(cloud.database.instances()):
        cloud.database.delete_instance(instance)
        cloud.database.wait_for_delete(instance, wait=CLEANUP_SECONDS)


def delete_trusts(user: Connection) -> None:
    """Delete the trusts of a user, which Headgate keeps for further requests."""
    api = identity_of(user)
    for one in list(api.trusts(trustor_user_id=user.current_user_id)):
        api.delete_trust(one)


def delete_workflows(cloud: Connection) -> None:
    """Delete all cron triggers and workflows of a project."""
    for trigger in list(cloud.workflow.cron_triggers()):
        cloud.workflow.delete_cron_trigger(trigger)
    for workflow in list(cloud.workflow.workflows()):
        cloud.workflow.delete_workflow(workflow)


#: Delete what a project has in a service.
CLEANUPS: Mapping[str, Callable[[Connection], None]] = {
    "aodh": delete_alarms,
    "barbican": delete_stored_objects,
    "magnum": delete_clusters,
    "manila": delete_shares,
    "mistral": delete_workflows,
    "swift": delete_containers,
    "trove": delete_databases,
    "zaqar": delete_queues,
}


def describe(kind: str, one: Any) -> str:
    return f"{kind} {one.name} ({one.id})" if one.name else f"{kind} {one.id}"


def read_identity(clouds: Path, username: str) -> Identity:
    """The cloud of clouds.yaml with this user. Raises FileNotFoundError, ValueError."""
    for cloud in yaml.safe_load(clouds.read_text())["clouds"].values():
        auth = cloud["auth"]
        if auth["username"] == username:
            return Identity(
                auth["auth_url"],
                cloud["region_name"],
                username,
                auth["password"],
                auth["project_name"],
            )
    raise ValueError(f"{clouds} has no cloud with the user {username}")
