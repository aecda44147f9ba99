"""Metadata of servers that are objects: Headgate writes them to an object store, and agents fetch
them with a signed URL, so that they need no connection to Headgate.

The types use this port; engine/types/openstack/swift/server_objects.py implements it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, Protocol

from engine.types.contract import Call
from engine.words import Json

#: The transport of a server's metadata.
POLL_TEMP_URL: Final = "POLL_TEMP_URL"
#: In the data of a server: its objects, the one that its agent uses first. Agents of servers whose
#: transport has changed find the new one in an earlier object.
OBJECTS: Final = "metadata_objects"
#: What the names of containers and objects begin with, unless the template names them.
PREFIX: Final = "headgate-server-"


@dataclass(frozen=True, slots=True)
class MetadataObject:
    """read_url, write_url: accept GET or PUT without further credentials. They are secrets. owner:
    the ID of the server's resource, which each write stores with the object."""

    container: str
    name: str
    owner: str
    read_url: str = field(repr=False)
    write_url: str = field(repr=False)

    def as_json(self) -> Json:
        return asdict(self)


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


def default_name(call: Call) -> str:
    """The name of the object of an operation, and of its container."""
    return f"{resource_prefix(call)}{call.operation_key.hex}"


def resource_prefix(call: Call) -> str:
    """What the default names of all objects of a server begin with."""
    return f"{PREFIX}{call.stack_id.hex}-{call.resource_id.hex}-"


def objects_of(data: Mapping[str, Json]) -> list[MetadataObject]:
    """The objects in the data of a resource."""
    return [MetadataObject(**one) for one in data.get(OBJECTS) or ()]
