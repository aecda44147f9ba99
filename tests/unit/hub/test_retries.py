"""How long a receiver may be unavailable with the default settings."""

from datetime import timedelta
from pathlib import Path

import pytest

from channels.retry import GiveUp, RetryPolicy, after_failure, horizon
from hub.program.wiring import retry_policies
from hub.settings.settings import Settings

POLICIES = retry_policies(Settings())
REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
HOUR = timedelta(hours=1)


def shortest(policy: RetryPolicy) -> timedelta:
    """The time from the first attempt to the last, if each fails at once and every pause is the
    shortest.
    """
    passed, attempts = 0.0, 1
    while True:
        follows = after_failure(policy, attempts, retry_after=None, final=False, chance=0.0)
        if isinstance(follows, GiveUp):
            return timedelta(seconds=passed)
        passed += follows.wait
        attempts += 1


def longest(policy: RetryPolicy) -> timedelta:
    return timedelta(seconds=horizon(policy))


@pytest.mark.parametrize("channel", ["amqp", "heat"])
def test_an_outage_of_the_broker_of_an_hour_loses_no_delivery(channel: str) -> None:
    assert shortest(POLICIES[channel]) > HOUR


def test_the_reference_has_the_retry_times() -> None:
    broker, webhook = POLICIES["amqp"], POLICIES["webhook"]
    assert (shortest(broker) // HOUR, longest(broker) // HOUR) == (12, 29)
    assert "default settings for 12 to 29 hours" in text("amqp.md")
    minute = timedelta(minutes=1)
    assert (shortest(webhook) // minute, longest(webhook) // minute) == (16, 35)
    for page in ("webhooks.md", "hooks.md"):
        assert "16 to 35 minutes" in text(page)


def text(page: str) -> str:
    return " ".join((REFERENCE / page).read_text().split())
