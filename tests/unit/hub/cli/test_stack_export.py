"""Export and abandon: the export is never lost."""

import json
import stat
from pathlib import Path

import pytest
from aiohttp import web
from typer.testing import CliRunner

from headgate.errors import RequestError
from hub.cli.commands.stack_export import ExportFile, abandon_stack
from hub.cli.connection.client import ApiClient
from hub.cli.inputs.files import InputError
from hub.cli.main import app
from tests.unit.hub.cli.stub import Handler, running_stub

STACK = {"stack_name": "web", "id": "1"}


def export_server(*, abandons: int = 200, breaks: bool = False) -> Handler:
    """A server that exports, and then abandons, refuses to abandon, or does not respond."""

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response({"it": "exported"})
        if breaks:
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"it": "abandoned"}, status=abandons)

    return handler


async def run_abandon(handler: Handler, output: Path | None) -> None:
    async with running_stub(handler) as stub, ApiClient(stub.url, "p") as client:
        await abandon_stack(client, STACK, output, False)
        assert [one.method for one in stub.seen] == ["GET", "DELETE"]


async def test_the_export_is_in_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    await run_abandon(export_server(), path)
    assert json.loads(path.read_text()) == {"it": "abandoned"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_without_a_file_the_export_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    await run_abandon(export_server(), None)
    assert json.loads(capsys.readouterr().out) == {"it": "abandoned"}


async def test_a_stack_that_is_not_abandoned_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with pytest.raises(RequestError):
        await run_abandon(export_server(abandons=409), path)
    assert not path.exists()


async def test_the_export_is_kept_if_the_response_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.json"
    with pytest.raises(RequestError):
        await run_abandon(export_server(breaks=True), path)
    assert json.loads(path.read_text()) == {"it": "exported"}
    printed = capsys.readouterr()
    assert "may have been abandoned" in printed.err
    with pytest.raises(RequestError):
        await run_abandon(export_server(breaks=True), None)
    assert json.loads(capsys.readouterr().out) == {"it": "exported"}


async def test_an_existing_file_is_not_overwritten_and_nothing_is_requested(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text("mine")
    async with running_stub(export_server()) as stub, ApiClient(stub.url, "p") as client:
        with pytest.raises(InputError, match="File exists; nothing was changed"):
            await abandon_stack(client, STACK, path, False)
        assert stub.seen == [] and path.read_text() == "mine"


async def test_an_export_that_cannot_be_written_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, handler = tmp_path / "s.json", export_server()

    async def fill_disk(request: web.Request) -> web.StreamResponse:
        if request.method == "DELETE":
            path.unlink()
            path.mkdir()
        return await handler(request)

    with pytest.raises(InputError, match="cannot be written"):
        await run_abandon(fill_disk, path)
    assert json.loads(capsys.readouterr().out) == {"it": "abandoned"}


def test_an_empty_export_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with ExportFile(path):
        assert path.exists()
    assert not path.exists()


def test_an_export_that_is_no_document_is_refused_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "web.json"
    path.write_text("{]")
    words = ["stack", "adopt", "web", "-f", str(path), "--url", "http://127.0.0.1:1"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert f"{path}:1:2: " in done.stderr
