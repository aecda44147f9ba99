"""Fixtures of the tests with a real OpenStack.

`openstack` is the cloud of the run, `project` a new project with a member, `headgate` a server that
authenticates by the cloud's Keystone and acts as the member. Nothing may be left in the cloud when
a test ends.

HEADGATE_TEST_OPENSTACK is the directory of a running test bed.
"""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.headgate import connected_headgate
from tests.support.program import Program

RUNNING = "HEADGATE_TEST_OPENSTACK"


@pytest.fixture(scope="session")
def openstack() -> Iterator[OpenStack]:
    """The cloud of the run."""
    cloud = OpenStack(Path(os.environ[RUNNING]), is_shared=True)
    try:
        yield cloud
    finally:
        cloud.close()


@pytest.fixture
def project(openstack: OpenStack) -> Iterator[Project]:
    """A new project with a member. The test fails if it leaves something behind in the cloud."""
    with openstack.project() as created:
        yield created


@pytest_asyncio.fixture
async def headgate(
    database_url: str, openstack: OpenStack, project: Project
) -> AsyncIterator[Program]:
    """A Headgate server in mode keystone; its client has a token of the project's member."""
    async with connected_headgate(database_url, openstack, project) as run:
        yield run
