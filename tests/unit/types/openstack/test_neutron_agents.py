"""The agents of networks and routers: which ones an operation adds and removes."""

from typing import Any

import orjson
import pytest

from engine.types.contract import Done, Failed
from engine.types.http_client import Response
from tests.unit.types.calls import a_call, run
from tests.unit.types.openstack.clouds import Answers, answer, type_with

Json = Any
ID = "11111111-1111-4111-8111-111111111111"
ROUTER = answer(200, {"router": {"id": ID, "status": "ACTIVE"}})
NETWORK = answer(200, {"network": {"id": ID, "status": "ACTIVE"}})
DONE = answer(204)


def agents(*ids: str) -> Response:
    return answer(200, {"agents": [{"id": one} for one in ids]})


async def changes(
    kind: str, given: Json, *answers: Response, **known: Json
) -> tuple[Any, list[tuple[str, str, Json]]]:
    """The outcome of a create or update, and its requests about agents that change something."""
    web = Answers(*answers)
    type_ = type_with(web, f"OS::Neutron::{kind}")
    call = a_call(type_, given, credential="t", **known)
    outcome = await run(type_, "update" if "previous" in known else "create", call)
    assert not web.answers
    sent = [
        (
            one.method,
            one.url.partition("/agents/")[2],
            orjson.loads(one.body) if one.body else None,
        )
        for one in web.requests
        if "/agents/" in one.url
    ]
    return outcome, sent


async def test_a_router_moves_from_the_agent_that_neutron_chose() -> None:
    """A router has one agent, so the other one goes first."""
    answers = (ROUTER, agents("old"), DONE, DONE)
    done, sent = await changes("Router", {"l3_agent_ids": ["new"]}, *answers)
    assert isinstance(done, Done)
    assert sent == [
        ("DELETE", f"old/l3-routers/{ID}", None),
        ("POST", "new/l3-routers", {"router_id": ID}),
    ]


async def test_a_network_always_has_an_agent() -> None:
    answers = (NETWORK, agents("old", "kept"), DONE, DONE)
    done, sent = await changes("Net", {"dhcp_agent_ids": ["new", "kept"]}, *answers)
    assert isinstance(done, Done)
    assert sent == [
        ("POST", "new/dhcp-networks", {"network_id": ID}),
        ("DELETE", f"old/dhcp-networks/{ID}", None),
    ]


@pytest.mark.parametrize("kind", ["Router", "Net"])
async def test_without_agents_none_are_read(kind: str) -> None:
    done, sent = await changes(kind, {}, ROUTER if kind == "Router" else NETWORK)
    assert isinstance(done, Done) and sent == []


async def test_the_former_form_names_one_agent() -> None:
    _, sent = await changes("Router", {"l3_agent_id": "a"}, ROUTER, agents(), DONE)
    assert sent == [("POST", "a/l3-routers", {"router_id": ID})]


def changed(name: str, before: Json) -> dict[str, Json]:
    return {"physical_id": ID, "previous": before, "changed": frozenset({name})}


async def test_an_update_changes_only_the_agents_that_differ() -> None:
    before = {"ha": True, "l3_agent_ids": ["a", "b"]}
    given = {"ha": True, "l3_agent_ids": ["b", "c"]}
    known = changed("l3_agent_ids", before)
    _, sent = await changes("Router", given, ROUTER, agents("a", "b"), DONE, DONE, **known)
    assert [one[:2] for one in sent] == [
        ("DELETE", f"a/l3-routers/{ID}"),
        ("POST", "c/l3-routers"),
    ]


async def test_a_removed_property_takes_the_object_from_all_agents() -> None:
    known = changed("dhcp_agent_ids", {"dhcp_agent_ids": ["a"]})
    _, sent = await changes("Net", {}, NETWORK, agents("a", "b"), DONE, DONE, **known)
    assert [one[:2] for one in sent] == [
        ("DELETE", f"a/dhcp-networks/{ID}"),
        ("DELETE", f"b/dhcp-networks/{ID}"),
    ]


async def test_another_change_leaves_the_agents_alone() -> None:
    before = {"l3_agent_ids": ["a"]}
    known = changed("name", before)
    _, sent = await changes("Router", {**before, "name": "n"}, ROUTER, **known)
    assert sent == []


async def test_a_repeated_update_without_agents_keeps_those_of_neutron() -> None:
    known = {"physical_id": ID, "previous": {}, "failed": True}
    _, sent = await changes("Router", {}, ROUTER, **known)
    assert sent == []


@pytest.mark.parametrize(
    ("present", "expected"), [(["new"], Done), ([], Failed)], ids=["is there", "is not"]
)
async def test_a_conflict_is_none_if_the_agent_serves_the_object(
    present: list[str], expected: type
) -> None:
    """Neutron chose the agent itself between the two requests."""
    answers = (ROUTER, agents(), answer(409, {}), agents(*present))
    outcome, _ = await changes("Router", {"l3_agent_ids": ["new"]}, *answers)
    assert isinstance(outcome, expected)


@pytest.mark.parametrize("status", [404, 409])
async def test_an_agent_that_does_not_serve_the_object_any_more(status: int) -> None:
    answers = (ROUTER, agents("old"), answer(status, {}), DONE)
    done, _ = await changes("Router", {"l3_agent_ids": ["new"]}, *answers)
    assert isinstance(done, Done)


async def test_an_unknown_agent_fails_with_the_router() -> None:
    answers = (ROUTER, agents(), answer(404, {"NeutronError": {"message": "no agent new"}}))
    failed, _ = await changes("Router", {"l3_agent_ids": ["new"]}, *answers)
    assert isinstance(failed, Failed) and "no agent new" in failed.reason
