"""Headgate::Command: a resource made, changed and cleared away by commands of a machine."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson

from engine.errors import Findings
from engine.hot.schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.command.process import Ended, run
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType, Wait
from engine.words import Json

SHELL = "/bin/sh"
COMMANDS = ("create", "update", "delete", "check")
#: A change of these alone runs nothing: they say what to do later.
LATER = frozenset({"update", "delete", "check", "timeout"})
#: Seconds between two tries of `check`: the first, and the longest.
FIRST_CHECK, LONGEST_CHECK = 0.2, 2.0
KEPT_ERROR = 500
_INHERITED = ("PATH", "HOME", "LANG")


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """allow: absolute paths of the programs that may be run. max_output: bytes of each stream."""

    enabled: bool = False
    allow: tuple[str, ...] = ()
    max_output: int = 65_536
    max_timeout: timedelta = timedelta(hours=1)


def _command(description: str, *, required: bool = False) -> Property:
    return Property(Kind.ANY, description, required=required, update_allowed=True)


class Command(ResourceType):
    replaces_broken = False
    schema = TypeSchema(
        "Headgate::Command",
        description="Runs commands on headgate's machine. Off unless the operator allows it.",
        properties={
            "create": _command("Makes it: a list of texts, program first.", required=True),
            "update": _command("Changes it; without one, a change makes a new one."),
            "delete": _command("Clears it away."),
            "check": _command("Tried after create and update until it exits with 0."),
            "shell": Property(
                Kind.BOOLEAN,
                "Whether commands may be one text, run by /bin/sh.",
                default=False,
                update_allowed=True,
            ),
            "cwd": Property(Kind.STRING, "Folder to run in.", update_allowed=True),
            "environment": Property(Kind.MAP, "Variables the commands see.", update_allowed=True),
            "timeout": Property(
                Kind.NUMBER,
                "Seconds for a command, and for check to succeed.",
                default=300,
                update_allowed=True,
                constraints=(Constraint("range", min=0.1, max=86_400),),
            ),
            "triggers": Property(
                Kind.MAP, "Any values; a change of them changes the resource.", update_allowed=True
            ),
        },
        attributes={
            "outputs": Attribute(Kind.MAP, "What create or update printed, as JSON."),
            "stdout": Attribute(Kind.STRING, "What it printed, as text."),
            "stderr": Attribute(Kind.STRING, "What it printed to standard error."),
            "exit_code": Attribute(Kind.INTEGER, "0."),
        },
    )

    def __init__(self, settings: CommandSettings) -> None:
        self._settings = settings
        self._allowed = {os.path.realpath(path) for path in settings.allow}

    async def create(self, call: Call) -> Outcome:
        return await self._make(call, "create")

    async def update(self, call: Call) -> Outcome:
        if call.changed <= LATER:
            return Done(call.physical_id, dict(call.data.get("attributes") or {}), call.data)
        return await self._make(call, "update")

    async def delete(self, call: Call) -> Outcome:
        if not call.properties.get("delete"):
            return Done(None)
        ended = await self._run(call, "delete")
        return ended if isinstance(ended, Failed) else Done(None)

    def needs_replace(self, call: Call) -> bool:
        return not call.changed <= LATER and not call.properties.get("update")

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if not self._settings.enabled:
            findings.add(
                place,
                "Headgate::Command is off on this server",
                "The operator turns it on: [resource_types.command] enabled = true, and `allow`.",
            )
            return
        for name in COMMANDS:
            command = properties.get(name)
            if command is not None:
                wrong = self._wrong(command, bool(properties.get("shell")))
                if wrong:
                    findings.add(f"{place}.{name}", *wrong)

    def _wrong(self, command: Json, shell: bool) -> tuple[str, str] | None:
        """(reason, remedy) when a command may not be run as it is."""
        if isinstance(command, str):
            if not shell:
                return "is a text", "Write a list of texts, or say `shell: true`."
            program = SHELL
        elif not isinstance(command, list) or not command:
            return "is no command", "Write a list of texts, the program first."
        elif isinstance(command[0], str):
            program = command[0]
        else:
            return "has no program", "Write the program's absolute path first."
        if os.path.isabs(program) and os.path.realpath(program) in self._allowed:
            return None
        return (
            f'may not run "{program}"',
            "The operator allows programs by absolute path: [resource_types.command] allow.",
        )

    async def _make(self, call: Call, name: str) -> Outcome:
        """Run create or update, then try `check` until it succeeds, waiting between."""
        progress = call.progress
        if progress is None:
            ended = await self._run(call, name)
            if isinstance(ended, Failed):
                return ended
            progress = {"made": _made(call, ended), "tries": 0, "until": _until(call)}
        made = progress["made"]
        done = Done(made["id"], made["attributes"], made)
        if not call.properties.get("check"):
            return done
        checked = await self._run(call, "check", made["id"])
        if isinstance(checked, Ended):
            return done
        if call.now >= datetime.fromisoformat(progress["until"]):
            return Failed(f"check did not succeed in time: {checked.reason}", made["id"], made)
        tries = progress["tries"] + 1
        pause = min(LONGEST_CHECK, FIRST_CHECK * 1.5**tries)
        return Wait(call.now + timedelta(seconds=pause), progress | {"tries": tries})

    async def _run(self, call: Call, name: str, physical_id: str | None = None) -> Ended | Failed:
        command, shell = call.properties.get(name), bool(call.properties.get("shell"))
        wrong = self._wrong(command, shell) if self._settings.enabled else ("is off", "")
        if wrong:
            return Failed(f"{name} {wrong[0]}. {wrong[1]}".strip(), call.physical_id)
        argv = [SHELL, "-c", command] if isinstance(command, str) else _words(command)
        try:
            ended = await run(
                argv,
                cwd=call.properties.get("cwd"),
                environment=_environment(call, name, physical_id),
                seconds=self._seconds(call),
                max_output=self._settings.max_output,
            )
        except (OSError, ValueError) as error:
            return Failed(f"{name} could not be started: {error}", call.physical_id)
        if ended.code == 0:
            return ended
        how = "took too long and was ended" if ended.code is None else f"exited with {ended.code}"
        said = _text(ended.stderr)[-KEPT_ERROR:].strip()
        left = physical_id or call.physical_id or _id(call)
        return Failed(f"{name} {how}{f': {said}' if said else ''}", left, call.data)

    def _seconds(self, call: Call) -> float:
        asked = float(call.properties.get("timeout") or 300)
        return min(asked, self._settings.max_timeout.total_seconds())


def _environment(call: Call, name: str, physical_id: str | None) -> dict[str, str]:
    """What a command sees: its own variables and ours, nothing of the server's."""
    made = call.data.get("attributes") or {}
    known = {key: os.environ[key] for key in _INHERITED if key in os.environ}
    given = call.properties.get("environment") or {}
    return (
        known
        | {str(key): _said(value) for key, value in given.items()}
        | {
            "HEADGATE_STACK_NAME": call.stack_name,
            "HEADGATE_STACK_ID": str(call.stack_id),
            "HEADGATE_RESOURCE": call.resource_name,
            "HEADGATE_OPERATION": name,
            "HEADGATE_OPERATION_KEY": str(call.operation_key),
            "HEADGATE_PHYSICAL_ID": physical_id or call.physical_id or "",
            "HEADGATE_PREVIOUS": orjson.dumps(made.get("outputs") or {}).decode(),
        }
    )


def _words(command: Json) -> list[str]:
    return [str(word) for word in command]


def _said(value: Json) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _made(call: Call, ended: Ended) -> dict[str, Json]:
    stdout = _text(ended.stdout)
    try:
        printed = orjson.loads(stdout)
    except orjson.JSONDecodeError:
        printed = None
    outputs = printed if isinstance(printed, dict) else {}
    given = outputs.get("id")
    attributes = {
        "outputs": outputs,
        "stdout": stdout,
        "stderr": _text(ended.stderr),
        "exit_code": ended.code,
    }
    physical_id = given if isinstance(given, str) and given else call.physical_id or _id(call)
    return {"id": physical_id, "attributes": attributes}


def _id(call: Call) -> str:
    return f"{call.stack_name}-{call.resource_name}-{call.operation_key.hex[:12]}"


def _until(call: Call) -> str:
    return (call.now + timedelta(seconds=float(call.properties.get("timeout") or 300))).isoformat()


def _text(raw: bytes) -> str:
    """Text that can be stored: PostgreSQL takes no NUL."""
    return raw.decode(errors="replace").replace("\0", "\ufffd")


__all__ = ["Command", "CommandSettings"]
