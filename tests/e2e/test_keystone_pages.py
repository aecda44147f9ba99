"""The commands of the pages that need only the Keystone of a cloud, executed as written."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest_asyncio

from tests.support.keystone import PASSWORD, Keystone, Project
from tests.support.page_commands import page_command
from tests.support.page_reader import Reader
from tests.support.program import Program, program

#: In the table that a command prints.
CELL = r"^\| {} +\| (\S+) +\|$"
#: The date of the pages passes one day.
NEXT_YEAR = {"2027-06-30T00:00:00": f"{datetime.now(UTC) + timedelta(days=300):%Y-%m-%dT%H:%M:%S}"}


@pytest_asyncio.fixture
async def project(keystone: Keystone) -> Project:
    return await keystone.project(f"pages-{uuid4().hex[:6]}")


@pytest_asyncio.fixture
async def run(database_url: str, keystone: Keystone, project: Project) -> AsyncIterator[Program]:
    """A server in mode keystone."""
    service = f"headgate-{project.name}"
    await keystone.user(service, project, ["admin"])
    values = {
        "url": keystone.url, "username": service, "password": PASSWORD, "project": project.name,
    }  # fmt: skip
    settings = {f"auth.keystone.{name}": value for name, value in values.items()}
    async with program(database_url, {"auth.mode": "keystone", **settings}) as running:
        yield running


def reader_of(
    run: Program, keystone: Keystone, user: str, project: Project, names: Mapping[str, str]
) -> Reader:
    """A reader with the usual variables of a user."""
    reader = Reader(run.url, project.id, names)
    del reader.environment["OS_ENDPOINT"]
    reader.environment |= {
        "OS_AUTH_TYPE": "password",
        "OS_AUTH_URL": f"{keystone.url}/v3",
        "OS_IDENTITY_API_VERSION": "3",
        "OS_USERNAME": user,
        "OS_PASSWORD": PASSWORD,
        "OS_PROJECT_NAME": project.name,
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
    }
    return reader


async def test_an_operator_sets_up_keystone(
    run: Program, keystone: Keystone, project: Project
) -> None:
    """The catalog, the domain of the servers' users, and the credential of the observer."""
    for one in (await keystone.admin("GET", "/services?type=orchestration"))["services"]:
        await keystone.admin("DELETE", f"/services/{one['id']}")
    for role in (await keystone.admin("GET", "/roles?name=heat_stack_user"))["roles"]:
        await keystone.admin("DELETE", f"/roles/{role['id']}")
    found = (await keystone.admin("GET", "/projects?name=admin"))["projects"]
    operator = reader_of(run, keystone, "admin", Project(found[0]["id"], "admin"), {
        "https://headgate.example.org": run.url, "--password-prompt": f"--password '{PASSWORD}'",
    })  # fmt: skip
    printed = [
        await operator.type(command)
        for command in (
            page_command("docs/how-to/set-up-access.md", "openstack service create"),
            page_command("docs/how-to/set-up-access.md", "openstack endpoint create"),
            page_command("docs/how-to/use-openstack.md", "openstack domain create"),
            page_command("docs/how-to/use-openstack.md", "openstack user create"),
            page_command("docs/how-to/use-openstack.md", "openstack role add"),
            page_command("docs/how-to/use-openstack.md", "openstack role create"),
            page_command(
                "docs/how-to/use-openstack.md",
                "openstack application credential create headgate-reader",
            ),
        )
    ]
    assert '"path": "/v2.0/**"' in printed[-1].replace("'", '"')

    await keystone.user(f"ann-{project.name}", project, ["member"])
    ann = reader_of(run, keystone, f"ann-{project.name}", project, {})
    await ann.type("openstack stack list")
    administrator = {"user": {"name": "stack-users-admin", "domain": {"name": "stack-users"},
                              "password": PASSWORD}}  # fmt: skip
    await keystone.admin("POST", "/auth/tokens", {"auth": {
        "identity": {"methods": ["password"], "password": administrator},
        "scope": {"domain": {"name": "stack-users"}},
    }})  # fmt: skip


async def test_a_project_hands_over_credentials(
    run: Program, keystone: Keystone, project: Project
) -> None:
    """For observations, and then for repairs."""
    user = f"ann-{project.name}"
    await keystone.user(user, project, ["member", "reader"])
    ann = reader_of(run, keystone, user, project, NEXT_YEAR)
    ann.environment["HEADGATE_TOKEN"] = await keystone.token(user, project.name)
    for create, hand_over, for_repairs in (
        (
            page_command(
                "docs/how-to/use-openstack.md",
                "openstack application credential create headgate-observer",
            ),
            page_command("docs/how-to/use-openstack.md", "headgate observation-credential set"),
            False,
        ),
        (
            page_command("docs/how-to/repair-drift.md", "openstack application credential"),
            page_command("docs/how-to/repair-drift.md", "headgate observation-credential set"),
            True,
        ),
    ):
        created = await ann.type(create)
        name, secret = (value_of(one, created) for one in ("ID", "Secret"))
        await ann.type(hand_over.replace("5d1a6c6a3c8f4b6f9d0c1e2f3a4b5c6d", name), secret)
        shown = json.loads(await ann.type("headgate observation-credential show --json"))
        assert shown["application_credential_id"] == name, shown
        assert shown["repairs"] is for_repairs, shown


def value_of(field: str, table: str) -> str:
    found = re.search(CELL.format(field), table, re.M)
    assert found, table
    return found[1]
