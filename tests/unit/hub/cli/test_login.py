"""The context of a login."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from typer.testing import CliRunner

from hub.cli.connection.saved_contexts import (
    SavedContext,
    SavedContexts,
    read_contexts,
    write_contexts,
)
from hub.cli.main import app
from tests.unit.hub.cli.stub import running_stub

UNREACHABLE = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("current", "options", "saved_as"),
    [
        ("production", [], "production"),
        ("production", ["--project", "other"], "production"),
        ("production", ["--context", "third", "--url", "{url}"], "third"),
        ("", ["--url", "{url}"], "default"),
        ("far", ["--url", "{url}"], "default"),
    ],
)
async def test_a_login_is_of_the_current_context(
    tmp_path: Path, current: str, options: list[str], saved_as: str
) -> None:
    file = tmp_path / "contexts.json"

    async def respond(_: web.Request) -> web.StreamResponse:
        return web.json_response({"name": "ann"})

    async with running_stub(respond) as stub:
        contexts = {
            "default": SavedContext(UNREACHABLE),
            "far": SavedContext(UNREACHABLE, token="hgt_far"),
            "production": SavedContext(stub.url, "shop"),
        }
        write_contexts(file, SavedContexts(current, contexts))
        words = ["login", *(one.format(url=stub.url) for one in options)]
        run = CliRunner(env={"HEADGATE_CONTEXTS": str(file)}).invoke
        done = await asyncio.to_thread(run, app, words, "hgt_new\n")
        assert done.exit_code == 0, done.output
        saved = read_contexts(file)
        assert (saved.current, saved.contexts[saved_as].url) == (saved_as, stub.url)
    assert saved.contexts[saved_as].token == "hgt_new"
    assert saved.contexts["far"].token == "hgt_far"
