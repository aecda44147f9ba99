"""Sign-in with OpenID Connect, with a real provider and two cells."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest

from hub.api.headgate.oidc import PENDING_COOKIE
from tests.integration.api.test_access import bearer
from tests.integration.api.test_cli_login import REDEEM, confirm, redemption
from tests.integration.api.test_oidc import Browser
from tests.support.cells import api_of, cell, of_project, projects_of, running_node, url_of
from tests.support.oidc_provider import OidcProvider, log_in, running_oidc_provider
from tests.support.ports import free_port
from tests.support.postgres import TestServer
from tests.support.program import Http, Program
from tests.support.replication import PostgresNode

#: The provider's groups have roles in the project p, which is in the cell b.
IN_A, IN_B = projects_of("ab")["a"][0], "p"


@dataclass(frozen=True)
class OidcCells:
    http: Http
    node: PostgresNode

    @asynccontextmanager
    async def browser(self) -> AsyncIterator[Browser]:
        async with Browser(cast(Program, self.http)) as opened:
            yield opened

    async def statuses(self, headers: dict[str, str]) -> list[int]:
        """In a project of each cell."""
        calls = [of_project(self.http, one).call("GET", "/stacks", headers=headers)
                 for one in (IN_A, IN_B)]  # fmt: skip
        return [(await call)[0] for call in calls]


@pytest.fixture
async def provider() -> AsyncIterator[OidcProvider]:
    async with running_oidc_provider(f"http://127.0.0.1:{free_port()}") as started:
        yield started


@pytest.fixture
async def cells(postgres: TestServer, provider: OidcProvider) -> AsyncIterator[OidcCells]:
    async with postgres.new_database() as url, running_node("b") as node:
        databases = [cell("a", url), cell("b", url_of(node), projects=[IN_B])]
        async with api_of(databases, provider.settings_with_address()) as http:
            yield OidcCells(http, node)


async def test_users_are_signed_in_to_their_project_or_to_all_cells(cells: OidcCells) -> None:
    """In the browser and on the command line, until they sign out."""
    async with cells.browser() as browser:
        session = await browser.sign_in("id-of-ann", IN_B)
        assert (session["name"], session["everywhere"]) == ("ann", False)
        assert await cells.statuses(browser.headers(session)) == [401, 200]
    async with cells.browser() as browser:
        session = await browser.sign_in("id-of-root", IN_B)
        assert session["everywhere"]
        cookie = browser.headers(session)
        assert await cells.statuses(cookie) == [200, 200]
        status, confirmed = await confirm(browser, IN_A)
        assert status == 201, confirmed
        status, login = await of_project(cells.http, IN_A).call(
            "POST", REDEEM, redemption(confirmed["code"])
        )
        assert status == 201, login
        on_command_line = bearer(login["token"])
        assert await cells.statuses(on_command_line) == [200, 200]
        client = of_project(cells.http, IN_A)
        assert (await client.call("DELETE", "/session", headers=cookie))[0] == 204
        assert await cells.statuses(cookie) == [401, 401]
        assert await cells.statuses(on_command_line) == [200, 200]
        client = of_project(cells.http, IN_B)
        assert (await client.call("DELETE", "/session", headers=on_command_line))[0] == 204
        assert await cells.statuses(on_command_line) == [401, 401]
        _, listed = await client.call(
            "GET",
            "/tokens?everywhere=true",
            headers=browser.headers(await browser.sign_in("id-of-root", IN_B)),
        )
        assert [one["name"] for one in listed["tokens"]] == ["root"]


async def test_a_sign_in_to_a_cell_that_is_away_is_refused_with_a_page(cells: OidcCells) -> None:
    """Before the code of the provider is used."""
    async with cells.browser() as browser:
        url = await log_in(browser.session, browser.start(IN_B), "id-of-ann")
        cells.node.kill()
        answer = await browser.return_to(url)
        text: Any = await answer.text()
        assert (answer.status, answer.content_type) == (503, "text/html"), text
        assert "the cell &quot;b&quot; is not available" in text
        assert "Retry-After" in answer.headers
        assert answer.cookies[PENDING_COOKIE].value == ""
