"""The schema of Headgate::Command."""

from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema

COMMANDS = ("create", "update", "delete", "check", "suspend", "resume", "snapshot")
DEFAULT_TIMEOUT = 300


def _command(description: str, *, required: bool = False) -> Property:
    return Property(Kind.ANY, description, required=required, update_allowed=True)


SCHEMA = TypeSchema(
    "Headgate::Command",
    description="Runs commands on the engine's machine. Off unless the operator enables it.",
    properties={
        "create": _command(
            "Creates the resource: a list of strings that starts with the program.", required=True
        ),
        "update": _command("Updates in place; without it, an update replaces the resource."),
        "delete": _command("Deletes the resource."),
        "check": _command("Runs after create and update until it exits with 0; once in a check."),
        "suspend": _command("Suspends the resource."),
        "resume": _command("Resumes the resource."),
        "snapshot": _command("Takes a snapshot; its JSON output is stored for a restore."),
        "shell": Property(
            Kind.BOOLEAN,
            "Whether commands may be strings, run by /bin/sh.",
            default=False,
            update_allowed=True,
        ),
        "cwd": Property(Kind.STRING, "Working folder, as an absolute path.", update_allowed=True),
        "environment": Property(
            Kind.MAP, "Environment variables of the commands.", update_allowed=True
        ),
        "timeout": Property(
            Kind.NUMBER,
            "Timeout of a command in seconds; also the time in which check must succeed.",
            default=DEFAULT_TIMEOUT,
            update_allowed=True,
            constraints=(Constraint("range", min=0.1, max=86_400),),
        ),
        "triggers": Property(
            Kind.MAP, "Any values; a change updates the resource.", update_allowed=True
        ),
    },
    attributes={
        "outputs": Attribute(Kind.MAP, "The JSON object that create or update printed."),
        "stdout": Attribute(Kind.STRING, "Standard output."),
        "stderr": Attribute(Kind.STRING, "Standard error."),
        "exit_code": Attribute(Kind.INTEGER, "Exit code: 0.", public=True),
    },
    snapshots=True,
)
