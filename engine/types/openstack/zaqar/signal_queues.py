"""Signals that servers post to a queue of Zaqar.

Each resource has a project of its own in the domain of stack users
(engine/types/openstack/keystone/stack_users.py), and each operation has a user in it, whose
credentials the server gets, and a queue. Messages are read and not deleted: they end with the
queue, or when they expire. So a message is lost by no crash, and its ID tells one that was read
before. Zaqar lists the messages of one queue at a time, and only to its project: each operation
that waits reads its own queue.
"""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Final

from engine.types.contract import Call
from engine.types.object_signals import (
    MAX_BYTES,
    ZAQAR,
    SignalObject,
    Uploads,
    contents_of,
    ids_of,
    kept_messages,
    object_name,
)
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
from engine.words import Json

#: Signals of one queue that are read.
MAX_SIGNALS: Final = 1_000
#: Bytes of the signals of one queue that are read. The operation keeps them.
MAX_TOTAL_BYTES: Final = 1_048_576
#: All messages, also those of the own client, and those that another client has claimed.
_ALL: Final = {"echo": "true", "include_claimed": "true"}
#: In place of a message with values that JSON does not have. It must not be JSON.
_NOT_JSON: Final = "not JSON"
_REMEDY: Final = "Check what posts to the queue, and replace the resource that has it."


class ZaqarSignals:
    """Implements `ObjectSignals`. keystone: the URL that servers use. max_signals:
    of one queue."""

    def __init__(
        self, cloud: Cloud, domain: StackDomain, keystone: str, max_signals: int = MAX_SIGNALS
    ) -> None:
        self._cloud = cloud
        self._users = StackUsers(cloud, domain)
        self._keystone = keystone
        self._max_signals = max_signals

    @property
    def service(self) -> str:
        return MESSAGING.name

    @property
    def needs_credential(self) -> bool:
        return False

    @property
    def has_observer(self) -> bool:
        return False

    @property
    def endpoint(self) -> str:
        return MESSAGING.name

    async def is_available(self, call: Call) -> bool:
        session = self._cloud.stack_users_session(call.region)
        return await session.find_endpoint(MESSAGING, "find Zaqar") is not None

    async def create(self, call: Call) -> SignalObject:
        name = object_name(call, ZAQAR)
        password = derive_password(call.signal_url.token, name)
        described = f"Headgate: signals of {call.stack_name}/{call.stack_id}"
        project, suffix = _project_of(name), ids_of(name)[2].hex
        user = await self._users.create(project, password, described, suffix=suffix)
        queue = queue_name(name)
        session = self._cloud.stack_users_session(call.region, project)
        await session.send(MESSAGING, "PUT", f"/queues/{segment(queue)}", "create the queue", {})
        known = credentials_of(user, self._keystone, self._cloud.region_of(call), queue)
        return SignalObject(name, credentials=known)

    async def read(self, call: Call, name: str) -> Uploads:
        session = self._cloud.stack_users_session(call.region, _project_of(name))
        kept = [*kept_messages(call, name)]
        known = {identifier for identifier, _ in kept}
        size, excess = sum(_size_of(content) for _, content in kept), ""
        path = f"/queues/{segment(queue_name(name))}/messages"
        try:
            pages = session.pages(MESSAGING, path, "messages", _ALL, page=0, lenient=True)
            async for page in pages:
                for one in page:
                    if one.get("id") in known or excess:
                        continue
                    content = _content(one.get("body"))
                    size += _size_of(content)
                    if excess := self._excess(len(kept) + 1, size):
                        break
                    kept.append([str(one.get("id")), content])
                if excess:
                    break
        except CloudError as error:
            if not error.is_missing:
                raise
        return Uploads(contents_of(kept), excess, kept)

    def _excess(self, count: int, size: int) -> str:
        if count > self._max_signals:
            why = f"more than {self._max_signals} signals were posted"
            raises = " The operator can raise signals_per_resource in [quotas]."
        elif size > MAX_TOTAL_BYTES:
            why, raises = f"more than {MAX_TOTAL_BYTES} bytes of signals were posted", ""
        else:
            return ""
        return f"{why}, of which only the first count. {_REMEDY}{raises}"

    async def remove(self, call: Call, *, keep: str = "") -> None:
        """The users end first, who could create the queues again, and the project last, so that a
        repeated call finds the rest."""
        project = project_name(call.stack_id, call.resource_id)
        kept = f"{project}{ids_of(keep)[2].hex}" if keep else ""
        await self._users.remove_users(project, keep=kept)
        if not await self._users.has_project(project):
            return
        session = self._cloud.stack_users_session(call.region, project)
        await remove_queues(session, queue_name(keep) if keep else "")
        if not keep:
            await self._users.remove_project(project)

    async def list_all(self, project: str, region: str) -> AsyncIterator[Mapping[str, Json]]:
        """Nothing: there is no observer."""
        nothing: list[Mapping[str, Json]] = []
        for page in nothing:
            yield page


def queue_name(name: str) -> str:
    """The queue of an operation: a name has 64 characters at most."""
    return f"signals-{ids_of(name)[2].hex}"


def _project_of(name: str) -> str:
    stack_id, resource_id, _ = ids_of(name)
    return project_name(stack_id, resource_id)


def _content(body: Json) -> str | None:
    """The content of a message as JSON; None if it is too long. A text is JSON already. Zaqar also
    stores values that JSON does not have: such a message alone is invalid."""
    try:
        content = "{}" if body is None else body if isinstance(body, str) else _as_json(body)
        return content if len(content.encode()) <= MAX_BYTES else None
    except (ValueError, RecursionError):
        return _NOT_JSON


def _size_of(content: str | None) -> int:
    """What a message counts; None: it is longer than `MAX_BYTES`."""
    return MAX_BYTES + 1 if content is None else len(content.encode())


def _as_json(body: Json) -> str:
    """Raises ValueError."""
    return json.dumps(body, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
