"""An Orchestration API in memory, with Heat's shapes, behind the port by which types ask."""

from collections import deque
from dataclasses import dataclass, field
from uuid import UUID

import orjson

from engine.types.http_client import NoResponse, Request, Response
from engine.words import Json

URL = "https://heat.example.org/v1/theirs"


def answer(status: int, document: Json = None, **headers: str) -> Response:
    return Response(status, headers, orjson.dumps(document) if document is not None else b"")


def missing(name: str) -> Response:
    said = {"type": "EntityNotFound", "message": f"The Stack ({name}) could not be found."}
    return answer(404, {"code": 404, "title": "Not Found", "error": said})


@dataclass
class Elsewhere:
    """stacks: by id. asked: every request. say: answers to give first, by method and the end of the
    path. at_once: whatever is begun is complete when it is looked at; else at the second look."""

    stacks: dict[str, dict[str, Json]] = field(default_factory=dict)
    asked: list[Request] = field(default_factory=list)
    say: dict[tuple[str, str], deque[Response | NoResponse]] = field(default_factory=dict)
    made: int = 0
    at_once: bool = False

    def will(self, method: str, end: str, *said: Response | NoResponse) -> None:
        self.say[method, end] = deque(said)

    def calls(self) -> list[str]:
        """Of all requests, without the names and ids of stacks."""
        said = [(one.method, one.url.removeprefix(URL).partition("?")[0]) for one in self.asked]
        return [f"{method} {'/'.join(path.split('/')[1:2] + path.split('/')[4:])}"
                for method, path in said]  # fmt: skip

    def refusal(self, url: str) -> tuple[str, str] | None:
        return None

    async def ask(self, request: Request) -> Response:
        self.asked.append(request)
        path = request.url.removeprefix(URL).partition("?")[0]
        for (method, end), waiting in self.say.items():
            if method == request.method and path.endswith(end) and waiting:
                said = waiting.popleft()
                if isinstance(said, NoResponse):
                    raise said
                return said
        _, kind, *parts = path.split("/")
        body = orjson.loads(request.body) if request.body else {}
        return self._served(request.method, parts, body) if kind == "stacks" else answer(404)

    def _served(self, method: str, parts: list[str], body: dict[str, Json]) -> Response:
        match method, parts:
            case "POST", []:
                return self._created(body)
            case "GET", [name]:
                return self._led(name)
            case _, [_, stack_id, *_] if stack_id not in self.stacks:
                return missing(stack_id)
            case "GET", [_, stack_id]:
                return answer(200, {"stack": self._looked_at(self.stacks[stack_id])})
            case "PUT", [_, stack_id]:
                return self._begun(stack_id, "UPDATE", body)
            case "DELETE", [_, stack_id]:
                return self._begun(stack_id, "DELETE", {})
            case "POST", [_, stack_id, "actions"]:
                return self._begun(stack_id, next(iter(body)).upper(), {})
        return answer(405)

    def _led(self, name: str) -> Response:
        for stack in self.stacks.values():
            if name in (stack["stack_name"], stack["id"]):
                where = f"{URL}/stacks/{stack['stack_name']}/{stack['id']}"
                return answer(302, {"code": "302 Found"}, location=where)
        return missing(name)

    def _created(self, body: dict[str, Json]) -> Response:
        if any(one["stack_name"] == body["stack_name"] for one in self.stacks.values()):
            said = {"type": "StackExists", "message": "The Stack already exists."}
            return answer(409, {"error": said})
        self.made += 1
        stack_id = str(UUID(int=self.made))
        self.stacks[stack_id] = {"id": stack_id, "stack_name": body["stack_name"], "outputs": []}
        self._begun(stack_id, "CREATE", body)
        return answer(201, {"stack": {"id": stack_id, "links": []}})

    def _begun(self, stack_id: str, action: str, body: dict[str, Json]) -> Response:
        given = body.get("parameters", {})
        outputs = [{"output_key": name, "output_value": value} for name, value in given.items()]
        self.stacks[stack_id] |= {
            "stack_status": f"{action}_IN_PROGRESS",
            "stack_status_reason": f"Stack {action} started",
        } | ({"outputs": outputs} if body else {})  # fmt: skip
        return answer(202)

    def _looked_at(self, stack: dict[str, Json]) -> dict[str, Json]:
        shown = dict(stack)
        stack["stack_status"] = stack["stack_status"].replace("IN_PROGRESS", "COMPLETE")
        shown = stack if self.at_once else shown
        if shown["stack_status"] == "DELETE_COMPLETE":
            del self.stacks[stack["id"]]
        return shown
