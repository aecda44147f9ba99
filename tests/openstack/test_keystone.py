"""The types of Keystone on a real OpenStack, through a Headgate server."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.openstack.cloud import OpenStack, Project, identity_of
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.headgate import connected_headgate, reader_settings
from tests.openstack.neutron_stacks import delete as delete_stack
from tests.openstack.neutron_stacks import physical_ids
from tests.openstack.stacks import (
    SETTINGS,
    create,
    delete,
    reason,
    resource_of,
    update,
    update_until_ended,
)
from tests.support.changes import observed
from tests.support.program import Http, Program, ServerProcess, template

Json = Any
PASSWORD = "correct-horse-7391"
#: The collection of each type, and the key of one object.
COLLECTIONS = {
    "OS::Keystone::Project": "projects",
    "OS::Keystone::User": "users",
    "OS::Keystone::Group": "groups",
    "OS::Keystone::Role": "roles",
    "OS::Keystone::Domain": "domains",
    "OS::Keystone::Region": "regions",
    "OS::Keystone::Service": "services",
    "OS::Keystone::Endpoint": "endpoints",
}


@pytest_asyncio.fixture
async def run(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> AsyncIterator[Program]:
    """A server with a reader, and a token of an administrator."""
    admin = project.connect(project.add_user(("admin", "member")))
    with openstack.reader(f"reader-{project.name}") as reader:
        settings = {**SETTINGS, **reader_settings(reader, tmp_path)}
        async with connected_headgate(database_url, openstack, project, settings=settings) as one:
            one.session.headers["X-Auth-Token"] = str(admin.auth_token)
            yield one


def ref(name: str) -> Json:
    return {"get_resource": name}


def keystone(kind: str, **properties: Json) -> Json:
    return {"type": f"OS::Keystone::{kind}", "properties": properties}


def grant(scope: str, name: str = "", role: Json = None) -> Json:
    return {"role": role or ref("role"), scope: ref(name or scope)}


def resources(unique: str, **more: dict[str, Json]) -> dict[str, Json]:
    """One resource of each type, with names that no other test has. more: properties by name."""
    first: dict[str, Json] = {
        "domain": ("Domain", {"name": f"domain-{unique}"}),
        "project": (
            "Project", {"name": f"project-{unique}", "domain": ref("domain"), "tags": ["a"]},
        ),
        "role": ("Role", {}),
        "local": ("Role", {"domain": ref("domain")}),
        "group": ("Group", {"domain": ref("domain"), "roles": [grant("project")]}),
        "user": (
            "User",
            {
                "domain": ref("domain"), "password": PASSWORD, "email": "u@example.org",
                "groups": [ref("group")], "roles": [grant("domain")],
                "default_project": ref("project"),
            },
        ),
        "users": ("UserRoleAssignment", {"user": ref("user"), "roles": [grant("project")]}),
        "groups": ("GroupRoleAssignment", {"group": ref("group"), "roles": [grant("domain")]}),
        "region": ("Region", {"id": f"region-{unique}", "description": "d"}),
        "inner": ("Region", {"parent_region": ref("region")}),
        "service": ("Service", {"type": f"type-{unique}", "description": "d"}),
        "endpoint": (
            "Endpoint",
            {
                "region": ref("region"), "service": ref("service"), "interface": "public",
                "url": "http://127.0.0.1:1/",
            },
        ),
    }  # fmt: skip
    return {
        name: keystone(kind, **{**properties, **more.get(name, {})})
        for name, (kind, properties) in first.items()
    }


class Directory:
    """What Keystone has."""

    def __init__(self, openstack: OpenStack) -> None:
        self._api = identity_of(openstack.admin)

    def read(self, path: str) -> Json:
        """The document at a path; None if there is nothing."""
        answer = self._api.get(path)
        assert answer.status_code in (200, 404), answer.text
        return answer.json() if answer.status_code == 200 else None

    def ids(self, collection: str) -> set[str]:
        return {str(one["id"]) for one in self.read(f"/{collection}")[collection]}

    def object_of(self, resource: Json) -> Json:
        """The object of a resource; None if it does not exist."""
        collection = COLLECTIONS[resource["resource_type"]]
        found = self.read(f"/{collection}/{resource['physical_resource_id']}")
        return None if found is None else found[collection[:-1]]

    def grants(self, kind: str, actor_id: str) -> set[tuple[str, str, str]]:
        """Scope, its ID and the role of each role assignment."""
        found = self.read(f"/role_assignments?{kind}.id={actor_id}")["role_assignments"]
        return {
            (scope, one["scope"][scope]["id"], one["role"]["id"])
            for one in found
            for scope in one["scope"]
        }


@pytest.fixture
def directory(openstack: OpenStack) -> Directory:
    return Directory(openstack)


@pytest.fixture
def unique() -> str:
    return secrets.token_hex(4)


async def found_objects(run: Program, directory: Directory) -> dict[str, Json]:
    """The object of each resource that has one."""
    listed = await run.resources("s")
    return {
        name: await asyncio.to_thread(directory.object_of, one)
        for name, one in listed.items()
        if one["resource_type"] in COLLECTIONS
    }


async def test_objects_are_created_updated_and_deleted(
    run: Program, directory: Directory, unique: str
) -> None:
    await create(run, resources(unique))
    first = await found_objects(run, directory)
    ids = {name: one["id"] for name, one in first.items()}
    assert first["domain"]["name"] == f"domain-{unique}"
    assert (first["project"]["name"], first["project"]["tags"]) == (f"project-{unique}", ["a"])
    assert {first[name]["domain_id"] for name in ("project", "user", "group", "local")} == {
        ids["domain"]
    }
    assert (first["user"]["email"], first["user"]["default_project_id"]) == (
        "u@example.org", ids["project"],
    )  # fmt: skip
    assert (ids["region"], first["region"]["description"]) == (f"region-{unique}", "d")
    assert first["inner"]["parent_region_id"] == ids["region"]
    assert first["endpoint"]["service_id"] == ids["service"]
    assert directory.read(f"/groups/{ids['group']}/users")["users"][0]["id"] == ids["user"]
    in_project, in_domain = (
        (scope, ids[scope], ids["role"]) for scope in ("project", "domain")
    )  # fmt: skip
    for kind in ("user", "group"):
        assert directory.grants(kind, ids[kind]) == {in_project, in_domain}
    changes: dict[str, dict[str, Json]] = {
        "domain": {"description": "more"},
        "project": {"name": f"other-{unique}", "tags": ["b"], "enabled": False},
        "role": {"name": f"role-{unique}"},
        "group": {"roles": []},
        "user": {"groups": [], "roles": [], "email": "v@example.org", "password": f"{PASSWORD}0"},
        "users": {"roles": [grant("domain")]},
        "groups": {"roles": [grant("project"), grant("domain")]},
        "region": {"description": "other"},
        "service": {"name": f"service-{unique}", "enabled": False},
        "endpoint": {"interface": "internal", "url": "http://127.0.0.1:2/"},
    }
    await update(run, resources(unique, **changes))
    second = await found_objects(run, directory)
    assert {name: one["id"] for name, one in second.items()} == ids
    for name, given in changes.items():
        if name in second:
            shown = {key: one for key, one in given.items() if key in second[name]}
            assert {key: second[name][key] for key in shown} == shown
    assert directory.read(f"/groups/{ids['group']}/users")["users"] == []
    assert directory.grants("user", ids["user"]) == {in_domain}
    assert directory.grants("group", ids["group"]) == {in_project, in_domain}
    await delete(run)
    for name, one in second.items():
        collection = COLLECTIONS[resources(unique)[name]["type"]]
        assert directory.read(f"/{collection}/{one['id']}") is None, name


async def test_another_domain_replaces_an_object(
    run: Program, directory: Directory, unique: str
) -> None:
    def group(domain: str) -> Json:
        return {
            "a": keystone("Domain"),
            "b": keystone("Domain"),
            "group": keystone("Group", name=f"group-{unique}", domain=ref(domain)),
        }

    await create(run, group("a"))
    before = (await found_objects(run, directory))["group"]
    await update(run, group("b"))
    found = await found_objects(run, directory)
    assert found["group"]["name"] == before["name"] and found["group"]["id"] != before["id"]
    assert found["group"]["domain_id"] == found["b"]["id"]
    assert directory.read(f"/groups/{before['id']}") is None
    await delete(run)


async def test_a_password_is_not_shown(run: Program, unique: str) -> None:
    body = {"user": keystone("User", name=f"user-{unique}", password=PASSWORD)}
    environment = {"resource_registry": {"resources": {"user": {"hooks": "pre-create"}}}}
    await run.create("s", body, environment=environment)
    (hook,) = await run.waiting_hooks("s")
    assert PASSWORD not in str(hook) and "******" in str(hook)
    status, response = await run.signal(hook)
    assert status == 200, response
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    for path in ("/resources/user", "/events", "/resources"):
        assert PASSWORD not in str(await run.stack_request("GET", "s", path))
    await delete(run)


async def test_role_assignments_of_others_are_neither_taken_nor_removed(
    run: Program, directory: Directory, unique: str
) -> None:
    own = {
        "project": keystone("Project"),
        "role": keystone("Role"),
        "other": keystone("Role"),
        "user": keystone("User"),
    }
    await create(run, own)
    listed = await run.resources("s")
    ids = {name: str(one["physical_resource_id"]) for name, one in listed.items()}
    api = directory._api
    path = f"/projects/{ids['project']}/users/{ids['user']}/roles/{ids['other']}"
    assert api.put(path).status_code == 204
    both = [grant("project"), grant("project", role=ref("other"))]
    more = {**own, "users": keystone("UserRoleAssignment", user=ref("user"), roles=both)}
    assert await update_until_ended(run, more) == "UPDATE_FAILED"
    assert "there is such a role assignment already" in await reason(run, "s", "users")
    await update(run, own)
    assert directory.grants("user", ids["user"]) == {("project", ids["project"], ids["other"])}
    await delete(run)


async def test_a_conflict_names_the_reason_and_leaves_nothing(
    run: Program, directory: Directory, unique: str
) -> None:
    name = f"role-{unique}"
    await create(run, {"a": keystone("Role", name=name)}, name="first")
    await run.create("s", {"a": keystone("Role", name=name)})
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "Keystone refused to update the role" in await reason(run, "s")
    await delete(run)
    roles = [one["name"] for one in directory.read("/roles")["roles"]]
    assert roles.count(name) == 1 and not [one for one in roles if one.startswith("s-a-")]
    await delete(run, "first")


async def test_a_repaired_user_has_its_roles_and_groups(
    run: Program, directory: Directory, unique: str
) -> None:
    name = f"user-{unique}"
    own = {"project": keystone("Project"), "role": keystone("Role"), "group": keystone("Group")}
    await create(run, {"user": keystone("User", name=name)}, name="first")
    await create(run, own)
    given = {"roles": [grant("project")], "groups": [ref("group")]}
    taken = {**own, "user": keystone("User", name=name, **given)}
    assert await update_until_ended(run, taken) == "UPDATE_FAILED"
    failed = str((await resource_of(run, "s", "user"))["physical_resource_id"])
    await update(run, {**own, "user": keystone("User", name=f"other-{unique}", **given)})
    listed = await run.resources("s")
    ids = {name: str(one["physical_resource_id"]) for name, one in listed.items()}
    assert ids["user"] == failed
    assert directory.grants("user", failed) == {("project", ids["project"], ids["role"])}
    assert directory.read(f"/groups/{ids['group']}/users")["users"][0]["name"] == f"other-{unique}"
    await delete(run)
    await delete(run, "first")


async def test_names_of_properties_are_checked(run: Program) -> None:
    for properties, expected in (
        ({"user": "no-such", "roles": []}, "Unable to find user with name or id 'no-such'"),
        ({"user": "admin", "roles": [{"role": "member"}]}, "neither project nor domain"),
        (
            {"user": "admin", "roles": [{"role": "member", "project": "a", "domain": "b"}]},
            "both project and domain",
        ),
    ):
        body = {
            "stack_name": "s",
            "template": template({"a": keystone("UserRoleAssignment", **properties)}),
        }
        status, response = await run.call("POST", "/stacks", body)
        assert status == 400 and expected in str(response), response


async def test_nothing_is_created_twice(
    database_url: str, openstack: OpenStack, project: Project, directory: Directory,
    tmp_path: Path, unique: str,
) -> None:  # fmt: skip
    all_of_them = resources(unique, user={"groups": [], "name": f"user-{unique}"})
    names = ("domain", "project", "role", "user", "users", "region", "service")
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    admin = project.connect(project.add_user(("admin", "member")))
    before = {name: directory.ids(name) for name in ("roles", "domains", "regions")}
    try:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True),
            headers={"X-Auth-Token": str(admin.auth_token)},
        ) as session:
            http = Http(session, server.url, project.id)
            wanted = {name: all_of_them[name] for name in names}
            assert await die_after_each(server, http, wanted) == "CREATE_COMPLETE"
            ids = await physical_ids(http)
            for path in (
                f"/users?domain_id={ids['domain']}",
                f"/projects?domain_id={ids['domain']}",
            ):
                (found,) = directory.read(path)[path[1:].partition("?")[0]]
                assert found["name"].endswith(unique)
            assert len(directory.read(f"/services?type=type-{unique}")["services"]) == 1
            for collection, known in before.items():
                assert len(directory.ids(collection) - known) == 1, collection
            await delete_stack(http)
    finally:
        server.kill()


async def test_drift_is_observed_and_repaired(
    run: Program, directory: Directory, unique: str
) -> None:
    wanted = resources(unique)
    await create(run, wanted)
    assert (await observed(run))["resources"] == []
    listed = await run.resources("s")
    ids = {name: str(one["physical_resource_id"]) for name, one in listed.items()}
    api = directory._api
    assert api.patch(f"/users/{ids['user']}", json={"user": {"enabled": False}}).ok
    assert api.patch(f"/projects/{ids['project']}", json={"project": {"tags": ["x"]}}).ok
    assert api.patch(f"/regions/{ids['region']}", json={"region": {"description": "x"}}).ok
    assert api.patch(f"/endpoints/{ids['endpoint']}", json={"endpoint": {"url": "http://x/"}}).ok
    assert api.delete(f"/roles/{ids['local']}").ok
    path = f"/projects/{ids['project']}/users/{ids['user']}/roles/{ids['role']}"
    assert api.delete(path).ok
    drift = {
        one["resource_name"]: (one["state"], [at["path"] for at in one["differences"]])
        for one in (await observed(run))["resources"]
    }
    assert drift == {
        "user": ("changed", ["enabled"]),
        "project": ("changed", ["tags"]),
        "region": ("changed", ["description"]),
        "endpoint": ("changed", ["url"]),
        "local": ("missing", []),
        "users": ("missing", []),
    }
    await update(run, wanted, converge=True)
    assert (await observed(run))["resources"] == []
    after = {
        name: str(one["physical_resource_id"]) for name, one in (await run.resources("s")).items()
    }
    assert {name for name, one in ids.items() if after[name] != one} == {"local"}
    shown = (await resource_of(run, "s", "user"))["attributes"]
    assert shown["enabled"] is True
    await delete(run)


async def test_a_region_that_another_client_deleted_is_created_again(
    run: Program, project: Project
) -> None:
    """With the ID of the template, which the delete of the original must not delete."""
    name = f"r-{secrets.token_hex(4)}"
    resources = {"a": {"type": "OS::Keystone::Region", "properties": {"id": name}}}
    await create(run, resources)
    identity = identity_of(project.connect(project.add_user(("admin", "member"))))
    await asyncio.to_thread(identity.delete_region, name)
    drift = await observed(run)
    assert [one["state"] for one in drift["resources"]] == ["missing"]
    await update(run, resources, converge=True)
    assert (await asyncio.to_thread(identity.get_region, name)).id == name
    await delete(run)
