"""Handles: resources that are nothing but a place to send signals to."""

from collections.abc import Callable, Mapping

import orjson

from engine.errors import Findings
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType
from engine.types.signal_urls import SignalUrl
from engine.types.wait_conditions.signals import HEAT, SignalFormat, read_signal
from engine.words import Json

#: Also what such a handle gives as its reference: there is nobody to wait for.
NO_SIGNAL = "NO_SIGNAL"
#: What is given for each transport. What is not said of one is null.
_GIVEN: Mapping[str, Callable[[SignalUrl], Mapping[str, Json]]] = {
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
#: Transports of services that are not here.
_ELSEWHERE = {"TEMP_URL_SIGNAL": "Swift", "ZAQAR_SIGNAL": "Zaqar"}


def _text(document: Json) -> str:
    return orjson.dumps(document).decode()


class TransportHandle(ResourceType):
    """OS::Heat::WaitConditionHandle."""

    uses_credential = False
    schema = TypeSchema(
        "OS::Heat::WaitConditionHandle",
        description="Takes signals from outside, with a token of its own.",
        properties={
            "signal_transport": Property(
                Kind.STRING,
                "Transport of the signal.",
                default="TOKEN_SIGNAL",
                constraints=(Constraint("allowed_values", allowed=(*_GIVEN, *_ELSEWHERE)),),
            )
        },
        attributes={
            "token": Attribute(Kind.STRING, "Of TOKEN_SIGNAL: the token.", secret=True),
            "endpoint": Attribute(Kind.STRING, "Of TOKEN_SIGNAL: where to POST to."),
            "curl_cli": Attribute(
                Kind.STRING,
                "Of TOKEN_SIGNAL: a command that signals success; --data-binary says more.",
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
        wrong = _elsewhere(transport)
        if wrong:
            return Failed(" ".join(wrong))
        given = _GIVEN[transport](call.signal_url)
        return Done(str(call.resource_id), given, {"transport": transport})

    def delete(self, call: Call) -> Outcome:
        return Done(None)

    def adopt(self, call: Call) -> Outcome:
        """Where signals were sent to is not here: it is another place from now on."""
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
        wrong = _elsewhere(properties.get("signal_transport"))
        if wrong:
            findings.add(f"{place}.signal_transport", *wrong)


def _elsewhere(transport: Json) -> tuple[str, str] | None:
    """(reason, remedy)"""
    if transport not in _ELSEWHERE:
        return None
    reason = f"{transport} needs {_ELSEWHERE[transport]}, which is not used here."
    return reason, f"Use one of {', '.join(_GIVEN)}."


class SignedHandle(ResourceType):
    """A handle whose reference is a URL with the token in it.

    shows: it has attributes that give the URL, too. renewed: each update makes another.
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
        """Where signals were sent to is not here: it is another place from now on."""
        return self.create(call)

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        return str(data.get("url", resource_name))

    def accept_signal(self, data: Json, number: int) -> Json:
        return read_signal(data, self._form, number)


_URL_ATTRIBUTES: Mapping[str, Attribute] = {
    "token": Attribute(Kind.STRING, "Empty: the URL needs none."),
    "endpoint": Attribute(Kind.STRING, "The URL.", secret=True),
    "curl_cli": Attribute(
        Kind.STRING,
        "A command that signals success; --data-binary says more.",
        secret=True,
    ),
}
