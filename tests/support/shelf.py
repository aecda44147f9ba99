"""A service of things in memory, behind the port by which resource types ask services."""

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
class Shelf:
    """things: by id. asked: every request. say: answers to give first, by method.

    A thing that was made by the same idempotency key is given again.
    """

    things: dict[str, dict[str, Json]] = field(default_factory=dict)
    asked: list[Request] = field(default_factory=list)
    say: dict[str, deque[Response | NoResponse]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    made: int = 0

    def will(self, method: str, *said: Response | NoResponse) -> None:
        self.say[method] = deque(said)

    def methods(self) -> list[str]:
        return [one.method for one in self.asked]

    def refusal(self, url: str) -> tuple[str, str] | None:
        return None if urlsplit(url).hostname == "shelf.example.org" else ("is elsewhere", "No.")

    async def ask(self, request: Request) -> Response:
        self.asked.append(request)
        if waiting := self.say.get(request.method):
            said = waiting.popleft()
            if isinstance(said, NoResponse):
                raise said
            return said
        return self._served(request)

    def _served(self, request: Request) -> Response:
        thing_id = unquote(urlsplit(request.url).path.removeprefix("/things").strip("/"))
        body = orjson.loads(request.body) if request.body else {}
        match request.method:
            case "GET" if not thing_id:
                return answer(200, [*self.things.values()])
            case "POST":
                return self._made(body, request.headers)
            case "PUT" if thing_id in self.things:
                self.things[thing_id] |= body
            case "DELETE" if thing_id in self.things:
                return answer(200, self.things.pop(thing_id))
        if thing_id not in self.things:
            return answer(404, {"error": f"no {thing_id}", "sent": body})
        return answer(200, self.things[thing_id])

    def _made(self, body: dict[str, Json], headers: Mapping[str, str]) -> Response:
        key = headers.get("Idempotency-Key", f"none {self.made}")
        if self.keys.get(key) not in self.things:
            self.keys[key] = f"t{self.made}"
            self.made += 1
            self.things[self.keys[key]] = {"id": self.keys[key], "state": "ready", **body}
        return answer(201, self.things[self.keys[key]])


def properties(**more: Json) -> dict[str, Json]:
    """Of a resource that stands on the shelf."""
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
