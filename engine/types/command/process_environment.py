"""The environment of a command, and the result from its output."""

import os
from collections.abc import Mapping

import orjson

from engine.types.command.allow_list import RunAs
from engine.types.contract import Call
from engine.types.text_cleaning import as_text, decode_text, mask_secrets, replace_nul
from engine.words import Json

#: The variables that a command inherits from the server.
INHERITED = ("PATH", "HOME", "LANG")
#: Prefixes of variables with which the dynamic loader runs other code in an allowed program.
LOADER = ("LD_", "DYLD_")
#: The limit for HEADGATE_PREVIOUS in bytes; Linux accepts no variable above 128 KiB.
MAX_PREVIOUS = 98_304
MAX_ERROR = 500


def environment(
    call: Call, name: str, made: Mapping[str, Json], run_as: RunAs | None
) -> dict[str, str]:
    """The variables of a command: from the template and from Headgate. made: see `result_of`."""
    known = {key: os.environ[key] for key in INHERITED if key in os.environ}
    if run_as is not None and run_as.uid is not None:
        known |= {"HOME": run_as.home, "USER": run_as.name, "LOGNAME": run_as.name}
    given = call.properties.get("environment") or {}
    outputs = (made.get("attributes") or {}).get("outputs") or {}
    previous = orjson.dumps(outputs)
    headgate_variables = {
        "HEADGATE_STACK_NAME": call.stack_name,
        "HEADGATE_STACK_ID": str(call.stack_id),
        "HEADGATE_RESOURCE": call.resource_name,
        "HEADGATE_OPERATION": name,
        "HEADGATE_OPERATION_KEY": str(call.operation_key),
        "HEADGATE_PHYSICAL_ID": made.get("id") or call.physical_id or "",
        "HEADGATE_PREVIOUS": _limited(previous),
        "HEADGATE_SNAPSHOT": _limited(orjson.dumps((call.kept or {}).get("outputs") or {})),
    }
    if call.credential:
        headgate_variables["HEADGATE_CREDENTIAL"] = call.credential
    return (
        known
        | {key: as_text(value) for key, value in given.items() if value is not None}
        | headgate_variables
    )


def _limited(raw: bytes) -> str:
    return raw.decode() if len(raw) <= MAX_PREVIOUS else "{}"


def result_of(call: Call, code: int | None, stdout: bytes, stderr: bytes) -> dict[str, Json]:
    """{"id": physical ID, "attributes": {...}} of a successful create or update.

    An update without a JSON object as output does not change the outputs and the ID.
    """
    text = decode_text(stdout)
    before = call.data.get("attributes") or {}
    printed = _object(text)
    outputs = (before.get("outputs") or {}) if printed is None else printed
    given = (printed or {}).get("id")
    return {
        "id": given if isinstance(given, str) and given else call.physical_id or call.own_name,
        "attributes": {
            "outputs": outputs,
            "stdout": text,
            "stderr": decode_text(stderr),
            "exit_code": code,
        },
    }


def error_tail(call: Call, output: str) -> str:
    """The end of an error output, with secrets masked, for a message."""
    given = call.properties.get("environment") or {}
    masked = mask_secrets(output, [as_text(value) for value in given.values() if value is not None])
    return masked.strip()[-MAX_ERROR:].strip()


def _object(text: str) -> dict[str, Json] | None:
    try:
        printed = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return replace_nul(printed) if isinstance(printed, dict) else None
