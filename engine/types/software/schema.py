"""The properties of configs, deployments and deployment groups, and rules for them."""

from collections.abc import Collection, Mapping, Sequence

from engine.errors import Findings
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, updatable
from engine.types.object_signals import OPERATOR_REMEDY, TEMP_URL, ZAQAR
from engine.types.software.agent_protocol import (
    CFN,
    STATUS_CODE,
    STDERR,
    STDOUT,
    TRANSPORTS,
)
from engine.types.software.software_store import UNGROUPED
from engine.types.value import CONVERT
from engine.words import Json

#: Types of inputs and outputs, with the corresponding types of OS::Heat::Value.
KINDS: Mapping[str, str] = {
    "String": "string",
    "Number": "number",
    "CommaDelimitedList": "comma_delimited_list",
    "Json": "json",
    "Boolean": "boolean",
}
#: The actions of a deployment, and the default ones.
ACTIONS = ("CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME")
DEFAULT_ACTIONS = ("CREATE", "UPDATE")
_KIND = Constraint("allowed_values", allowed=tuple(KINDS))
_COMMON_FIELDS = {
    "name": Property(Kind.STRING, "Name.", required=True),
    "description": Property(Kind.STRING, "Description."),
    "type": Property(Kind.STRING, "Type of the value.", default="String", constraints=(_KIND,)),
}
INPUTS = Property(
    Kind.LIST,
    "Inputs of the config.",
    items=Property(
        Kind.MAP,
        fields={
            **_COMMON_FIELDS,
            "default": Property(Kind.ANY, "Default value."),
            "replace_on_change": Property(
                Kind.BOOLEAN, "Whether a changed value triggers a new deployment.", default=False
            ),
        },
    ),
)
OUTPUTS = Property(
    Kind.LIST,
    "Outputs of the config.",
    items=Property(
        Kind.MAP,
        fields={
            **_COMMON_FIELDS,
            "error_output": Property(
                Kind.BOOLEAN, "Whether a value of this output means failure.", default=False
            ),
        },
    ),
)
GROUP = Property(Kind.STRING, "Tool on the server that uses the config.", default=UNGROUPED)
OPTIONS = Property(Kind.MAP, "Options of that tool.")


def without_nulls(entries: Json) -> list[dict[str, Json]]:
    """Inputs or outputs without nulls, as they are stored."""
    return [
        {name: value for name, value in one.items() if value is not None} for one in entries or ()
    ]


def check_lists(properties: Mapping[str, Json], place: str, findings: Findings) -> None:
    """Add warnings for duplicate names, and findings for defaults of another type than their
    input."""
    for name in ("inputs", "outputs"):
        _check_names(_maps(properties.get(name)), f"{place}.{name}", findings)
    for number, one in enumerate(_maps(properties.get("inputs"))):
        if not _is(one.get("type") or "String", one.get("default")):
            findings.add(
                f"{place}.inputs[{number}].default",
                f"the default of the input {one.get('name')} is not a {one['type']}",
                "Correct the default or the type.",
            )


def _check_names(entries: Sequence[Mapping[str, Json]], place: str, findings: Findings) -> None:
    last = {one.get("name"): number for number, one in enumerate(entries)}
    for number, one in enumerate(entries):
        if isinstance(one.get("name"), str) and number != last[one.get("name")]:
            reason = "a later entry has the same name: the last one counts"
            findings.warn(f"{place}[{number}].name", reason, "Remove or rename one.", "NoEffect")


def _is(kind: str, default: Json) -> bool:
    """Whether a default has a type. An empty string counts as no default."""
    if kind == "String" or kind not in KINDS or default in (None, ""):
        return True
    try:
        CONVERT[KINDS[kind]](default)
    except ValueError:
        return False
    return True


def _maps(value: Json) -> Sequence[Mapping[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


#: What to do if a transport of signals cannot be used.
TRANSPORT_REMEDY = f"Use {CFN}: the server sends a POST request to a signed URL."
PROPERTIES: Mapping[str, Property] = {
    "config": updatable(Kind.STRING, "ID of the software config."),
    "server": Property(Kind.STRING, "ID of the server.", required=True),
    "input_values": updatable(Kind.MAP, "Values for the config's inputs."),
    "actions": updatable(
        Kind.LIST,
        "Actions of the deployment that are sent to the server.",
        default=list(DEFAULT_ACTIONS),
        items=Property(Kind.STRING, constraints=(Constraint("allowed_values", allowed=ACTIONS),)),
    ),
    "name": updatable(
        Kind.STRING,
        "Name of the config on the server, which applies configs in the order of their names.",
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


def check_transport(
    properties: Mapping[str, Json], place: str, findings: Findings, usable: Collection[str]
) -> None:
    """usable: the transports of other services that can be used."""
    transport = properties.get("signal_transport")
    if transport in (TEMP_URL, ZAQAR) and transport not in usable:
        reason = f"{transport} needs a service that Headgate does not use"
        remedy = f"{TRANSPORT_REMEDY} {OPERATOR_REMEDY}" if transport == ZAQAR else TRANSPORT_REMEDY
        findings.add(f"{place}.signal_transport", reason, remedy)
