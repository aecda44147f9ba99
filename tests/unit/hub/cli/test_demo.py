"""The demo says that a long step continues."""

import asyncio

import pytest

from hub.cli.commands import demo


async def test_a_long_step_prints_how_long_it_has_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SILENCE", 0.01)
    progress = asyncio.create_task(demo.report_progress())
    printed = ""
    async with asyncio.timeout(60):
        while printed.count("... ") < 2:
            await asyncio.sleep(0)
            printed += capsys.readouterr().out
    progress.cancel()


def test_addresses_and_folders_are_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    place = "http://127.0.0.1:8004/" + "long/" * 40
    demo._report("Server started", f"{place} and more")
    assert f"Server started  {place} and more\n" in capsys.readouterr().out
