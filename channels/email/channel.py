"""Sends each event as an e-mail, over a connection of its own to an SMTP relay.

The relay signs (DKIM) and queues; a delivery ends when it accepts the message.
"""

import ssl
from collections.abc import Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from uuid import UUID, uuid5

import aiosmtplib

from channels.contract import Delivered, Endpoint, EventMessage, Failed
from channels.digest_summary import summarize_digest
from channels.email.message import email_message
from channels.email.relay import MAX_ADDRESS, EmailSettings, Encryption, is_email_address
from channels.summary import Summary, summarize
from engine.errors import Finding, Invalid


class EmailChannel:
    """base_url: of the dashboard, without a slash at the end."""

    name = "email"

    def __init__(self, settings: EmailSettings, base_url: str) -> None:
        self._settings = settings
        self._base_url = base_url.rstrip("/")

    async def check_target(self, target: str) -> None:
        """Raises Invalid unless the target is one address that projects may name."""
        if not is_email_address(target):
            raise _invalid(
                f'must be one e-mail address, got "{target[:MAX_ADDRESS]}"', "Write NAME@HOST."
            )
        if not self._may_name(target):
            remedy = "The operator allows addresses with [channels.email] recipients."
            raise _invalid(f'"{target}" is not an address that subscriptions may name', remedy)

    async def deliver(self, message: EventMessage, endpoint: Endpoint) -> Delivered | Failed:
        """Make one attempt. Raises CancelledError only."""
        summary = summarize(message.document, self._base_url)
        return await self._send(summary, message.id, message.sent_at, endpoint)

    async def deliver_digest(
        self, messages: Sequence[EventMessage], endpoint: Endpoint
    ) -> Delivered | Failed:
        """Make one attempt. Raises CancelledError only."""
        summary = summarize_digest(messages, self._base_url)
        ids = "".join(one.id for one in messages)
        digest_id = str(uuid5(UUID(messages[0].id), ids))
        return await self._send(summary, digest_id, messages[0].sent_at, endpoint)

    async def _send(
        self, summary: Summary, event_id: str, sent_at: datetime, endpoint: Endpoint
    ) -> Delivered | Failed:
        if not endpoint.configured and not self._may_name(endpoint.target):
            return Failed("the operator does not allow this address any longer")
        settings = self._settings
        mail = email_message(
            summary,
            event_id=event_id,
            sender=settings.sender,
            recipient=endpoint.target,
            sent_at=sent_at,
        )
        try:
            _, response = await aiosmtplib.send(
                mail,
                hostname=settings.host,
                port=settings.port,
                username=settings.username or None,
                password=settings.password or None,
                use_tls=settings.encryption is Encryption.TLS,
                start_tls=settings.encryption is Encryption.STARTTLS,
                timeout=settings.timeout,
                tls_context=settings.tls,
            )
        except aiosmtplib.SMTPRecipientsRefused as error:
            refused = error.recipients[0]
            return Failed(f"the relay refused the recipient: {refused.message}", refused.code)
        except aiosmtplib.SMTPResponseException as error:
            return Failed(f"the relay refused the message: {error.message}", error.code)
        except (aiosmtplib.SMTPException, OSError) as error:
            return Failed(f"no connection to the relay: {_reason(error)}")
        return Delivered(None, response)

    def _may_name(self, address: str) -> bool:
        return any(fnmatchcase(address.lower(), glob.lower()) for glob in self._settings.recipients)


def _reason(error: Exception) -> str:
    """Without the addresses of the relay, which may belong to an internal network."""
    match error:
        case aiosmtplib.SMTPTimeoutError() | TimeoutError():
            return "it does not respond"
        case aiosmtplib.SMTPServerDisconnected():
            return "it closed the connection"
        case ssl.SSLError():
            return "the TLS handshake failed"
        case _:
            return "it cannot be reached"


def _invalid(reason: str, remedy: str) -> Invalid:
    return Invalid([Finding("target", reason, remedy, "InvalidTarget")])
