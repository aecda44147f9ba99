"""The properties and attributes of deployments and their groups."""

from collections.abc import Mapping

from engine.errors import Findings
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property
from engine.types.software.deployment_signals import STATUS_CODE, STDERR, STDOUT
from engine.types.software.derived_config import CFN, REFUSED, TRANSPORTS
from engine.types.software.schema import ACTIONS, DEFAULT_ACTIONS
from engine.words import Json

PROPERTIES: Mapping[str, Property] = {
    "config": Property(Kind.STRING, "ID of the software config.", update_allowed=True),
    "server": Property(Kind.STRING, "ID of the server.", required=True),
    "input_values": Property(Kind.MAP, "Values for the config's inputs.", update_allowed=True),
    "actions": Property(
        Kind.LIST,
        "Actions of the deployment that are sent to the server.",
        default=list(DEFAULT_ACTIONS),
        update_allowed=True,
        items=Property(Kind.STRING, constraints=(Constraint("allowed_values", allowed=ACTIONS),)),
    ),
    "name": Property(
        Kind.STRING,
        "Name of the config on the server, which applies configs in the order of their names.",
        update_allowed=True,
    ),
    "signal_transport": Property(
        Kind.STRING,
        "How the server reports the result; NO_SIGNAL: it does not.",
        default=CFN,
        constraints=(Constraint("allowed_values", allowed=TRANSPORTS),),
    ),
}
ATTRIBUTES = {
    STDOUT: Attribute(Kind.ANY, "Standard output on the server."),
    STDERR: Attribute(Kind.ANY, "Standard error on the server."),
    STATUS_CODE: Attribute(Kind.ANY, "Exit code on the server; 0 for success.", public=True),
}
#: The properties of StructuredDeployment.
STRUCTURED: Mapping[str, Property] = {
    **PROPERTIES,
    "input_key": Property(
        Kind.STRING,
        "{KEY: name} in the config is replaced by that input's value.",
        default="get_input",
    ),
    "input_values_validate": Property(
        Kind.STRING,
        "STRICT: an input that the config names must have a value.",
        default="LAX",
        constraints=(Constraint("allowed_values", allowed=("LAX", "STRICT")),),
    ),
}


def check_transport(properties: Mapping[str, Json], place: str, findings: Findings) -> None:
    if properties.get("signal_transport") in REFUSED:
        findings.add(
            f"{place}.signal_transport",
            f"{properties['signal_transport']} needs a service that Headgate does not use",
            f"Use {CFN}: the server sends a POST request to a signed URL.",
        )
