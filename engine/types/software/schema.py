"""The shared properties of configs and deployments, and rules for inputs and outputs."""

from collections.abc import Mapping, Sequence

from engine.errors import Findings
from engine.hot.schema.type_schema import Constraint, Kind, Property
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
                Kind.BOOLEAN,
                "Whether a changed value triggers a new deployment.",
                default=False,
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
                Kind.BOOLEAN,
                "Whether a value of this output means failure.",
                default=False,
            ),
        },
    ),
)
GROUP = Property(Kind.STRING, "Tool on the server that uses the config.", default=UNGROUPED)
OPTIONS = Property(Kind.MAP, "Options of that tool.")


def listed(entries: Json) -> list[dict[str, Json]]:
    """Inputs or outputs without nulls, as they are stored."""
    return [
        {name: value for name, value in one.items() if value is not None} for one in entries or ()
    ]


def check_lists(properties: Mapping[str, Json], place: str, findings: Findings) -> None:
    """Add findings for duplicate names, and for defaults of another type than their input."""
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
    seen: set[str] = set()
    for number, one in enumerate(entries):
        name = one.get("name")
        if isinstance(name, str) and name in seen:
            findings.add(
                f"{place}[{number}].name", f'the name "{name}" is not unique', "Rename one."
            )
        seen.add(str(name))


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
