"""The Orchestration API of another endpoint: what is asked of it, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self
from urllib.parse import quote, urlsplit

import orjson

from engine.types.http_client import (
    BUSY,
    GONE,
    HttpClient,
    NoResponse,
    Request,
    Response,
    ServiceError,
)
from engine.types.remote_stack.endpoints import Endpoint
from engine.types.text_cleaning import decode_text, replace_nul
from engine.words import Json

#: It is there already; or it cannot be changed now.
CONFLICT = 409
#: It is elsewhere: Heat sends those who ask by name on to the address with the id.
FOUND = 302
#: What there is of a stack that is shown.
WHOLE = ("id", "stack_name", "stack_status")
#: Letters of an answer that are told.
KEPT = 500


class RemoteStackId(NamedTuple):
    """Where a stack is at its endpoint."""

    name: str
    id: str


@dataclass(frozen=True, slots=True)
class RemoteStackView:
    """A stack as it is now. action, status: such as UPDATE and IN_PROGRESS."""

    place: RemoteStackId
    action: str
    status: str
    reason: str
    outputs: Mapping[str, Json] = field(repr=False)

    @classmethod
    def read(cls, stack: Mapping[str, Json]) -> Self:
        action, _, status = str(stack["stack_status"]).partition("_")
        outputs = {one["output_key"]: one.get("output_value") for one in stack.get("outputs") or []}
        reason = str(stack.get("stack_status_reason") or "")
        return cls(RemoteStackId(stack["stack_name"], stack["id"]), action, status, reason, outputs)

    @property
    def attributes(self) -> dict[str, Json]:
        return {"stack_name": self.place.name, "outputs": self.outputs}


@dataclass(frozen=True, slots=True)
class Api:
    """Asks one endpoint as somebody. key: of the operation.

    Every method raises ServiceError when the endpoint does not do what it is asked.
    """

    web: HttpClient
    endpoint: Endpoint
    headers: Mapping[str, str] = field(repr=False)
    key: str
    ca_pem: str = field(default="", repr=False)
    insecure: bool = False

    async def find(self, name_or_id: str) -> RemoteStackId | None:
        answer = await self._ask("GET", f"/stacks/{quote(name_or_id, safe='')}", bad=False)
        if answer.status in GONE:
            return None
        if answer.status == FOUND:  # where it leads is not followed: only what it names is read
            parts = urlsplit(answer.headers.get("location", "")).path.split("/")
            return RemoteStackId(*parts[-2:]) if len(parts) > 2 else None
        return RemoteStackView.read(_stack(_good(answer, "it was looked for"))).place

    async def create(self, name: str, body: Mapping[str, Json]) -> RemoteStackId:
        """The stack of this name, made if it is not there."""
        if (found := await self.find(name)) is not None:
            return found
        sent = {"stack_name": name, "disable_rollback": True, **body}
        answer = await self._ask("POST", "/stacks", sent, bad=False)
        if answer.status == CONFLICT and (found := await self.find(name)) is not None:
            return found
        made = _stack(_good(answer, "it was to be made"), ("id",))
        return RemoteStackId(name, str(made["id"]))

    async def update(self, place: RemoteStackId, body: Mapping[str, Json]) -> None:
        await self._ask("PUT", _at(place), {"disable_rollback": True, **body})

    async def delete(self, place: RemoteStackId) -> None:
        answer = await self._ask("DELETE", _at(place), bad=False)
        if answer.status not in GONE:
            _good(answer, "it was to be deleted")

    async def act(self, place: RemoteStackId, action: str) -> None:
        """action: check, suspend or resume."""
        await self._ask("POST", f"{_at(place)}/actions", {action: None})

    async def show(self, place: RemoteStackId) -> RemoteStackView | None:
        """None: it is gone."""
        answer = await self._ask("GET", _at(place), bad=False)
        if answer.status in GONE:
            return None
        return RemoteStackView.read(_stack(_good(answer, "it was looked at")))

    async def keep(self, place: RemoteStackId, name: str) -> str:
        """The id of the snapshot of this name, made if it is not there."""
        path = f"{_at(place)}/snapshots"
        for one in _json(await self._ask("GET", path)).get("snapshots") or []:
            if one.get("name") == name:
                return str(one["id"])
        made = _json(await self._ask("POST", path, {"name": name}))
        if "id" not in made:
            raise ServiceError(
                "the endpoint's answer tells of no snapshot; is it an Orchestration API?"
            )
        return str(made["id"])

    async def kept(self, place: RemoteStackId, snapshot: str) -> tuple[str, str]:
        """(status, reason) of a snapshot."""
        answer = await self._ask("GET", f"{_at(place)}/snapshots/{quote(snapshot, safe='')}")
        said = _json(answer)["snapshot"]
        return str(said["status"]), str(said.get("status_reason") or "")

    async def restore(self, place: RemoteStackId, snapshot: str) -> None:
        await self._ask("POST", f"{_at(place)}/snapshots/{quote(snapshot, safe='')}/restore")

    async def hooks(self, place: RemoteStackId) -> list[Mapping[str, Json]] | None:
        """Its waiting hooks, as Headgate tells of them; None: this is no Headgate."""
        answer = await self._ask("GET", f"/hooks?state=waiting&stack={place.id}", bad=False)
        try:
            said = _json(answer) if answer.status == 200 else {}
        except ServiceError:
            return None
        return said.get("hooks") if isinstance(said, dict) else None

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, bad: bool = True
    ) -> Response:
        """bad: whether a status that is not of success is trouble."""
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
            answer = await self.web.ask(request)
        except NoResponse as error:
            raise ServiceError(f"{self.endpoint.name}: {error}", retry=error.retry) from None
        if answer.status in BUSY:
            raise ServiceError(f"{self.endpoint.name} answered {answer.status}", retry=True)
        return _good(answer, f"{method} {path.partition('?')[0]}") if bad else answer


def _at(place: RemoteStackId) -> str:
    return f"/stacks/{quote(place.name, safe='')}/{quote(place.id, safe='')}"


def _good(answer: Response, doing: str) -> Response:
    if 200 <= answer.status < 300:
        return answer
    said = _message(answer)
    raise ServiceError(
        f"the endpoint answered {answer.status} when {doing}{f': {said}' if said else ''}",
        retry=answer.status == CONFLICT,
        status=answer.status,
    )


def _message(answer: Response) -> str:
    """Of an error of the Orchestration API; else the beginning of what was said."""
    try:
        said = orjson.loads(answer.body)["error"]["message"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        said = decode_text(answer.body)
    return str(replace_nul(str(said))).strip()[:KEPT]


def _json(answer: Response) -> Mapping[str, Json]:
    try:
        said = replace_nul(orjson.loads(answer.body))
    except orjson.JSONDecodeError:
        said = None
    if not isinstance(said, dict):
        raise ServiceError(
            "the endpoint's response is not a JSON object; is it an Orchestration API?"
        )
    return said


def _stack(answer: Response, needs: Sequence[str] = WHOLE) -> Mapping[str, Json]:
    """What an answer tells of a stack, with all that is needed of it."""
    stack = _json(answer).get("stack")
    if not isinstance(stack, dict) or not set(needs) <= stack.keys():
        raise ServiceError("the endpoint's answer tells of no stack; is it an Orchestration API?")
    return stack
