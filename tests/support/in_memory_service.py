"""A REST service in memory, behind the HTTP port of resource types."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

import orjson

from engine.types.http_client import NoResponse, Request, Response
from engine.words import Json

URL = "https://shelf.example.org/things"


def answer(status: int, document: Json = None, **headers: str) -> Response:
    raw = b"" if document is None else orjson.dumps(document)
    return Response(status, headers, raw)


@dataclass
class InMemoryService:
    """things: its objects, by ID. requests: all requests so far. scripted: responses to return
    first, by method.

    A repeated idempotency key returns the existing object.
    """

    things: dict[str, dict[str, Json]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    scripted: dict[str, deque[Response | NoResponse]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    created: int = 0

    def script(self, method: str, *responses: Response | NoResponse) -> None:
        self.scripted[method] = deque(responses)

    def methods(self) -> list[str]:
        return [one.method for one in self.requests]

    def refusal(self, url: str) -> tuple[str, str] | None:
        return None if urlsplit(url).hostname == "shelf.example.org" else ("is elsewhere", "No.")

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        if left := self.scripted.get(request.method):
            response = left.popleft()
            if isinstance(response, NoResponse):
                raise response
            return response
        return self._respond(request)

    def _respond(self, request: Request) -> Response:
        thing_id = unquote(urlsplit(request.url).path.removeprefix("/things").strip("/"))
        body = orjson.loads(request.body) if request.body else {}
        match request.method:
            case "GET" if not thing_id:
                return answer(200, [*self.things.values()])
            case "POST":
                return self._create(body, request.headers)
            case "PUT" if thing_id in self.things:
                self.things[thing_id] |= body
            case "DELETE" if thing_id in self.things:
                return answer(200, self.things.pop(thing_id))
        if thing_id not in self.things:
            return answer(404, {"error": f"no {thing_id}", "sent": body})
        return answer(200, self.things[thing_id])

    def _create(self, body: dict[str, Json], headers: Mapping[str, str]) -> Response:
        key = headers.get("Idempotency-Key", f"none {self.created}")
        if self.keys.get(key) not in self.things:
            self.keys[key] = f"t{self.created}"
            self.created += 1
            self.things[self.keys[key]] = {"id": self.keys[key], "state": "ready", **body}
        return answer(201, self.things[self.keys[key]])


def properties(**more: Json) -> dict[str, Json]:
    """Properties of an `OS::Heat::HTTP` resource that manages an object of the service."""
    return {
        "base": URL,
        "id": "$.id",
        "create": {"url": URL, "body": {"colour": "red"}},
        "read": {"url": "/${id}"},
        "update": {"url": "/${id}", "body": {"colour": "blue"}},
        "delete": {"url": "/${id}"},
        "attributes": {"colour": "$.colour"},
        **more,
    }
