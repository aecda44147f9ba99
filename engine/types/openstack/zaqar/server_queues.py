"""The metadata of servers as messages of Zaqar.

Each server has a project of its own in the domain of stack users, with a user whose credentials its
agent gets (engine/types/openstack/keystone/stack_users.py), and one queue in it. The agent takes
the messages out of the queue, the oldest first, so that the last one that Headgate has posted is
the last one that it applies.
"""

from http import HTTPStatus
from typing import Final

import orjson

from engine.types.contract import Call
from engine.types.openstack.cloud import Cloud, StackDomain, segment
from engine.types.openstack.keystone.stack_users import (
    StackUsers,
    credentials_of,
    derive_password,
    project_name,
)
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import MESSAGING
from engine.types.openstack.zaqar.stack_queues import remove_queues
from engine.types.software.metadata_objects import MetadataObject

#: The queue of a server in its project.
QUEUE: Final = "server-metadata"
#: Seconds until a message expires: the longest time that Zaqar accepts by default.
TTL: Final = 1_209_600
#: The settings of an agent.
_SETTINGS: Final[tuple[str, ...]] = (
    "user_id",
    "password",
    "auth_url",
    "project_id",
    "queue_id",
    "region_name",
)
_DOING: Final = "post the metadata of the server"


class ZaqarServerQueues:
    """Implements `MetadataQueues`. keystone: the URL that servers use."""

    def __init__(self, cloud: Cloud, domain: StackDomain, keystone: str) -> None:
        self._cloud = cloud
        self._users = StackUsers(cloud, domain)
        self._keystone = keystone

    async def create(self, call: Call, secret: str) -> MetadataObject:
        session = self._cloud.stack_users_session(call.region)
        if await session.find_endpoint(MESSAGING, "find Zaqar") is None:
            public = "ZAQAR_MESSAGE needs Zaqar, which the service catalog does not have"
            raise CloudError(public, public=public)
        name = project_name(call.stack_id, call.resource_id)
        described = f"Headgate: metadata of a server of {call.stack_name}/{call.stack_id}"
        user = await self._users.create(name, derive_password(secret, QUEUE), described)
        session = self._cloud.stack_users_session(call.region, name)
        await session.send(MESSAGING, "PUT", f"/queues/{QUEUE}", "create the queue", {})
        known = credentials_of(user, self._keystone, self._cloud.region_of(call), QUEUE)
        settings = {key: one for key, one in known.items() if key in _SETTINGS}
        return MetadataObject("", QUEUE, name, settings=settings, region=call.region)

    async def write(self, target: MetadataObject, document: bytes) -> bool:
        session = self._cloud.stack_users_session(target.region, target.owner)
        path = f"/queues/{segment(target.name)}/messages"
        message = {"body": orjson.loads(document), "ttl": TTL}
        try:
            await session.send(MESSAGING, "POST", path, _DOING, {"messages": [message]})
        except CloudError as error:
            if error.status != HTTPStatus.BAD_REQUEST:
                raise
            # The operator allows no such lifetime, or no such size.
            del message["ttl"]
            await session.send(MESSAGING, "POST", path, _DOING, {"messages": [message]})
        return True

    async def remove(self, call: Call) -> None:
        name = project_name(call.stack_id, call.resource_id)
        await self._users.remove_users(name)
        if await self._users.has_project(name):
            await remove_queues(self._cloud.stack_users_session(call.region, name))
            await self._users.remove_project(name)
