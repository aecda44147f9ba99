"""The programs of examples/listeners, each a process of its own."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import orjson
import pytest

from tests.integration.amqp.conftest import Post, post, subscribe
from tests.support.changes import thing
from tests.support.program import PATIENCE, Json, Program, eventually, free_port, program
from tests.support.rabbit import Rabbit
from tests.support.receiver import receiving
from tests.support.things import Thing, World

LISTENERS = Path(__file__).parents[3] / "examples" / "listeners"
ASKS = {"hooks": [{"at": "*", "on": "pre-create"}]}
#: Says no to whatever is called b, and why.
CHECK = """
import json, sys
name = json.load(sys.stdin)["resource"]["name"]
print("looking")
print(f"{name} is not wanted" if name == "b" else f"{name} is fine")
sys.exit(name == "b")
"""
COMMAND = ["--", sys.executable, "-c", CHECK]


@pytest.fixture
async def box(rabbit: Rabbit) -> AsyncIterator[Post]:
    async with post(rabbit) as made:
        yield made


@pytest.fixture
async def run(database_url: str, rabbit: Rabbit, box: Post) -> AsyncIterator[Program]:
    said = {"channels.amqp.url": rabbit.url, "engine.poll": "1s", **box.settings}
    async with program(database_url, said, types=[Thing(World())]) as made:
        yield made


@contextmanager
def process(folder: Path, *command: str, **environment: str) -> Iterator[Path]:
    """Gives what it prints; ended by its pid."""
    printed = folder / "printed"
    with printed.open("ab") as said:
        one = subprocess.Popen(command, stdout=said, stderr=said, env=os.environ | environment)
    try:
        yield printed
        assert one.poll() is None, printed.read_text()
    finally:
        one.terminate()
        one.wait(PATIENCE)


async def decided(run: Program) -> dict[str, tuple[str, str]]:
    """What became of a and b."""
    await run.create("s", {"a": thing(), "b": thing()}, environment=ASKS)
    assert await run.until_ended("s") == "CREATE_FAILED"
    _, found = await run.call("GET", "/hooks?stack=s")
    return {hook["path"]: (hook["decision"], hook["reason"]) for hook in found["hooks"]}


FOUND = {"a": ("continue", "a is fine"), "b": ("reject", "b is not wanted")}


async def test_a_command_answers_webhooks(run: Program, tmp_path: Path) -> None:
    port = free_port()
    target = f"http://127.0.0.1:{port}/"
    body = {"target": target, "events": ["headgate.hook.waiting"]}
    _, made = await run.call("POST", "/subscriptions", body)
    command = (sys.executable, str(LISTENERS / "webhook.py"), "--port", str(port), *COMMAND)

    async def answers() -> bool:
        try:
            async with aiohttp.ClientSession() as session, session.get(target):
                return True
        except aiohttp.ClientError:
            return False

    with process(tmp_path, *command, SECRET=made["secret"]):
        await eventually(answers)
        assert await decided(run) == FOUND
        async with aiohttp.ClientSession() as session:
            forged = await session.post(target, json={"type": "x"})
            assert forged.status == 401


async def test_a_command_answers_over_amqp(
    run: Program, box: Post, rabbit: Rabbit, tmp_path: Path
) -> None:
    await subscribe(run, box, events=["headgate.hook.waiting"])
    command = (
        sys.executable, str(LISTENERS / "broker.py"), "--url", rabbit.url,
        "--exchange", box.exchange, "--queue", f"checks.{box.name}", *COMMAND,
    )  # fmt: skip

    with process(tmp_path, *command) as printed:

        async def listens() -> bool:
            return "listening" in printed.read_text()

        await eventually(listens)
        assert await decided(run) == FOUND


async def script(name: str, *arguments: str, **environment: str) -> tuple[int, str]:
    command = (str(LISTENERS / name), *arguments)
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=PATIENCE,
        env=os.environ | environment,
    )  # fmt: skip
    return done.returncode, done.stdout


async def test_the_inbox_with_curl_alone(run: Program) -> None:
    await run.create("s", {"a": thing()}, environment=ASKS)
    (hook,) = await run.waiting("s")
    where = {"HEADGATE_URL": run.url, "HEADGATE_PROJECT": "p", "HEADGATE_USER": "ann"}
    code, listed = await script("inbox.sh", **where)
    assert code == 0 and [one["id"] for one in orjson.loads(listed)["hooks"]] == [hook["id"]]
    reason = 'looks "right" \\ here'
    code, said = await script("inbox.sh", hook["id"], "continue", reason, **where)
    assert code == 0, said
    told = orjson.loads(said)
    assert (told["decided_by"], told["reason"]) == ("ann", "looks right  here")
    code, said = await script("inbox.sh", hook["id"], "reject", **where)
    assert code != 0 and "already answered" in said


@pytest.mark.parametrize(("command", "decision"), [("true", "continue"), ("false", "reject")])
async def test_a_step_of_a_job_answers_by_its_exit_code(
    run: Program, command: str, decision: str
) -> None:
    async with receiving() as receiver:
        body = {"target": receiver.url, "events": ["headgate.hook.waiting"]}
        await run.call("POST", "/subscriptions", body)
        await run.create("s", {"a": thing()}, environment=ASKS)

        async def noticed() -> Json:
            return receiver.events

        (notice,) = await eventually(noticed)
    github = {"GITHUB_SERVER_URL": "https://git.example", "GITHUB_REPOSITORY": "o/r",
              "GITHUB_RUN_ID": "7"}  # fmt: skip
    data = notice["data"]
    code, _ = await script(
        "ci-step.sh", command, SIGNAL_URL=data["signal_url"], TOKEN=data["token"], **github
    )
    assert code == (command == "false")
    _, hook = await run.call("GET", f"/hooks/{data['hook']['id']}")
    assert hook["decision"] == decision
    assert hook["reason"] == f"exit code {code} https://git.example/o/r/actions/runs/7"
