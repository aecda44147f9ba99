"""Handles: resources that only receive signals. The formats of the signals, and their tally."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

import orjson

from engine.errors import Findings, nearest
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, InternalType, Outcome
from engine.types.http_client import ServiceError
from engine.types.object_signals import (
    LEFT_BEHIND,
    NO_SERVICES,
    OPERATOR_REMEDY,
    TEMP_URL,
    ZAQAR,
    ObjectSignals,
    SignalServices,
)
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
#: The transports of services that may be missing.
_SERVICES = {TEMP_URL: "Swift", ZAQAR: "Zaqar"}
#: The answers of a Swift that cannot store the signals: the user may not create containers, or it
#: keeps no versions.
_REFUSALS = (HTTPStatus.FORBIDDEN, HTTPStatus.PRECONDITION_FAILED)
#: In the data of a handle: its transport, the name of its object in Swift or of its queue, and its
#: signed URL.
_TRANSPORT, _OBJECT, _URL = "transport", "object", "url"


def _text(document: Json) -> str:
    return orjson.dumps(document).decode()


class Handle(InternalType):
    """The base class of handles. Only their signal URLs exist, and their objects in other
    services."""

    def __init__(self, services: SignalServices = NO_SERVICES) -> None:
        self._services = services
        self.uses_credential = services.swift is not None

    def needs_credential(self, call: Call) -> bool:
        service = self._service_of(call)
        return service is not None and service.needs_credential and self._has_object(call)

    def adopt(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """An adopted handle gets a new signal URL; the one of its former server is not valid."""
        return self.create(call)

    def delete(self, call: Call) -> Outcome | Awaitable[Outcome]:
        service = self._service_of(call)
        if not self._has_object(call):
            return Done(None)
        if service is None and call.data.get(_TRANSPORT) == ZAQAR:
            return Failed(LEFT_BEHIND, call.physical_id, public_reason=LEFT_BEHIND)
        if service is None:
            return Done(None)
        return _remove_objects(service, call)

    def _has_object(self, call: Call) -> bool:
        """Whether an operation may have created an object for the handle."""
        return _OBJECT in call.data

    def _service_of(self, call: Call) -> ObjectSignals | None:
        """The service that has the object of the handle; None: Headgate does not use it."""
        return self._services.by_transport(call.data.get(_TRANSPORT, TEMP_URL))


async def _has_no_object(objects: ObjectSignals, call: Call) -> bool:
    """Remove what a refused create, or an interrupted one, has made; False if that may exist. A
    Swift that refuses the user has made nothing, unless an earlier call of the operation has."""
    try:
        await objects.remove(call)
    except ServiceError as error:
        return error.status == HTTPStatus.FORBIDDEN and not call.repeated
    return True


async def _remove_objects(objects: ObjectSignals, call: Call) -> Outcome:
    try:
        await objects.remove(call)
    except ServiceError as error:
        return _failed(call, error, call.data.get(_TRANSPORT, TEMP_URL))
    return Done(None)


def _failed(call: Call, error: ServiceError, transport: str) -> Failed:
    """The failure of an operation whose object may exist."""
    data = {**call.data, _TRANSPORT: transport, _OBJECT: ""}
    return Failed(str(error), str(call.resource_id), data, error.retry, public_reason=error.public)


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
                constraints=(Constraint("allowed_values", allowed=(*_ATTRIBUTES, *_SERVICES)),),
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

    def needs_credential(self, call: Call) -> bool:
        service = self._services.by_transport(call.properties.get("signal_transport"))
        uploads = service is not None and service.needs_credential
        return uploads or super().needs_credential(call)

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        transport = call.properties["signal_transport"]
        if (wrong := self._unsupported_transport(transport)) is not None:
            return Failed(" ".join(wrong))
        if (service := self._services.by_transport(transport)) is not None:
            return self._create_object(call, service, transport)
        attributes = _ATTRIBUTES[transport](call.signal_url)
        return Done(str(call.resource_id), attributes, {_TRANSPORT: transport})

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        """The name of the object, so that conditions know where to read the signals."""
        if data.get(_TRANSPORT) == NO_SIGNAL:
            return NO_SIGNAL
        return data.get(_OBJECT) or physical_id or resource_name

    def accept_signal(self, data: Json, number: int) -> Json:
        return read_signal(data, HEAT, number)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        wrong = self._unsupported_transport(properties.get("signal_transport"))
        if wrong is not None:
            findings.add(f"{place}.signal_transport", *wrong)

    async def _create_object(self, call: Call, objects: ObjectSignals, transport: str) -> Outcome:
        try:
            if not await objects.is_available(call):
                reason = " ".join(_missing_service(transport, "the service catalog does not have"))
                return Failed(reason, public_reason=reason)
            created = await objects.create(call)
        except ServiceError as error:
            return _failed(call, error, transport)
        data = {_TRANSPORT: transport, _OBJECT: created.name}
        signal = created.credentials or {"alarm_url": created.url}
        return Done(str(call.resource_id), {"signal": _text(signal)}, data)

    def _unsupported_transport(self, transport: Json) -> tuple[str, str] | None:
        """(reason, remedy) for a transport that is not supported; else None."""
        if transport in self._services.transports or transport not in _SERVICES:
            return None
        return _missing_service(transport, "Headgate does not use")


def _missing_service(transport: str, why: str) -> tuple[str, str]:
    """(reason, remedy)"""
    reason = f"{transport} needs {_SERVICES[transport]}, which {why}."
    more = f" {OPERATOR_REMEDY}" if transport == ZAQAR else ""
    return reason, f"Use one of {', '.join(_ATTRIBUTES)}.{more}"


class SignedHandle(Handle):
    """A handle whose value of get_resource is a signed URL. renewed: each update creates a new
    one."""

    def __init__(
        self,
        name: str,
        description: str,
        form: SignalFormat,
        *,
        attributes: Mapping[str, Attribute] | None = None,
        renewed: bool = False,
        services: SignalServices = NO_SERVICES,
    ) -> None:
        super().__init__(services)
        self._form = form
        self.schema = TypeSchema(
            name,
            description=description,
            attributes=attributes or {},
            signals=True,
            secret_reference=True,
            renewed=renewed,
        )

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return Done(str(call.resource_id), {}, {_URL: call.signal_url.signed_url})

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        return str(data.get(_URL, resource_name))

    def accept_signal(self, data: Json, number: int) -> Json:
        return read_signal(data, self._form, number)


class SwiftSignalHandle(SignedHandle):
    """OS::Heat::SwiftSignalHandle. Without a Swift that can store its signals, its URL is
    Headgate's own."""

    def __init__(self, services: SignalServices = NO_SERVICES) -> None:
        super().__init__(
            "OS::Heat::SwiftSignalHandle",
            "A signed URL that accepts signals: a TempURL of Swift, if the cloud has one.",
            SWIFT,
            attributes=_URL_ATTRIBUTES,
            services=services,
        )

    def needs_credential(self, call: Call) -> bool:
        """Its create always does: only the service catalog shows whether there is a Swift."""
        creates = _URL not in call.data and self._services.swift is not None
        return creates or super().needs_credential(call)

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        if self._services.swift is None or not call.credential:
            return _done_with_url(call, call.signal_url.signed_url, {})
        return self._create_object(call, self._services.swift)

    async def _create_object(self, call: Call, objects: ObjectSignals) -> Outcome:
        try:
            if not await objects.is_available(call):
                return _done_with_url(call, call.signal_url.signed_url, {})
            created = await objects.create(call)
        except ServiceError as error:
            if error.status not in _REFUSALS or not await _has_no_object(objects, call):
                return _failed(call, error, TEMP_URL)
            return _done_with_url(call, call.signal_url.signed_url, {})
        return _done_with_url(call, created.url, {_OBJECT: created.name})


def _done_with_url(call: Call, url: str, data: Mapping[str, Json]) -> Done:
    attributes = {"token": "", "endpoint": url, "curl_cli": f"curl -i -X PUT '{url}'"}
    return Done(str(call.resource_id), attributes, {**data, _URL: url})


_URL_ATTRIBUTES: Mapping[str, Attribute] = {
    "token": Attribute(Kind.STRING, "Empty: the URL contains the token."),
    "endpoint": Attribute(Kind.STRING, "The URL.", secret=True),
    "curl_cli": Attribute(
        Kind.STRING, "curl command that signals success; add data with --data-binary.", secret=True
    ),
}
