"""Fixtures of the tests with a real OpenStack.

`openstack` is the cloud of the run, `project` a new project with a member, `headgate` a server that
authenticates by the cloud's Keystone and acts as the member. Nothing may be left in the cloud when
a test ends.

HEADGATE_TEST_OPENSTACK is the directory of a running test bed; without it, the run starts one.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import pytest_asyncio

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.headgate import connected_headgate
from tests.openstack.testbed.control import temporary_testbed
from tests.support.program import Program

RUNNING = "HEADGATE_TEST_OPENSTACK"
#: Seconds for a test without its fixtures: the first one waits until the cloud has started.
TIMEOUT = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "openstack" in getattr(item, "fixturenames", ()) and not item.get_closest_marker(
            "timeout"
        ):
            item.add_marker(pytest.mark.timeout(TIMEOUT, func_only=True))


@pytest.fixture(scope="session")
def openstack() -> Iterator[OpenStack]:
    """The cloud of the run."""
    running = os.environ.get(RUNNING)
    with nullcontext(Path(running)) if running else temporary_testbed() as directory:
        cloud = OpenStack(directory, is_shared=running is not None)
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
