"""OS::Heat::DeployedServer: an existing server, as the target of software deployments.

The server polls for its deployments at a metadata URL, with its own access key and secret. Both are
derived from the IDs of the resource and its stack, not stored, and invalid once the resource is
deleted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from engine.errors import Findings
from engine.hooks.derived_tokens import TokenKeys, server_secret
from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.contract import Call, Done, InternalType, Outcome
from engine.words import Json

#: Below the server's public URL; the hub serves it (hub/api/headgate/server_metadata.py).
PATH = "/cfn/v1/"
_ID = 32
CFN, HEAT = "POLL_SERVER_CFN", "POLL_SERVER_HEAT"
#: Transports of services that Headgate does not use.
REFUSED = ("POLL_TEMP_URL", "ZAQAR_MESSAGE")
#: A type with this attribute is a server: its metadata lists its deployments.
OS_COLLECT_CONFIG = "os_collect_config"


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

    def collector_settings(self, call: Call) -> dict[str, Json]:
        """The settings of a server's os-collect-config.

        Those of the former transport become null, so that the agent removes them.
        """
        section, settings = self._settings(call)
        before = call.attributes.get(OS_COLLECT_CONFIG) or {}
        cleared = {
            name: dict.fromkeys(before[name])
            for name in ("cfn", "heat")
            if name != section and isinstance(before.get(name), dict)
        }
        return {"collectors": [section, "local"], section: settings, **cleared}

    def _settings(self, call: Call) -> tuple[str, dict[str, Json]]:
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
            "path": f"{call.resource_name}.Metadata",
        }

    def transport_error(self, properties: Mapping[str, Json]) -> tuple[str, str] | None:
        """The reason and the remedy if the transport of a server's metadata cannot be used."""
        transport = properties.get("software_config_transport")
        remedy = f"Use {CFN}, which has its own credentials."
        if transport in REFUSED:
            return f"{transport} needs a service that Headgate does not use", remedy
        if transport == HEAT and not self.keystone:
            return f"{HEAT} needs Keystone, which this server does not use", remedy
        return None


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
                constraints=(Constraint("allowed_values", allowed=(CFN, HEAT, *REFUSED)),),
            ),
            "deployment_swift_data": updatable(
                Kind.MAP,
                "Accepted for compatibility with Heat; no effect.",
                default={},
                fields={
                    name: Property(Kind.STRING, constraints=(Constraint("length", min=1),))
                    for name in ("container", "object")
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

    def __init__(self, urls: ServerUrls) -> None:
        self._urls = urls

    def create(self, call: Call) -> Outcome:
        return self._done(call, str(call.operation_key))

    def update(self, call: Call) -> Outcome:
        return self._done(call, call.physical_id)

    def adopt(self, call: Call) -> Outcome:
        return self._done(call, call.physical_id)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if (error := self._urls.transport_error(properties)) is not None:
            findings.add(f"{place}.software_config_transport", *error)

    def _done(self, call: Call, physical_id: str | None) -> Done:
        name = call.properties.get("name") or call.data.get("name") or call.own_name
        attributes = {"name": name, OS_COLLECT_CONFIG: self._urls.collector_settings(call)}
        return Done(physical_id, attributes, {"name": call.data.get("name") or call.own_name})
