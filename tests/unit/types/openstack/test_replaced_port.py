"""A port that is replaced: its addresses while the new port is created, and if that fails."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from engine.types.contract import Call, Done, Failed, Wait
from engine.types.http_client import Response
from tests.unit.types.calls import a_call, run
from tests.unit.types.openstack.clouds import Answers, answer, type_with

Json = Any
NET, SUBNET, OLD, NEW = (f"{number:032x}" for number in range(1, 5))


def fixed(*addresses: str) -> list[Json]:
    return [{"subnet_id": SUBNET, "ip_address": one} for one in addresses]


BEFORE, OTHER, WANTED = fixed("10.0.0.5", "10.0.0.9"), fixed("10.0.0.9"), fixed("10.0.0.5")
IN_USE = answer(409, {"NeutronError": {"type": "IpAddressAlreadyAllocated", "message": "in use"}})
PUT = answer(200, {"port": {"id": OLD}})
NETWORK, SUBNETS = answer(200, {"network": {"id": NET}}), answer(200, {"subnet": {"id": SUBNET}})


def port(port_id: str, addresses: Json, status: int = 200) -> Response:
    found = {"id": port_id, "status": "DOWN", "network_id": NET, "fixed_ips": addresses}
    return answer(status, {"port": found})


NO_PORTS = answer(200, {"ports": []})
#: The old port has the address; it loses it, and the new one is created.
TAKES = [IN_USE, port(OLD, BEFORE), PUT, NO_PORTS, port(NEW, WANTED, 201)]
#: The new port is read: whether it has its addresses, and to continue.
READS = [port(NEW, WANTED), port(NEW, WANTED)]


async def create(web: Answers, **known: Json) -> tuple[Any, Call]:
    """Run a create until it ends. Returns its outcome and its last call."""
    given = {
        "network": NET, "tags": ["t"],
        "fixed_ips": [{"subnet": SUBNET, "ip_address": "10.0.0.5"}],
    }  # fmt: skip
    type_ = type_with(web, "OS::Neutron::Port")
    call = a_call(type_, given, credential="t", replaced=OLD, **known)
    while isinstance(outcome := await run(type_, "create", call), Wait):
        call = replace(call, progress=outcome.progress)
    assert not web.answers
    return outcome, call


def moves(web: Answers) -> list[Json]:
    """The addresses that ports got in an update: the ID of the port and the addresses."""
    return [
        (one.url.rpartition("/")[2], orjson.loads(one.body)["port"]["fixed_ips"])
        for one in web.requests
        if one.method == "PUT" and one.body and not one.url.endswith("/tags")
    ]


async def test_the_new_port_takes_its_addresses() -> None:
    web = Answers(*TAKES, *READS, answer(200, {}), NETWORK, SUBNETS)
    done, _ = await create(web)
    assert isinstance(done, Done) and done.physical_id == NEW
    assert moves(web) == [(OLD, OTHER)]


async def test_the_old_port_gets_its_addresses_back_if_a_later_request_fails() -> None:
    """Neutron gives no address to two ports: the new one loses it before."""
    web = Answers(*TAKES, *READS, answer(403, {}), PUT, PUT)
    failed, _ = await create(web)
    assert isinstance(failed, Failed) and failed.physical_id == NEW
    assert moves(web) == [(OLD, OTHER), (NEW, []), (OLD, BEFORE)]


@pytest.mark.parametrize("pauses", [False, True])
async def test_a_repeated_create_takes_the_addresses_again(pauses: bool) -> None:
    again = [port(NEW, []), PUT, PUT, port(NEW, WANTED), answer(200, {}), NETWORK, SUBNETS]
    first = [*TAKES, *READS, answer(503, {}, **({"retry_after": "1"} if pauses else {})), PUT, PUT]
    web = Answers(*first, *again) if pauses else Answers(*first)
    outcome, call = await create(web)
    if not pauses:
        assert isinstance(outcome, Failed) and outcome.retry
        web.answers += again
        outcome, _ = await create(web, repeated=True, attempts=1, progress=call.progress)
    assert isinstance(outcome, Done)
    assert moves(web) == [
        (OLD, OTHER), (NEW, []), (OLD, BEFORE), (OLD, OTHER), (NEW, WANTED)
    ]  # fmt: skip
