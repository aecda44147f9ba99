"""Clouds for tests of one operation: without requests, or with prepared answers."""

import orjson

from engine.hooks.derived_tokens import TokenKeys
from engine.types.contract import ResourceType
from engine.types.http_client import NoResponse, Request, Response
from engine.types.openstack import openstack_types
from engine.types.openstack.cloud import Cloud, CloudAccess, StackAdmin
from engine.types.openstack.neutron import neutron_types
from engine.types.openstack.services import Service
from engine.types.openstack.swift.server_objects import SwiftServerObjects
from engine.types.software import ServerUrls
from engine.types.software.metadata_objects import MetadataServices
from engine.words import Json
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
    access = CloudAccess()

    def token(self, credential: str) -> str:
        return credential

    async def renew(self, token: str) -> str | None:
        return None

    async def endpoint(self, service: Service, token: str, region: str) -> str | None:
        return f"http://{service.types[0]}{region and f'.{region}'}"

    async def regions(self, token: str) -> list[str]:
        return ["RegionOne", "RegionTwo"]

    async def reader_token(self, refused: str = "") -> str:
        raise AssertionError("the reader was used")

    async def observation_token(self, credential: str, refused: str = "") -> str:
        raise AssertionError("an observation credential was used")

    def forget_stack_project(self, project: str) -> None:
        raise AssertionError("a project was forgotten")

    async def stack_admin(self, project: str = "", refused: str = "") -> StackAdmin:
        raise AssertionError("the administrator of stack users was used")


class Answers:
    """An HTTP client with prepared answers. requests: those that were sent."""

    def __init__(self, *answers: Response | NoResponse) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    def refusal(self, url: str) -> tuple[str, str] | None:
        return None

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, NoResponse):
            raise answer
        return answer

    @property
    def tokens(self) -> list[str]:
        return [one.headers["X-Auth-Token"] for one in self.requests]


class Renewing(NoIdentity):
    """An identity service that replaces a token once, and has a token of the reader."""

    async def reader_token(self, refused: str = "") -> str:
        return "reader"

    async def renew(self, token: str) -> str | None:
        return "new" if token == "old" else None


def answer(status: int, body: Json = None, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, named, b"" if body is None else orjson.dumps(body))


def types() -> dict[str, ResourceType]:
    """The types of Neutron by name."""
    cloud = Cloud(NoRequests(), NoIdentity())
    return {one.schema.name: one for one in neutron_types(cloud)}


def types_of_all_services(cloud: Cloud | None = None) -> list[ResourceType]:
    """The types of a cloud; None: of one that gets no requests."""
    servers = ServerUrls(TokenKeys.single(b"k" * 32), "http://h")
    used = cloud or Cloud(NoRequests(), NoIdentity())
    services = MetadataServices(SwiftServerObjects(used, servers.container_key))
    return openstack_types(used, InMemoryStore(), servers, services)


def type_with(web: Answers, name: str) -> ResourceType:
    """A type whose requests get these answers."""
    found = types_of_all_services(Cloud(web, Renewing()))
    return next(one for one in found if one.schema.name == name)
