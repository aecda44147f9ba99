"""The programs of examples/listeners, each as a process."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from tests.integration.amqp.conftest import AmqpClient, running_client, subscribe
from tests.support.changes import thing
from tests.support.ports import free_port
from tests.support.program import PATIENCE, Json, Program, eventually, program
from tests.support.rabbit import Rabbit
from tests.support.receiver import running_receiver
from tests.support.scripted_type import Thing, World

LISTENERS = Path(__file__).parents[3] / "examples" / "listeners"
HOOKS = {"hooks": [{"at": "*", "on": "pre-create"}]}
#: Rejects every resource with the name b, with a reason.
CHECK = """
import json, sys
name = json.load(sys.stdin)["resource"]["name"]
print("looking")
print(f"{name} is not wanted" if name == "b" else f"{name} is fine")
sys.exit(name == "b")
"""
COMMAND = ["--", sys.executable, "-c", CHECK]


@pytest.fixture
async def amqp(rabbit: Rabbit) -> AsyncIterator[AmqpClient]:
    async with running_client(rabbit) as opened:
        yield opened


@pytest.fixture
async def run(database_url: str, rabbit: Rabbit, amqp: AmqpClient) -> AsyncIterator[Program]:
    settings = {"channels.amqp.url": rabbit.url, "engine.poll": "1s", **amqp.settings}
    async with program(database_url, settings, types=[Thing(World())]) as run:
        yield run


@contextmanager
def process(folder: Path, *command: str, **environment: str) -> Iterator[Path]:
    """Run a program; yields its output lines, and kills it at the end."""
    printed = folder / "printed"
    with printed.open("ab") as output:
        one = subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | environment)
    try:
        yield printed
        assert one.poll() is None, printed.read_text()
    finally:
        one.terminate()
        one.wait(PATIENCE)


async def decided(run: Program) -> dict[str, tuple[str, str]]:
    """The decisions about a and b."""
    await run.create("s", {"a": thing(), "b": thing()}, environment=HOOKS)
    assert await run.until_ended("s") == "CREATE_FAILED"
    _, response = await run.call("GET", "/hooks?stack=s")
    return {hook["path"]: (hook["decision"], hook["reason"]) for hook in response["hooks"]}


FOUND = {"a": ("continue", "a is fine"), "b": ("reject", "b is not wanted")}


def command(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, str(LISTENERS / "listener.py"), *arguments, *COMMAND)


async def until_listening(printed: Path) -> None:
    async def is_listening() -> bool:
        return "listening" in printed.read_text()

    await eventually(is_listening)


async def test_a_command_answers_webhooks(run: Program, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    body = {"target": f"http://{address}/", "events": ["headgate.hook.*"]}
    _, response = await run.call("POST", "/subscriptions", body)
    with process(tmp_path, *command("--webhook", address), SECRET=response["secret"]) as printed:
        await until_listening(printed)
        assert await decided(run) == FOUND


async def test_a_command_answers_over_amqp(
    run: Program, amqp: AmqpClient, rabbit: Rabbit, tmp_path: Path
) -> None:
    await subscribe(run, amqp, events=["headgate.hook.waiting"])
    arguments = (
        "--amqp", rabbit.url, "--exchange", amqp.exchange, "--queue", f"checks.{amqp.name}",
    )  # fmt: skip
    with process(tmp_path, *command(*arguments)) as printed:
        await until_listening(printed)
        assert await decided(run) == FOUND


async def test_a_command_answers_over_the_event_stream(run: Program, tmp_path: Path) -> None:
    with process(
        tmp_path, *command("--stream", run.url), HEADGATE_PROJECT="p", HEADGATE_USER="ada"
    ) as printed:
        await until_listening(printed)
        assert await decided(run) == FOUND


async def script(name: str, *arguments: str, **environment: str) -> tuple[int, str]:
    command = (str(LISTENERS / name), *arguments)
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=PATIENCE,
        env=os.environ | environment,
    )  # fmt: skip
    return done.returncode, done.stdout


async def test_the_inbox_with_curl_alone(run: Program) -> None:
    await run.create("s", {"a": thing()}, environment=HOOKS)
    (hook,) = await run.waiting_hooks("s")
    where = {"HEADGATE_URL": run.url, "HEADGATE_PROJECT": "p", "HEADGATE_USER": "ann"}
    code, listed = await script("inbox.sh", **where)
    assert code == 0 and [one["id"] for one in orjson.loads(listed)["hooks"]] == [hook["id"]]
    reason = 'looks "right" \\ here'
    code, output = await script("inbox.sh", hook["id"], "continue", reason, **where)
    assert code == 0, output
    hooks = orjson.loads(output)
    assert (hooks["decided_by"], hooks["reason"]) == ("ann", "looks right  here")
    code, output = await script("inbox.sh", hook["id"], "reject", **where)
    assert code != 0 and "already answered" in output


@pytest.mark.parametrize(("command", "decision"), [("true", "continue"), ("false", "reject")])
async def test_a_job_step_answers_with_its_exit_code(
    run: Program, command: str, decision: str
) -> None:
    async with running_receiver() as receiver:
        body = {"target": receiver.url, "events": ["headgate.hook.waiting"]}
        await run.call("POST", "/subscriptions", body)
        await run.create("s", {"a": thing()}, environment=HOOKS)

        async def is_notified() -> Json:
            return receiver.events

        (notice,) = await eventually(is_notified)
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
