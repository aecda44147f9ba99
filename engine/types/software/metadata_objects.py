"""Metadata of servers in another service, so that their agents need no connection to Headgate:
Headgate writes them to an object of Swift, which agents fetch with a signed URL, or posts them to a
queue of Zaqar, from which agents take them with credentials of their own.

The types use these ports; engine/types/openstack/swift/server_objects.py and
engine/types/openstack/zaqar/server_queues.py implement them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from engine.types.contract import Call
from engine.words import Json

#: The transports of a server's metadata.
POLL_TEMP_URL: Final = "POLL_TEMP_URL"
ZAQAR: Final = "ZAQAR_MESSAGE"
#: In the data of a server: its objects, the one that its agent uses first. Agents of servers whose
#: transport has changed find the new one in an earlier object.
OBJECTS: Final = "metadata_objects"
#: What the names of containers and objects begin with, unless the template names them.
PREFIX: Final = "headgate-server-"


@dataclass(frozen=True, slots=True)
class MetadataObject:
    """An object of Swift, or a queue of Zaqar, which has no container.

    read_url, write_url: accept GET or PUT without further credentials. They are secrets. owner: the
    ID of the server's resource, which each write stores with the object; of a queue, the name of
    its project. settings: of a queue, with which the agent reads it. They are secrets. region: of
    the stack of a queue; "": the configured one.
    """

    container: str
    name: str
    owner: str
    read_url: str = field(default="", repr=False)
    write_url: str = field(default="", repr=False)
    settings: Mapping[str, Json] = field(default_factory=dict, repr=False)
    region: str = ""

    @property
    def is_queue(self) -> bool:
        return not self.container

    def as_json(self) -> Json:
        """As earlier releases read it, unless it is a queue."""
        common = {"container": self.container, "name": self.name, "owner": self.owner}
        if self.is_queue:
            region = {"region": self.region} if self.region else {}
            return {**common, "settings": dict(self.settings), **region}
        return {**common, "read_url": self.read_url, "write_url": self.write_url}


class MetadataObjects(Protocol):
    """The methods raise ServiceError."""

    async def create(self, call: Call, container: str, name: str) -> MetadataObject:
        """Create the container if it does not exist; return the URLs of the object."""

    async def write(self, target: MetadataObject, document: bytes) -> bool:
        """Write the object. False: its URL is not valid any more."""

    async def remove(self, call: Call, objects: Sequence[tuple[str, str]], prefix: str) -> None:
        """Delete objects (container, name) of a server, with those in these containers and in all
        others whose name begins with `prefix`. Objects of other servers stay, and containers that
        have any."""


class MetadataQueues(Protocol):
    """The methods raise ServiceError."""

    async def create(self, call: Call, secret: str) -> MetadataObject:
        """Create the queue of a server, and its user. secret: of the server, from which the
        password derives."""

    async def write(self, target: MetadataObject, document: bytes) -> bool:
        """Post the metadata to the queue. True: it always exists."""

    async def remove(self, call: Call) -> None:
        """Delete the queue of a server and its user, if they exist."""


@dataclass(frozen=True, slots=True)
class MetadataServices:
    """The services that can have the metadata of servers. None: Headgate does not use it."""

    swift: MetadataObjects | None = None
    zaqar: MetadataQueues | None = None

    async def write(self, target: MetadataObject, document: bytes) -> bool:
        """Write the metadata. False: the object cannot be written any more. Raises
        ServiceError."""
        service = self.zaqar if target.is_queue else self.swift
        return service is not None and await service.write(target, document)

    @property
    def transports(self) -> frozenset[str]:
        """The transports that can be used."""
        known = {POLL_TEMP_URL: self.swift, ZAQAR: self.zaqar}
        return frozenset(name for name, service in known.items() if service is not None)


NO_METADATA_SERVICES: Final = MetadataServices()


def default_name(call: Call) -> str:
    """The name of the object of an operation, and of its container."""
    return f"{resource_prefix(call)}{call.operation_key.hex}"


def resource_prefix(call: Call) -> str:
    """What the default names of all objects of a server begin with."""
    return f"{PREFIX}{call.stack_id.hex}-{call.resource_id.hex}-"


def objects_of(data: Mapping[str, Json]) -> list[MetadataObject]:
    """The objects in the data of a resource."""
    return [MetadataObject(**one) for one in data.get(OBJECTS) or ()]
