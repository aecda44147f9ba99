"""A stack that is carried elsewhere: whatever goes wrong, what it takes to adopt it is not lost."""

import json
import stat
from pathlib import Path

import pytest
from aiohttp import web

from hub.cli.client import Client, Refused
from hub.cli.export_import import Parcel, let_go
from hub.cli.file_references import Unreadable
from tests.unit.hub.cli.stub import Handler, serving

STACK = {"stack_name": "web", "id": "1"}


def exporting(*, abandons: int = 200, breaks: bool = False) -> Handler:
    """A server that exports, and then abandons, refuses to, or falls silent over it."""

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response({"it": "exported"})
        if breaks:
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"it": "abandoned"}, status=abandons)

    return handler


async def abandoned(handler: Handler, output: Path | None) -> None:
    async with serving(handler) as stub, Client(stub.url, "p") as client:
        await let_go(client, STACK, output, False)
        assert [one.method for one in stub.seen] == ["GET", "DELETE"]


async def test_what_was_abandoned_is_in_the_file_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    await abandoned(exporting(), path)
    assert json.loads(path.read_text()) == {"it": "abandoned"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_without_a_file_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    await abandoned(exporting(), None)
    assert json.loads(capsys.readouterr().out) == {"it": "abandoned"}


async def test_a_stack_that_is_not_abandoned_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with pytest.raises(Refused):
        await abandoned(exporting(abandons=409), path)
    assert not path.exists()


async def test_when_the_answer_is_lost_the_export_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.json"
    with pytest.raises(Refused):
        await abandoned(exporting(breaks=True), path)
    assert json.loads(path.read_text()) == {"it": "exported"}
    said = capsys.readouterr()
    assert "may have been abandoned" in said.err
    with pytest.raises(Refused):
        await abandoned(exporting(breaks=True), None)
    assert json.loads(capsys.readouterr().out) == {"it": "exported"}


async def test_a_file_that_is_there_is_left_alone_and_nothing_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text("mine")
    async with serving(exporting()) as stub, Client(stub.url, "p") as client:
        with pytest.raises(Unreadable, match="File exists; nothing was changed"):
            await let_go(client, STACK, path, False)
        assert stub.seen == [] and path.read_text() == "mine"


async def test_what_cannot_be_written_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, handler = tmp_path / "s.json", exporting()

    async def spoiling(request: web.Request) -> web.StreamResponse:
        if request.method == "DELETE":
            path.unlink()
            path.mkdir()
        return await handler(request)

    with pytest.raises(Unreadable, match="cannot be written"):
        await abandoned(spoiling, path)
    assert json.loads(capsys.readouterr().out) == {"it": "abandoned"}


def test_an_empty_parcel_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with Parcel(path):
        assert path.exists()
    assert not path.exists()
