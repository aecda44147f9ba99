"""Heat's Orchestration API in memory, behind the HTTP port of resource types."""

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
    error = {"type": "EntityNotFound", "message": f"The Stack ({name}) could not be found."}
    return answer(404, {"code": 404, "title": "Not Found", "error": error})


@dataclass
class InMemoryHeat:
    """stacks: by ID. requests: all requests so far. scripted: responses to return first, by method
    and end of the path. at_once: whether an action is complete in the first response that shows it,
    or in the second.
    """

    stacks: dict[str, dict[str, Json]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    scripted: dict[tuple[str, str], deque[Response | NoResponse]] = field(default_factory=dict)
    created: int = 0
    at_once: bool = False

    def script(self, method: str, end: str, *responses: Response | NoResponse) -> None:
        self.scripted[method, end] = deque(responses)

    def calls(self) -> list[str]:
        """Method and path of all requests, without names and IDs of stacks."""
        calls = [(one.method, one.url.removeprefix(URL).partition("?")[0]) for one in self.requests]
        return [f"{method} {'/'.join(path.split('/')[1:2] + path.split('/')[4:])}"
                for method, path in calls]  # fmt: skip

    def refusal(self, url: str) -> tuple[str, str] | None:
        return None

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        path = request.url.removeprefix(URL).partition("?")[0]
        for (method, end), left in self.scripted.items():
            if method == request.method and path.endswith(end) and left:
                response = left.popleft()
                if isinstance(response, NoResponse):
                    raise response
                return response
        _, kind, *parts = path.split("/")
        body = orjson.loads(request.body) if request.body else {}
        return self._respond(request.method, parts, body) if kind == "stacks" else answer(404)

    def _respond(self, method: str, parts: list[str], body: dict[str, Json]) -> Response:
        match method, parts:
            case "POST", []:
                return self._create(body)
            case "GET", [name]:
                return self._redirect_to(name)
            case _, [_, stack_id, *_] if stack_id not in self.stacks:
                return missing(stack_id)
            case "GET", [_, stack_id]:
                return answer(200, {"stack": self._show(self.stacks[stack_id])})
            case "PUT", [_, stack_id]:
                return self._start_action(stack_id, "UPDATE", body)
            case "DELETE", [_, stack_id]:
                return self._start_action(stack_id, "DELETE", {})
            case "POST", [_, stack_id, "actions"]:
                return self._start_action(stack_id, next(iter(body)).upper(), {})
        return answer(405)

    def _redirect_to(self, name: str) -> Response:
        for stack in self.stacks.values():
            if name in (stack["stack_name"], stack["id"]):
                where = f"{URL}/stacks/{stack['stack_name']}/{stack['id']}"
                return answer(302, {"code": "302 Found"}, location=where)
        return missing(name)

    def _create(self, body: dict[str, Json]) -> Response:
        if any(one["stack_name"] == body["stack_name"] for one in self.stacks.values()):
            error = {"type": "StackExists", "message": "The Stack already exists."}
            return answer(409, {"error": error})
        self.created += 1
        stack_id = str(UUID(int=self.created))
        self.stacks[stack_id] = {"id": stack_id, "stack_name": body["stack_name"], "outputs": []}
        self._start_action(stack_id, "CREATE", body)
        return answer(201, {"stack": {"id": stack_id, "links": []}})

    def _start_action(self, stack_id: str, action: str, body: dict[str, Json]) -> Response:
        parameters = body.get("parameters", {})
        outputs = [
            {"output_key": name, "output_value": value} for name, value in parameters.items()
        ]
        self.stacks[stack_id] |= {
            "stack_status": f"{action}_IN_PROGRESS",
            "stack_status_reason": f"Stack {action} started",
        } | ({"outputs": outputs} if body else {})  # fmt: skip
        return answer(202)

    def _show(self, stack: dict[str, Json]) -> dict[str, Json]:
        shown = dict(stack)
        stack["stack_status"] = stack["stack_status"].replace("IN_PROGRESS", "COMPLETE")
        shown = stack if self.at_once else shown
        if shown["stack_status"] == "DELETE_COMPLETE":
            del self.stacks[stack["id"]]
        return shown
