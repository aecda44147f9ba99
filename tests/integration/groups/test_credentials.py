"""A scaled group uses the credential of the signal, and no earlier one."""

from tests.integration.groups.test_scaling import policy
from tests.integration.hooks.test_credentials import stored_credentials, used_credentials
from tests.support.program import Json, Program, template
from tests.support.scripted_type import World

GROUP: Json = {
    "type": "OS::Heat::AutoScalingGroup",
    "properties": {"resource": {"type": "Test::Thing"}, "min_size": 1, "max_size": 3},
}


async def test_a_signal_to_a_policy_supplies_the_credential(run: Program, world: World) -> None:
    sent = template({"g": GROUP, "up": policy()})
    body = {"stack_name": "s", "template": sent}
    created = await run.call("POST", "/stacks", body, headers={"X-Auth-Token": "planted-secret-71"})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    path = f"/stacks/s/{created[1]['stack']['id']}/resources/up/signal"
    assert (await run.call("POST", path, {}, headers={"X-Auth-Token": "another"}))[0] == 200
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert [credential for _, credential in used_credentials(world)] == [
        "planted-secret-71",
        "another",
    ]
    assert await stored_credentials(run) == 0
