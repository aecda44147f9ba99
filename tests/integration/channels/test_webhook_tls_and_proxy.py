"""Webhooks with certificates of servers and clients, and through a proxy."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from uuid import UUID

import pytest
from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from standardwebhooks import Webhook as StandardWebhook

from channels.contract import Delivered, Endpoint, EventMessage, Failed
from channels.webhook.client import WebhookChannel, WebhookSettings
from channels.webhook.sign import secret_of
from engine.errors import Invalid, Unavailable
from hub.program.wiring import webhook_settings
from hub.settings.settings import Webhook
from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.receiver import Received, running_receiver

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LOOPBACK = (ip_network("127.0.0.0/8"),)
MESSAGE = EventMessage("an-id", "headgate.hook.waiting", {"id": "an-id"}, NOW)


async def send(
    settings: WebhookSettings, target: str, message: EventMessage = MESSAGE
) -> Delivered | Failed:
    async with WebhookChannel(settings) as channel:
        await channel.check_target(target)
        endpoint = Endpoint(UUID(int=1), target, (secret_of(bytes(24)),))
        return await channel.deliver(message, endpoint)


@asynccontextmanager
async def running_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server that accepts every request; yields its URL."""

    async def accept(_: web.Request) -> web.Response:
        return web.Response(text="yes")

    app = web.Application()
    app.router.add_post("/hook", accept)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{port}/hook"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("status", [200, 400])
async def test_a_token_in_a_response_is_masked(status: int) -> None:
    """Readers of the delivery history must not be able to answer."""
    token = "hook-token-" + "x" * 40
    body = b"bad token " + token.encode() + b" " * 470 + token.encode()
    async with running_receiver() as receiver:

        async def repeat(_: Received) -> web.StreamResponse:
            return web.Response(status=status, body=body)

        receiver.handle = repeat
        settings = WebhookSettings(allow=LOOPBACK)
        document = {"id": "an-id", "data": {"token": token}}
        outcome = await send(settings, receiver.url, replace(MESSAGE, document=document))
    assert outcome.response.startswith("bad token ******")
    assert "hook-token" not in outcome.response


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def client_certificate_server(authority: Authority, *, asks: bool = False) -> ssl.SSLContext:
    server = authority.issue("server", "127.0.0.1")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(server.certificate, server.key)
    if asks:
        context.load_verify_locations(authority.file)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def settings_of(**more: str) -> WebhookSettings:
    return webhook_settings(Webhook(allow=LOOPBACK, **more))  # type: ignore[arg-type]


async def test_a_receiver_with_a_certificate_of_a_private_authority(authority: Authority) -> None:
    async with running_server(client_certificate_server(authority)) as url:
        assert isinstance(await send(settings_of(ca_file=str(authority.file)), url), Delivered)
        outcome = await send(settings_of(), url)
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith("no secure connection to 127.0.0.1")


async def test_the_public_key_verifies_signatures(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    path = tmp_path / "signing.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    settings = settings_of(signing_key_file=str(path))
    public = WebhookChannel(settings).public_key or ""
    assert public == "whpk_" + base64.b64encode(key.public_key().public_bytes_raw()).decode()
    async with running_receiver() as receiver:
        now = replace(MESSAGE, sent_at=datetime.now(UTC))
        assert isinstance(await send(settings, receiver.url, now), Delivered)
    (one,) = receiver.received
    signatures = dict(each.split(",", 1) for each in one.headers["webhook-signature"].split(" "))
    assert signatures.keys() == {"v1", "v1a"}
    signed = f"{one.headers['webhook-id']}.{one.headers['webhook-timestamp']}.".encode() + one.body
    key.public_key().verify(base64.b64decode(signatures["v1a"]), signed)
    with pytest.raises(InvalidSignature):
        key.public_key().verify(base64.b64decode(signatures["v1a"]), signed + b"x")
    # A receiver that verifies with a secret ignores the other signature.
    StandardWebhook(secret_of(bytes(24))).verify(one.body, one.headers)


@pytest.mark.parametrize("kind", ["absent", "text", "of another kind"])
def test_a_file_without_a_key(tmp_path: Path, authority: Authority, kind: str) -> None:
    path = tmp_path / "signing.pem"
    if kind == "text":
        path.write_text("not a key")
    elif kind == "of another kind":
        path = authority.issue("other").key
    with pytest.raises(Unavailable) as raised:
        settings_of(signing_key_file=str(path))
    assert raised.value.finding.place == "[channels.webhook] signing_key_file"
    assert "openssl genpkey" in raised.value.finding.remedy


async def test_a_receiver_that_requires_a_client_certificate(authority: Authority) -> None:
    ours = authority.issue("hub")
    certificate = {"cert_file": str(ours.certificate), "key_file": str(ours.key)}
    async with running_server(client_certificate_server(authority, asks=True)) as url:
        known = settings_of(ca_file=str(authority.file), **certificate)
        assert isinstance(await send(known, url), Delivered)
        assert isinstance(await send(settings_of(ca_file=str(authority.file)), url), Failed)


@dataclass
class Proxy:
    """Forwards requests to a fixed address. requests: the first lines it received."""

    url: str
    to: int
    requests: list[str] = field(default_factory=list)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        self.requests.append(line.decode().strip())
        there, back = await asyncio.open_connection("127.0.0.1", self.to)
        if line.startswith(b"CONNECT"):
            while (await reader.readline()).strip():
                pass
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            back.write(line)
        async with asyncio.TaskGroup() as group:
            group.create_task(copy(reader, back))
            group.create_task(copy(there, writer))


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def running_proxy(to: str) -> AsyncIterator[Proxy]:
    """A proxy that forwards all requests to one server."""
    port = free_port()
    proxy = Proxy(f"http://127.0.0.1:{port}", int(to.rsplit(":", 1)[1].partition("/")[0]))
    server = await asyncio.start_server(proxy.handle, "127.0.0.1", port)
    async with server:
        yield proxy


async def test_the_proxy_gets_every_request_with_the_unresolved_name() -> None:
    async with running_server() as url, running_proxy(url) as proxy:
        target = "http://receiver.invalid/hook"
        assert isinstance(await send(settings_of(proxy=proxy.url), target), Delivered)
        assert proxy.requests == ["POST http://receiver.invalid/hook HTTP/1.1"]


async def test_a_tls_target_uses_a_tunnel_and_is_verified(
    authority: Authority,
) -> None:
    async with (
        running_server(client_certificate_server(authority)) as url,
        running_proxy(url) as proxy,
    ):
        settings = settings_of(proxy=proxy.url, ca_file=str(authority.file))
        assert isinstance(await send(settings, url), Delivered)
        assert proxy.requests == [f"CONNECT {url.partition('://')[2].partition('/')[0]} HTTP/1.1"]


async def test_addresses_are_checked_with_a_proxy() -> None:
    settings = webhook_settings(Webhook(proxy="http://127.0.0.1:1"))  # type: ignore[arg-type]
    async with WebhookChannel(settings) as channel:
        with pytest.raises(Invalid):
            await channel.check_target("http://127.0.0.1/hook")


async def test_the_error_of_an_unavailable_proxy_does_not_contain_its_password() -> None:
    outcome = await send(
        settings_of(proxy=f"http://me:secret@127.0.0.1:{free_port()}"), "http://x.test/"
    )
    assert isinstance(outcome, Failed)
    assert "secret" not in outcome.reason and outcome.reason.startswith("no connection to")
