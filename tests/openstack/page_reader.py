"""A reader of the pages with the credentials of a project's member."""

import asyncio
from collections.abc import Mapping

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.openstack_client import environment_of
from tests.support.page_reader import Reader
from tests.support.program import Program

#: Seconds: a command can wait until servers are active.
PATIENCE = 280.0


async def member_reader(
    run: Program, openstack: OpenStack, project: Project, names: Mapping[str, str]
) -> Reader:
    """names: placeholders of the pages, and what the reader writes for them.

    `openstack` finds the orchestration service in the catalog, and `headgate` has a token.
    """
    reader = Reader(run.url, project.id, names, patience=PATIENCE)
    del reader.environment["OS_ENDPOINT"]
    reader.environment |= environment_of(openstack, project) | {
        "OS_AUTH_TYPE": "password",
        "HEADGATE_TOKEN": await asyncio.to_thread(project.token),
    }
    return reader
