"""A Headgate server that authenticates by the Keystone of the test bed."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine.types.contract import ResourceType
from tests.openstack.cloud import OpenStack, Project
from tests.support.program import Program, program


def keystone_settings(openstack: OpenStack) -> dict[str, Any]:
    """The settings of a server that authenticates by this cloud's Keystone."""
    service = openstack.headgate_identity
    return {
        "auth.mode": "keystone",
        "auth.keystone.url": openstack.auth_url.removesuffix("/v3"),
        "auth.keystone.username": service.username,
        "auth.keystone.password": service.password,
        "auth.keystone.project": service.project,
    }


def reader_settings(reader: Any, directory: Path) -> dict[str, Any]:
    """The settings of a server with this reader credential, whose secret is in the directory."""
    (secret := directory / "reader-secret").write_text(reader.secret)
    section = "resource_types.openstack.reader"
    return {
        f"{section}.application_credential_id": reader.id,
        f"{section}.secret_file": str(secret),
    }


@asynccontextmanager
async def connected_headgate(
    database_url: str,
    openstack: OpenStack,
    project: Project,
    *,
    settings: Mapping[str, Any] | None = None,
    types: Sequence[ResourceType] = (),
) -> AsyncIterator[Program]:
    """The server, and a client of the project with a token of its member.

    settings: further settings of the server, which override the others.
    """
    values = {**keystone_settings(openstack), **(settings or {})}
    async with program(database_url, values, types=types) as run:
        run.project = project.id
        run.session.headers["X-Auth-Token"] = project.token()
        yield run
