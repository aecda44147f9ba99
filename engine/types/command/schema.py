"""Headgate::Command as data: its properties and attributes."""

from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema

COMMANDS = ("create", "update", "delete", "check", "suspend", "resume", "snapshot")
DEFAULT_TIMEOUT = 300


def _command(description: str, *, required: bool = False) -> Property:
    return Property(Kind.ANY, description, required=required, update_allowed=True)


SCHEMA = TypeSchema(
    "Headgate::Command",
    description="Runs commands on headgate's machine. Off unless the operator allows it.",
    properties={
        "create": _command("Makes it: a list of texts, program first.", required=True),
        "update": _command("Updates in place; without it, an update replaces the resource."),
        "delete": _command("Clears it away."),
        "check": _command("Tried after create and update until it exits with 0; once by a check."),
        "suspend": _command("Puts it to rest."),
        "resume": _command("Wakes it up."),
        "snapshot": _command("Keeps what update can restore; what it prints as JSON is kept here."),
        "shell": Property(
            Kind.BOOLEAN,
            "Whether commands may be one text, run by /bin/sh.",
            default=False,
            update_allowed=True,
        ),
        "cwd": Property(Kind.STRING, "Folder to run in, as an absolute path.", update_allowed=True),
        "environment": Property(Kind.MAP, "Variables the commands see.", update_allowed=True),
        "timeout": Property(
            Kind.NUMBER,
            "Seconds for a command, and again for check to succeed.",
            default=DEFAULT_TIMEOUT,
            update_allowed=True,
            constraints=(Constraint("range", min=0.1, max=86_400),),
        ),
        "triggers": Property(
            Kind.MAP, "Any values; a change of them changes the resource.", update_allowed=True
        ),
    },
    attributes={
        "outputs": Attribute(Kind.MAP, "The JSON object that create or update printed."),
        "stdout": Attribute(Kind.STRING, "What it printed, as text."),
        "stderr": Attribute(Kind.STRING, "What it printed to standard error."),
        "exit_code": Attribute(Kind.INTEGER, "What it exited with: 0.", public=True),
    },
    snapshots=True,
)
