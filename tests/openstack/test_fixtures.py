"""The fixtures of the test bed: a server in front of the cloud's Keystone, and the check for
objects that a test leaves behind; and how many tokens the server requests.
"""

import asyncio

import pytest

from tests.openstack.cloud import OpenStack, Project, delete_trusts
from tests.openstack.headgate import connected_headgate
from tests.openstack.stacks import SETTINGS, delete
from tests.support.program import Program, resource


async def test_a_member_of_the_cloud_creates_a_stack(headgate: Program, project: Project) -> None:
    status, session = await headgate.call("GET", "/session")
    assert (status, session["name"]) == (200, project.member.username)
    await headgate.create("s", {"a": resource()})
    assert await headgate.until_ended("s") == "CREATE_COMPLETE"


def test_objects_that_a_test_leaves_behind_are_listed_and_deleted(openstack: OpenStack) -> None:
    with (
        pytest.raises(AssertionError, match=r"left objects.*key pair forgotten.*network lost \("),
        openstack.project() as project,
    ):
        project.cloud.network.create_network(name="lost")
        project.cloud.compute.create_keypair(name="forgotten", public_key=PUBLIC_KEY)
    assert not list(openstack.admin.network.networks(name="lost", project_id=project.id))


PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f test"


async def test_concurrent_operations_share_a_token_of_a_trust(
    database_url: str, openstack: OpenStack, project: Project
) -> None:
    settings = {**SETTINGS, "auth.keystone.trusts": True}
    groups = {f"g{number}": {"type": "OS::Neutron::SecurityGroup"} for number in range(10)}
    async with connected_headgate(database_url, openstack, project, settings=settings) as run:
        before = requests_for_tokens(openstack)
        await run.create("s", groups)
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        # One as the service user, who verifies the token of the request, and one for the trust.
        assert requests_for_tokens(openstack) - before == 2
        await delete(run)
    await asyncio.to_thread(delete_trusts, project.cloud)


def requests_for_tokens(openstack: OpenStack) -> int:
    return openstack.requests_of_headgate("keystone").count("POST /v3/auth/tokens")
