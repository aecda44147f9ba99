"""The fixtures of the test bed: a server in front of the cloud's Keystone, and the check for
objects that a test leaves behind.
"""

import pytest

from tests.openstack.cloud import OpenStack, Project
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
