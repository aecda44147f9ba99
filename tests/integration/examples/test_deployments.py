"""examples/deployments: an existing server, whose agent is a shell script that uses curl."""

import asyncio
from pathlib import Path

from tests.support.program import Json, Program, eventually

FOLDER = Path(__file__).parents[3] / "examples" / "deployments"


async def run_script(run: Program, server: str) -> str:
    """Run the script once; return its output."""
    process = await asyncio.create_subprocess_exec(
        str(FOLDER / "agent.sh"), f"{run.url}/v1/{run.project}", server,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_the_script_applies_the_deployment(running: Program) -> None:
    text = (FOLDER / "deploy.yaml").read_text()
    sent: Json = {"stack_name": "web", "template": text}
    status, response = await running.call("POST", "/stacks", sent)
    assert status == 201, response
    await running.until_parked("web", 1)
    server = (await running.resources("web"))["server"]["physical_resource_id"]
    assert await run_script(running, server) == "deployment: exit code 0\n"
    assert await running.until_ended("web") == "CREATE_COMPLETE"
    await running.update("web", template=text, parameters={"greeting": "it's late"})

    async def is_applied() -> bool:
        path = f"/software_deployments?server_id={server}"
        (one,) = (await running.call("GET", path))[1]["software_deployments"]
        return bool(one["action"] == "UPDATE" and one["status"] == "IN_PROGRESS")

    await eventually(is_applied)
    await run_script(running, server)
    assert await running.until_ended("web") == "UPDATE_COMPLETE"
    assert (await running.stack_request("GET", "web", "/outputs/message"))["output"][
        "output_value"
    ] == ("it's late")
