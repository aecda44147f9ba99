"""E-mails through a real SMTP relay, and what its faults look like."""

import ssl
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from channels.contract import Delivered, Endpoint, EventMessage, Failed
from channels.email.channel import EmailChannel
from channels.email.relay import EmailSettings, Encryption
from engine.errors import Invalid
from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.smtp import PASSWORD, USER, Relay, running_relay
from tests.unit.channels.test_envelope import EVENT, WAITING, render

SENT_AT = datetime(2026, 1, 2, tzinfo=UTC)
MESSAGE = EventMessage(
    str(EVENT), "headgate.hook.waiting", render("headgate.hook.waiting", WAITING), SENT_AT, True
)


def settings(port: int) -> EmailSettings:
    return EmailSettings(
        "127.0.0.1", port, "headgate@example.org", Encryption.NONE, recipients=["*@example.org"]
    )


def endpoint(target: str = "ops@example.org", *, configured: bool = False) -> Endpoint:
    return Endpoint(UUID(int=1), target, (), configured)


async def send(given: EmailSettings, to: Endpoint | None = None) -> Delivered | Failed:
    channel = EmailChannel(given, "https://headgate.example/")
    return await channel.deliver(MESSAGE, to or endpoint())


async def test_a_waiting_hook_arrives_with_a_link_and_without_its_token() -> None:
    with running_relay() as relay:
        assert await send(settings(relay.port)) == Delivered(None, "kept")
    (message,) = relay.messages
    assert relay.recipients == ["ops@example.org"]
    assert message["From"] == "headgate@example.org"
    assert message["Subject"] == "web/db: create waits for approval"
    assert "https://headgate.example/#/demo/inbox/" in message.as_string().replace("=3D", "=")
    assert "a-token" not in message.as_string()


def secure(relay: Relay, folder: Authority, password: str = PASSWORD) -> EmailSettings:
    return replace(
        settings(relay.port),
        encryption=Encryption.STARTTLS,
        username=USER,
        password=password,
        tls=ssl.create_default_context(cafile=folder.file),
    )


async def test_a_relay_with_starttls_and_a_password(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with running_relay(authority.issue("relay", "127.0.0.1")) as relay:
        assert isinstance(await send(secure(relay, authority)), Delivered)
        refused = await send(secure(relay, authority, "wrong"))
    assert set(relay.users) == {USER}
    assert len(relay.messages) == 1
    assert isinstance(refused, Failed)
    assert refused.code == 535
    assert "wrong" not in refused.reason.split()


@pytest.mark.parametrize("encryption", [Encryption.STARTTLS, Encryption.TLS])
async def test_no_message_without_the_encryption_that_is_required(encryption: Encryption) -> None:
    with running_relay() as relay:
        given = replace(settings(relay.port), encryption=encryption, timeout=2.0)
        outcome = await send(given)
    assert isinstance(outcome, Failed)
    assert relay.messages == []


async def test_a_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    relay_of, other = Authority(tmp_path), Authority(tmp_path, "other")
    with running_relay(relay_of.issue("relay", "127.0.0.1")) as relay:
        outcome = await send(secure(relay, other))
    assert isinstance(outcome, Failed)
    assert relay.messages == [] and relay.users == []


async def test_what_the_relay_says_is_in_the_reason() -> None:
    with running_relay() as relay:
        relay.refused.add("ops@example.org")
        unknown = await send(settings(relay.port))
        relay.refused.clear()
        relay.response = "451 try again later"
        busy = await send(settings(relay.port))
    assert unknown == Failed("the relay refused the recipient: no such user here", 550)
    assert busy == Failed("the relay refused the message: try again later", 451)


async def test_a_relay_that_is_away() -> None:
    outcome = await send(settings(free_port()))
    assert outcome == Failed("no connection to the relay: it cannot be reached")


@pytest.mark.parametrize("target", ["ann@other.example", "ops@example.org.evil.example"])
async def test_projects_write_to_allowed_addresses_only(target: str) -> None:
    with running_relay() as relay:
        channel = EmailChannel(settings(relay.port), "")
        with pytest.raises(Invalid, match=r"\[channels\.email\] recipients"):
            await channel.check_target(target)
        refused = await send(settings(relay.port), endpoint(target))
        allowed = await send(settings(relay.port), endpoint(target, configured=True))
    assert refused == Failed("the operator does not allow this address any longer")
    assert isinstance(allowed, Delivered)
    assert relay.recipients == [target]


async def test_a_target_is_one_address() -> None:
    channel = EmailChannel(settings(1), "")
    await channel.check_target("Ops@Example.org")
    with pytest.raises(Invalid, match="must be one e-mail address"):
        await channel.check_target("ops@example.org, ann@example.org")
