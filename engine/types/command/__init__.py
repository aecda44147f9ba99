"""Headgate::Command: a resource that commands on the engine's machine create, update and delete.

After a crash, an operation runs its command again with the same HEADGATE_OPERATION_KEY, so commands
must be idempotent. The result of create or update is saved before `check` runs, so a crash during
the check repeats neither of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from subprocess import SubprocessError

from engine.errors import Findings
from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.command.allow_list import AllowedProgram, CommandSettings, RunAs
from engine.types.command.process import (
    CREDENTIAL,
    LOADER,
    CommandResult,
    environment,
    error_tail,
    result_of,
    run,
)
from engine.types.contract import Call, Done, Failed, Outcome, Replace, ResourceType, Wait
from engine.types.observation import PRESENT, Observation
from engine.types.operation_outcomes import CANCELLED, next_poll
from engine.types.text_cleaning import as_text, decode_text
from engine.words import Json, ObservedState, ResourceId

COMMANDS = ("create", "update", "delete", "check", "suspend", "resume", "snapshot")
DEFAULT_TIMEOUT = 300


def _command(description: str, *, required: bool = False) -> Property:
    return updatable(Kind.ANY, description, required=required)


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
        "shell": updatable(
            Kind.BOOLEAN, "Whether commands may be strings, run by /bin/sh.", default=False
        ),
        "cwd": updatable(Kind.STRING, "Working folder, as an absolute path."),
        "environment": updatable(Kind.MAP, "Environment variables of the commands."),
        "timeout": updatable(
            Kind.NUMBER,
            "Timeout of a command in seconds; also the time in which check must succeed.",
            default=DEFAULT_TIMEOUT,
            constraints=(Constraint("range", min=0.1, max=86_400),),
        ),
        "triggers": updatable(Kind.MAP, "Any values; a change updates the resource."),
    },
    attributes={
        "outputs": Attribute(Kind.MAP, "The JSON object that create or update printed."),
        "stdout": Attribute(Kind.STRING, "Standard output."),
        "stderr": Attribute(Kind.STRING, "Standard error."),
        "exit_code": Attribute(Kind.INTEGER, "Exit code: 0.", public=True),
    },
    snapshots=True,
)


__all__ = ["AllowedProgram", "Command", "CommandSettings", "RunAs"]

SHELL = "/bin/sh"
#: A change of only these properties runs no command: they matter to later operations.
LATER_PROPERTIES = frozenset(
    {"update", "delete", "check", "suspend", "resume", "snapshot", "timeout"}
)
#: EX_TEMPFAIL of sysexits.h: a temporary failure.
TEMPORARY = 75
#: The longest interval between two runs of `check`, in seconds.
MAX_CHECK_PAUSE = 2.0
_ALLOW = "The operator allows programs by path: [[resource_types.command.programs]]."
_VARIABLES = "The operator lists the allowed variables: [resource_types.command] variables."
_OFF = (
    "Headgate::Command is off on this server",
    "The operator turns it on: [resource_types.command] enabled = true, and `programs`.",
)
_NO_ACCOUNT = (
    "no account is configured to run commands. The operator sets [resource_types.command] run_as."
)


class Command(ResourceType):
    replaces_tainted = False
    cancellable = True
    interruptible = True
    schema = SCHEMA

    def __init__(self, settings: CommandSettings) -> None:
        self._settings = settings

    async def create(self, call: Call) -> Outcome:
        return await self._create_or_update(call, "create")

    async def update(self, call: Call) -> Outcome:
        if _runs_nothing(call):
            return Done(call.physical_id, dict(call.data.get("attributes") or {}), call.data)
        if call.properties.get("update"):
            return await self._create_or_update(call, "update")
        return await self._check_unchanged(call) if _only_checks(call) else Replace()

    async def _check_unchanged(self, call: Call) -> Outcome:
        """A check that fails again leaves nothing unfinished: the next update repeats it, too."""
        checked = await self.check(call)
        return replace(checked, data=call.data) if isinstance(checked, Failed) else checked

    async def delete(self, call: Call) -> Outcome:
        if not call.properties.get("delete"):
            return Done(None)
        if await self._is_replacement(call):
            reason = "the resource that has replaced it is the same object"
            return Done(None, reason=reason, public_reason=reason)
        ended = await self._run(call, "delete", call.data)
        return ended if isinstance(ended, Failed) else Done(None)

    async def _is_replacement(self, call: Call) -> bool:
        """Whether the delete command would delete the object of the resource that has replaced this
        one, because the template chooses its ID: it is the same command, with the same input.
        Raises Unavailable."""
        found = (
            await self.successors.read(call.stack_id, call.resource_id) if self.successors else None
        )
        return found is not None and (
            _delete_input(found.properties, found.data) == _delete_input(call.properties, call.data)
        )

    async def check(self, call: Call) -> Outcome:
        return await self._run_in_place(call, "check") or _unchanged_result(
            call, "CHECK not supported: no command"
        )

    async def adopt(self, call: Call) -> Outcome:
        failed = await self._run_in_place(call, "check")
        if isinstance(failed, Failed):
            return failed
        attributes: Json = {"outputs": {}, "stdout": "", "stderr": "", "exit_code": None}
        known = call.data.get("attributes") or attributes
        return Done(call.physical_id, known, {"id": call.physical_id, "attributes": known})

    async def suspend(self, call: Call) -> Outcome:
        return await self._run_in_place(call, "suspend") or _unchanged_result(call)

    async def resume(self, call: Call) -> Outcome:
        return await self._run_in_place(call, "resume") or _unchanged_result(call)

    async def snapshot(self, call: Call) -> Outcome:
        if not call.properties.get("snapshot"):
            return Done(call.physical_id, call.attributes)
        if call.cancelled:
            return Failed(CANCELLED, call.physical_id, call.data, public_reason=CANCELLED)
        ended = await self._run(call, "snapshot", call.data)
        if isinstance(ended, Failed):
            return ended
        result = result_of(call, ended.code, ended.stdout, ended.stderr)
        return Done(call.physical_id, call.attributes, {"outputs": result["attributes"]["outputs"]})

    async def _run_in_place(self, call: Call, name: str) -> Outcome | None:
        """Run a command that does not change the recorded state; None if it is not defined."""
        if not call.properties.get(name):
            return None
        if call.cancelled:
            return Failed(CANCELLED, call.physical_id, call.data, public_reason=CANCELLED)
        ended = await self._run(call, name, call.data)
        if isinstance(ended, Failed):
            return ended
        return Done(call.physical_id, call.attributes, call.data)

    def observation_key(self, call: Call) -> str | None:
        """An observation has no credential: a check that reads it would always fail."""
        check = call.properties.get("check") if self._settings.enabled else None
        return str(call.resource_id) if check and CREDENTIAL not in str(check) else None

    def observation_endpoint(self, call: Call) -> str:
        return _program(call.properties["check"])

    def observed_paths(self, properties: Mapping[str, Json]) -> Sequence[str]:
        """None: `check` does not say what differs."""
        return ()

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        return {call.resource_id: await self._observe(call) for call in calls}

    async def _observe(self, call: Call) -> Observation:
        """`check` says whether the resource works, but not what differs. A command that could not
        find out is no answer."""
        ended = await self._execute(call, "check", call.data)
        if isinstance(ended, Failed):
            return Observation.unknown(ended.reason, ended.public_reason)
        if ended.code == 0:
            return PRESENT
        reason, public = self._failure_reason(call, "check", ended)
        if ended.code is None or ended.code < 0 or ended.code == TEMPORARY:
            return Observation.unknown(reason, public)
        return Observation(ObservedState.DEGRADED, (), reason, public)

    def needs_replace(self, call: Call) -> bool:
        runs_nothing = _runs_nothing(call) or _only_checks(call)
        return not runs_nothing and not call.properties.get("update")

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if not self._settings.enabled:
            findings.add(place, *_OFF)
            return
        for name in COMMANDS:
            command = properties.get(name)
            wrong = self._command_error(command, bool(properties.get("shell")))
            if wrong and command is not None:
                findings.add(f"{place}.{name}", *wrong)
        for name, (reason, remedy) in self._environment_errors(properties).items():
            findings.add(f"{place}.{name}", reason, remedy)
        max_timeout = self._settings.max_timeout.total_seconds()
        if (properties.get("timeout") or 0) > max_timeout:
            findings.add(
                f"{place}.timeout",
                f"is longer than the {max_timeout:g} seconds allowed here",
                "The operator sets the longest: [resource_types.command] max_timeout.",
            )

    def _command_error(self, command: Json, shell: bool) -> tuple[str, str] | None:
        """(reason, remedy) if a command is invalid or not allowed; else None."""
        if isinstance(command, str):
            if not shell:
                return "is a string", "Write a list of strings, or set `shell: true`."
        elif not isinstance(command, list) or not command:
            return "is not a command", "Write a list of strings that starts with the program."
        elif not isinstance(command[0], str):
            return "has no program", "Start the list with the absolute path of the program."
        program = _program(command)
        if self._settings.file_of(program) is None:
            return f'may not run "{program}"', _ALLOW
        return None

    async def _create_or_update(self, call: Call, name: str) -> Outcome:
        """Run create or update, save the result, then run `check` until it succeeds."""
        if call.cancelled:
            return _cancellation(call)
        if call.progress is not None:
            return await self._check(call, call.progress)
        ended = await self._run(call, name, call.data)
        if isinstance(ended, Failed):
            return ended
        result = result_of(call, ended.code, ended.stdout, ended.stderr)
        if call.properties.get("check"):
            return Wait(call.now, {"made": result})
        return Done(result["id"], result["attributes"], result)

    async def _check(self, call: Call, progress: Json) -> Outcome:
        result, tries = progress["made"], progress.get("tries", 0)
        since = progress.get("until")
        until = (
            datetime.fromisoformat(since)
            if since
            else call.now + timedelta(seconds=self._seconds(call))
        )
        left = max(1.0, (until - call.now).total_seconds())
        checked = await self._run(call, "check", result, max_seconds=left)
        if isinstance(checked, CommandResult):
            return Done(result["id"], result["attributes"], result)
        if call.now >= until:
            late = f"check did not succeed in {self._seconds(call):g} s"
            return Failed(
                f"{late}: {checked.reason}",
                result["id"],
                result | {"unfinished": True},
                public_reason=late,
            )
        wake = min(until, next_poll(call.now, tries, MAX_CHECK_PAUSE))
        return Wait(wake, {"made": result, "tries": tries + 1, "until": until.isoformat()})

    async def _run(
        self, call: Call, name: str, result: Mapping[str, Json], max_seconds: float = float("inf")
    ) -> CommandResult | Failed:
        """Run one command; Failed unless it exits with 0."""
        ended = await self._execute(call, name, result, max_seconds)
        if isinstance(ended, Failed) or ended.code == 0:
            return ended
        reason, public = self._failure_reason(call, name, ended, max_seconds)
        left = result.get("id") or call.physical_id or call.own_name
        kept = {**call.data, "unfinished": True}
        retry = ended.code == TEMPORARY
        return Failed(reason, left, kept, retry=retry, public_reason=public)

    def _failure_reason(
        self, call: Call, name: str, ended: CommandResult, max_seconds: float = float("inf")
    ) -> tuple[str, str]:
        """The reason, and its public part."""
        output = error_tail(call, decode_text(ended.stderr))
        public = f"{name} {_exit_text(ended.code, min(self._seconds(call), max_seconds))}"
        return (f"{public}: {output}" if output else public), public

    async def _execute(
        self, call: Call, name: str, result: Mapping[str, Json], max_seconds: float = float("inf")
    ) -> CommandResult | Failed:
        """Run one command; Failed if it cannot be started."""
        command: Json = call.properties.get(name)
        wrong = self._refusal(call, name)
        if wrong:
            public = f"{name} may not be run"
            return Failed(wrong, call.physical_id, call.data, public_reason=public)
        file = self._settings.file_of(_program(command))
        if file is None:
            reason = f"{name} may not be run. {_ALLOW}"
            return Failed(reason, call.physical_id, call.data, public_reason=reason)
        argv = _argv(command)
        seconds = min(self._seconds(call), max_seconds)
        try:
            return await run(
                argv,
                program=file,
                cwd=call.properties.get("cwd") or "/",
                environment=environment(call, name, result, self._settings.run_as),
                run_as=self._settings.run_as,
                seconds=seconds,
                max_output=self._settings.max_output,
            )
        except (OSError, ValueError, SubprocessError) as error:
            output = error_tail(call, str(error))
            public = f"{name} could not be started"
            reason = f"{public}: {output}"
            return Failed(reason, call.physical_id, call.data, public_reason=public)

    def _refusal(self, call: Call, name: str) -> str:
        """The reason why a command may not run now, as a sentence; empty if it may."""
        if not self._settings.enabled:
            return f"{_OFF[0]}. {_OFF[1]}"
        wrong = self._command_error(call.properties.get(name), bool(call.properties.get("shell")))
        if wrong:
            return f"{name} {wrong[0]}. {wrong[1]}"
        for place, (reason, remedy) in self._environment_errors(call.properties).items():
            return f"{place} {reason}. {remedy}"
        if self._settings.run_as is None:
            return f"{name} may not be run: {_NO_ACCOUNT}"
        argv = _argv(call.properties.get(name))
        refusal = self._settings.refusal(call.project, argv, call.properties.get("cwd"))
        return f"{name}: {refusal}" if refusal else ""

    def _environment_errors(self, properties: Mapping[str, Json]) -> dict[str, tuple[str, str]]:
        """(reason, remedy) for invalid `cwd` and `environment`, by property."""
        wrong: dict[str, tuple[str, str]] = {}
        folder = properties.get("cwd")
        if folder and not str(folder).startswith("/"):
            wrong["cwd"] = "is not an absolute path", "Write a path that starts with /."
        for name in properties.get("environment") or {}:
            if not name or "=" in name or "\0" in name:
                wrong["environment"] = "has an invalid variable name", "Correct the name."
            elif name.startswith(LOADER):
                wrong[f"environment.{name}"] = (
                    "may not be set: it changes which code a program loads",
                    "Remove it.",
                )
            elif not self._settings.sets(name):
                wrong[f"environment.{name}"] = "may not be set on this server", _VARIABLES
        return wrong

    def _seconds(self, call: Call) -> float:
        timeout = float(call.properties.get("timeout") or DEFAULT_TIMEOUT)
        return min(timeout, self._settings.max_timeout.total_seconds())


def _cancellation(call: Call) -> Failed:
    """The failure of a cancelled create or update. Its command may have run."""
    result = (call.progress or {}).get("made") or {"id": call.physical_id or call.own_name}
    data = {**call.data, **result, "unfinished": True}
    return Failed(CANCELLED, result["id"], data, public_reason=CANCELLED)


def _delete_input(properties: Mapping[str, Json], data: Mapping[str, Json]) -> Sequence[Json]:
    outputs = (data.get("attributes") or {}).get("outputs") or {}
    return [*map(properties.get, ("delete", "shell", "cwd", "environment")), outputs]


def _unchanged_result(call: Call, reason: str = "") -> Done:
    return Done(call.physical_id, call.attributes, call.data, reason, public_reason=reason)


def _runs_nothing(call: Call) -> bool:
    """Whether only properties in LATER_PROPERTIES changed, and the last operation did not fail."""
    return (
        bool(call.changed) and call.changed <= LATER_PROPERTIES and not call.data.get("unfinished")
    )


def _only_checks(call: Call) -> bool:
    """Whether an update without the command `update` only runs `check`: no change, failed command
    or snapshot requires another resource, for example after an observation has found it
    degraded."""
    unchanged = not (call.changed or call.kept or call.data.get("unfinished"))
    return bool(unchanged and call.properties.get("check"))


def _argv(command: Json) -> list[str]:
    return [SHELL, "-c", command] if isinstance(command, str) else [*map(as_text, command)]


def _program(command: Json) -> str:
    return SHELL if isinstance(command, str) else str(command[0])


def _exit_text(code: int | None, seconds: float) -> str:
    if code is None:
        return f"did not end within {seconds:g} s and was terminated"
    return f"exited with {code}" if code > 0 else f"was terminated by signal {-code}"
