"""Services that answer an observation with nonsense: what they say about an object is unknown."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from engine.types.http_client import Request, Response
from engine.types.openstack.cloud import Cloud
from engine.words import Json, ObservedState
from tests.unit.types.calls import a_call
from tests.unit.types.openstack.clouds import Renewing, types_of_all_services
from tests.unit.types.openstack.test_malformed_answers import ID, KEYS, LISTS, NAMES, properties_of


def in_all(one: Json, some: Json) -> bytes:
    """one, some: the value below the keys of objects and of lists."""
    lists = dict.fromkeys([*(f"{key}s" for key in KEYS), *LISTS], some)
    return orjson.dumps({**lists, **dict.fromkeys(KEYS, one)})


ANSWERS: dict[str, bytes] = {
    "nothing": b"", "null": b"null", "list": b"[]", "text": b'"x"', "page": b"<html>",
    "empty": b"{}", "error": b'{"error": {"code": 404}}', "half": b'{"networks": [',
    "lists of null": in_all({}, [None]), "maps": in_all({}, {}), "texts": in_all("x", "x"),
    "null lists": in_all(None, None), "lists of texts": in_all(["x"], ["x"]),
}  # fmt: skip


#: IDs that are not those of an object alone.
INTERFACE = f"{ID}:subnet_id={ID}"
PHYSICAL_IDS = dict.fromkeys(
    ("OS::Neutron::RouterInterface", "AWS::EC2::SubnetRouteTableAssociation"), INTERFACE
)


class Nonsense:
    """An HTTP client with the same answer to each request."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def refusal(self, url: str) -> tuple[str, str] | None:
        return None

    async def send(self, request: Request) -> Response:
        return Response(200, {}, self._body)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("name", NAMES)
async def test_nonsense_is_never_a_missing_or_changed_object(name: str, answer: str) -> None:
    cloud = Cloud(Nonsense(ANSWERS[answer]), Renewing())
    type_ = next(one for one in types_of_all_services(cloud) if one.schema.name == name)
    properties = properties_of(type_)
    call = a_call(type_, properties, credential="t", physical_id=PHYSICAL_IDS.get(name, ID))
    call = replace(call, attributes={"show": dict.fromkeys(type_.schema.properties, "x")})
    if type_.observation_key(call) is None:
        return
    observed: Any = type_.observe([call])
    found = observed if isinstance(observed, dict) else await observed
    (one,) = found.values()
    assert one.state in (ObservedState.UNKNOWN, ObservedState.PRESENT), one
