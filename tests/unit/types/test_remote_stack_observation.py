"""What a remote stack's state says about the resource that manages it."""

import orjson
import pytest

from engine.types.http_client import Response, ServiceError
from engine.types.remote_stack.api import Api, RemoteEndpoint, RemoteStackId, RemoteStackView
from engine.types.remote_stack.observation import observe_stack
from engine.words import Json
from tests.support.in_memory_heat import URL, InMemoryHeat, answer, missing

PLACE = RemoteStackId("far", "1")


def shown(status: str = "UPDATE_COMPLETE", **parameters: Json) -> RemoteStackView:
    return RemoteStackView.read({
        "id": "1", "stack_name": "far", "stack_status": status, "parameters": parameters,
        "stack_status_reason": "because",
    })  # fmt: skip


@pytest.mark.parametrize(
    ("status", "state", "reason"),
    [
        ("CREATE_COMPLETE", "present", ""),
        ("UPDATE_IN_PROGRESS", "present", ""),
        ("UPDATE_FAILED", "degraded", "the remote stack is UPDATE_FAILED: because"),
        ("UPDATE_STOPPED", "degraded", "the remote stack is UPDATE_STOPPED: because"),
    ],
)
def test_its_status(status: str, state: str, reason: str) -> None:
    found = observe_stack({"parameters": {}}, shown(status))
    assert (found.state, found.reason) == (state, reason)


@pytest.mark.parametrize(
    ("given", "observed"),
    [
        (3, "3"), (3, "3.0"), (1.5, "1.5"), (True, "True"), (False, "false"), ("a", "a"),
        ("secret", "******"), (["a"], '["a"]'), ({"a": 1}, {"a": 1}), ("a", None),
    ],
    ids=str,
)  # fmt: skip
def test_the_same_value_of_a_parameter_is_no_difference(given: Json, observed: Json) -> None:
    assert observe_stack({"parameters": {"p": given}}, shown(p=observed)).state == "present"


@pytest.mark.parametrize(
    ("given", "observed"), [(3, "4"), (3, "x"), (True, "False"), ("a", "b")], ids=str
)
def test_another_value_is_a_difference(given: Json, observed: Json) -> None:
    found = observe_stack({"parameters": {"p": given}}, shown(p=observed))
    assert found.state == "changed"
    (one,) = found.differences
    assert (one.path, one.desired, one.observed) == ("parameters.p", given, observed)


def test_a_parameter_that_the_response_lacks_is_unknown() -> None:
    given = {"p": "a", "q": 1, "list": ["a"]}
    found = observe_stack({"parameters": given}, shown(q="1"))
    assert (found.state, found.incomplete) == ("unknown", True)
    assert found.reason == "the response about the remote stack lacks parameters.p"
    found = observe_stack({"parameters": given}, shown(q="2"))
    assert [one.path for one in found.differences] == ["parameters.q"]


def api(*responses: Response) -> Api:
    heat = InMemoryHeat()
    heat.script("GET", "/far/1", *responses)
    return Api(heat, RemoteEndpoint("west", URL, ["*"]), {}, "key")


async def test_only_the_api_itself_says_that_a_stack_is_missing() -> None:
    deleted = {"id": "1", "stack_name": "far", "stack_status": "DELETE_COMPLETE"}
    assert await api(missing("far")).observe(PLACE) is None
    assert await api(answer(200, {"stack": deleted})).observe(PLACE) is None
    for unusable in (
        Response(404, {}, b"<h1>Not Found</h1>"),
        answer(404, {"error": {"type": "HTTPNotFound", "message": "wrong path"}}),
        answer(404, {"error": "x"}),
        answer(403),
        answer(500),
        answer(200, {"stack": {"id": "1"}}),
        answer(200, {"stack": deleted | {"id": "2"}}),
        Response(200, {}, orjson.dumps([1])),
    ):
        with pytest.raises(ServiceError):
            await api(unusable).observe(PLACE)


async def test_an_endpoint_that_requests_fewer_requests_is_respected() -> None:
    with pytest.raises(ServiceError) as raised:
        await api(Response(429, {"retry-after": "7"}, b"")).observe(PLACE)
    assert raised.value.throttled == 7.0
