"""The endpoints in the settings, and a client for the Orchestration API of one of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple, Protocol, Self
from urllib.parse import quote, urlsplit

import orjson

from engine.errors import HeadgateError
from engine.types.custom_constraints import CustomConstraint, ValidationContext, Verdict
from engine.types.http_client import (
    BUSY,
    GONE,
    HttpClient,
    NoResponse,
    Request,
    Response,
    ServiceError,
    throttling,
)
from engine.types.text_cleaning import decode_json, decode_text, replace_nul
from engine.words import Json

CONSTRAINT = "headgate.region"
#: The endpoint of a resource without `region_name`.
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class RemoteEndpoint:
    """url: of a project; its stacks are at ``url/stacks``. projects: patterns of the local projects
    that may use it. credential: a name; "" for the token of the request. ca_pem: a CA certificate.
    interval: the longest poll interval in seconds. patience: seconds that it may be unavailable.
    """

    name: str
    url: str
    projects: Sequence[str]
    credential: str = ""
    ca_pem: str = field(default="", repr=False)
    interval: float = 5.0
    patience: float = 3_600.0


class Catalog(Protocol):
    """The service catalog of the users, in mode keystone."""

    async def find(self, region: str, token: str) -> RemoteEndpoint | None:
        """The endpoint of the Orchestration API in a region, for the project of a token.

        Raises HeadgateError.
        """
        ...


class Endpoints(CustomConstraint):
    """The configured endpoints by name, and those in the user's service catalog. As a constraint:
    whether the project may use one."""

    name = CONSTRAINT

    def __init__(self, known: Mapping[str, RemoteEndpoint], catalog: Catalog | None = None) -> None:
        self._known = known
        self._catalog = catalog

    def validate(self, value: Json, context: ValidationContext) -> Verdict:
        if self.find(value, context.project):
            return None
        if self._catalog is None or not isinstance(value, str):
            return self.unknown(str(value), context.project)
        return self._validate_region(value, context)

    async def _validate_region(self, region: str, context: ValidationContext) -> str | None:
        try:
            found = await self.find_for(region, context.project, context.credential)
        except HeadgateError as error:
            return str(error)
        return None if found else self.unknown(region, context.project)

    async def find_for(self, name: str, project: str, token: str) -> RemoteEndpoint | None:
        """The endpoint for a user with this token, "" for none: a configured one comes first.

        Raises HeadgateError.
        """
        found = self.find(name, project)
        if found is not None or self._catalog is None or not token:
            return found
        return await self._catalog.find(name, token)

    def unknown(self, name: str, project: str) -> str:
        """The reason why there is no endpoint."""
        reason = (
            f'the operator provides no endpoint "{name}" for project {project}:'
            " [resource_types.remote_stack]"
        )
        catalog = ", and your service catalog has no orchestration service in such a region"
        return f"{reason}{catalog if self._catalog else ''}"

    def find(self, name: Json, project: str) -> RemoteEndpoint | None:
        found = self.find_any(name)
        allowed = found and any(fnmatchcase(project, one) for one in found.projects)
        return found if allowed else None

    def find_any(self, name: Json) -> RemoteEndpoint | None:
        """The endpoint with this name, for any project."""
        return self._known.get(name) if isinstance(name, str) else None


#: The stack exists, or has an action in progress.
CONFLICT = 409
#: Heat redirects requests by name to the URL with the ID.
FOUND = 302
#: The error type of a stack that does not exist.
NO_STACK = "EntityNotFound"
#: The required fields of a stack.
REQUIRED = ("id", "stack_name", "stack_status")
#: Characters of a response that messages contain.
KEPT = 500


class RemoteStackId(NamedTuple):
    """The name and ID of a stack at its endpoint."""

    name: str
    id: str


@dataclass(frozen=True, slots=True)
class RemoteStackView:
    """The current state of a stack. action, status: such as UPDATE and IN_PROGRESS."""

    place: RemoteStackId
    action: str
    status: str
    reason: str
    outputs: Mapping[str, Json] = field(repr=False)
    parameters: Mapping[str, Json] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, stack: Mapping[str, Json]) -> Self:
        action, _, status = str(stack["stack_status"]).partition("_")
        outputs = {one["output_key"]: one.get("output_value") for one in stack.get("outputs") or []}
        reason = str(stack.get("stack_status_reason") or "")
        given = stack.get("parameters")
        parameters = given if isinstance(given, Mapping) else {}
        place = RemoteStackId(stack["stack_name"], stack["id"])
        return cls(place, action, status, reason, outputs, parameters)

    @property
    def attributes(self) -> dict[str, Json]:
        return {"stack_name": self.place.name, "outputs": self.outputs}


@dataclass(frozen=True, slots=True)
class Api:
    """A client for one endpoint. headers: with the credential. key: the operation key.

    All methods raise ServiceError if a request fails.
    """

    web: HttpClient
    endpoint: RemoteEndpoint
    headers: Mapping[str, str] = field(repr=False)
    key: str
    ca_pem: str = field(default="", repr=False)
    insecure: bool = False

    async def find(self, name_or_id: str) -> RemoteStackId | None:
        answer = await self._ask("GET", f"/stacks/{quote(name_or_id, safe='')}", bad=False)
        if answer.status in GONE:
            return None
        if answer.status == FOUND:  # the redirect is not followed: its URL has the name and ID
            parts = urlsplit(answer.headers.get("location", "")).path.split("/")
            return RemoteStackId(*parts[-2:]) if len(parts) > 2 else None
        return RemoteStackView.read(
            _stack(_check_status(answer, "the request to find the stack"))
        ).place

    async def create(self, name: str, body: Mapping[str, Json]) -> RemoteStackId:
        """Create a stack, or find the one with this name."""
        if (found := await self.find(name)) is not None:
            return found
        sent = {"stack_name": name, "disable_rollback": True, **body}
        answer = await self._ask("POST", "/stacks", sent, bad=False)
        if answer.status == CONFLICT and (found := await self.find(name)) is not None:
            return found
        created = _stack(_check_status(answer, "the request to create the stack"), ("id",))
        return RemoteStackId(name, str(created["id"]))

    async def update(self, place: RemoteStackId, body: Mapping[str, Json]) -> None:
        await self._ask("PUT", _at(place), {"disable_rollback": True, **body})

    async def delete(self, place: RemoteStackId) -> None:
        answer = await self._ask("DELETE", _at(place), bad=False)
        if answer.status not in GONE:
            _check_status(answer, "the request to delete the stack")

    async def act(self, place: RemoteStackId, action: str) -> None:
        """action: check, suspend or resume."""
        await self._ask("POST", f"{_at(place)}/actions", {action: None})

    async def show(self, place: RemoteStackId) -> RemoteStackView | None:
        """The state of a stack; None if it does not exist."""
        answer = await self._ask("GET", _at(place), bad=False)
        if answer.status in GONE:
            return None
        return RemoteStackView.read(_stack(_check_status(answer, "the request to read the stack")))

    async def observe(self, place: RemoteStackId) -> RemoteStackView | None:
        """As `show`, but None only if the endpoint says that the stack does not exist: a proxy or a
        wrong URL answers 404, too."""
        answer = await self._ask("GET", _at(place), bad=False)
        if answer.status in GONE and error_type(answer) == NO_STACK:
            return None
        shown = RemoteStackView.read(_stack(_check_status(answer, "the request to read the stack")))
        if shown.place.id != place.id:
            reason = "the endpoint answered with another stack"
            raise ServiceError(reason, public=reason)
        return None if (shown.action, shown.status) == ("DELETE", "COMPLETE") else shown

    async def create_snapshot(self, place: RemoteStackId, name: str) -> str:
        """The ID of the snapshot with this name; creates it if it does not exist."""
        path = f"{_at(place)}/snapshots"
        for one in _json(await self._ask("GET", path)).get("snapshots") or []:
            if one.get("name") == name:
                return str(one["id"])
        created = _json(await self._ask("POST", path, {"name": name}))
        if "id" not in created:
            reason = "the endpoint's response has no snapshot; is it an Orchestration API?"
            raise ServiceError(reason, public=reason)
        return str(created["id"])

    async def snapshot_status(self, place: RemoteStackId, snapshot: str) -> tuple[str, str]:
        """(status, reason) of a snapshot."""
        answer = await self._ask("GET", f"{_at(place)}/snapshots/{quote(snapshot, safe='')}")
        document = _json(answer)["snapshot"]
        return str(document["status"]), str(document.get("status_reason") or "")

    async def restore(self, place: RemoteStackId, snapshot: str) -> None:
        await self._ask("POST", f"{_at(place)}/snapshots/{quote(snapshot, safe='')}/restore")

    async def hooks(self, place: RemoteStackId) -> list[Mapping[str, Json]] | None:
        """The waiting hooks; None if the endpoint is not a Headgate server."""
        answer = await self._ask("GET", f"/hooks?state=waiting&stack={place.id}", bad=False)
        try:
            document = _json(answer) if answer.status == 200 else {}
        except ServiceError:
            return None
        return document.get("hooks") if isinstance(document, dict) else None

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, bad: bool = True
    ) -> Response:
        """Send a request. bad: raise ServiceError for statuses other than success."""
        changes = method != "GET"
        headers = {**self.headers, "Accept": "application/json"}
        if changes:
            headers |= {"Content-Type": "application/json", "Idempotency-Key": self.key}
        request = Request(
            method,
            f"{self.endpoint.url}{path}",
            headers,
            orjson.dumps(body) if body is not None else None,
            self.ca_pem or self.endpoint.ca_pem,
            self.insecure,
        )
        try:
            answer = await self.web.send(request)
        except NoResponse as error:
            public = "the endpoint did not answer"
            raise ServiceError(
                f"{self.endpoint.name}: {error}",
                retry=error.retry,
                public=public,
                scope=error.scope,
            ) from None
        if answer.status in BUSY:
            reason = f"{self.endpoint.name} answered {answer.status}"
            raise ServiceError(
                reason,
                retry=True,
                public=reason,
                status=answer.status,
                throttled=throttling(answer),
            )
        return _check_status(answer, f"{method} {path.partition('?')[0]}") if bad else answer


def _at(place: RemoteStackId) -> str:
    return f"/stacks/{quote(place.name, safe='')}/{quote(place.id, safe='')}"


def _check_status(answer: Response, doing: str) -> Response:
    if 200 <= answer.status < 300:
        return answer
    document = _message(answer)
    raise ServiceError(
        f"the endpoint answered {answer.status} to {doing}{f': {document}' if document else ''}",
        retry=answer.status == CONFLICT,
        public=f"the endpoint answered {answer.status}",
        status=answer.status,
    )


def error_type(answer: Response) -> str:
    """The type of an error of the Orchestration API; "" of another response."""
    try:
        return str(orjson.loads(answer.body)["error"]["type"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ""


def _message(answer: Response) -> str:
    """The message of an error response, or the start of its text."""
    try:
        document = orjson.loads(answer.body)["error"]["message"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        document = decode_text(answer.body)
    return str(replace_nul(str(document))).strip()[:KEPT]


def _json(answer: Response) -> Mapping[str, Json]:
    try:
        document = decode_json(answer.body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        reason = "the endpoint's response is not a JSON object; is it an Orchestration API?"
        raise ServiceError(reason, public=reason)
    return document


def _stack(answer: Response, needs: Sequence[str] = REQUIRED) -> Mapping[str, Json]:
    """The stack in a response. needs: the required fields. Raises ServiceError."""
    stack = _json(answer).get("stack")
    if not isinstance(stack, dict) or not set(needs) <= stack.keys():
        reason = "the endpoint's response has no stack; is it an Orchestration API?"
        raise ServiceError(reason, public=reason)
    return stack
