"""Waiting while the server does not respond."""

from collections.abc import Iterator

import pytest
import typer
from aiohttp import web

from engine.back_off import BackOff
from headgate.errors import RequestError, UnreachableError
from hub.cli.commands import watch
from hub.cli.commands.stack_change import wait_for_action
from hub.cli.commands.stack_observation import wait_until_observed
from hub.cli.connection import outage
from hub.cli.connection.client import MAYBE_DONE, ApiClient
from hub.cli.exit_codes import ExitCode
from hub.cli.options import WaitOptions
from tests.unit.hub.cli.stub import Handler, running_stub

LOST = "headgate: connection lost"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "PAUSES", BackOff(0.01, 0.01))


def failing(*statuses: int) -> Handler:
    """A server that responds with each of these statuses, then with success. 0: it closes the
    connection."""
    left: Iterator[int] = iter(statuses)

    async def handler(request: web.Request) -> web.StreamResponse:
        status = next(left, 200)
        if status == 0 and request.transport is not None:
            request.transport.close()
        body = {"ok": True} if status == 200 else {"error": {"message": f"it is {status}"}}
        return web.json_response(body, status=status or 200)

    return handler


async def test_reads_of_a_waiting_command_are_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    async with (
        running_stub(failing(503, 0, 502, 429)) as stub,
        ApiClient(stub.url, "p") as client,
        client.waiting(),
    ):
        assert await client.call("GET", "/stacks") == {"ok": True}
        assert await client.call("GET", "/stacks") == {"ok": True}
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"{LOST} (it is 503); reconnecting for up to 5 min"
    assert second == "headgate: connected again"
    assert len(stub.seen) == 6


async def test_a_rate_limit_is_no_outage(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for without a word, and ends the wait if it lasts as long as an outage may."""
    monkeypatch.setattr(outage, "MAX_RETRY_AFTER", 0.01)
    async with (
        running_stub(failing(429, 429, 200, 429, 200, 429, 503)) as stub,
        ApiClient(stub.url, "p") as client,
        client.waiting(),
    ):
        for _ in range(2):
            assert await client.call("GET", "/stacks") == {"ok": True}
        assert capsys.readouterr().err == ""
        assert await client.call("GET", "/stacks") == {"ok": True}
    first, second = capsys.readouterr().err.splitlines()
    assert (first, second) == (
        f"{LOST} (it is 503); reconnecting for up to 5 min",
        "headgate: connected again",
    )
    monkeypatch.setattr(outage, "MAX_SECONDS", 0.03)
    async with (
        running_stub(failing(*[429] * 99)) as stub,
        ApiClient(stub.url, "p") as client,
        client.waiting(),
    ):
        with pytest.raises(UnreachableError, match="it is 429, for"):
            await client.call("GET", "/stacks")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 500])
async def test_other_errors_end_the_wait(status: int, capsys: pytest.CaptureFixture[str]) -> None:
    async with (
        running_stub(failing(status)) as stub,
        ApiClient(stub.url, "p") as client,
        client.waiting(),
    ):
        with pytest.raises(RequestError, match=f"it is {status}"):
            await client.call("GET", "/stacks")
    assert capsys.readouterr().err == ""


async def test_neither_changes_nor_reads_outside_of_a_wait_are_repeated() -> None:
    async with running_stub(failing(503, 503)) as stub, ApiClient(stub.url, "p") as client:
        async with client.waiting():
            with pytest.raises(RequestError, match="it is 503"):
                await client.call("POST", "/stacks", body={})
        with pytest.raises(RequestError, match="it is 503"):
            await client.call("GET", "/stacks")
    assert len(stub.seen) == 2


async def test_a_long_outage_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "MAX_SECONDS", 0.03)
    async with running_stub(failing(*[503] * 99)) as stub, ApiClient(stub.url, "p") as client:
        client.continuation = "the create continues on the server"
        async with client.waiting():
            with pytest.raises(UnreachableError, match="Check the server and the network") as ended:
                await client.call("GET", "/stacks")
        assert client.addition_to(ended.value) == "The create continues on the server."


async def test_a_timeout_during_an_outage_has_its_exit_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with running_stub(failing(*[503] * 99)) as stub, ApiClient(stub.url, "p") as client:
        with pytest.raises(typer.Exit) as ended:
            await wait_for_action(client, "1", "CREATE", WaitOptions(True, False, 0.01))
    assert ended.value.exit_code == ExitCode.TIMED_OUT
    assert "--timeout has expired: it is 503. The create continues" in capsys.readouterr().err
    async with ApiClient("http://127.0.0.1:1", "p") as client:
        with pytest.raises(typer.Exit) as ended:
            await wait_for_action(client, "1", "CREATE", WaitOptions(True, False, 0.05))
    assert ended.value.exit_code == ExitCode.TIMED_OUT
    assert capsys.readouterr().err.splitlines()[-1] == (
        "headgate: --timeout has expired: no response from http://127.0.0.1:1: connection refused."
        " The create continues on the server. `headgate watch 1` follows it, `headgate stack stop"
        " 1` stops it."
    )


async def test_an_observation_that_is_waited_for_ends_likewise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stack = {"stack_name": "web", "id": "1"}
    async with running_stub(failing(*[503] * 99)) as stub, ApiClient(stub.url, "p") as client:
        with pytest.raises(typer.Exit) as ended:
            await wait_until_observed(client, stack, 0.01)
    assert ended.value.exit_code == ExitCode.TIMED_OUT
    assert capsys.readouterr().err.splitlines()[-1] == (
        "headgate: --timeout has expired: it is 503. The observation continues on the server."
        " `headgate stack drift web` shows its result."
    )


async def test_the_request_of_a_change_may_have_arrived() -> None:
    async with running_stub(failing(0)) as stub, ApiClient(stub.url, "p") as client:
        with pytest.raises(UnreachableError) as closed:
            await client.call("POST", "/stacks", body={})
        assert closed.value.may_have_arrived
        assert client.addition_to(closed.value) == f"{MAYBE_DONE[0].upper()}{MAYBE_DONE[1:]}."
    async with ApiClient("http://127.0.0.1:1", "p") as client:
        with pytest.raises(UnreachableError) as refused:
            await client.call("POST", "/stacks", body={})
        assert client.addition_to(refused.value) == ""


async def test_nothing_continues_for_a_missing_object() -> None:
    async with ApiClient("http://127.0.0.1:1", "p") as client:
        client.continuation = "the create continues on the server"
        assert client.addition_to(RequestError(404, "no stack")) == ""


async def test_followed_events_say_that_the_connection_was_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(outage, "MAX_SECONDS", 0.03)

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/stream"):
            return web.json_response({"error": {"message": "it is away"}}, status=503)
        return web.json_response({"stack": {"id": "1", "stack_name": "web"}})

    async with running_stub(handler) as stub, ApiClient(stub.url, "p") as client:
        with pytest.raises(UnreachableError, match="it is away"):
            await watch.follow(client, "web", as_json=False)
    assert capsys.readouterr().err.count(LOST) == 1
