"""OS::Heat::DeployedServer: an existing server, as the target of software deployments."""

from collections.abc import Mapping

from engine.errors import Findings
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.types.software.server_metadata_urls import ServerUrls, access_key
from engine.words import Json

CFN, HEAT = "POLL_SERVER_CFN", "POLL_SERVER_HEAT"
#: Transports of services that Headgate does not use.
REFUSED = ("POLL_TEMP_URL", "ZAQAR_MESSAGE")
#: A type with this attribute is a server: its metadata lists its deployments.
OS_COLLECT_CONFIG = "os_collect_config"


class DeployedServer(ResourceType):
    replaces_tainted = False
    uses_credential = False
    schema = TypeSchema(
        "OS::Heat::DeployedServer",
        description="An existing server, whose agent polls for its deployments.",
        properties={
            "name": Property(Kind.STRING, "Name of the server.", update_allowed=True),
            "metadata": Property(
                Kind.MAP, "Accepted for compatibility with Heat; no effect.", update_allowed=True
            ),
            "software_config_transport": Property(
                Kind.STRING,
                "How the agent polls for its metadata.",
                default=CFN,
                update_allowed=True,
                constraints=(Constraint("allowed_values", allowed=(CFN, HEAT, *REFUSED)),),
            ),
            "deployment_swift_data": Property(
                Kind.MAP,
                "Accepted for compatibility with Heat; no effect.",
                default={},
                update_allowed=True,
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

    def delete(self, call: Call) -> Outcome:
        return Done(None)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        transport = properties.get("software_config_transport")
        wrong = ""
        if transport in REFUSED:
            wrong = f"{transport} needs a service that Headgate does not use"
        elif transport == HEAT and not self._urls.keystone:
            wrong = f"{HEAT} needs Keystone, which this server does not use"
        if wrong:
            remedy = f"Use {CFN}, which has its own credentials."
            findings.add(f"{place}.software_config_transport", wrong, remedy)

    def _done(self, call: Call, physical_id: str | None) -> Done:
        name = call.properties.get("name") or call.data.get("name") or call.own_name
        attributes = {"name": name, OS_COLLECT_CONFIG: self._collector_settings(call)}
        return Done(physical_id, attributes, {"name": call.data.get("name") or call.own_name})

    def _collector_settings(self, call: Call) -> dict[str, Json]:
        """The settings of the former transport become null, so that the agent removes them."""
        section, settings = self._settings(call)
        before = call.attributes.get(OS_COLLECT_CONFIG) or {}
        gone = {
            name: dict.fromkeys(before[name])
            for name in ("cfn", "heat")
            if name != section and isinstance(before.get(name), dict)
        }
        return {"collectors": [section, "local"], section: settings, **gone}

    def _settings(self, call: Call) -> tuple[str, dict[str, Json]]:
        if call.properties["software_config_transport"] == HEAT:
            return "heat", {
                "auth_url": self._urls.keystone,
                "project_id": call.project,
                "stack_id": f"{call.stack_name}/{call.stack_id}",
                "resource_name": call.resource_name,
            }
        return "cfn", {
            "metadata_url": self._urls.url,
            "access_key_id": access_key(call.stack_id, call.resource_id),
            "secret_access_key": self._urls.secret_of(call.stack_id, call.resource_id),
            "stack_name": call.stack_name,
            "path": f"{call.resource_name}.Metadata",
        }
