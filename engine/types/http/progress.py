"""How far an operation has come: what it made, since when it waits, and how often it has looked."""

from datetime import datetime

from engine.types.contract import Call, Outcome, Wait
from engine.types.http.made import Made
from engine.types.http.schema import DEFAULT_INTERVAL
from engine.types.pausing import next_look
from engine.words import Json


def made_of(call: Call) -> Made:
    if call.progress is not None:
        return saved(call)
    return Made.read(call.data, call.physical_id, str(call.operation_key))


def saved(call: Call) -> Made:
    made = (call.progress or {})["made"]
    return Made.read(made, made["id"], made["key"])


def since_of(call: Call) -> datetime:
    said = (call.progress or {}).get("since")
    return datetime.fromisoformat(said) if said else call.now


def then_read(call: Call, made: Made) -> Outcome:
    """What was made is saved before anything else is asked."""
    return Wait(call.now, progress_of(made)) if call.properties.get("read") else made.done()


def look_again(call: Call, made: Made, since: datetime, reason: str) -> Wait:
    tries = (call.progress or {}).get("tries", 0)
    longest = float(call.properties.get("interval") or DEFAULT_INTERVAL)
    progress = {**progress_of(made), "since": since.isoformat(), "tries": tries + 1}
    return Wait(next_look(call.now, tries, longest), progress, reason)


def progress_of(made: Made) -> dict[str, Json]:
    return {"made": {"id": made.id, **made.data()}}
