"""The unmodified `openstack` command line, and the credentials of a project's member for it."""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.openstack.cloud import OpenStack, Project


def environment_of(openstack: OpenStack, project: Project) -> dict[str, str]:
    """The credentials of the project's member, as clients of OpenStack expect them."""
    member = project.member
    return {
        "OS_AUTH_URL": openstack.auth_url,
        "OS_USERNAME": member.username,
        "OS_PASSWORD": member.password,
        "OS_PROJECT_NAME": member.project,
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": openstack.region,
        "OS_IDENTITY_API_VERSION": "3",
    }


async def run_client(environment: Mapping[str, str], *arguments: str) -> str:
    """Run the command line, which must succeed; return what it prints."""
    program = Path(sys.executable).with_name("openstack")
    process = await asyncio.create_subprocess_exec(
        program, *arguments, env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()
    return printed.decode()
