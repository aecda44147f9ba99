"""What an answer says: whether it went well, what to keep of it, whether it is ready. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

import orjson

from engine.types.http.json_paths import first, is_path
from engine.types.http.placeholders import filled_text
from engine.types.http.remote_object import RemoteObject
from engine.types.http_client import BUSY, Response, ServiceError
from engine.types.text_cleaning import as_text, decode_text, replace_nul
from engine.words import Json

#: It was taken, and is still to be done.
ACCEPTED = 202
#: Letters of an answer that are told.
KEPT = 500


class Readiness(StrEnum):
    READY = "ready"
    NOT_YET = "not yet"
    FAILED = "failed"


def judge(name: str, answer: Response, expect: list[int]) -> None:
    """Raises ServiceError unless the answer has a status of success."""
    status = answer.status
    if status in expect or (not expect and 200 <= status < 300):
        return
    if 300 <= status < 400:
        where = answer.headers.get("location", "")
        said = f" to {where.partition('?')[0][:KEPT]}" if where else ""
        raise ServiceError(
            f"{name}: the service redirects{said}, which is not followed; name where it leads",
            status=status,
        )
    said = decode_text(answer.body).strip()[:KEPT].strip()
    reason = f"{name}: the service answered {status}{f': {said}' if said else ''}"
    raise ServiceError(reason, retry=status in BUSY, status=status)


def document(name: str, answer: Response) -> Json:
    """The JSON of an answer; None for an empty one. Raises ServiceError."""
    if not answer.body.strip():
        return None
    try:
        return replace_nul(orjson.loads(answer.body))
    except orjson.JSONDecodeError as error:
        raise ServiceError(
            f"{name}: the response is not valid JSON: {error}", status=answer.status
        ) from None


def id_in(said: str | None, key: str, answered: Json) -> str | None:
    """The id, where a resource says how to find it; its key, where it does not. None: it is not
    in the answer."""
    if not said:
        return key
    if not is_path(said):
        return filled_text(said, {"key": key})
    found = first(filled_text(said, {"key": key}), answered)
    return None if found is None or found[0] in (None, "") else as_text(found[0])


def with_response(
    made: RemoteObject, properties: Mapping[str, Json], answered: Json
) -> RemoteObject:
    """What is made, with the attributes that an answer gives; those it does not give stay."""
    hidden = properties.get("hidden") or []
    given = {
        name: found[0]
        for name, path in (properties.get("attributes") or {}).items()
        if (found := first(path, answered)) is not None
    }
    before = {**made.outputs, **made.secrets}
    known = {name: given.get(name, before.get(name)) for name in properties.get("attributes") or {}}
    return replace(
        made,
        outputs={name: value for name, value in known.items() if name not in hidden},
        secrets={name: value for name, value in known.items() if name in hidden},
    )


def readiness(ready: Mapping[str, Json] | None, answered: Json) -> tuple[Readiness, str]:
    """Whether what read gave is ready, and its state as a text."""
    if not ready:
        return Readiness.READY, ""
    found = first(ready["path"], answered)
    if found is None:
        return Readiness.NOT_YET, "unknown"
    state = as_text(found[0])[:KEPT]
    if _among(found[0], ready.get("failed") or []):
        return Readiness.FAILED, state
    return (Readiness.READY if _among(found[0], ready["values"]) else Readiness.NOT_YET), state


def _among(value: Json, known: list[Json]) -> bool:
    """As it is, or as its text: templates and services do not always agree on kinds."""
    return value in known or as_text(value) in [as_text(one) for one in known]


def drifted(compare: Mapping[str, Json] | None, answered: Json) -> list[str]:
    """The paths where what is there is not what is wanted."""
    return [
        path
        for path, wanted in (compare or {}).items()
        if (found := first(path, answered)) is None or found[0] != wanted
    ]
