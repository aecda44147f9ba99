"""Sends the requests of Headgate::HTTP, and masks secrets in what services answer."""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from engine.types.contract import Call
from engine.types.http.observation import MAX_PAGES, next_page, read_page
from engine.types.http.remote_object import RemoteObject, check_status, parse_json
from engine.types.http.requests import PlaceholderError, build
from engine.types.http.schema import METHODS
from engine.types.http_client import HttpClient, NoResponse, Request, Response, ServiceError
from engine.types.observation import request_sent
from engine.types.operator_credentials import CredentialDenied, Credentials
from engine.types.text_cleaning import MIN_SECRET_LENGTH, mask_secrets
from engine.words import Json

OFF = (
    "Headgate::HTTP is off on this server",
    "The operator turns it on: [resource_types.http] enabled = true.",
)


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """max_timeout: the upper limit for the property `timeout`."""

    enabled: bool = False
    max_timeout: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class HttpService:
    """The services of all resources of Headgate::HTTP. web: checks addresses against the egress
    policy. credentials: of the operator, which properties can name.
    """

    settings: HttpSettings
    web: HttpClient
    credentials: Credentials

    async def send(self, call: Call, name: str, remote: RemoteObject) -> Response:
        """Send one request. Raises ServiceError unless its response is a success."""
        key = str(call.operation_key)
        response, _ = await self._send_request(
            name, call.project, call.properties, remote.values(), key=key
        )
        return response

    async def _send_request(
        self,
        name: str,
        project: str,
        properties: Mapping[str, Json],
        values: Mapping[str, Json],
        url: str = "",
        key: str = "",
    ) -> tuple[Response, Request]:
        """As `send`, also returning the request. url: in place of that of the properties. key: of
        the operation."""
        if not self.settings.enabled:
            off = ". ".join(OFF)
            raise ServiceError(off, public=off)
        definition = properties[name]
        try:
            request = build(name, properties, values, key)
            request = replace(request, url=url) if url else request
            if credential := properties.get("credential"):
                headers = self.credentials.headers(credential, project, request.url)
                request = replace(request, headers={**request.headers, **headers})
            request_sent()
            response = await self.web.send(request)
        except (PlaceholderError, CredentialDenied) as error:
            public = f"{name}: the request is not valid"
            raise ServiceError(f"{name}: {error}", public=public) from None
        except NoResponse as error:
            public = f"{name}: the service did not answer"
            raise ServiceError(
                f"{name}: {error}", retry=error.retry, public=public, scope=error.scope
            ) from None
        check_status(name, response, definition.get("expect") or [])
        return response, request

    async def pages(
        self, project: str, properties: Mapping[str, Json], values: Mapping[str, Json]
    ) -> AsyncIterator[Iterator[tuple[str, Json]]]:
        """Yield the IDs and the items of each page of the list. values: of placeholders.

        Raises ServiceError, also while a page is read; InvalidPath, PlaceholderError.
        """
        listing, url, read = properties["list"], "", set[str]()
        for _ in range(MAX_PAGES):
            response, request = await self._send_request("list", project, properties, values, url)
            read.add(request.url)
            content = parse_json("list", response)
            yield read_page(listing, content)
            url = next_page(listing, content, request.url) or ""
            if not url:
                return
            if url in read:
                reason = "list: the next page is one that was read before"
                raise ServiceError(reason, public=reason)
        reason = f"list: there are more than {MAX_PAGES} pages"
        raise ServiceError(reason, public=reason)

    def mask_text(self, call: Call, remote: RemoteObject, text: str) -> str:
        """A text from a service with the secrets of the requests masked."""
        sent = [call.properties.get(name) or {} for name in METHODS]
        bodies = _texts([one.get("body") for one in sent])
        secrets = [*self.secrets(call, remote), *self.credentials.secrets()]
        return mask_secrets(text, [*bodies, *secrets])

    def secrets(self, call: Call, remote: RemoteObject) -> list[str]:
        """Values of hidden attributes, and credentials in requests that a service may repeat."""
        sent = [call.properties, *(call.properties.get(name) or {} for name in METHODS)]
        headers = _texts([one.get("headers") for one in sent])
        known = self.credentials.secrets() if call.properties.get("credential") else []
        long = [text for text in (*headers, *known) if len(text) >= MIN_SECRET_LENGTH]
        return [*_texts(remote.secrets), *long]


def _texts(value: Json) -> list[str]:
    """All strings in a value, at any depth, without keys."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []
