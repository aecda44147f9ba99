"""A cloud for tests of pure functions: no request is sent."""

from engine.hooks.derived_tokens import TokenKeys
from engine.types.contract import ResourceType
from engine.types.http_client import Request, Response
from engine.types.openstack import openstack_types
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.neutron import neutron_types
from engine.types.openstack.services import Service
from engine.types.software import ServerUrls
from tests.unit.types.software.in_memory import InMemoryStore


class NoRequests:
    """An HTTP client that must not be used."""

    def refusal(self, url: str) -> tuple[str, str] | None:
        return None

    async def send(self, request: Request) -> Response:
        raise AssertionError(f"{request.method} was sent")


class NoIdentity:
    """An identity service that must not be used."""

    has_reader = True
    ca_pem = ""

    def token(self, credential: str) -> str:
        return credential

    async def renew(self, token: str) -> str | None:
        return None

    async def endpoint(self, service: Service, token: str) -> str | None:
        return f"http://{service.types[0]}"

    async def reader_token(self, refused: str = "") -> str:
        raise AssertionError("the reader was used")


def types() -> dict[str, ResourceType]:
    """The types of Neutron by name."""
    cloud = Cloud(NoRequests(), NoIdentity())
    return {one.schema.name: one for one in neutron_types(cloud)}


def types_of_all_services() -> list[ResourceType]:
    servers = ServerUrls(TokenKeys.single(b"k" * 32), "http://h")
    return openstack_types(Cloud(NoRequests(), NoIdentity()), InMemoryStore(), servers)
