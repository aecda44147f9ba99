"""Properties and attributes of deployments, of single ones and of groups of them."""

from collections.abc import Mapping

from engine.errors import Findings
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property
from engine.types.software.deployment_signals import STATUS_CODE, STDERR, STDOUT
from engine.types.software.derived_config import CFN, REFUSED, TRANSPORTS
from engine.types.software.schema import ACTIONS, DEFAULT_ACTIONS
from engine.words import Json

PROPERTIES: Mapping[str, Property] = {
    "config": Property(Kind.STRING, "Id of the software config.", update_allowed=True),
    "server": Property(Kind.STRING, "Id of the server.", required=True),
    "input_values": Property(Kind.MAP, "Values for the config's inputs.", update_allowed=True),
    "actions": Property(
        Kind.LIST,
        "Actions on the deployment that the server is to act on.",
        default=list(DEFAULT_ACTIONS),
        update_allowed=True,
        items=Property(Kind.STRING, constraints=(Constraint("allowed_values", allowed=ACTIONS),)),
    ),
    "name": Property(
        Kind.STRING,
        "Name of the config that the server gets; it works through them by name.",
        update_allowed=True,
    ),
    "signal_transport": Property(
        Kind.STRING,
        "How the server says how it went; NO_SIGNAL: it does not.",
        default=CFN,
        constraints=(Constraint("allowed_values", allowed=TRANSPORTS),),
    ),
}
ATTRIBUTES = {
    STDOUT: Attribute(Kind.ANY, "What was printed on the server."),
    STDERR: Attribute(Kind.ANY, "What was printed to standard error."),
    STATUS_CODE: Attribute(Kind.ANY, "The exit code there: 0 when it went well.", public=True),
}
#: Of StructuredDeployment.
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
            f"{properties['signal_transport']} needs a service that Headgate does without",
            f"Take {CFN}: the server sends a POST to a URL with a token of its own.",
        )
