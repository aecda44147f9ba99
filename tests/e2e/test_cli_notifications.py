"""A hook that waits is announced in a chat and by e-mail; the link leads to the hook."""

import asyncio
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import ENVIRONMENT, TEMPLATE, headgate, headgate_json
from tests.support.program import ServerProcess
from tests.support.receiver import running_receiver, until
from tests.support.smtp import Relay, running_relay

SETTINGS = """
[channels.email]
host = "127.0.0.1"
port = {port}
encryption = "none"
sender = "headgate@example.org"
recipients = ["*@example.org"]
"""


@pytest.fixture
def relay() -> Iterator[Relay]:
    with running_relay() as relay:
        yield relay


@pytest.fixture
def announcing(relay: Relay) -> Iterator[ServerProcess]:
    """A server that sends e-mails through the relay."""
    with tempfile.TemporaryDirectory(prefix="headgate-e2e-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root, the database runs as another account
        process = ServerProcess(folder, settings=SETTINGS.format(port=relay.port))
        process.start()
        yield process
        assert process.stop() == 0, process.log.read_text()[-3000:]


async def test_a_hook_is_announced_where_people_are(
    announcing: ServerProcess, relay: Relay
) -> None:
    async with running_receiver() as room:
        events = ("--events", "headgate.hook.*")
        for channel, target in (("slack", room.url), ("email", "ops@example.org")):
            create = ("subscription", "create", target, "--channel", channel)
            await asyncio.to_thread(headgate, announcing, *create, *events)
        await asyncio.to_thread(
            headgate, announcing, "stack", "create", "web", "-t", TEMPLATE, "-e", ENVIRONMENT
        )
        await until(lambda: relay.messages and room.received)
        (hook,) = await asyncio.to_thread(headgate_json, announcing, "hook", "list")
        link = f"{announcing.url}/#/default/inbox/{hook['id']}"
        assert room.events[0]["blocks"][-1]["elements"][0]["url"] == link
        body = relay.messages[0].get_body(("plain",))
        assert body is not None
        assert f"Review and answer: {link}" in body.get_content()
        await asyncio.to_thread(headgate, announcing, "hook", "continue", "web:app")
        await until(lambda: len(relay.messages) == len(room.received) == 2)
    assert relay.messages[1]["References"] == relay.messages[0]["References"]
    assert re.search(r"pre-create answered: continue", json.dumps(room.events[1]))


def test_an_address_that_is_not_allowed_is_refused(announcing: ServerProcess) -> None:
    create = ("subscription", "create", "eve@evil.example", "--channel", "email")
    error = headgate(announcing, *create, code=1)
    assert "eve@evil.example" in error
    assert "[channels.email] recipients" in error


def test_a_server_without_a_relay_names_the_setting(server: ServerProcess) -> None:
    create = ("subscription", "create", "ops@example.org", "--channel", "email")
    error = headgate(server, *create, code=1)
    assert "The operator sets [channels.email] host" in error
