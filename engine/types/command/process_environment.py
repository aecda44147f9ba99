"""What a command is given, and what is made of what it printed."""

import os
from collections.abc import Mapping

import orjson

from engine.types.command.allow_list import RunAs
from engine.types.contract import Call
from engine.types.text_cleaning import as_text, readable, storable, without
from engine.words import Json

#: What a command sees of the server's own environment.
INHERITED = ("PATH", "HOME", "LANG")
#: Variables by which the system's loader would run other code in an allowed program.
LOADER = ("LD_", "DYLD_")
#: Bytes of HEADGATE_PREVIOUS; a system takes no variable above 128 KiB.
MOST_PREVIOUS = 98_304
KEPT_ERROR = 500


def environment(
    call: Call, name: str, made: Mapping[str, Json], run_as: RunAs | None
) -> dict[str, str]:
    """Its own variables and ours, nothing else of the server's. made: see `made_of`; or empty."""
    known = {key: os.environ[key] for key in INHERITED if key in os.environ}
    if run_as is not None and run_as.uid is not None:
        known |= {"HOME": run_as.home, "USER": run_as.name, "LOGNAME": run_as.name}
    given = call.properties.get("environment") or {}
    outputs = (made.get("attributes") or {}).get("outputs") or {}
    previous = orjson.dumps(outputs)
    ours = {
        "HEADGATE_STACK_NAME": call.stack_name,
        "HEADGATE_STACK_ID": str(call.stack_id),
        "HEADGATE_RESOURCE": call.resource_name,
        "HEADGATE_OPERATION": name,
        "HEADGATE_OPERATION_KEY": str(call.operation_key),
        "HEADGATE_PHYSICAL_ID": made.get("id") or call.physical_id or "",
        "HEADGATE_PREVIOUS": _short_enough(previous),
        "HEADGATE_SNAPSHOT": _short_enough(orjson.dumps((call.kept or {}).get("outputs") or {})),
    }
    if call.credential:
        ours["HEADGATE_CREDENTIAL"] = call.credential
    return known | {key: as_text(value) for key, value in given.items() if value is not None} | ours


def _short_enough(raw: bytes) -> str:
    return raw.decode() if len(raw) <= MOST_PREVIOUS else "{}"


def made_of(call: Call, code: int | None, stdout: bytes, stderr: bytes) -> dict[str, Json]:
    """{"id": physical id, "attributes": {...}} of a create or update that went well.

    An update that printed no JSON object leaves the outputs and the id as they were.
    """
    text = readable(stdout)
    before = call.data.get("attributes") or {}
    printed = _object(text)
    outputs = (before.get("outputs") or {}) if printed is None else printed
    given = (printed or {}).get("id")
    return {
        "id": given if isinstance(given, str) and given else call.physical_id or call.own_name,
        "attributes": {
            "outputs": outputs,
            "stdout": text,
            "stderr": readable(stderr),
            "exit_code": code,
        },
    }


def complaint(call: Call, said: str) -> str:
    """The last lines of what a command said, for a message everybody may read."""
    given = call.properties.get("environment") or {}
    masked = without(said, [as_text(value) for value in given.values() if value is not None])
    return masked.strip()[-KEPT_ERROR:].strip()


def _object(text: str) -> dict[str, Json] | None:
    try:
        printed = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return storable(printed) if isinstance(printed, dict) else None
