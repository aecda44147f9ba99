"""A Headgate server that observes, and the drift that it finds."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.headgate import connected_headgate, reader_settings
from tests.openstack.stacks import SETTINGS
from tests.support.changes import observed
from tests.support.program import Program

Json = Any


@pytest_asyncio.fixture
async def observing(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> AsyncIterator[Program]:
    """A Headgate server with a reader credential."""
    with openstack.reader(f"reader-{project.name}") as reader:
        settings = {**SETTINGS, **reader_settings(reader, tmp_path)}
        async with connected_headgate(database_url, openstack, project, settings=settings) as run:
            yield run


async def drift_of(run: Program) -> dict[str, Json]:
    """The observed states and the paths of differences, by resource."""
    drift = await observed(run)
    return {
        one["resource_name"]: (one["state"], [at["path"] for at in one["differences"]])
        for one in drift["resources"]
    }
