"""TLS, proxies, cross-origin requests and common response headers."""

import asyncio
import os
import signal
import ssl
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from yarl import URL

from engine.errors import Unavailable
from hub.http.listener import server_tls
from hub.settings.access import ServerSection
from tests.support.access import insert_credential
from tests.support.certificates import Authority, CertificateFiles
from tests.support.program import Json, eventually, program, resource, template

SECURE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
#: Directives that the content security policy of a page must have.
POLICY = ("default-src 'none'", "script-src 'self'", "connect-src 'self'", "form-action 'none'",
          "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'")  # fmt: skip


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def client_trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.file))


def certificate_name(pair: CertificateFiles) -> dict[str, Any]:
    return {"server.cert_file": str(pair.certificate), "server.key_file": str(pair.key)}


async def test_tls_with_a_certificate_that_is_renewed_at_run_time(
    database_url: str, authority: Authority
) -> None:
    pair = authority.issue("first", "127.0.0.1")
    async with program(database_url, certificate_name(pair)) as run:
        assert run.url.startswith("https://127.0.0.1:")
        trusted = client_trusting(authority)
        sent = {"stack_name": "s", "template": template({"a": resource()})}
        async with run.session.post(f"{run.url}/v1/p/stacks", json=sent, ssl=trusted) as answer:
            assert answer.status == 201
            # Clients parse IDs out of URLs by the address that they used.
            assert answer.headers["Location"].startswith(f"{run.url}/v1/p/stacks/s/")
            assert "max-age" in answer.headers["Strict-Transport-Security"]
        with pytest.raises(aiohttp.ClientError):
            await run.session.get(run.url.replace("https", "http") + "/healthz")
        # An invalid file is logged, and the previous certificate stays.
        whole = pair.certificate.read_bytes()
        pair.certificate.write_bytes(b"none")
        os.kill(os.getpid(), signal.SIGHUP)
        assert await name_shown(run.url, authority) == "first"
        pair.certificate.write_bytes(whole)
        second = authority.issue("second", "127.0.0.1")
        pair.key.write_bytes(second.key.read_bytes())
        pair.certificate.write_bytes(second.certificate.read_bytes())
        os.kill(os.getpid(), signal.SIGHUP)

        async def renewed() -> bool:
            return await name_shown(run.url, authority) == "second"

        await eventually(renewed)
    # SIGHUP does not end a process that finishes its operations: it has a handler still.
    assert asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)


async def name_shown(url: str, authority: Authority) -> str:
    """The common name of the certificate on a new connection."""
    address = URL(url)
    _, writer = await asyncio.open_connection(
        address.host, address.port, ssl=client_trusting(authority)
    )
    shown: Json = writer.get_extra_info("peercert")
    writer.close()
    await writer.wait_closed()
    return str(shown["subject"][0][0][1])


def test_an_unusable_certificate_is_reported_before_the_server_listens(
    tmp_path: Path, authority: Authority
) -> None:
    other = authority.issue("other", "127.0.0.1")
    mine = authority.issue("mine", "127.0.0.1")
    for cert, key in (
        (tmp_path / "nothing.pem", mine.key),
        (mine.key, mine.key),
        (mine.certificate, other.key),
    ):
        with pytest.raises(Unavailable, match="in PEM form") as refused:
            server_tls(ServerSection(cert_file=str(cert), key_file=str(key)))
        assert refused.value.finding.place == "[server] cert_file"


async def test_every_response_has_the_security_headers(database_url: str) -> None:
    async with program(database_url) as run:
        for path in ("/v1/p/stacks", "/v1/p/stacks/none", "/nowhere", "/healthz",
                     "/v1/p/hooks/none", "/v1/p/events/stream"):  # fmt: skip
            async with run.session.get(run.url + path) as answer:
                for name, value in SECURE.items():
                    assert answer.headers[name] == value, (path, name)
                assert "Strict-Transport-Security" not in answer.headers
                assert answer.headers["Server"] == "headgate"
        for path in ("/", "/hooks/x"):  # pages have their own policy
            async with run.session.get(run.url + path, headers={"Accept": "text/html"}) as page:
                policy = page.headers["Content-Security-Policy"].split("; ")
                assert {*POLICY} <= {*policy}
                assert not [one for one in policy if "*" in one or "unsafe" in one]
                assert page.headers["X-Frame-Options"] == "DENY"


