"""Users, groups and domains of Keystone: what a failed operation leaves."""

from typing import Any

import pytest

from engine.types.contract import Done, Failed, Outcome
from engine.types.http_client import Response
from tests.unit.types.calls import a_call, ended
from tests.unit.types.openstack.clouds import Answers, answer, type_with

Json = Any
USER, DOMAIN = "OS::Keystone::User", "OS::Keystone::Domain"
#: IDs, which need no lookup.
U, P, R1, R2, G1, G2 = (f"{number:032x}" for number in range(1, 7))
FOUND = answer(200, {"user": {"id": U, "name": "u"}})
OK, REFUSED = answer(204), answer(403, {})


def roles(*ids: str) -> list[Json]:
    return [{"role": one, "project": P} for one in ids]


def path_of(kind: str, one: str) -> str:
    return f"/projects/{P}/users/{U}/roles/{one}" if kind == "role" else f"/groups/{one}/users/{U}"


async def apply(operation: str, given: Json, *answers: Response, **known: Json) -> Any:
    """Run an operation on a user. Returns its outcome and its requests that change something."""
    web = Answers(*answers)
    type_ = type_with(web, USER)
    known = {"physical_id": None if operation == "create" else U, **known}
    call = a_call(type_, {"domain": P, **given}, credential="t", **known)
    outcome: Outcome = await ended(type_, operation, call)
    assert not web.answers
    return outcome, changes(web)


def changes(web: Answers) -> list[str]:
    return [
        f"{one.method} /{one.url.partition('//')[2].partition('/')[2]}"
        for one in web.requests
        if one.method != "GET"
    ]


@pytest.mark.parametrize(
    ("kind", "before", "given"),
    [
        ("role", {"roles": []}, {"roles": roles(R1, R2)}),
        ("group", {"groups": []}, {"groups": [R1, R2]}),
    ],
)
@pytest.mark.parametrize("changed", [[], ["description"]], ids=["rollback", "update"])
async def test_what_a_failed_update_has_granted_is_removed(
    kind: str, before: Json, given: Json, changed: list[str]
) -> None:
    """The row of the user keeps the properties of before the failed update."""
    first, second = path_of(kind, R1), path_of(kind, R2)
    failed, sent = await apply(
        "update", given, FOUND, FOUND, OK, REFUSED, previous=before, changed=frozenset(given)
    )
    assert isinstance(failed, Failed) and sent == [f"PUT {first}", f"PUT {second}"]
    again, sent = await apply(
        "update", {**before, "description": "d"}, FOUND, OK, OK,
        previous=before, changed=frozenset(changed), data=failed.data,
    )  # fmt: skip
    assert sent == [f"PATCH /users/{U}", f"DELETE {first}", f"DELETE {second}"]
    assert isinstance(again, Done) and again.data == {}


async def test_a_failure_keeps_what_an_earlier_one_has_granted() -> None:
    failed, _ = await apply(
        "update", {"roles": roles(R1)}, FOUND, FOUND, REFUSED,
        previous={}, changed=frozenset({"roles"}),
    )  # fmt: skip
    failed, _ = await apply(
        "update", {"roles": roles(R2)}, FOUND, FOUND, REFUSED,
        previous={}, changed=frozenset({"roles"}), data=failed.data,
    )  # fmt: skip
    done, sent = await apply(
        "update", {"roles": roles(R2)}, FOUND, FOUND, OK, OK,
        previous={}, changed=frozenset({"roles"}), data=failed.data,
    )  # fmt: skip
    assert sent == [f"PUT {path_of('role', R2)}", f"DELETE {path_of('role', R1)}"]
    assert isinstance(done, Done) and done.data == {}


@pytest.mark.parametrize("change", ["name", "description"])
async def test_a_repaired_user_gets_all_that_its_create_has_not_applied(change: str) -> None:
    given = {"name": "u", "description": "d", "roles": roles(R1), "groups": [G1]}
    created, taken = answer(201, {"user": {"id": U}}), answer(409, {"error": {"title": "Exists"}})
    failed, _ = await apply("create", given, created, FOUND, FOUND, taken)
    assert isinstance(failed, Failed) and failed.physical_id == U
    web = Answers(FOUND, FOUND, OK, OK)
    type_ = type_with(web, USER)
    previous = a_call(type_, {"domain": P, **given}).properties
    call = a_call(
        type_, {"domain": P, **given, change: "other"}, credential="t", physical_id=U,
        previous=previous, changed=frozenset({change}), data=failed.data,
    )  # fmt: skip
    done = await ended(type_, "update", call)
    assert isinstance(done, Done) and done.data == {}
    assert changes(web) == [
        f"PATCH /users/{U}",
        f"PUT {path_of('group', G1)}",
        f"PUT {path_of('role', R1)}",
    ]
    wanted = "other" if change == "name" else "u"
    assert f'"name":"{wanted}"' in (web.requests[0].body or b"").decode()


async def test_a_check_keeps_what_is_unfinished() -> None:
    data = {"unfinished": ["name"]}
    done, _ = await apply("check", {}, FOUND, previous={}, data=data)
    assert isinstance(done, Done) and done.data == data


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("status", [403, 409, 503])
async def test_a_domain_that_cannot_be_deleted_is_as_before(enabled: bool, status: int) -> None:
    found = answer(200, {"domain": {"id": U, "enabled": enabled}})
    after = [found] if enabled else []
    web = Answers(found, found, answer(status, {}), *after)
    type_ = type_with(web, DOMAIN)
    call = a_call(type_, {"name": "d"}, credential="t", physical_id=U)
    failed = await ended(type_, "delete", call)
    assert isinstance(failed, Failed) and not web.answers
    sent = [(one.body or b"").decode() for one in web.requests if one.method == "PATCH"]
    given = ["false", "true"] if enabled else ["false"]
    assert sent == [f'{{"domain":{{"enabled":{one}}}}}' for one in given]


async def test_a_missing_domain_is_deleted() -> None:
    missing = answer(404, {})
    type_ = type_with(Answers(missing, missing), DOMAIN)
    call = a_call(type_, {"name": "d"}, credential="t", physical_id=U)
    assert await ended(type_, "delete", call) == Done(None)


@pytest.mark.parametrize(("domain", "replaces"), [(P, False), (R1, True), ("other", True)])
async def test_the_id_of_its_domain_does_not_replace_a_user(domain: str, replaces: bool) -> None:
    web = Answers(FOUND)
    type_ = type_with(web, USER)
    call = a_call(
        type_, {"domain": domain}, credential="t", physical_id=U, previous={"domain": "name"},
        changed=frozenset({"domain"}), attributes={"show": {"domain_id": P}},
    )  # fmt: skip
    assert type_.needs_replace(call) is replaces
    if not replaces:
        assert isinstance(await ended(type_, "update", call), Done) and not changes(web)
