"""Notifications through Apprise to a local service, and what its faults look like."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from aiohttp import web

from channels.apprise.channel import AppriseChannel
from channels.apprise.services import read_services
from channels.contract import Delivered, Endpoint, EventMessage, Failed
from engine.errors import Findings, Invalid, Unavailable
from hub.program.wiring import apprise_services
from hub.settings.settings import AppriseSection
from tests.support.ports import free_port
from tests.unit.channels.test_envelope import EVENT, WAITING, render

SENT_AT = datetime(2026, 1, 2, tzinfo=UTC)
MESSAGE = EventMessage(
    str(EVENT), "headgate.hook.waiting", render("headgate.hook.waiting", WAITING), SENT_AT, True
)


@asynccontextmanager
async def running_service(status: int = 200) -> AsyncIterator[tuple[str, list[Any]]]:
    """A service that gets JSON: its URL for Apprise, and what it has got."""
    got: list[Any] = []

    async def receive(request: web.Request) -> web.Response:
        got.append(await request.json())
        return web.Response(status=status)

    app = web.Application()
    app.router.add_post("/room", receive)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"json://127.0.0.1:{port}/room", got
    finally:
        await runner.cleanup()


def channel(lines: str, *, targets: tuple[str, ...] = ("ops*",)) -> AppriseChannel:
    findings = Findings()
    services = read_services(lines, findings)
    findings.raise_if_any()
    return AppriseChannel(services, targets, "https://headgate.example/")


def endpoint(target: str = "ops", *, configured: bool = False) -> Endpoint:
    return Endpoint(UUID(int=1), target, (), configured)


async def test_a_waiting_hook_arrives_with_a_link_and_without_its_token() -> None:
    async with running_service() as (url, got):
        given = channel(f"# rooms\n\nops = {url}\n")
        assert await given.deliver(MESSAGE, endpoint()) == Delivered(None)
    ((message),) = got
    assert message["title"] == "web/db: create waits for approval"
    assert "https://headgate.example/#/demo/inbox/" in message["message"]
    assert "a-token" not in str(message)


async def test_a_digest_is_one_message() -> None:
    async with running_service() as (url, got):
        given = channel(f"ops = {url}")
        assert await given.deliver_digest([MESSAGE, MESSAGE], endpoint()) == Delivered(None)
    assert len(got) == 1
    assert got[0]["message"].count("https://headgate.example/#/demo/inbox/") >= 2


async def test_a_service_that_refuses_or_is_away_fails_the_attempt() -> None:
    refused = Failed("the service refused the message, or cannot be reached")
    async with running_service(503) as (url, _):
        assert await channel(f"ops = {url}").deliver(MESSAGE, endpoint()) == refused
    assert await channel(f"ops = {url}").deliver(MESSAGE, endpoint()) == refused


async def test_projects_name_only_the_services_that_the_operator_allows() -> None:
    async with running_service() as (url, got):
        given = channel(f"ops = {url}\nboss = {url}")
        await given.check_target("ops")
        for target in ("boss", "ops2", url):
            with pytest.raises(Invalid, match="Services: ops\\."):
                await given.check_target(target)
        not_allowed = Failed("the operator does not allow this service any longer")
        assert await given.deliver(MESSAGE, endpoint("boss")) == not_allowed
        configured = endpoint("boss", configured=True)
        assert await given.deliver(MESSAGE, configured) == Delivered(None)
        assert len(got) == 1
    removed = Failed("the operator has removed this service")
    assert await given.deliver(MESSAGE, endpoint("ops2")) == removed


FAULTS: Mapping[str, str] = {
    "ops matrixs://u:secret@example.org": "line 1 does not have the form NAME = URL",
    "ops = nothing://u:secret@example.org": "line 1 has a URL that Apprise does not accept",
    "ops = json://secret\nops = json://b": 'line 2 has the name "ops" again',
}


@pytest.mark.parametrize(("text", "reason"), FAULTS.items(), ids=["form", "URL", "name"])
def test_a_wrong_file_stops_the_start_and_is_named_without_a_url(
    tmp_path: Path, text: str, reason: str
) -> None:
    file = tmp_path / "services"
    file.write_text(text)
    with pytest.raises(Unavailable) as stopped:
        apprise_services(AppriseSection(services_file=str(file)))
    assert f"{file}, {reason}" in str(stopped.value)
    assert "secret" not in str(stopped.value)
