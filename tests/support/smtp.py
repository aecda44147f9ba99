"""An SMTP relay on loopback that keeps the messages it accepts."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword

from tests.support.certificates import CertificateFiles
from tests.support.ports import free_port

USER, PASSWORD = "headgate", "relay-password"


@dataclass  # without slots: aiosmtpd inspects it, which fails with those of Python 3.11.2
class Relay:
    """refused: recipients that it refuses. response: to each message that it does not accept."""

    port: int
    messages: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    response: str = ""

    async def handle_RCPT(
        self, _server: Any, _session: Any, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if address in self.refused:
            return "550 no such user here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:
        if self.response:
            return self.response
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=SMTP)
        assert isinstance(message, EmailMessage)
        self.messages.append(message)
        self.recipients += envelope.rcpt_tos
        return "250 kept"

    def check_login(
        self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.users.append(data.login.decode())
        return AuthResult(success=data.password.decode() == PASSWORD, handled=False)


@contextmanager
def running_relay(certificate: CertificateFiles | None = None) -> Iterator[Relay]:
    """certificate: the relay offers STARTTLS, and requires it together with a login."""
    relay, context = Relay(free_port()), None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate, certificate.key)
    controller = Controller(
        relay,
        hostname="127.0.0.1",
        port=relay.port,
        tls_context=context,
        require_starttls=context is not None,
        auth_required=context is not None,
        authenticator=relay.check_login,
    )
    controller.start()
    try:
        yield relay
    finally:
        controller.stop()
