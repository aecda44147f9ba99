"""Answers by buttons in Slack, with two cells: a click is answered in the cell that has the hook."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import orjson
import pytest

from engine.store.fault_points import InjectedFault, inject_fault
from hub.api.cells import unavailable
from hub.api.slack_answers import SlackAnswers
from hub.cli.commands import project_move
from hub.cli.commands.project_move import move_project
from hub.cli.commands.token_creation import create_token
from hub.program.cells.served_cells import ServedCells
from tests.integration.api.test_access import bearer
from tests.integration.api.test_slack_answers import (
    ADA,
    BOB,
    HOOK,
    Slack,
    buttons,
    signed,
    slack_settings,
    text,
)
from tests.support.cells import (
    api_of,
    cell,
    cells_settings,
    engine_of,
    new_token,
    of_project,
    projects_of,
)
from tests.support.program import Http, Program, eventually, resource, template
from tests.support.receiver import Receiver

Json = Any
pytestmark = pytest.mark.usefixtures("cheap_hashes")
IN_A, IN_B = (of[0] for of in projects_of("ab").values())


@dataclass(frozen=True)
class SlackCells:
    """stack: of the engines. root: headers of an admin of every project. served: the cells of the
    API process."""

    urls: list[str]
    stack: AsyncExitStack
    http: Http
    slack: Slack
    root: Mapping[str, str]
    settings: Mapping[str, Json]
    served: ServedCells

    async def waiting(self, project: str) -> Json:
        """The message of a hook that waits, from the engine of its cell."""
        url = self.urls[[IN_A, IN_B].index(project)]
        await self.stack.enter_async_context(engine_of(url, self.http.url, **self.settings))
        body: Json = {"channel": "slack", "target": f"{self.slack.receiver.url}/services/T/B/x"}
        assert await self.call(project, "/subscriptions", body) == 201
        body = {"stack_name": "s", "template": template({"a": resource()})}
        assert await self.call(project, "/stacks", body | {"environment": {"hooks": [HOOK]}}) == 201
        return await self.slack.message()

    async def call(self, project: str, path: str, body: Json) -> int:
        client = of_project(self.http, project)
        return (await client.call("POST", path, body, headers=self.root))[0]

    async def hook(self, project: str) -> Json:
        client = of_project(self.http, project)
        (found,) = (await client.call("GET", "/hooks", headers=self.root))[1]["hooks"]
        return found

    async def move(self) -> None:
        databases = [cell(name, url) for name, url in zip("ab", self.urls, strict=False)]
        settings = cells_settings(databases, self.settings)
        await move_project(settings, IN_A, "b", undo=False, wait=5, report=lambda _: None)


@pytest.fixture
async def cells(
    urls: list[str], tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SlackCells]:
    """ada: a token of every project. bob: one of the project in the cell a."""
    monkeypatch.setattr(project_move, "NOTICE_TIME", 0.0)
    monkeypatch.setattr("hub.program.cells.project_moves.MAX_AGE", 0.0)
    served: list[ServedCells] = []

    class Recorded(ServedCells):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            served.append(self)

    monkeypatch.setattr("hub.program.cells.running.ServedCells", Recorded)
    ada, token = new_token("*", "ada")
    bob, _ = new_token(IN_A, "bob")
    users = [{"id": ADA, "user": str(ada.id)}, {"id": BOB, "user": str(bob.id)}]
    settings = slack_settings(tmp_path) | {"auth.mode": "tokens", "channels.slack.users": users}
    databases = [cell(name, url) for name, url in zip("ab", urls, strict=False)]
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(api_of(databases, settings))
        for record in (ada, bob):
            await create_token(cells_settings(databases, settings), record)
        slack = Slack(cast(Program, of_project(http, IN_A)), receiver)
        yield SlackCells(urls, stack, http, slack, bearer(token or ""), settings, served[0])


async def test_a_click_answers_the_hook_in_the_cell_that_has_it(cells: SlackCells) -> None:
    """With the rights in the project of the hook, by a button that the server has made for it."""
    message = await cells.waiting(IN_B)
    button = buttons(message)["continue"]
    cells.served.states["b"].record(unavailable(["b"]))
    assert await cells.slack.click(button) == 200
    refused = text((await cells.slack.replies())[0])
    assert 'The answer was not stored: the cell "b" is not available. Click again.' in refused
    cells.served.states["b"].record(None)
    assert await cells.slack.click(button, BOB) == 200
    refused = text((await cells.slack.replies(2))[1])
    assert f"no right to answer hooks of the project {IN_B}" in refused
    hook_id, digest, token = button["value"].split()
    forged = button | {"value": f"{hook_id} {digest} {token[::-1]}"}
    assert await cells.slack.click(forged) == 200
    assert "this button is not valid" in text((await cells.slack.replies(3))[2])
    payload = cells.slack.payload(button, message=message)
    body = urlencode({"payload": orjson.dumps(payload).decode()}).encode()
    headers = signed(body)
    assert await cells.slack.post(body, headers) == 200
    assert "approved by ada, " in text((await cells.slack.replies(4))[3])
    assert (await cells.hook(IN_B))["decided_by"] == "ada"
    assert await cells.slack.click(buttons(message)["reject"], message=message) == 200
    decided = (await cells.slack.replies(6))[4:]
    assert [one["replace_original"] for one in decided] == [True, False]
    # Also a cell alone knows the copied request.
    for away in ("a", "b"):
        cells.served.states[away].record(unavailable([away]))
        assert await cells.slack.post(body, headers) == 401
        cells.served.states[away].record(None)


async def test_buttons_stay_valid_when_the_project_moves(cells: SlackCells) -> None:
    """Between two steps of the move, no cell has the hook."""
    button = buttons(await cells.waiting(IN_A))["continue"]
    with inject_fault("move.taken:1:raise"), pytest.raises(InjectedFault):
        await cells.move()
    await eventually(lambda: _is_moving(cells))
    assert await cells.slack.click(button) == 200
    refused = text((await cells.slack.replies())[0])
    assert "not stored: a project is being moved to another cell. Click again." in refused
    await cells.move()
    assert await cells.slack.click(button, BOB) == 200
    assert "approved by bob, " in text((await cells.slack.replies(2))[1])
    assert (await cells.hook(IN_A))["state"] == "answered"


async def _is_moving(cells: SlackCells) -> bool:
    return IN_A in cells.served.moving()


async def test_a_hook_that_moves_while_it_is_answered_is_answered_in_the_new_cell(
    cells: SlackCells, monkeypatch: pytest.MonkeyPatch
) -> None:
    button = buttons(await cells.waiting(IN_A))["continue"]
    answer, moved = SlackAnswers._answer, list[bool]()

    async def move_before(self: SlackAnswers, *args: Any) -> Any:
        if not moved:
            moved.append(True)
            await cells.move()
        return await answer(self, *args)

    monkeypatch.setattr(SlackAnswers, "_answer", move_before)
    assert await cells.slack.click(button) == 200
    assert "approved by ada, " in text((await cells.slack.replies())[0])
