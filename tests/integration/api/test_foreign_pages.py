"""In mode none, pages of other sites can neither change nor read anything."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.integration.api.test_access import run_with_tokens
from tests.support.ports import free_port
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, program, resource, template

pytestmark = pytest.mark.asyncio(loop_scope="module")
ALLOWED_ORIGIN = "https://friend.example"
REFUSED = (403, "CrossSiteRequest")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def run(postgres: TestServer) -> AsyncIterator[Program]:
    async with (
        postgres.new_database() as url,
        program(url, {"server.cors_origins": [ALLOWED_ORIGIN]}) as server,
    ):
        yield server


async def sent(run: Program, method: str, path: str, **headers: str) -> tuple[int, Json]:
    """The status, and the type of the error."""
    sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    status, got = await run.call(
        method, path, {} if method == "POST" else None, headers=sent_headers
    )
    return status, got["error"]["type"] if status >= 400 else None


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site", "Origin": "http://127.0.0.1:3000"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://friend.example.evil.example", "Sec_Fetch_Site": "cross-site"},
    ],
)
async def test_a_page_of_another_site_changes_nothing(
    run: Program, headers: dict[str, str]
) -> None:
    stack = await exists(run) or await run.create("s", {"a": resource()})
    assert await sent(run, "POST", "/validate", **headers) == REFUSED
    assert await sent(run, "DELETE", f"/stacks/s/{stack}", **headers) == REFUSED
    # The request of a form, for which browsers send no preflight.
    sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    body = b'{"stack_name": "evil", "template": {"heat_template_version": "2018-08-31"}}'
    plain = sent_headers | {"Content-Type": "text/plain"}
    status, _ = await run.call("POST", "/stacks", data=body, headers=plain)
    assert status == 403 and await exists(run, "evil") is None
    # The browser does not show the response to the page.
    assert (await sent(run, "GET", "/stacks", **headers))[0] == 200


async def exists(run: Program, name: str = "s") -> str | None:
    _, response = await run.call("GET", f"/stacks?name={name}")
    return next((one["id"] for one in response["stacks"]), None)


async def test_own_pages_and_programs_are_accepted(run: Program) -> None:
    own = run.url.rstrip("/")
    body = {"template": template({})}
    for headers in (
        {}, {"Origin": own}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"},
        {"Origin": own, "Sec-Fetch-Site": "same-origin"},
        {"Origin": ALLOWED_ORIGIN, "Sec-Fetch-Site": "cross-site"},
    ):  # fmt: skip
        status, response = await run.call("POST", "/validate", body, headers=headers)
        assert status == 200, (headers, response)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8004", "localhost.evil.example",
                                  "127.0.0.1.evil.example", "1.2.3"])  # fmt: skip
async def test_a_foreign_host_name_is_refused(run: Program, host: str) -> None:
    for method, path in (("GET", "/stacks"), ("GET", "/events/stream"), ("POST", "/validate")):
        found = await sent(run, method, path, Host=host, Sec_Fetch_Site="same-origin")
        assert found == (403, "UnknownHost")


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "LOCALHOST.", "app.localhost",
                                  "127.0.0.1", "[::1]:8004", "10.0.0.1"])  # fmt: skip
async def test_local_names_and_addresses_are_accepted(run: Program, host: str) -> None:
    assert (await sent(run, "GET", "/stacks", Host=host))[0] == 200


@pytest.mark.asyncio(loop_scope="function")
async def test_a_public_url_sets_the_accepted_host(database_url: str) -> None:
    listen = f"127.0.0.1:{free_port()}"
    settings = {"server.public_url": "https://headgate.example", "server.listen": listen}
    async with program(database_url, settings) as run:
        run.url = f"http://{listen}"
        own = {"Host": "headgate.example", "Origin": "https://headgate.example"}
        status, _ = await run.call("POST", "/validate", {"template": template({})}, headers=own)
        assert status == 200
        assert (await sent(run, "GET", "/stacks", Host="evil.example"))[0] == 403


@pytest.mark.asyncio(loop_scope="function")
async def test_with_authentication_the_host_is_not_checked(database_url: str) -> None:
    async with run_with_tokens(database_url) as (run, admin):
        headers = {**admin, "Host": "any.example", "Origin": "https://other.example"}
        status, _ = await run.call("POST", "/validate", {"template": template({})}, headers=headers)
        assert status == 200
