"""Handles: resources that only receive signals. The formats of the signals, and their tally."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from engine.errors import Findings, nearest
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, InternalType, Outcome
from engine.types.signal_urls import SignalUrl
from engine.words import Json

SUCCESS, FAILURE = "SUCCESS", "FAILURE"
STATUSES = (SUCCESS, FAILURE)


@dataclass(frozen=True, slots=True)
class SignalFormat:
    """The field names of a signal. requires_all: all fields are required. ignores_unknown: other
    fields are ignored."""

    id: str
    status: str
    reason: str
    data: str
    requires_all: bool = False
    ignores_unknown: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.status, self.reason, self.id, self.data)


HEAT = SignalFormat("id", "status", "reason", "data")
CFN = SignalFormat("UniqueId", "Status", "Reason", "Data", requires_all=True)
SWIFT = SignalFormat("id", "status", "reason", "data", ignores_unknown=True)


def read_signal(sent: Mapping[str, Json], form: SignalFormat, number: int) -> dict[str, Json]:
    """Validate a signal. number: the default of the ID. Raises Invalid."""
    findings = Findings()
    known = f"Known: {', '.join(form.parts)}."
    if not form.ignores_unknown:
        for name in sorted(sent.keys() - set(form.parts)):
            remedy = nearest(name, form.parts) or known
            findings.add(name, "is not a field of a signal", remedy, "Invalid")
    if form.requires_all:
        for name in (name for name in form.parts if name not in sent):
            findings.add(
                name, "is missing", f"Required fields: {', '.join(form.parts)}.", "Invalid"
            )
    status = _value_or_default(sent.get(form.status), SUCCESS)
    if status not in STATUSES:
        findings.add(form.status, "is not known", "Send SUCCESS or FAILURE.", "Invalid")
    key = _value_or_default(sent.get(form.id), number)
    if isinstance(key, dict | list):
        findings.add(form.id, "must be a string or a number", "Correct its type.", "Invalid")
    reason = _value_or_default(sent.get(form.reason), f"Signal {number} received")
    if not isinstance(reason, str):
        findings.add(form.reason, "must be a string", "Correct its type.", "Invalid")
    findings.raise_if_any()
    return {"id": str(key), "status": status, "reason": reason, "data": sent.get(form.data)}


def _value_or_default(value: Json, default: Json) -> Json:
    """The value; the default for null."""
    return default if value is None else value


class LatestSignals:
    """The stored signals by ID: the last one of each ID counts."""

    def __init__(self, kept: Iterable[Mapping[str, Json]]) -> None:
        self._by_id = {one["id"]: one for one in kept}

    def __len__(self) -> int:
        return len(self._by_id)

    def reasons(self, status: str) -> Sequence[str]:
        return [one["reason"] for one in self._by_id.values() if one["status"] == status]

    def data(self) -> dict[str, Json]:
        """The data by ID."""
        return {key: one["data"] for key, one in self._by_id.items()}


#: Also the value of get_resource of such a handle: conditions do not wait for it.
NO_SIGNAL = "NO_SIGNAL"
#: The attributes for each transport; the others are null.
_ATTRIBUTES: Mapping[str, Callable[[SignalUrl], Mapping[str, Json]]] = {
    "TOKEN_SIGNAL": lambda signal_url: {
        "token": signal_url.token,
        "endpoint": signal_url.url,
        "curl_cli": f"curl -i -X POST -H 'X-Auth-Token: {signal_url.token}'"
        " -H 'Content-Type: application/json' -H 'Accept: application/json'"
        f" {signal_url.url}",
    },
    "CFN_SIGNAL": lambda signal_url: {"signal": _text({"alarm_url": signal_url.signed_url})},
    "HEAT_SIGNAL": lambda signal_url: {
        "signal": _text({"alarm_url": signal_url.url, "token": signal_url.token})
    },
    NO_SIGNAL: lambda signal_url: {"signal": "{}"},
}
#: Transports of services that Headgate does not use.
_UNSUPPORTED = {"TEMP_URL_SIGNAL": "Swift", "ZAQAR_SIGNAL": "Zaqar"}


def _text(document: Json) -> str:
    return orjson.dumps(document).decode()


class Handle(InternalType):
    """The base class of handles: only their signal URLs exist."""

    def adopt(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """An adopted handle gets a new signal URL; the one of its former server is not valid."""
        return self.create(call)


class TransportHandle(Handle):
    """OS::Heat::WaitConditionHandle."""

    schema = TypeSchema(
        "OS::Heat::WaitConditionHandle",
        description="Accepts external signals with its own token.",
        properties={
            "signal_transport": Property(
                Kind.STRING,
                "Transport of the signal.",
                default="TOKEN_SIGNAL",
                constraints=(Constraint("allowed_values", allowed=(*_ATTRIBUTES, *_UNSUPPORTED)),),
            )
        },
        attributes={
            "token": Attribute(Kind.STRING, "Token, for TOKEN_SIGNAL.", secret=True),
            "endpoint": Attribute(Kind.STRING, "URL for POST requests, for TOKEN_SIGNAL."),
            "curl_cli": Attribute(
                Kind.STRING,
                "curl command that signals success, for TOKEN_SIGNAL; add data with --data-binary.",
                secret=True,
            ),
            "signal": Attribute(
                Kind.STRING,
                "For the other transports: a JSON map of the required credentials.",
                secret=True,
            ),
        },
        signals=True,
    )

    def create(self, call: Call) -> Outcome:
        transport = call.properties["signal_transport"]
        wrong = _unsupported_transport(transport)
        if wrong:
            return Failed(" ".join(wrong))
        attributes = _ATTRIBUTES[transport](call.signal_url)
        return Done(str(call.resource_id), attributes, {"transport": transport})

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        silent = data.get("transport") == NO_SIGNAL
        return NO_SIGNAL if silent else physical_id or resource_name

    def accept_signal(self, data: Json, number: int) -> Json:
        return read_signal(data, HEAT, number)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        wrong = _unsupported_transport(properties.get("signal_transport"))
        if wrong:
            findings.add(f"{place}.signal_transport", *wrong)


def _unsupported_transport(transport: Json) -> tuple[str, str] | None:
    """(reason, remedy) for a transport that is not supported; else None."""
    if transport not in _UNSUPPORTED:
        return None
    reason = f"{transport} needs {_UNSUPPORTED[transport]}, which Headgate does not use."
    return reason, f"Use one of {', '.join(_ATTRIBUTES)}."


class SignedHandle(Handle):
    """A handle whose value of get_resource is a signed URL.

    shows: it also has attributes with the URL. renewed: each update creates a new URL.
    """

    def __init__(
        self,
        name: str,
        description: str,
        form: SignalFormat,
        *,
        shows: bool = False,
        renewed: bool = False,
    ) -> None:
        self._form = form
        self._shows = shows
        self.schema = TypeSchema(
            name,
            description=description,
            attributes=_URL_ATTRIBUTES if shows else {},
            signals=True,
            secret_reference=True,
            renewed=renewed,
        )

    def create(self, call: Call) -> Outcome:
        url = call.signal_url.signed_url
        shown = {"token": "", "endpoint": url, "curl_cli": f"curl -i -X PUT '{url}'"}
        return Done(str(call.resource_id), shown if self._shows else {}, {"url": url})

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        return str(data.get("url", resource_name))

    def accept_signal(self, data: Json, number: int) -> Json:
        return read_signal(data, self._form, number)


_URL_ATTRIBUTES: Mapping[str, Attribute] = {
    "token": Attribute(Kind.STRING, "Empty: the URL contains the token."),
    "endpoint": Attribute(Kind.STRING, "The URL.", secret=True),
    "curl_cli": Attribute(
        Kind.STRING, "curl command that signals success; add data with --data-binary.", secret=True
    ),
}
