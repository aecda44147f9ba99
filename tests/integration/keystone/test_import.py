"""Existing objects of a real Keystone are read with the caller's credential, and a stack takes them
over without a change."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import yaml

from tests.integration.keystone.test_keystone import home, settings, token
from tests.support.keystone import Keystone, Project
from tests.support.program import Json, Program, program

__all__ = ["home"]


@pytest.fixture
async def run(database_url: str, keystone: Keystone, home: Project) -> AsyncIterator[Program]:
    more = {"resource_types.openstack.enabled": True}
    async with program(database_url, settings(keystone, home) | more) as opened:
        opened.project = home.id
        yield opened


async def made(keystone: Keystone) -> dict[str, str]:
    """A project with a group, a user in it, and a role of that user; IDs by type."""
    suffix = uuid4().hex[:6]
    project = await keystone.project(f"shop {suffix}")
    user = await keystone.user(f"ada ${{x}} {suffix}", project, ["member"])
    group = {"group": {"name": f"ops-{suffix}", "domain_id": "default", "description": "On call"}}
    group_id = (await keystone.admin("POST", "/groups", group))["group"]["id"]
    await keystone.admin("PUT", f"/groups/{group_id}/users/{user}")
    return {
        "OS::Keystone::User": user,
        "OS::Keystone::Group": group_id,
        "OS::Keystone::Project": project.id,
    }


async def state(keystone: Keystone, ids: dict[str, str]) -> list[Json]:
    kinds = [(f"{kind.rpartition('::')[2].lower()}s", one) for kind, one in ids.items()]
    found = [await keystone.admin("GET", f"/{kind}/{one}") for kind, one in kinds]
    user = ids["OS::Keystone::User"]
    return [
        *found,
        await keystone.admin("GET", f"/role_assignments?user.id={user}"),
        (await keystone.admin("GET", f"/users/{user}/groups"))["groups"],
    ]


async def test_users_groups_and_projects_are_taken_over_unchanged(
    run: Program, keystone: Keystone, home: Project
) -> None:
    ids = await made(keystone)
    headers: dict[str, Any] = await token(keystone, home, "admin")
    wanted = {"resources": [{"type": kind, "id": one} for kind, one in ids.items()]}
    status, read = await run.call("POST", "/import", wanted, headers=headers)
    assert (status, read["findings"], read["parameters"]) == (200, [], [])
    user, group, project = (one["resource_name"] for one in read["resources"])
    resources = yaml.safe_load(read["template"])["resources"]
    assert resources[user]["properties"] == {
        "name": resources[user]["properties"]["name"],
        "default_project": {"get_resource": project},
        "roles": [
            {
                "role": resources[user]["properties"]["roles"][0]["role"],
                "project": {"get_resource": project},
            }
        ],
        "groups": [{"get_resource": group}],
    }
    assert resources[group]["properties"].keys() == {"name", "description"}
    assert resources[project]["properties"].keys() == {"name"}
    assert read["resources"][0]["unread"].keys() == {"password"}
    assert "# password: secret" in read["template"]
    assert not any(one["differences"] for one in read["resources"])

    before = await state(keystone, ids)
    body = {"stack_name": "people", "template": read["template"]}
    status, answer = await run.call("POST", "/stacks", body, headers=headers)
    assert status == 201, answer
    run.session.headers.update(headers)
    assert await run.until_ended("people") == "CREATE_COMPLETE", await run.events("people")
    assert {
        one["resource_type"]: one["physical_resource_id"]
        for one in (await run.resources("people")).values()
    } == ids
    assert await state(keystone, ids) == before
    preview = await run.stack_request("PATCH", "people", "/preview", {})
    assert len(preview["resource_changes"]["unchanged"]) == len(ids)


async def test_only_what_the_caller_may_see_is_read(
    run: Program, keystone: Keystone, home: Project
) -> None:
    ids = await made(keystone)
    wanted = [{"type": kind, "id": one} for kind, one in ids.items()]
    wanted.append({"type": "OS::Keystone::User", "id": uuid4().hex})
    for user, codes in {"member": {"Forbidden"}, "admin": {"EntityNotFound"}}.items():
        headers: dict[str, Any] = await token(keystone, home, user)
        _, read = await run.call("POST", "/import", {"resources": wanted}, headers=headers)
        assert {one["code"] for one in read["findings"]} == codes
        assert all(one["place"].endswith(".id") and one["remedy"] for one in read["findings"])
        assert len(read["findings"]) == (4 if user == "member" else 1)
        assert user == "admin" or "ops-" not in str(read)
    headers = await token(keystone, home, "reader")
    status, _ = await run.call("POST", "/import", {"resources": wanted}, headers=headers)
    assert status == 403