async def test_a_trusted_proxy_names_client_scheme_and_host(database_url: str) -> None:
    forwarded = {
        "X-Forwarded-For": "203.0.113.9, 198.51.100.7, 127.0.0.1",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "headgate.example.org",
    }
    breakpoints = {"hooks": [{"at": "a", "on": ["pre-create"]}]}
    sent = {"stack_name": "s", "template": template({"a": resource()}), "environment": breakpoints}
    tokens = {"auth.mode": "tokens"}
    behind = tokens | {"server.trusted_proxies": ["127.0.0.0/8"]}
    for trusted, base, sender in (
        (behind, "https://headgate.example.org", "198.51.100.7"),
        ({}, None, "127.0.0.1"),
        (tokens | {"server.trusted_proxies": ["10.0.0.0/8", "::1/128"]}, None, "127.0.0.1"),
    ):
        async with program(database_url, trusted) as run:
            run.project = uuid4().hex
            admin = await insert_credential(run.database, run.project, "root", ["admin"])
            run.session.headers["X-Auth-Token"] = admin
            url = f"{run.url}/v1/{run.project}/stacks"
            async with run.session.post(url, json=sent, headers=forwarded) as answer:
                assert answer.status == 201
                assert answer.headers["Location"].startswith(f"{base or run.url}/v1/")
                assert ("Strict-Transport-Security" in answer.headers) == bool(base)
            [hook] = await run.waiting_hooks("s")
            path = f"/hooks/{hook['id']}/signal"
            await run.call("POST", path, {"decision": "continue"}, headers=forwarded)
            _, trail = await run.call("GET", f"/hooks/{hook['id']}/decisions")
            assert [one["address"] for one in trail["decisions"]] == [sender]


async def test_forwarded_addresses_of_the_client_are_ignored(database_url: str) -> None:
    """The proxy appends to the header that the client sent."""
    few = {"server.trusted_proxies": ["127.0.0.0/8"], "server.requests_per_address": 1,
           "auth.mode": "tokens"}  # fmt: skip
    async with program(database_url, few) as run:
        seen = set()
        for number in range(20):
            forwarded = f"192.0.2.{number}, 198.51.100.7"
            headers = {"X-Forwarded-For": forwarded}
            seen.add((await run.call("GET", "//healthz", headers=headers))[0])
        assert seen == {200, 429}
        for odd in ("", "none", "127.0.0.1", ",,"):
            assert (await run.call("GET", "//healthz", headers={"X-Forwarded-For": odd}))[0] in (
                200,
                429,
            )


async def test_pages_of_other_origins(database_url: str) -> None:
    origin = "https://console.example.org"
    preflight = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    allowed = "Access-Control-Allow-Origin"
    async with program(database_url, {"server.cors_origins": [origin]}) as run:
        url = f"{run.url}/v1/p/stacks"
        async with run.session.options(url, headers=preflight) as answer:
            assert answer.status == 204
            assert answer.headers[allowed] == origin
            assert "POST" in answer.headers["Access-Control-Allow-Methods"]
            assert "X-Auth-Token" in answer.headers["Access-Control-Allow-Headers"]
            assert "Access-Control-Allow-Credentials" not in answer.headers
        for path in ("/v1/p/stacks", "/v1/p/events/stream", "/v1/p/stacks/none"):
            async with run.session.get(run.url + path, headers={"Origin": origin}) as answer:
                assert (answer.headers[allowed], answer.headers["Vary"]) == (origin, "Origin")
        async with run.session.get(url, headers={"Origin": "https://evil.example"}) as answer:
            assert allowed not in answer.headers and answer.headers["Vary"] == "Origin"
    async with (
        program(database_url) as run,
        run.session.options(f"{run.url}/v1/p/stacks", headers=preflight) as answer,
    ):
        assert allowed not in answer.headers
