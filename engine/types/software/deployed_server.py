"""OS::Heat::DeployedServer: an existing server, as the target of software deployments; and how the
agents of servers get their metadata.

A server polls for its deployments at a metadata URL, with its own access key and secret. Both are
derived from the IDs of the resource and its stack, not stored, and invalid once the resource is
deleted. With POLL_TEMP_URL, it fetches them from an object that Headgate writes whenever they
change; with ZAQAR_MESSAGE, it takes them from a queue to which Headgate posts them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from engine.errors import Findings
from engine.hooks.derived_tokens import TokenKeys, container_key, server_secret
from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.contract import Call, Done, Failed, InternalType, Outcome
from engine.types.http_client import ServiceError
from engine.types.object_signals import LEFT_BEHIND, OPERATOR_REMEDY
from engine.types.software.metadata_objects import (
    NO_METADATA_SERVICES,
    OBJECTS,
    POLL_TEMP_URL,
    ZAQAR,
    MetadataObject,
    MetadataServices,
    default_name,
    objects_of,
    resource_prefix,
)
from engine.types.software.software_store import SoftwareStore
from engine.words import Json

#: Below the server's public URL; the hub serves it (hub/api/headgate/server_metadata.py).
PATH = "/cfn/v1/"
_ID = 32
CFN, HEAT = "POLL_SERVER_CFN", "POLL_SERVER_HEAT"
#: Characters of names of resources that the `path` of an agent cannot have: the agent divides it at
#: the first dot. The name in it is for people; the access key identifies the server.
_UNSAFE = re.compile(r"[^\w-]", re.ASCII)
#: The sections of an agent's settings that belong to a transport.
_SECTIONS = ("cfn", "heat", "request", "zaqar")
#: A type with this attribute is a server: its metadata lists its deployments.
OS_COLLECT_CONFIG = "os_collect_config"
#: The property `deployment_swift_data` of servers.
SWIFT_DATA_DESCRIPTION = f"The container and the object of {POLL_TEMP_URL}."
SWIFT_DATA_FIELDS = {
    "container": "Name of the container; by default one of the server's own.",
    "object": "Name of the object; by default a new one.",
}


@dataclass(frozen=True, slots=True)
class ServerUrls:
    """base: the public URL, without a trailing slash. keystone: the URL of Keystone; empty if the
    server does not use it."""

    keys: TokenKeys = field(repr=False)
    base: str
    keystone: str = ""

    @property
    def url(self) -> str:
        return f"{self.base}{PATH}"

    def secret_of(self, stack_id: UUID, resource_id: UUID) -> str:
        return server_secret(self.keys.newest, stack_id, resource_id)

    def accepted_secrets(self, stack_id: UUID, resource_id: UUID) -> list[str]:
        """The secrets from all accepted versions of the key."""
        return [server_secret(key, stack_id, resource_id) for key in self.keys.for_signals]

    def container_key(self, project: str, container: str) -> str:
        """The key of the temporary URLs of a container that Headgate creates."""
        return container_key(self.keys.newest, project, container)

    def collector_settings(
        self, call: Call, source: MetadataObject | None = None
    ) -> dict[str, Json]:
        """The settings of a server's os-collect-config. source: of its metadata, with POLL_TEMP_URL
        and ZAQAR_MESSAGE.

        Those of the former transport become null, so that the agent removes them.
        """
        section, settings = self._settings(call, source)
        before = call.attributes.get(OS_COLLECT_CONFIG) or {}
        cleared = {
            name: dict.fromkeys(before[name])
            for name in _SECTIONS
            if name != section and isinstance(before.get(name), dict)
        }
        return {"collectors": [section, "local"], section: settings, **cleared}

    def _settings(self, call: Call, source: MetadataObject | None) -> tuple[str, dict[str, Json]]:
        if call.properties["software_config_transport"] == POLL_TEMP_URL:
            return "request", {"metadata_url": source.read_url if source is not None else ""}
        if call.properties["software_config_transport"] == ZAQAR:
            return "zaqar", dict(source.settings) if source is not None else {}
        if call.properties["software_config_transport"] == HEAT:
            return "heat", {
                "auth_url": self.keystone,
                "project_id": call.project,
                "stack_id": f"{call.stack_name}/{call.stack_id}",
                "resource_name": call.resource_name,
            }
        return "cfn", {
            "metadata_url": self.url,
            "access_key_id": access_key(call.stack_id, call.resource_id),
            "secret_access_key": self.secret_of(call.stack_id, call.resource_id),
            "stack_name": call.stack_name,
            "path": f"{_UNSAFE.sub('_', call.resource_name)}.Metadata",
        }


def access_key(stack_id: UUID, resource_id: UUID) -> str:
    """The access key, which identifies the server; not secret."""
    return f"{stack_id.hex}{resource_id.hex}"


def owner_of(key: str) -> tuple[UUID, UUID] | None:
    """The IDs of the stack and the resource in an access key; None if it is invalid."""
    try:
        stack_id, resource_id = UUID(key[:_ID]), UUID(key[_ID:])
    except ValueError:
        return None
    return (stack_id, resource_id) if key == access_key(stack_id, resource_id) else None


@dataclass(frozen=True, slots=True)
class AgentConnection:
    """What connects an agent. settings: of its os-collect-config. objects: with its metadata, the
    one that it uses first; they belong to the data of the resource."""

    settings: Mapping[str, Json] = field(repr=False)
    objects: Sequence[MetadataObject] = ()

    @property
    def data(self) -> dict[str, Json]:
        return {OBJECTS: [one.as_json() for one in self.objects]} if self.objects else {}


class ServerTransport:
    """How the agents of servers get their metadata."""

    def __init__(
        self,
        urls: ServerUrls,
        store: SoftwareStore,
        services: MetadataServices = NO_METADATA_SERVICES,
    ) -> None:
        self.urls = urls
        self._store = store
        self._services = services

    @property
    def has_objects(self) -> bool:
        """Whether metadata can be objects of Swift, which need a credential."""
        return self._services.swift is not None

    def check(self, properties: Mapping[str, Json], place: str, findings: Findings) -> None:
        """Report a transport that cannot be used."""
        transport = properties.get("software_config_transport")
        place, remedy = f"{place}.software_config_transport", _REMEDY
        if transport in (ZAQAR, POLL_TEMP_URL) and transport not in self._services.transports:
            reason = f"{transport} needs a service that Headgate does not use"
            more = f" {OPERATOR_REMEDY}" if transport == ZAQAR else ""
            findings.add(place, reason, f"{remedy}{more}")
        elif transport == HEAT and not self.urls.keystone:
            reason = f"{HEAT} needs Keystone, which this server does not use"
            findings.add(place, reason, remedy)

    def uses_objects(self, call: Call) -> bool:
        """Whether the metadata of a server are objects of Swift, or were."""
        if self._services.swift is None:
            return False
        was = any(not one.is_queue for one in objects_of(call.data))
        return was or call.properties.get("software_config_transport") == POLL_TEMP_URL

    def _uses_queue(self, call: Call) -> bool:
        """Whether the server has a queue, or has had one."""
        was = any(one.is_queue for one in objects_of(call.data))
        return was or call.properties.get("software_config_transport") == ZAQAR

    def read_connection(self, call: Call, data: Mapping[str, Json]) -> AgentConnection:
        """The connection as it is. data: of the resource."""
        objects = objects_of(data)
        source = objects[0] if objects else None
        return AgentConnection(self.urls.collector_settings(call, source), objects)

    async def connect(self, call: Call, server_id: str) -> AgentConnection:
        """Create the object of the metadata, if the transport needs one, and write all objects of
        the server. server_id: empty before it exists. Raises ServiceError."""
        objects = objects_of(call.data)
        queues = self._services.zaqar is not None and self._uses_queue(call)
        if not self.uses_objects(call) and not queues:
            # A queue that Headgate cannot delete now stays known until the server's delete.
            kept = [one for one in objects if one.is_queue]
            return AgentConnection(self.urls.collector_settings(call), kept)
        wanted = await self._create_source(call, objects)
        if wanted is not None:
            objects = [wanted, *(one for one in objects if _key(one) != _key(wanted))]
        settings = self.urls.collector_settings(call, wanted)
        document = await self._store.server_document(
            call.project, server_id, call.metadata or {}, settings
        )
        for number, one in enumerate(objects):
            written = await self._services.write(one, document)
            if not written and wanted is not None and not number:
                reason = "Swift does not accept the temporary URL of the server's metadata"
                raise ServiceError(f"{reason}. {_KEY_REMEDY}", retry=True, public=reason)
        return AgentConnection(settings, objects)

    async def _create_source(
        self, call: Call, objects: Sequence[MetadataObject]
    ) -> MetadataObject | None:
        """The object or queue that the transport needs; None: it needs none. A queue that exists
        keeps its credentials. Raises ServiceError."""
        transport = call.properties.get("software_config_transport")
        if transport == POLL_TEMP_URL and self._services.swift is not None:
            held = [one for one in objects if not one.is_queue]
            return await self._services.swift.create(call, *_names(call, held))
        if transport == ZAQAR and self._services.zaqar is not None:
            known = next((one for one in objects if one.is_queue), None)
            secret = self.urls.secret_of(call.stack_id, call.resource_id)
            return known or await self._services.zaqar.create(call, secret)
        return None

    async def remove(self, call: Call) -> None:
        """Delete the objects and the queue of a server. Raises ServiceError."""
        if self._uses_queue(call):
            if self._services.zaqar is None:
                raise ServiceError(LEFT_BEHIND, public=LEFT_BEHIND)
            await self._services.zaqar.remove(call)
        if self._services.swift is None or not self.uses_objects(call):
            return
        given = call.properties.get("deployment_swift_data") or {}
        known = [_key(one) for one in objects_of(call.data) if not one.is_queue]
        if given.get("container"):
            known.append((given["container"], given.get("object") or ""))
        await self._services.swift.remove(call, known, resource_prefix(call))


_REMEDY = f"Use {CFN}, which has its own credentials."
_KEY_REMEDY = "Check the key of its container: X-Container-Meta-Temp-URL-Key."


def _key(one: MetadataObject) -> tuple[str, str]:
    return one.container, one.name


def _names(call: Call, objects: Sequence[MetadataObject]) -> tuple[str, str]:
    """(container, object) that the template names, or those of before."""
    given = call.properties.get("deployment_swift_data") or {}
    before = next((one for one in objects if one.container == given.get("container")), None)
    if not given.get("container") and objects:
        before = objects[0] if objects[0].container.startswith(resource_prefix(call)) else None
    container = given.get("container") or (before.container if before else default_name(call))
    return container, given.get("object") or (before.name if before else default_name(call))


class DeployedServer(InternalType):
    replaces_tainted = False
    schema = TypeSchema(
        "OS::Heat::DeployedServer",
        description="An existing server, whose agent polls for its deployments.",
        properties={
            "name": updatable(Kind.STRING, "Name of the server."),
            "metadata": updatable(Kind.MAP, "Accepted for compatibility with Heat; no effect."),
            "software_config_transport": updatable(
                Kind.STRING,
                "How the agent polls for its metadata.",
                default=CFN,
                constraints=(
                    Constraint("allowed_values", allowed=(CFN, HEAT, POLL_TEMP_URL, ZAQAR)),
                ),
            ),
            "deployment_swift_data": updatable(
                Kind.MAP,
                SWIFT_DATA_DESCRIPTION,
                default={},
                fields={
                    name: Property(Kind.STRING, text, constraints=(Constraint("length", min=1),))
                    for name, text in SWIFT_DATA_FIELDS.items()
                },
            ),
        },
        attributes={
            "name": Attribute(Kind.STRING, "Name of the server."),
            OS_COLLECT_CONFIG: Attribute(
                Kind.MAP, "Settings of the server's os-collect-config.", secret=True
            ),
        },
    )

    def __init__(self, transport: ServerTransport) -> None:
        self._transport = transport
        self.uses_credential = transport.has_objects

    def needs_credential(self, call: Call) -> bool:
        return self._transport.uses_objects(call)

    async def create(self, call: Call) -> Outcome:
        return await self._connect(call, str(call.operation_key))

    async def update(self, call: Call) -> Outcome:
        return await self._connect(call, call.physical_id)

    async def adopt(self, call: Call) -> Outcome:
        return await self._connect(call, call.physical_id)

    async def delete(self, call: Call) -> Outcome:
        try:
            await self._transport.remove(call)
        except ServiceError as error:
            return _failed(call, error, call.physical_id)
        return Done(None)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        self._transport.check(properties, place, findings)

    async def _connect(self, call: Call, physical_id: str | None) -> Outcome:
        try:
            connection = await self._transport.connect(call, physical_id or "")
        except ServiceError as error:
            return _failed(call, error, physical_id)
        name = call.properties.get("name") or call.data.get("name") or call.own_name
        attributes = {"name": name, OS_COLLECT_CONFIG: connection.settings}
        data = {"name": call.data.get("name") or call.own_name, **connection.data}
        return Done(physical_id, attributes, data)


def _failed(call: Call, error: ServiceError, physical_id: str | None) -> Failed:
    return Failed(str(error), physical_id, call.data, error.retry, public_reason=error.public)
