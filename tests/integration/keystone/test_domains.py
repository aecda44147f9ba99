"""Names of Keystone are unique in their domain alone: another domain's namesakes are others."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from tests.integration.keystone.test_keystone import guarded, home, name_in, token
from tests.support.keystone import Keystone, Project
from tests.support.program import Json, Program, eventually, resource

__all__ = ["home"]  # a fixture


@dataclass(frozen=True)
class Elsewhere:
    """Another domain, with a project and an admin of the same names as at home."""

    domain: str
    domain_id: str
    project: Project


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def elsewhere(keystone: Keystone, home: Project) -> Elsewhere:
    domain = f"corp-{uuid4().hex[:6]}"
    domain_id = await keystone.domain(domain)
    project = await keystone.project(home.name, domain_id)
    await keystone.user(name_in(home, "admin"), project, ["admin"], domain_id)
    return Elsewhere(domain, domain_id, project)


async def everywhere(run: Program, headers: dict[str, str], project: Project) -> bool:
    run.project = project.id
    status, said = await run.call("GET", "/session", headers=headers)
    assert status == 200, said
    return bool(said["everywhere"])


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
async def test_operators_are_those_of_one_project_in_one_domain(
    database_url: str, keystone: Keystone, home: Project, elsewhere: Elsewhere,
    setting: str, at_home: bool, there: bool,
) -> None:  # fmt: skip
    said = setting.format(
        name=home.name, id=home.id, domain=elsewhere.domain,
        other_id=elsewhere.project.id,
    )  # fmt: skip
    mine = await token(keystone, home, "admin")
    theirs = {"X-Auth-Token": await keystone.token(
        name_in(home, "admin"), home.name, domain=elsewhere.domain)}  # fmt: skip
    more = {"keystone.operator_project": said}
    async with guarded(database_url, keystone, home, more=more) as run:
        assert await everywhere(run, mine, home) is at_home
        assert await everywhere(run, theirs, elsewhere.project) is there


async def test_a_project_that_is_named_as_anothers_id_is_not_that_one(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    odd = await keystone.project(home.id)
    await keystone.user(f"eve-{odd.id[:6]}", odd, ["admin"])
    eve = {"X-Auth-Token": await keystone.token(f"eve-{odd.id[:6]}", odd.name)}
    more = {"keystone.operator_project": home.id}
    async with guarded(database_url, keystone, home, more=more) as run:
        assert not await everywhere(run, eve, odd)


async def test_users_of_one_name_are_told_apart(
    database_url: str, keystone: Keystone, home: Project, elsewhere: Elsewhere
) -> None:
    """`ann@corp` of the default domain is not `ann` of the domain `corp`."""
    ann, odd = f"ann-{home.id[:6]}", f"ann-{home.id[:6]}@{elsewhere.domain}"
    ids = {
        "plain": await keystone.user(ann, home, ["member"]),
        "odd": await keystone.user(odd, home, ["member"]),
        "corp": await _in_home(keystone, ann, home, elsewhere),
        "an id": "",
    }
    ids["an id"] = await keystone.user(ids["corp"], home, ["member"])
    tokens = {
        "plain": await keystone.token(ann, home.name),
        "odd": await keystone.token(odd, home.name),
        "an id": await keystone.token(ids["corp"], home.name),
        "corp": await _scoped(keystone, ann, home, elsewhere),
    }
    may: dict[str, set[str]] = {
        f"user:{ann}": {"plain"},
        f"user:{ann}@Default": {"plain"},
        f"user:{ann}@{elsewhere.domain}": {"corp"},
        f"user:{odd}@Default": {"odd"},
        f"user:{ids['corp']}": {"corp"},
        f"user:{ids['corp']}@Default": {"an id"},
    }
    async with guarded(database_url, keystone, home) as run:
        heads = {who: {"X-Auth-Token": one} for who, one in tokens.items()}
        names = {who: (await run.call("GET", "/session", headers=one))[1]["name"]
                 for who, one in heads.items()}  # fmt: skip
        assert len(set(names.values())) == 4
        assert names["plain"] == ann and names["corp"] == odd
        for number, (said, wanted) in enumerate(may.items()):
            hook = await _held(run, f"s{number}", said, heads["plain"])
            found = {who for who, one in heads.items() if await _may(run, hook, one)}
            assert found == wanted, said


async def _in_home(keystone: Keystone, name: str, home: Project, elsewhere: Elsewhere) -> str:
    """A user of the other domain, with a role at home."""
    return await keystone.user(name, home, ["member"], elsewhere.domain_id)


async def _scoped(keystone: Keystone, name: str, home: Project, elsewhere: Elsewhere) -> str:
    """A token of the other domain's user for the project at home."""
    return await keystone.token(name, home.name, domain=elsewhere.domain, project_domain="Default")


async def _held(run: Program, name: str, answer_by: str, headers: dict[str, str]) -> Json:
    rule = {"at": "a", "on": "pre-create", "answer_by": [answer_by]}
    body: dict[str, Any] = {
        "stack_name": name, "environment": {"hooks": [rule]},
        "template": {"heat_template_version": "2018-08-31", "resources": {"a": resource()}},
    }  # fmt: skip
    status, made = await run.call("POST", "/stacks", body, headers=headers)
    assert status == 201, made

    async def waiting() -> list[Json]:
        _, said = await run.call("GET", f"/hooks?state=waiting&stack={name}", headers=headers)
        return list(said["hooks"])

    return (await eventually(waiting))[0]


async def _may(run: Program, hook: Json, headers: dict[str, str]) -> bool:
    """Whether they may answer: who may, may say that they are at it."""
    body = {"decision": "progress"}
    status, _ = await run.call("POST", f"/hooks/{hook['id']}/signal", body, headers=headers)
    assert status in (200, 403)
    return status == 200
