"""The object that a service created: its data, its state in responses, and the progress. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Self

from engine.types.contract import Call, Done, Outcome, Wait
from engine.types.http.json_paths import first_value, is_path, limited_together, names_one_place
from engine.types.http.requests import fill_text
from engine.types.http.schema import DEFAULT_INTERVAL
from engine.types.http_client import BUSY, Response, ServiceError, throttling
from engine.types.operation_outcomes import next_poll
from engine.types.text_cleaning import as_text, decode_json, decode_text
from engine.words import Json

#: A UUID in small letters, with or without dashes.
_UUID = re.compile("[0-9a-f]{8}(-?)[0-9a-f]{4}(\\1[0-9a-f]{4}){2}\\1[0-9a-f]{12}")
#: A number such as 7.0.
_WHOLE_NUMBER = re.compile(r"^(-?[0-9]+)\.0+$")


@dataclass(frozen=True, slots=True)
class RemoteObject:
    """id: None while it is unknown. key: of the operation that created it. unfinished: the previous
    operation failed."""

    id: str | None
    key: str
    outputs: Mapping[str, Json] = field(default_factory=dict, repr=False)
    secrets: Mapping[str, Json] = field(default_factory=dict, repr=False)
    unfinished: bool = False

    @classmethod
    def start(cls, call: Call) -> Self:
        return cls(None, str(call.operation_key))

    @classmethod
    def read(cls, kept: Mapping[str, Json], physical_id: str | None, key: str) -> Self:
        """Read the object from a resource's data. key: for an adopted object."""
        return cls(
            physical_id,
            kept.get("key") or key,
            kept.get("outputs") or {},
            kept.get("secrets") or {},
            bool(kept.get("unfinished")),
        )

    def data(self, *, unfinished: bool = False) -> dict[str, Json]:
        return {
            "key": self.key,
            "outputs": self.outputs,
            "secrets": self.secrets,
            "unfinished": unfinished,
        }

    def values(self) -> dict[str, Json]:
        """The values of the placeholders."""
        return {
            "id": self.id,
            "key": self.key,
            **{f"outputs.{name}": value for name, value in self.outputs.items()},
            **{f"secrets.{name}": value for name, value in self.secrets.items()},
        }

    def done(self, reason: str = "") -> Done:
        attributes = {"outputs": self.outputs, "secrets": self.secrets}
        return Done(self.id, attributes, self.data(), reason)


def object_of(call: Call) -> RemoteObject:
    if call.progress is not None:
        return object_in_progress(call)
    return RemoteObject.read(call.data, call.physical_id, str(call.operation_key))


def object_in_progress(call: Call) -> RemoteObject:
    remote = (call.progress or {})["made"]
    return RemoteObject.read(remote, remote["id"], remote["key"])


def since_of(call: Call) -> datetime:
    since = (call.progress or {}).get("since")
    return datetime.fromisoformat(since) if since else call.now


def completes_by_list(properties: Mapping[str, Json]) -> bool:
    """Whether the observer completes operations, by the list."""
    return (properties.get("ready") or {}).get("source") == "list"


def then_read(call: Call, remote: RemoteObject) -> Outcome:
    """Save the object before the next request."""
    return Wait(call.now, progress_of(remote)) if call.properties.get("read") else remote.done()


def poll_again(
    call: Call, remote: RemoteObject, since: datetime, reason: str, *, public: str
) -> Wait:
    tries = (call.progress or {}).get("tries", 0)
    interval = float(call.properties.get("interval") or DEFAULT_INTERVAL)
    progress = {**progress_of(remote), "since": since.isoformat(), "tries": tries + 1}
    return Wait(next_poll(call.now, tries, interval), progress, reason, public_reason=public)


def progress_of(remote: RemoteObject) -> dict[str, Json]:
    return {"made": {"id": remote.id, **remote.data()}}


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
            public=f"{name}: the service redirects; redirects are not followed",
        )
    text = decode_text(answer.body).strip()[:KEPT].strip()
    public = f"{name}: the service answered {status}"
    reason = f"{public}: {text}" if text else public
    raise ServiceError(
        reason, retry=status in BUSY, status=status, public=public, throttled=throttling(answer)
    )


def parse_json(name: str, answer: Response) -> Json:
    """The JSON of a response; None if it is empty. Raises ServiceError."""
    if not answer.body.strip():
        return None
    try:
        return decode_json(answer.body)
    except ValueError as error:
        raise ServiceError(
            f"{name}: the response is not valid JSON: {error}",
            status=answer.status,
            public=f"{name}: the response is not valid JSON",
        ) from None


def id_in(source: str | None, key: str, content: Json) -> str | None:
    """The ID from the property `id`: a JSON path into the response, or a text with placeholders.
    The operation key without that property. None if the response has no ID."""
    if not source:
        return key
    if not is_path(source):
        return fill_text(source, {"key": key})
    found = first_value(fill_text(source, {"key": key}), content)
    return None if found is None or found[0] in (None, "") else as_text(found[0])


def with_response(
    remote: RemoteObject, properties: Mapping[str, Json], content: Json
) -> RemoteObject:
    """The object with the attributes in a response; others keep their values. Raises
    InvalidPath."""
    hidden = properties.get("hidden") or []
    with limited_together():
        values = {
            name: found[0]
            for name, path in (properties.get("attributes") or {}).items()
            if (found := first_value(path, content)) is not None
        }
    before = {**remote.outputs, **remote.secrets}
    known = {
        name: values.get(name, before.get(name)) for name in properties.get("attributes") or {}
    }
    return replace(
        remote,
        outputs={name: value for name, value in known.items() if name not in hidden},
        secrets={name: value for name, value in known.items() if name in hidden},
    )


