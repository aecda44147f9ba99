"""The metadata of servers as objects of Swift, which agents fetch with a temporary URL.

A container that Headgate creates has a mark, and is deleted with its last object. Its key for
temporary URLs derives from its name, so that servers that share it have the same. A container that
has a key already keeps it. Each object has the ID of its server, because a replacement may write
the same object before the old server is deleted.
"""

from collections.abc import Callable, Sequence
from typing import Final

from engine.types.contract import Call
from engine.types.http_client import NoResponse, Request
from engine.types.openstack.cloud import Cloud, Session, segment
from engine.types.openstack.service_errors import CloudError, read_error
from engine.types.openstack.services import OBJECT_STORE
from engine.types.openstack.swift.requests import (
    find_container,
    head_object,
    list_containers,
    list_objects,
    put_container,
    remove_container,
    remove_object,
)
from engine.types.openstack.swift.temporary_url import KEY_HEADER, sign_url
from engine.types.software.metadata_objects import MetadataObject

#: The header of containers that Headgate has created for metadata.
MARK: Final = "X-Container-Meta-Headgate-Servers"
#: The header of an object with the ID of its server.
OWNER: Final = "X-Object-Meta-Headgate-Server"
#: Statuses of a temporary URL that is not valid.
INVALID: Final = frozenset({401, 403, 404})
_DOING: Final = "write the metadata of the server"


class SwiftServerObjects:
    """Implements `MetadataObjects`. make_key: the key of a container, from its project and name."""

    def __init__(self, cloud: Cloud, make_key: Callable[[str, str], str]) -> None:
        self._cloud = cloud
        self._make_key = make_key

    async def create(self, call: Call, container: str, name: str) -> MetadataObject:
        session = self._cloud.session(call)
        key = await self._prepare(session, call.project, container)
        root = await session.endpoint(OBJECT_STORE, "create the temporary URL")
        url = f"{root}/{segment(container)}/{segment(name)}"
        return MetadataObject(
            container,
            name,
            call.resource_id.hex,
            read_url=sign_url("GET", url, key),
            write_url=sign_url("PUT", url, key),
        )

    async def _prepare(self, session: Session, project: str, container: str) -> str:
        """Create the container, or its key, if there is none; return the key."""
        found = await find_container(session, container)
        if found is not None and (known := found.get(KEY_HEADER.lower())):
            return str(known)
        key = self._make_key(project, container)
        mark = {} if found is not None else {MARK: "created"}
        await put_container(session, container, {KEY_HEADER: key, **mark})
        return key

    async def write(self, target: MetadataObject, document: bytes) -> bool:
        headers = {"Content-Type": "application/json", OWNER: target.owner}
        ca_pem = self._cloud.identity.ca_pem
        try:
            response = await self._cloud.web.send(
                Request("PUT", target.write_url, headers, document, ca_pem)
            )
        except NoResponse as error:
            public = f"{OBJECT_STORE.name} did not answer the request to {_DOING}"
            raise CloudError(f"{public}: {error}", retry=error.retry, public=public) from None
        if response.status in INVALID:
            return False
        if not 200 <= response.status < 300:
            raise read_error(OBJECT_STORE, _DOING, response)
        return True

    async def remove(self, call: Call, objects: Sequence[tuple[str, str]], prefix: str) -> None:
        session, owner = self._cloud.session(call), call.resource_id.hex
        root = await session.find_endpoint(OBJECT_STORE, "list the containers")
        if root is None:
            return
        containers = {container for container, _ in objects}
        async for page in list_containers(session, prefix, root):
            containers.update(page)
        for container in sorted(containers):
            names = {name for one, name in objects if one == container and name}
            listed = await list_objects(session, container, prefix)
            names.update(str(one["name"]) for one in listed)
            for name in sorted(names):
                found = await head_object(session, container, name)
                if found is not None and found.get(OWNER.lower()) == owner:
                    await remove_object(session, container, name)
            headers = await find_container(session, container)
            if headers is not None and MARK.lower() in headers:
                await remove_container(session, container)  # refused while it has other objects
