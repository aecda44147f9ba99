"""Names in Keystone are unique within a domain: equal names in another domain are other users and
projects.
"""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from tests.integration.keystone.test_keystone import home, name_in, run_with_keystone, token
from tests.support.keystone import Keystone, Project
from tests.support.program import Json, Program, eventually, resource

__all__ = ["home"]  # a fixture


@dataclass(frozen=True)
class OtherDomain:
    """Another domain, with a project and an admin of the same names as in the home project."""

    domain: str
    domain_id: str
    project: Project


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def other_domain(keystone: Keystone, home: Project) -> OtherDomain:
    domain = f"corp-{uuid4().hex[:6]}"
    domain_id = await keystone.domain(domain)
    project = await keystone.project(home.name, domain_id)
    await keystone.user(name_in(home, "admin"), project, ["admin"], domain_id)
    return OtherDomain(domain, domain_id, project)


async def has_rights_in_all_projects(
    run: Program, headers: dict[str, str], project: Project
) -> bool:
    run.project = project.id
    status, response = await run.call("GET", "/session", headers=headers)
    assert status == 200, response
    return bool(response["everywhere"])


@pytest.mark.parametrize(
    ("setting", "at_home", "there"),
    [
        ("{name}", True, False),
        ("{id}", True, False),
        ("{name}@{domain}", False, True),
        ("{other_id}", False, True),
        ("", False, False),
    ],
)
async def test_operators_come_from_one_project_in_one_domain(
    database_url: str, keystone: Keystone, home: Project, other_domain: OtherDomain,
    setting: str, at_home: bool, there: bool,
) -> None:  # fmt: skip
    text = setting.format(
        name=home.name, id=home.id, domain=other_domain.domain,
        other_id=other_domain.project.id,
    )  # fmt: skip
    ci_token = await token(keystone, home, "admin")
    theirs = {"X-Auth-Token": await keystone.token(
        name_in(home, "admin"), home.name, domain=other_domain.domain)}  # fmt: skip
    more = {"keystone.operator_project": text}
    async with run_with_keystone(database_url, keystone, home, more=more) as run:
        assert await has_rights_in_all_projects(run, ci_token, home) is at_home
        assert await has_rights_in_all_projects(run, theirs, other_domain.project) is there


async def test_a_project_whose_name_is_the_id_of_another_is_not_that_project(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    odd = await keystone.project(home.id)
    await keystone.user(f"eve-{odd.id[:6]}", odd, ["admin"])
    eve = {"X-Auth-Token": await keystone.token(f"eve-{odd.id[:6]}", odd.name)}
    more = {"keystone.operator_project": home.id}
    async with run_with_keystone(database_url, keystone, home, more=more) as run:
        assert not await has_rights_in_all_projects(run, eve, odd)


async def test_users_of_the_same_name_in_two_domains_are_distinguished(
    database_url: str, keystone: Keystone, home: Project, other_domain: OtherDomain
) -> None:
    """`ann@corp` of the default domain is not `ann` of the domain `corp`."""
    ann, odd = f"ann-{home.id[:6]}", f"ann-{home.id[:6]}@{other_domain.domain}"
    ids = {
        "plain": await keystone.user(ann, home, ["member"]),
        "odd": await keystone.user(odd, home, ["member"]),
        "corp": await _user_in_home(keystone, ann, home, other_domain),
        "an id": "",
    }
    ids["an id"] = await keystone.user(ids["corp"], home, ["member"])
    tokens = {
        "plain": await keystone.token(ann, home.name),
        "odd": await keystone.token(odd, home.name),
        "an id": await keystone.token(ids["corp"], home.name),
        "corp": await _scoped(keystone, ann, home, other_domain),
    }
    may: dict[str, set[str]] = {
        f"user:{ann}": {"plain"},
        f"user:{ann}@Default": {"plain"},
        f"user:{ann}@{other_domain.domain}": {"corp"},
        f"user:{odd}@Default": {"odd"},
        f"user:{ids['corp']}": {"corp"},
        f"user:{ids['corp']}@Default": {"an id"},
    }
    async with run_with_keystone(database_url, keystone, home) as run:
        heads = {who: {"X-Auth-Token": one} for who, one in tokens.items()}
        names = {who: (await run.call("GET", "/session", headers=one))[1]["name"]
                 for who, one in heads.items()}  # fmt: skip
        assert len(set(names.values())) == 4
        assert names["plain"] == ann and names["corp"] == odd
        for number, (user, wanted) in enumerate(may.items()):
            hook = await _waiting_hook(run, f"s{number}", user, heads["plain"])
            found = {who for who, one in heads.items() if await _may_answer(run, hook, one)}
            assert found == wanted, user


async def _user_in_home(
    keystone: Keystone, name: str, home: Project, other_domain: OtherDomain
) -> str:
    """A user of the other domain, with a role in the home project."""
    return await keystone.user(name, home, ["member"], other_domain.domain_id)


async def _scoped(keystone: Keystone, name: str, home: Project, other_domain: OtherDomain) -> str:
    """A token of the other domain's user for the home project."""
    return await keystone.token(
        name, home.name, domain=other_domain.domain, project_domain="Default"
    )


async def _waiting_hook(run: Program, name: str, answer_by: str, headers: dict[str, str]) -> Json:
    rule = {"at": "a", "on": "pre-create", "answer_by": [answer_by]}
    body: dict[str, Any] = {
        "stack_name": name, "environment": {"hooks": [rule]},
        "template": {"heat_template_version": "2018-08-31", "resources": {"a": resource()}},
    }  # fmt: skip
    status, answer = await run.call("POST", "/stacks", body, headers=headers)
    assert status == 201, answer

    async def waiting() -> list[Json]:
        _, response = await run.call("GET", f"/hooks?state=waiting&stack={name}", headers=headers)
        return list(response["hooks"])

    return (await eventually(waiting))[0]


async def _may_answer(run: Program, hook: Json, headers: dict[str, str]) -> bool:
    """Whether the user may answer the hook: an approver may send `progress`."""
    body = {"decision": "progress"}
    status, _ = await run.call("POST", f"/hooks/{hook['id']}/signal", body, headers=headers)
    assert status in (200, 403)
    return status == 200