def readiness(ready: Mapping[str, Json] | None, content: Json) -> tuple[Readiness, str]:
    """Whether the object is ready, and its state as text."""
    if not ready:
        return Readiness.READY, ""
    found = first_value(ready["path"], content)
    if found is None:
        return Readiness.NOT_YET, "unknown"
    state = as_text(found[0])[:KEPT]
    if _among(found[0], ready.get("failed") or []):
        return Readiness.FAILED, state
    return (Readiness.READY if _among(found[0], ready["values"]) else Readiness.NOT_YET), state


def _among(value: Json, known: list[Json]) -> bool:
    """Compare the value, or its text: a template may use another type than the service."""
    return value in known or as_text(value) in [as_text(one) for one in known]


def differing_paths(compare: Mapping[str, Json] | None, content: Json) -> list[str]:
    """The paths at which the response differs from `compare`. Null is the same as no value. Raises
    InvalidPath."""
    with limited_together():
        return [
            path
            for path, wanted in (compare or {}).items()
            if (first_value(path, content) or (None,))[0] != wanted
        ]


def absent_paths(
    compare: Mapping[str, Json] | None, content: Json, *, null: bool = False
) -> list[str]:
    """The paths of `compare` with a value, at which the response has none. null: or null."""
    return [
        path
        for path, wanted in (compare or {}).items()
        if wanted is not None
        and ((found := first_value(path, content)) is None or (null and found[0] is None))
    ]


def stated_id(remote: RemoteObject, properties: Mapping[str, Json], content: Json) -> str | None:
    """The ID that a response has where `id` says that responses have it; None if it has none there,
    or if `id` is a text, or a path that searches. Raises InvalidPath."""
    source = str(properties.get("id") or "")
    if not is_path(source) or not names_one_place(fill_text(source, {"key": remote.key})):
        return None
    return id_in(source, remote.key, content)


def is_own(remote: RemoteObject, found: str | None) -> bool:
    """Whether an ID of a response to a request about the object is that of the object. Some
    services write an ID differently in two responses: in capitals or small letters, a UUID with or
    without dashes, a whole number with a fraction of 0, a URL with or without a closing slash."""
    if found is None or remote.id is None:
        return False
    return comparable_id(found) == comparable_id(remote.id)


def comparable_id(object_id: str) -> str:
    """The same text for different spellings of an ID; see `is_own`."""
    text = object_id.lower().rstrip("/")
    if _UUID.fullmatch(text):
        return text.replace("-", "")
    return _WHOLE_NUMBER.sub(r"\1", text)


@dataclass(frozen=True, slots=True)
class OtherObject:
    """The response to a request about an object has the ID of another one. path: where. id: the one
    in the response. own_id: of the object."""

    path: str
    id: str
    own_id: str

    @property
    def reason(self) -> str:
        found, own = self.id[:KEPT], self.own_id[:KEPT]
        return (
            f'the response is about another object: it has the ID "{found}" at {self.path}, and'
            f' this object has "{own}". {OTHER_OBJECT_REMEDY}'
        )

    @property
    def public(self) -> str:
        return f"the response is about another object. {OTHER_OBJECT_REMEDY}"


OTHER_OBJECT_REMEDY = "Check the URL of the request, and the path in `id`."


def other_object(
    remote: RemoteObject, properties: Mapping[str, Json], content: Json
) -> OtherObject | None:
    """What shows that the response to a request about the object is about another one; None:
    nothing does. Raises InvalidPath."""
    found = stated_id(remote, properties, content)
    if found is None or remote.id is None or is_own(remote, found):
        return None
    return OtherObject(fill_text(str(properties["id"]), {"key": remote.key}), found, remote.id)


def describes(remote: RemoteObject, properties: Mapping[str, Json], content: Json) -> bool:
    """Whether the response to a request about the object shows that it describes the object: it has
    the ID where `id` says that responses have it. Where `id` names no such place, it has one of the
    compared values; a status or a message alone may be those of an error."""
    source = str(properties.get("id") or "")
    if is_path(source) and names_one_place(fill_text(source, {"key": remote.key})):
        return is_own(remote, stated_id(remote, properties, content))
    return has_compared_value(properties, content)


def has_compared_value(properties: Mapping[str, Json], content: Json) -> bool:
    return any(_value_at(path, content) is not None for path in properties.get("compare") or {})


def may_describe(remote: RemoteObject, properties: Mapping[str, Json], content: Json) -> bool:
    """Whether the response to a request about the object is probably no error with a status of
    success: it has the ID of the object, or a value that is compared. If `compare` expects no
    value, it has a state that `ready` names. Services may leave out the ID in such responses."""
    if is_own(remote, stated_id(remote, properties, content)):
        return True
    if has_compared_value(properties, content):
        return True
    expected = (properties.get("compare") or {}).values()
    if any(value is not None for value in expected):
        return False
    return readiness(properties.get("ready"), content)[0] is not Readiness.NOT_YET


def _value_at(path: str, content: Json) -> Json:
    return (first_value(path, content) or (None,))[0]
