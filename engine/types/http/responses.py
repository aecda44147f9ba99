"""Evaluation of responses: success, attributes, readiness. Pure."""

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

#: The status of a request that is accepted but not complete.
ACCEPTED = 202
#: Characters of a response that messages contain.
KEPT = 500


class Readiness(StrEnum):
    READY = "ready"
    NOT_YET = "not yet"
    FAILED = "failed"


def check_status(name: str, answer: Response, expect: list[int]) -> None:
    """Raises ServiceError unless the response has a success status."""
    status = answer.status
    if status in expect or (not expect and 200 <= status < 300):
        return
    if 300 <= status < 400:
        where = answer.headers.get("location", "")
        target = f" to {where.partition('?')[0][:KEPT]}" if where else ""
        raise ServiceError(
            f"{name}: the service redirects{target}; redirects are not followed",
            status=status,
            public=f"{name}: the service redirects, which is not followed",
        )
    text = decode_text(answer.body).strip()[:KEPT].strip()
    public = f"{name}: the service answered {status}"
    reason = f"{public}: {text}" if text else public
    raise ServiceError(reason, retry=status in BUSY, status=status, public=public)


def document(name: str, answer: Response) -> Json:
    """The JSON of a response; None if it is empty. Raises ServiceError."""
    if not answer.body.strip():
        return None
    try:
        return replace_nul(orjson.loads(answer.body))
    except orjson.JSONDecodeError as error:
        raise ServiceError(
            f"{name}: the response is not valid JSON: {error}",
            status=answer.status,
            public=f"{name}: the response is not valid JSON",
        ) from None


def id_in(source: str | None, key: str, answered: Json) -> str | None:
    """The ID from the property `id`: a JSON path into the response, or a text with placeholders.
    The operation key without that property. None if the response has no ID."""
    if not source:
        return key
    if not is_path(source):
        return filled_text(source, {"key": key})
    found = first(filled_text(source, {"key": key}), answered)
    return None if found is None or found[0] in (None, "") else as_text(found[0])


def with_response(
    made: RemoteObject, properties: Mapping[str, Json], answered: Json
) -> RemoteObject:
    """The object with the attributes in a response; others keep their values."""
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
    """Whether the object is ready, and its state as text."""
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
    """Compare the value, or its text: a template may use another type than the service."""
    return value in known or as_text(value) in [as_text(one) for one in known]


def drifted(compare: Mapping[str, Json] | None, answered: Json) -> list[str]:
    """The paths at which the response differs from `compare`."""
    return [
        path
        for path, wanted in (compare or {}).items()
        if (found := first(path, answered)) is None or found[0] != wanted
    ]
