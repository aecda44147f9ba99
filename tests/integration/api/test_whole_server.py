"""Functions for the whole server require a role in every project."""

import socket

from tests.integration.api.test_access import basic, bearer, run_with_tokens, token
from tests.support.program import program, resource, template

SERVICE = {
    "id", "host", "hostname", "binary", "engine_id", "topic", "status", "version",
    "report_interval", "created_at", "updated_at", "deleted_at", "labels",
}  # fmt: skip


async def test_an_operator_of_a_project_sees_neither_hosts_nor_processes(
    database_url: str,
) -> None:
    async with run_with_tokens(database_url) as (run, admin), run_with_tokens(database_url):
        _, response = await run.call("GET", "/services", headers=admin)
        assert {one["host"] for one in response["services"]} == {socket.gethostname()}
        assert len({one["engine_id"] for one in response["services"]}) == 2
        local = bearer(await token(run, admin, "local", "operator"))
        status, own = await run.call("GET", "/services", headers=local)
        assert status == 200
        assert sorted(one["topic"] for one in own["services"]) == sorted(
            {one["topic"] for one in response["services"]}
        )
        for one in own["services"]:
            assert set(one) == SERVICE and one["status"] == "up"
        text = str(own)
        for one in response["services"]:
            assert one["engine_id"] not in text and one["id"] not in text
        assert socket.gethostname() not in text


async def test_a_pin_requires_a_role_in_every_project(
    database_url: str,
) -> None:
    async with run_with_tokens(database_url) as (run, admin):
        sent = {"stack_name": "s", "template": template({"a": resource()})}
        _, created = await run.call("POST", "/stacks", sent, headers=admin)
        path = f"/stacks/s/{created['stack']['id']}/pin"
        local = bearer(await token(run, admin, "local", "admin"))
        for method in ("PUT", "DELETE"):
            status, response = await run.call(method, path, headers=local)
            assert (status, response["error"]["type"]) == (403, "Forbidden")
            assert (await run.call(method, path, headers=admin))[0] == 200


async def test_tokens_of_mode_none_are_refused_in_mode_tokens(database_url: str) -> None:
    secret = "correct horse battery"
    body = {"name": "eve", "roles": ["admin"], "everywhere": True}
    async with program(database_url) as free:
        status, response = await free.call("POST", "/tokens", body)
        assert (status, response["mode"]) == (201, "none")
        status, _ = await free.call("POST", "/tokens", body | {"password": secret})
        assert status == 201
    async with run_with_tokens(database_url) as (run, admin):
        for headers in (bearer(response["token"]), basic("eve", secret)):
            assert (await run.call("GET", "/stacks", headers=headers))[0] == 401
        for cookie in ({"token": response["token"]}, {"user": "eve", "password": secret}):
            assert (await run.call("POST", "/session", cookie))[0] == 401
        own = await token(run, admin, "ann", "reader", everywhere=True)
        _, listed = await run.call("GET", "/tokens?everywhere=true", headers=admin)
        modes = {(one["name"], one["kind"]): one["mode"] for one in listed["tokens"]}
        assert modes == {
            ("eve", "token"): "none", ("eve", "password"): "none",
            ("ann", "token"): "tokens", ("root", "token"): "tokens",
        }  # fmt: skip
        assert (await run.call("GET", "/stacks", headers=bearer(own)))[0] == 200
