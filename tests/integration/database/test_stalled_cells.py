"""Cells whose database accepts connections and answers nothing."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import pytest

from engine.store.database import open_database
from tests.support.cells import (
    api_of,
    cell,
    engine_of,
    of_project,
    projects_of,
    relayed,
    running_node,
)
from tests.support.postgres import TestServer
from tests.support.program import Http, eventually, resource
from tests.support.relay import Relay
from tests.support.replication import PostgresNode

#: Seconds of a request that waits for a stalled cell: its bound is 2 s.
SOON = 6.0
HANDLE = {
    "heat_template_version": "2018-08-31",
    "resources": {"handle": {"type": "OS::Heat::WaitConditionHandle"}},
    "outputs": {name: {"value": {"get_attr": ["handle", name]}} for name in ("endpoint", "token")},
}


@pytest.fixture
async def node() -> AsyncIterator[PostgresNode]:
    async with running_node("a") as node:
        yield node


@pytest.fixture
async def url(postgres: TestServer) -> AsyncIterator[str]:
    async with postgres.new_database() as url:
        yield url


@contextmanager
def within(seconds: float) -> Iterator[None]:
    began = monotonic()
    yield
    taken = monotonic() - began
    assert taken < seconds, f"it took {taken:.1f} s"


async def sign_in(http: Http, project: str) -> dict[str, str]:
    """The header with the cookie of a new session."""
    async with http.session.post(
        f"{http.url}/v1/{project}/session",
        json={"user": "ada", "password": "x"},
        headers={"X-Auth-User": "ada", "Origin": http.url},
    ) as answer:
        assert answer.status == 201, await answer.text()
        return {"Cookie": f"headgate_session={answer.cookies['headgate_session'].value}"}


async def test_it_delays_no_request_of_another_cell(node: PostgresNode, url: str) -> None:
    """Neither with a session of a browser, nor with the token of a signal URL."""
    in_a, in_b = (of[0] for of in projects_of("ab").values())
    async with (
        relayed(node) as (relay, url_a),
        api_of([cell("a", url_a), cell("b", url)]) as http,
        engine_of(url, http.url),
    ):
        second = of_project(http, in_b)
        of_a, of_b = await sign_in(http, in_a), await sign_in(http, in_b)
        body = {"stack_name": "s", "template": HANDLE}
        assert (await second.call("POST", "/stacks", body))[0] == 201
        assert await second.until_ended("s") == "CREATE_COMPLETE"
        known = {
            one["output_key"]: one["output_value"] for one in (await second.stack("s"))["outputs"]
        }
        relay.silence()
        with within(SOON):
            status, found = await second.call("GET", "/session", headers=of_b)
        assert (status, found["name"]) == (200, "ada")
        right = {"Authorization": f"Bearer {known['token']}"}
        with within(SOON):
            async with http.session.post(known["endpoint"], json={}, headers=right) as answer:
                assert answer.status == 200, await answer.text()
        wrong = {"Authorization": "Bearer wrong"}
        with within(SOON):
            async with http.session.post(known["endpoint"], json={}, headers=wrong) as answer:
                assert answer.status in (401, 503)
        with within(SOON):
            status, refused = await second.call("GET", "/session", headers=of_a)
        assert (status, refused["error"]["type"]) == (503, "CellUnavailable")
        assert 'the cell "a" is not available' in refused["error"]["message"]
        with within(SOON):
            token = {**of_b, "X-CSRF-Token": found["csrf"], "Origin": http.url}
            assert (await second.call("DELETE", "/session", headers=token))[0] == 204
        relay.restore()
        await eventually(lambda: has_session(second, of_a))
        assert not await has_session(second, of_b)


async def has_session(http: Http, headers: dict[str, str]) -> bool:
    status, found = await http.call("GET", "/session", headers=headers)
    return bool(status == 200 and found["name"] == "ada")


async def test_lists_of_all_projects_wait_a_limited_time(node: PostgresNode, url: str) -> None:
    in_b = projects_of("ab")["b"][0]
    async with (
        relayed(node) as (relay, url_a),
        api_of([cell("a", url_a), cell("b", url)]) as http,
    ):
        second = of_project(http, in_b)
        await second.create("s", {"web": resource()})
        relay.silence()
        with within(9.0):
            status, page = await second.call("GET", "/stacks?global_tenant=true")
        assert status == 200, page
        assert [one["stack_name"] for one in page["stacks"]] == ["s"]
        assert "not available: a" in page["warnings"][0]["message"]


async def test_it_is_unavailable_until_it_responds(node: PostgresNode) -> None:
    """Its requests are refused at once then, and the server is not ready without another cell."""
    async with relayed(node) as (relay, url_a), api_of([cell("a", url_a)]) as http:

        async def ready(status: int) -> Any:
            found, document = await http.call("GET", "//readyz")
            return document if found == status else None

        await http.create("s", {"web": resource()})
        relay.silence()
        refusal = await eventually(lambda: ready(503))
        (reason,) = refusal["missing"]
        assert reason.startswith('a: [cells] databases "a" url: the database cannot be used now')
        assert "it does not respond within 2 s" in reason
        with within(1.0):
            status, refused = await http.call("GET", "/stacks")
        assert (status, refused["error"]["type"]) == (503, "CellUnavailable")
        relay.restore()
        await eventually(lambda: ready(200))
        assert (await http.call("GET", "/stacks"))[0] == 200


@pytest.mark.parametrize("kind", ["connection", "transaction", "snapshot"])
async def test_a_cancelled_statement_waits_a_limited_time_for_its_server(
    node: PostgresNode, kind: str
) -> None:
    """After that, its connection is terminated, and another one takes its place."""
    async with relayed(node) as (relay, url):
        database = await open_database(url, size=1)
        try:
            with within(4.0), pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5), getattr(database, kind)() as conn:
                    await stall(relay, conn)
            relay.restore()
            async with asyncio.timeout(10), database.connection() as conn:
                assert await conn.fetchval("select 1") == 1
        finally:
            await database.close()


async def stall(relay: Relay, conn: Any) -> None:
    """A statement that the server does not answer."""
    await conn.fetchval("select 1")
    relay.silence()
    await conn.fetchval("select 1")
