"""Where a test bed keeps its files, on which ports it listens, and what runs in it."""

import json
import random
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.support.ports import is_free

#: The virtual environment of the services, which `make` creates from requirements/openstack.lock.
ENVIRONMENT = Path(__file__).parents[3] / ".openstack"
DRIVERS = Path(__file__).with_name("drivers")
REGION = "RegionOne"
#: The file of a directory's layout.
SAVED = "layout.json"
#: The user, and its project, that the services act as.
SERVICE = "service"
#: The role that may read and change the objects of all projects in Swift.
OBJECTS_ADMIN = "ResellerAdmin"
IDENTITY = "keystone"
SERVICES = (IDENTITY, "placement", "glance", "nova", "neutron", "cinder")
#: What runs on request only: the APIs of each.
OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "aodh": ("aodh",),
    "barbican": ("barbican",),
    "designate": ("designate",),
    "gnocchi": ("gnocchi",),
    "heat": ("heat", "heat-cfn"),
    "magnum": ("magnum",),
    "manila": ("manila",),
    "mistral": ("mistral",),
    "octavia": ("octavia",),
    "swift": ("swift", "swift-account", "swift-container", "swift-object"),
    "trove": ("trove",),
    "zaqar": ("zaqar",),
}
#: The optional services that an optional service needs.
NEEDED: Mapping[str, tuple[str, ...]] = {"zaqar": ("swift",)}
#: Optional services that need none of those that always run, but Keystone.
INDEPENDENT = ("aodh", "barbican", "designate", "gnocchi", "manila", "mistral", "swift", "zaqar")
#: Those of them whose processes need the broker.
BROKERED = frozenset({"aodh", "barbican", "designate", "manila", "mistral"})
#: What listens besides the APIs.
OTHERS = ("designate-mdns", "memcached")
# Below the ports that Linux gives to clients, so that none is taken between choice and use.
PORTS = range(21000, 32000)


@dataclass(frozen=True, slots=True)
class Layout:
    """directory: of all files. ports: by API. password: of all users. computes: hypervisors.
    optional: the optional services that run, too. core: the services that always run."""

    directory: Path
    ports: Mapping[str, int]
    password: str
    computes: int
    optional: tuple[str, ...] = ()
    core: tuple[str, ...] = SERVICES

    @property
    def is_complete(self) -> bool:
        """Whether all services run that are not optional."""
        return self.core == SERVICES

    @property
    def needs_broker(self) -> bool:
        return self.is_complete or bool(BROKERED.intersection(self.optional))

    @property
    def services(self) -> tuple[str, ...]:
        return (*self.core, *self.optional)

    def with_optional(self, services: Iterable[str]) -> "Layout":
        """This layout with further optional services, and those that they need."""
        added = [one for name in services for one in (name, *NEEDED.get(name, ()))]
        return replace(self, optional=tuple(sorted({*self.optional, *added})))

    def save(self) -> None:
        document = asdict(self) | {"directory": str(self.directory)}
        (self.directory / SAVED).write_text(json.dumps(document))

    @property
    def socket(self) -> Path:
        """The socket of MariaDB."""
        return self.directory / "mariadb.sock"

    @property
    def clouds(self) -> Path:
        return self.directory / "clouds.yaml"

    @property
    def broker(self) -> Path:
        """Contains the URL of RabbitMQ, if it runs."""
        return self.directory / "broker"

    def wanted(self, service: str) -> Path:
        """A file that exists once the optional service is asked for."""
        return self.folder("optional") / f"{service}.wanted"

    def started(self, service: str) -> Path:
        """A file that exists once the optional service is ready."""
        return self.folder("optional") / f"{service}.started"

    @property
    def ready(self) -> Path:
        """Contains the process ID of the supervisor once all services are ready."""
        return self.directory / "ready"

    def folder(self, name: str) -> Path:
        """A directory of this name, which is created."""
        path = self.directory / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def configuration(self, service: str) -> Path:
        """The configuration file of a service. Glance's application looks for this name."""
        name = {"glance": "glance-api"}.get(service, service)
        return self.folder(service) / f"{name}.conf"

    def log(self, name: str) -> Path:
        return self.folder("log") / f"{name}.log"

    def requests(self, service: str) -> Path:
        """The log of the requests to a service: method, path and user agent, one per line."""
        return self.folder("log") / f"{service}-requests.log"

    def url(self, service: str) -> str:
        return f"http://127.0.0.1:{self.ports[service]}"

    @property
    def auth_url(self) -> str:
        return f"{self.url('keystone')}/v3"

    def database(self, name: str) -> str:
        return f"mysql+pymysql://root@localhost/{name}?unix_socket={self.socket}"


def prepare_layout(
    directory: Path, *, computes: int, optional: Iterable[str] = (), only: str | None = None
) -> Layout:
    """The layout of a new directory, or the directory's own one.

    Ports are those of the last start, unless something has taken one. only: the service that runs
    with Keystone and what it needs.
    """
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    saved = directory / SAVED
    names = (*SERVICES, *(name for apis in OPTIONAL.values() for name in apis), *OTHERS)
    ports = dict(zip(names, free_ports(), strict=False))
    password = secrets.token_hex(8)
    if saved.exists():
        before = json.loads(saved.read_text())
        password, optional = before["password"], {*optional, *before["optional"]}
        is_complete = before["ports"].keys() == ports.keys()
        if is_complete and all(is_free(port) for port in before["ports"].values()):
            ports = before["ports"]
    core: tuple[str, ...] = SERVICES
    if only is not None:
        core, optional = (IDENTITY,), (only,)
    layout = Layout(directory.resolve(), ports, password, computes, core=core)
    layout = layout.with_optional(optional)
    layout.save()
    return layout


def running_services(directory: Path) -> list[str]:
    """The services of a test bed that runs in this directory."""
    core = json.loads((directory / SAVED).read_text())["core"]
    started = (directory / "optional").glob("*.started")
    return [*core, *sorted(one.stem for one in started)]


def free_ports() -> Iterator[int]:
    """Ports of loopback that nothing listens on, in random order."""
    return (port for port in random.sample(PORTS, len(PORTS)) if is_free(port))
