"""What an observation finds of key pairs, server groups and flavors."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson
import pytest

from engine.types.contract import Call
from engine.types.http_client import Response
from engine.types.observation import Observation
from engine.types.openstack.cloud import Cloud
from engine.words import Json, ObservedState, ResourceId
from tests.unit.types.openstack.clouds import Answers, answer
from tests.unit.types.openstack.test_observers import PROJECT, Identity, call, type_of

KEY_PAIR, GROUP, FLAVOR = "OS::Nova::KeyPair", "OS::Nova::ServerGroup", "OS::Nova::Flavor"
REFUSED = answer(403, {"forbidden": {"message": "Policy doesn't allow it"}})
MISSING = answer(404, {"itemNotFound": {"message": "gone"}})


def resource(number: int, properties: Json, **more: Any) -> Call:
    return replace(call(), resource_id=ResourceId(UUID(int=number)), properties=properties, **more)


def key_pair(number: int, name: str, public_key: str | None = "key", **more: Any) -> Call:
    given = {"name": name, "public_key": public_key}
    known = {"data": {"owner": "alice"}, "attributes": {"public_key": "key"}, **more}
    return resource(number, given, physical_id=name, **known)


def listed_pair(name: str, public_key: str = "key", type_: str = "ssh") -> Json:
    return {"keypair": {"name": name, "public_key": public_key, "type": type_}}


def server_group(number: int, group_id: str, **properties: Json) -> Call:
    shown = {"show": {"project_id": PROJECT}}
    return resource(number, properties, physical_id=group_id, attributes=shown)


def listed_group(group_id: str, **fields: Json) -> Json:
    return {"id": group_id, "name": "g", "policy": "affinity", "rules": {}, **fields}


FOUND = {
    "name": "f", "ram": 64, "vcpus": 1, "disk": 0, "swap": 0, "OS-FLV-EXT-DATA:ephemeral": 0,
    "rxtx_factor": 1.0, "os-flavor-access:is_public": True, "extra_specs": {"hw:numa": "2"},
}  # fmt: skip
DESIRED = {
    "name": "f", "ram": 64, "vcpus": 1, "disk": 0, "swap": 0, "ephemeral": 0, "rxtx_factor": 1.0,
    "is_public": True, "extra_specs": {"hw:numa": 2}, "tenants": [],
}  # fmt: skip


def flavor(number: int, flavor_id: str, *, public: bool = True, **properties: Json) -> Call:
    attributes = {"is_public": public, "show": FOUND}
    return resource(number, {**DESIRED, **properties}, physical_id=flavor_id, attributes=attributes)


async def observe(
    name: str, calls: list[Call], *answers: Response, reader: bool = False
) -> tuple[list[Observation], list[str]]:
    """The observations in the order of the calls, and the URLs of the requests."""
    web = Answers(*answers)
    type_ = type_of(name, Cloud(web, Identity(reader=reader)))
    keys = {type_.observation_key(one) for one in calls}
    assert len(keys) == 1 and None not in keys
    found = await type_.observe(calls)  # type: ignore[misc]
    assert not web.answers
    return [found[one.resource_id] for one in calls], [one.url for one in web.requests]


def states(found: list[Observation]) -> list[tuple[str, list[str]]]:
    return [(str(one.state), [at.path for at in one.differences]) for one in found]


async def test_one_list_reads_the_key_pairs_of_their_owner() -> None:
    calls = [
        key_pair(1, "same"),
        key_pair(2, "made", None),
        key_pair(3, "other"),
        key_pair(4, "lost"),
    ]
    pairs = [listed_pair("same"), listed_pair("made", "key\n"), listed_pair("other", "x", "x509")]
    found, urls = await observe(KEY_PAIR, calls, answer(200, {"keypairs": pairs}), MISSING)
    assert states(found) == [
        ("present", []), ("present", []), ("changed", ["public_key", "type"]), ("missing", []),
    ]  # fmt: skip
    assert [url.split("/os-keypairs")[1] for url in urls] == [
        "?user_id=alice&limit=500", "/lost?user_id=alice",
    ]  # fmt: skip


@pytest.mark.parametrize("reader", [False, True])
async def test_key_pairs_of_another_user_are_unknown_and_not_missing(reader: bool) -> None:
    (found,), _ = await observe(KEY_PAIR, [key_pair(1, "k")], REFUSED, reader=reader)
    assert found.state is ObservedState.UNKNOWN
    assert "belongs to the user alice" in found.reason and "Policy" in found.reason
    assert "alice" not in found.public_reason and "who created it" in found.public_reason


def test_key_pairs_are_observed_by_owner_if_it_is_recorded() -> None:
    type_ = type_of(KEY_PAIR, Cloud(Answers(), Identity(reader=True)))
    keys = [
        type_.observation_key(key_pair(1, "a")),
        type_.observation_key(key_pair(1, "b", data={}, attributes={"show": {"user_id": "bob"}})),
        type_.observation_key(key_pair(1, "c", data={"user": ""})),
    ]
    assert keys == ["key pairs of alice", "key pairs of bob", None]


@pytest.mark.parametrize("public_key", ["key", None])
def test_a_key_is_adopted_only_in_place_of_a_given_one(public_key: str | None) -> None:
    type_ = type_of(KEY_PAIR, Cloud(Answers(), Identity(reader=True)))
    given = {"name": "k", "public_key": public_key}
    places = type_.adopted_places(given, "public_key")
    assert list(places) == ([("public_key",)] if public_key else [])


async def test_one_list_reads_server_groups() -> None:
    rules = {"max_server_per_host": 3}
    calls = [
        server_group(1, "same", policies=["affinity"], name="g"),
        server_group(2, "renamed", policies=["affinity"], name="other"),
        server_group(3, "rules", policies=["anti-affinity"], rules=rules),
    ]
    groups = [
        listed_group("same"), listed_group("renamed"),
        listed_group("rules", rules={"max_server_per_host": 4}),
    ]  # fmt: skip
    found, urls = await observe(GROUP, calls, answer(200, {"server_groups": groups}))
    assert states(found) == [
        ("present", []), ("changed", ["name"]), ("changed", ["policies", "rules"]),
    ]  # fmt: skip
    assert len(urls) == 1 and "all_projects" not in urls[0]


async def test_a_server_group_that_the_list_lacks_is_read_before_it_is_missing() -> None:
    """Nova cuts the list off, and ignores `all_projects` unless the reader is an administrator."""
    calls = [server_group(number, name) for number, name in enumerate("abcd", 1)]
    pages = [answer(200, {"server_groups": one}) for one in ([listed_group("a")], [])]
    alone = answer(200, {"server_group": listed_group("b")})
    found, urls = await observe(GROUP, calls, *pages, alone, MISSING, REFUSED, reader=True)
    assert states(found) == [("present", []), ("present", []), ("missing", []), ("unknown", [])]
    assert "all_projects=True&offset=0" in urls[0] and "offset=1" in urls[1]


async def test_a_list_of_server_groups_that_ignores_the_offset_is_read_once() -> None:
    page = answer(200, {"server_groups": [listed_group("a")]})
    found, _ = await observe(GROUP, [server_group(1, "b")], page, page, MISSING)
    assert states(found) == [("missing", [])]


async def test_unreadable_fields_differ_and_leave_the_other_objects_alone() -> None:
    rules = {"max_server_per_host": 3}
    calls = [server_group(1, "odd", rules=rules), server_group(2, "same", name="g")]
    groups = [listed_group("odd", rules=[1]), listed_group("same")]
    found, _ = await observe(GROUP, calls, answer(200, {"server_groups": groups}))
    assert states(found) == [("changed", ["rules"]), ("present", [])]
    listed = [{**FOUND, "id": "a", "rxtx_factor": "n/a"}, {**FOUND, "id": "b"}]
    flavors = [flavor(1, "a"), flavor(2, "b")]
    found, _ = await observe(FLAVOR, flavors, answer(200, {"flavors": listed}))
    assert states(found) == [("changed", ["rxtx_factor"]), ("present", [])]


async def test_one_list_reads_flavors() -> None:
    calls = [flavor(1, "a"), flavor(2, "b", extra_specs={"hw:numa": 2, "x": "y"}), flavor(3, "c")]
    listed = [{**FOUND, "id": name} for name in "abc"]
    listed[2] |= {"ram": 128, "rxtx_factor": ""}
    found, urls = await observe(FLAVOR, calls, answer(200, {"flavors": listed}), reader=True)
    assert states(found) == [
        ("present", []), ("changed", ["extra_specs"]), ("changed", ["ram", "rxtx_factor"]),
    ]  # fmt: skip
    assert len(urls) == 1 and "is_public=None" in urls[0]


async def test_a_field_that_the_requester_could_not_read_is_not_compared() -> None:
    one = flavor(1, "a", extra_specs={"x": "y"})
    shown = {name: value for name, value in FOUND.items() if name != "extra_specs"}
    one = replace(one, attributes={"is_public": True, "show": shown})
    (found,), _ = await observe(FLAVOR, [one], answer(200, {"flavors": [{**FOUND, "id": "a"}]}))
    assert found.state is ObservedState.PRESENT


async def test_a_private_flavor_is_missing_only_for_an_administrator() -> None:
    """To others, Nova answers as if it did not exist."""
    calls = [flavor(1, "a", public=False), flavor(2, "b", public=False)]
    none = answer(200, {"flavors": []})
    found, urls = await observe(FLAVOR, calls, none, REFUSED, MISSING, MISSING, reader=True)
    assert states(found) == [("unknown", []), ("missing", [])]
    assert [url.rpartition("/")[2] for url in urls[1:]] == ["os-flavor-access"] * 2 + ["b"]


async def test_the_owner_of_a_project_observes_public_flavors_only() -> None:
    (found,), urls = await observe(FLAVOR, [flavor(1, "a")], answer(200, {"flavors": []}), MISSING)
    assert found.state is ObservedState.MISSING and "is_public" not in urls[0]
    type_ = type_of(FLAVOR, Cloud(Answers(), Identity(reader=False)))
    assert type_.observation_key(flavor(1, "a", public=False)) is None
    assert type_.observation_key(replace(flavor(1, "a"), observation_credential="")) is None


@pytest.mark.parametrize(("flavor_id", "sent_id"), [(None, None), ("auto", None), ("s", "s")])
async def test_nova_chooses_the_id_of_a_flavor_without_one(
    flavor_id: str | None, sent_id: str | None
) -> None:
    """Nova's API does not know the ID `auto`, which clients leave out: it would be the ID."""
    web = Answers(answer(200, {"flavors": []}), answer(200, {"flavor": {"id": "x"}}))
    type_ = type_of(FLAVOR, Cloud(web, Identity(reader=True)))
    given = {"ram": 64, "vcpus": 1, "flavorid": flavor_id}
    made = resource(1, given, physical_id=None, credential="t", progress={"absent": True})
    await type_.create(made)  # type: ignore[misc]
    sent = orjson.loads(web.requests[1].body or b"")["flavor"]
    assert sent.get("id") == sent_id
