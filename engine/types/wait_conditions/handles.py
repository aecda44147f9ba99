"""Handles: resources that only receive signals."""

from collections.abc import Callable, Mapping

import orjson

from engine.errors import Findings
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType
from engine.types.signal_urls import SignalUrl
from engine.types.wait_conditions.signals import HEAT, SignalFormat, read_signal
from engine.words import Json

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


class TransportHandle(ResourceType):
    """OS::Heat::WaitConditionHandle."""

    uses_credential = False
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
        wrong = _unsupported(transport)
        if wrong:
            return Failed(" ".join(wrong))
        given = _ATTRIBUTES[transport](call.signal_url)
        return Done(str(call.resource_id), given, {"transport": transport})

    def delete(self, call: Call) -> Outcome:
        return Done(None)

    def adopt(self, call: Call) -> Outcome:
        """An adopted handle gets a new signal URL; the one of its former server is not valid."""
        return self.create(call)

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
        wrong = _unsupported(properties.get("signal_transport"))
        if wrong:
            findings.add(f"{place}.signal_transport", *wrong)


def _unsupported(transport: Json) -> tuple[str, str] | None:
    """(reason, remedy) for a transport that is not supported; else None."""
    if transport not in _UNSUPPORTED:
        return None
    reason = f"{transport} needs {_UNSUPPORTED[transport]}, which Headgate does not use."
    return reason, f"Use one of {', '.join(_ATTRIBUTES)}."


class SignedHandle(ResourceType):
    """A handle whose value of get_resource is a signed URL.

    shows: it also has attributes with the URL. renewed: each update creates a new URL.
    """

    uses_credential = False

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

    def delete(self, call: Call) -> Outcome:
        return Done(None)

    def adopt(self, call: Call) -> Outcome:
        """An adopted handle gets a new signal URL; the one of its former server is not valid."""
        return self.create(call)

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
        Kind.STRING,
        "curl command that signals success; add data with --data-binary.",
        secret=True,
    ),
}
