"""The OpenStack services that resource types use, and their endpoints in a catalog. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.words import Json


@dataclass(frozen=True, slots=True)
class Service:
    """name: for messages. types: the names of its type in a catalog, the current one first.
    version: the path of the API version, which is appended to an endpoint that does not end with
    it; "": as the catalog has it. microversion: the value of the header OpenStack-API-Version, as
    `compute 2.90`; "" for an API without microversions. limits: whether all lists have the
    parameter `limit`. headers: of all requests.
    """

    name: str
    types: tuple[str, ...]
    version: str = ""
    microversion: str = ""
    limits: bool = True
    headers: tuple[tuple[str, str], ...] = ()


#: Keystone refuses the parameter for regions, and returns whole lists unless the operator limits
#: them.
IDENTITY = Service("Keystone", ("identity",), "/v3", limits=False)
NETWORK = Service("Neutron", ("network",), "/v2.0")
#: 2.90 is in Nova since Yoga (2022.1).
COMPUTE = Service("Nova", ("compute",), "", "compute 2.90")
#: 3.59 is in Cinder since Yoga (2022.1). Endpoints of the older types have the project in the URL.
VOLUME = Service("Cinder", ("block-storage", "volumev3", "volume"), "", "volume 3.59")
IMAGE = Service("Glance", ("image",), "/v2")
LOAD_BALANCER = Service("Octavia", ("load-balancer",), "/v2")
KEY_MANAGER = Service("Barbican", ("key-manager",), "/v1")
DNS = Service("Designate", ("dns",), "/v2")
#: Zaqar refuses requests without the ID of a client, and pages that are larger than its own.
MESSAGING = Service(
    "Zaqar",
    ("messaging", "message"),
    "/v2",
    limits=False,
    headers=(("Client-ID", "6c1f3a52-7d7e-4a6f-9a63-8f2b54f5b0d1"),),
)
WORKFLOW = Service("Mistral", ("workflow", "workflowv2"), "/v2")
ALARM = Service("Aodh", ("alarm", "alarming"), "/v2")
#: The microversion that Heat uses. Only some lists have links to further pages.
SHARED_FILE_SYSTEM = Service(
    "Manila",
    ("shared-file-system", "sharev2"),
    limits=False,
    headers=(("X-OpenStack-Manila-API-Version", "2.13"),),
)
#: 1.9 is in Magnum since Stein (2019.1): node groups.
CONTAINER_INFRASTRUCTURE = Service(
    "Magnum",
    ("container-infrastructure-management", "container-infra"),
    "/v1",
    "container-infra 1.9",
)
#: Endpoints have the project in the URL. Its pages are shorter than those of other services.
DATABASE = Service("Trove", ("database",), limits=False)
#: An endpoint has the version and the account of the project in the URL.
OBJECT_STORE = Service("Swift", ("object-store",))


def find_regions(catalog: Sequence[Mapping[str, Json]]) -> list[str]:
    """The IDs of the regions of all endpoints, sorted. catalog: as in a token."""
    endpoints = (one for entry in catalog for one in entry.get("endpoints") or ())
    found = {one.get("region_id") or one.get("region") for one in endpoints}
    return sorted(str(one) for one in found if one)


def find_endpoint(
    catalog: Sequence[Mapping[str, Json]], service: Service, region: str, interface: str
) -> str | None:
    """The URL of a service with the path of its API version, without a slash at the end.

    catalog: as in a token. region: its ID; "": any, the first one in the catalog.
    """
    for type_ in service.types:
        for entry in catalog:
            if entry.get("type") != type_:
                continue
            for one in entry.get("endpoints") or []:
                in_region = not region or region in (one.get("region_id"), one.get("region"))
                if in_region and one.get("interface") == interface:
                    url = str(one["url"]).rstrip("/")
                    return url if url.endswith(service.version) else f"{url}{service.version}"
    return None
