"""A broker with TLS that requires client certificates."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aio_pika
import pytest
import pytest_asyncio

from channels.amqp.broker import Broker, NotPublished
from engine.errors import Unavailable
from hub.program.wiring import broker_settings
from hub.settings.settings import Amqp
from tests.support.certificates import Authority, CertificateFiles
from tests.support.ports import free_port
from tests.support.program import eventually
from tests.support.rabbit import running_rabbit


@dataclass
class TlsBroker:
    """A broker with TLS. ours: a client certificate that it trusts."""

    url: str
    authority: Path
    trusted_client: CertificateFiles
    other: Authority


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tls_broker(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TlsBroker]:
    folder = tmp_path_factory.mktemp("tls")
    authority, other = Authority(folder), Authority(folder, "other")
    server, port = authority.issue("server", "127.0.0.1"), free_port()
    conf = (
        f"listeners.ssl.default = 127.0.0.1:{port}\n"
        f"ssl_options.cacertfile = {authority.file}\n"
        f"ssl_options.certfile = {server.certificate}\n"
        f"ssl_options.keyfile = {server.key}\n"
        "ssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true\n"
    )
    async with running_rabbit(conf=conf):
        url = f"amqps://guest:guest@127.0.0.1:{port}/"
        yield TlsBroker(url, authority.file, authority.issue("hub"), other)


async def outcome(**options: str) -> str:
    """The error of a publication; "" if it is confirmed."""
    settings = broker_settings(Amqp(**options, publish_timeout="5s", connect_timeout="3s"))  # type: ignore[arg-type]
    assert settings is not None
    broker, stop = Broker(settings), asyncio.Event()
    task = asyncio.create_task(broker.run(stop))

    async def try_publish() -> list[str]:
        try:
            await broker.publish("", settings.answers, aio_pika.Message(b"x"))
        except NotPublished as error:
            return [] if "not connected yet" in str(error) else [str(error)]
        return [""]

    try:
        (result,) = await eventually(try_publish)
    finally:
        stop.set()
        await task
    return str(result)


async def test_mutual_tls(tls_broker: TlsBroker) -> None:
    trusted_client = tls_broker.trusted_client
    assert (
        await outcome(
            url=tls_broker.url,
            ca_file=str(tls_broker.authority),
            cert_file=str(trusted_client.certificate),
            key_file=str(trusted_client.key),
        )
        == ""
    )


async def test_a_broker_with_an_untrusted_certificate_is_refused(tls_broker: TlsBroker) -> None:
    result = await outcome(url=tls_broker.url)
    assert "cannot connect" in result and "guest" not in result
    other = tls_broker.other.file
    assert "cannot connect" in await outcome(url=tls_broker.url, ca_file=str(other))


async def test_a_broker_refuses_an_untrusted_client_certificate(tls_broker: TlsBroker) -> None:
    stranger = tls_broker.other.issue("stranger")
    for one in ({}, {"cert_file": str(stranger.certificate), "key_file": str(stranger.key)}):
        result = await outcome(url=tls_broker.url, ca_file=str(tls_broker.authority), **one)
        assert "no connection to the broker" in result, result


@pytest.mark.parametrize("text", ["", "no certificate"])
def test_invalid_certificate_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ca.pem"
    if text:
        path.write_text(text)
    with pytest.raises(Unavailable) as raised:
        broker_settings(Amqp(url="amqps://h/", ca_file=str(path)))  # type: ignore[arg-type]
    assert raised.value.finding.place == "[channels.amqp]"
    assert "PEM" in raised.value.finding.remedy
