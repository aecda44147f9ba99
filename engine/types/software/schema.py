"""What configs and deployments have in common, as data: inputs and outputs, and rules for them."""

from collections.abc import Mapping, Sequence

from engine.errors import Findings
from engine.hot.schema.type_schema import Constraint, Kind, Property
from engine.types.software.software_store import UNGROUPED
from engine.types.value import CONVERT
from engine.words import Json

#: Kinds of inputs and outputs, with how OS::Heat::Value calls them.
KINDS: Mapping[str, str] = {
    "String": "string",
    "Number": "number",
    "CommaDelimitedList": "comma_delimited_list",
    "Json": "json",
    "Boolean": "boolean",
}
#: What a deployment may be meant for; and what it is when nothing is said.
ACTIONS = ("CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME")
DEFAULT_ACTIONS = ("CREATE", "UPDATE")
_KIND = Constraint("allowed_values", allowed=tuple(KINDS))
_ANYTHING = {
    "name": Property(Kind.STRING, "Name.", required=True),
    "description": Property(Kind.STRING, "What it is for."),
    "type": Property(Kind.STRING, "Kind of its value.", default="String", constraints=(_KIND,)),
}
INPUTS = Property(
    Kind.LIST,
    "What the config takes.",
    items=Property(
        Kind.MAP,
        fields={
            **_ANYTHING,
            "default": Property(Kind.ANY, "Its value when a deployment gives none."),
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
    "What the config gives back.",
    items=Property(
        Kind.MAP,
        fields={
            **_ANYTHING,
            "error_output": Property(
                Kind.BOOLEAN,
                "Whether the deployment has failed when this has a value.",
                default=False,
            ),
        },
    ),
)
GROUP = Property(
    Kind.STRING, "The tool on the server that is to use the config.", default=UNGROUPED
)
OPTIONS = Property(Kind.MAP, "Options of the tool on the server.")


def listed(entries: Json) -> list[dict[str, Json]]:
    """Inputs or outputs as they are kept: without what nobody said."""
    return [
        {name: value for name, value in one.items() if value is not None} for one in entries or ()
    ]


def check_lists(properties: Mapping[str, Json], place: str, findings: Findings) -> None:
    """Names that are there twice, and defaults that are not of their input's kind."""
    for name in ("inputs", "outputs"):
        _check_names(_maps(properties.get(name)), f"{place}.{name}", findings)
    for number, one in enumerate(_maps(properties.get("inputs"))):
        if not _is(one.get("type") or "String", one.get("default")):
            findings.add(
                f"{place}.inputs[{number}].default",
                f"the default of the input {one.get('name')} is no {one['type']}",
                "Mend the default or the type.",
            )


def _check_names(entries: Sequence[Mapping[str, Json]], place: str, findings: Findings) -> None:
    seen: set[str] = set()
    for number, one in enumerate(entries):
        name = one.get("name")
        if isinstance(name, str) and name in seen:
            findings.add(f"{place}[{number}].name", f'there is a second "{name}"', "Rename one.")
        seen.add(str(name))


def _is(kind: str, default: Json) -> bool:
    """An empty text is taken for no default."""
    if kind == "String" or kind not in KINDS or default in (None, ""):
        return True
    try:
        CONVERT[KINDS[kind]](default)
    except ValueError:
        return False
    return True


def _maps(value: Json) -> Sequence[Mapping[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
