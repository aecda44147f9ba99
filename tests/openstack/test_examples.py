"""The examples in examples/openstack, on a real OpenStack."""

from pathlib import Path

from tests.openstack.cloud import Project
from tests.openstack.stacks import delete, run
from tests.support.program import Program

__all__ = ["run"]  # a fixture
EXAMPLES = Path(__file__).parents[2] / "examples" / "openstack"


async def test_a_web_server_is_resized_after_its_confirmation(
    run: Program, project: Project
) -> None:
    template = (EXAMPLES / "web-server" / "web-server.yaml").read_text()
    await run.create("web", {}, template=template)
    status = await run.until_ended("web")
    assert status == "CREATE_COMPLETE", (await run.stack("web"))["stack_status_reason"]
    (server,) = project.cloud.compute.servers()
    (volume,) = project.cloud.block_storage.volumes()
    assert [one["server_id"] for one in volume.attachments] == [server.id]
    (floating_ip,) = project.cloud.network.ips(project_id=project.id)
    (output,) = (await run.stack("web"))["outputs"]
    assert output["output_value"] == floating_ip.floating_ip_address

    parameters = {"flavor": "m1.tiny", "volume_size": 2}
    await run.update("web", "PUT", template=template, parameters=parameters)
    (hook,) = await run.waiting_hooks("web")
    (resized,) = project.cloud.compute.servers()
    assert (resized.id, resized.status) == (server.id, "VERIFY_RESIZE")
    assert hook["resource"]["seen"]["flavor_to"] == "m1.tiny"
    await run.signal(hook)
    assert await run.until_ended("web") == "UPDATE_COMPLETE"
    (confirmed,) = project.cloud.compute.servers()
    (grown,) = project.cloud.block_storage.volumes()
    assert (confirmed.status, confirmed.flavor["original_name"]) == ("ACTIVE", "m1.tiny")
    assert (grown.id, grown.size) == (volume.id, 2)
    await delete(run, "web")
