"""Where nobody is asked who they are, pages of other sites change nothing, and read nothing."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.integration.api.test_access import guarded
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, free_port, program, resource, template

pytestmark = pytest.mark.asyncio(loop_scope="module")
FRIEND = "https://friend.example"
REFUSED = (403, "CrossSiteRequest")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def run(postgres: TestServer) -> AsyncIterator[Program]:
    async with (
        postgres.new_database() as url,
        program(url, {"server.cors_origins": [FRIEND]}) as made,
    ):
        yield made


async def sent(run: Program, method: str, path: str, **headers: str) -> tuple[int, Json]:
    """Status, and the type of the error if it is one."""
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    status, got = await run.call(method, path, {} if method == "POST" else None, headers=said)
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
    stack = await there(run) or await run.create("s", {"a": resource()})
    assert await sent(run, "POST", "/validate", **headers) == REFUSED
    assert await sent(run, "DELETE", f"/stacks/s/{stack}", **headers) == REFUSED
    # As a form would send it, which no browser asks about first.
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    body = b'{"stack_name": "evil", "template": {"heat_template_version": "2018-08-31"}}'
    plain = said | {"Content-Type": "text/plain"}
    status, _ = await run.call("POST", "/stacks", data=body, headers=plain)
    assert status == 403 and await there(run, "evil") is None
    # What it may not read, its browser keeps from it.
    assert (await sent(run, "GET", "/stacks", **headers))[0] == 200


async def there(run: Program, name: str = "s") -> str | None:
    _, said = await run.call("GET", f"/stacks?name={name}")
    return next((one["id"] for one in said["stacks"]), None)


async def test_pages_of_our_own_and_programs_do(run: Program) -> None:
    own = run.url.rstrip("/")
    body = {"template": template({})}
    for headers in (
        {}, {"Origin": own}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"},
        {"Origin": own, "Sec-Fetch-Site": "same-origin"},
        {"Origin": FRIEND, "Sec-Fetch-Site": "cross-site"},
    ):  # fmt: skip
        status, said = await run.call("POST", "/validate", body, headers=headers)
        assert status == 200, (headers, said)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8004", "localhost.evil.example",
                                  "127.0.0.1.evil.example", "1.2.3"])  # fmt: skip
async def test_a_name_that_somebody_else_has_lead_here(run: Program, host: str) -> None:
    for method, path in (("GET", "/stacks"), ("GET", "/events/stream"), ("POST", "/validate")):
        found = await sent(run, method, path, Host=host, Sec_Fetch_Site="same-origin")
        assert found == (403, "UnknownHost")


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "LOCALHOST.", "app.localhost",
                                  "127.0.0.1", "[::1]:8004", "10.0.0.1"])  # fmt: skip
async def test_names_that_nobody_can_lead_elsewhere(run: Program, host: str) -> None:
    assert (await sent(run, "GET", "/stacks", Host=host))[0] == 200


@pytest.mark.asyncio(loop_scope="function")
async def test_a_server_with_a_name_goes_by_it(database_url: str) -> None:
    listen = f"127.0.0.1:{free_port()}"
    said = {"server.public_url": "https://headgate.example", "server.listen": listen}
    async with program(database_url, said) as run:
        run.url = f"http://{listen}"
        own = {"Host": "headgate.example", "Origin": "https://headgate.example"}
        status, _ = await run.call("POST", "/validate", {"template": template({})}, headers=own)
        assert status == 200
        assert (await sent(run, "GET", "/stacks", Host="evil.example"))[0] == 403


@pytest.mark.asyncio(loop_scope="function")
async def test_where_everybody_is_asked_tokens_are_enough(database_url: str) -> None:
    async with guarded(database_url) as (run, admin):
        headers = {**admin, "Host": "any.example", "Origin": "https://other.example"}
        status, _ = await run.call("POST", "/validate", {"template": template({})}, headers=headers)
        assert status == 200
