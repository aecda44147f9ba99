"""Channels from other packages."""

from importlib.metadata import EntryPoint

import pytest

from channels.contract import Delivered, Endpoint, EventMessage, Failed
from channels.plugins import ENTRY_POINTS, load_channels
from engine.errors import Unavailable


class ExampleChannel:
    """A channel of version 1."""

    name = "pigeon"

    async def check_target(self, target: str) -> None:
        """Accepts every target."""

    async def deliver(self, message: EventMessage, endpoint: Endpoint) -> Delivered | Failed:
        return Delivered(None, endpoint.target)


class FailingChannel:
    def __init__(self) -> None:
        raise OSError("no pigeons")


class NoChannel:
    """Has no method of a channel."""


def point(name: str, what: str) -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{what}", ENTRY_POINTS)


def test_a_plugin_is_created_with_the_name_of_its_entry_point() -> None:
    assert isinstance(
        load_channels([point("pigeon", "ExampleChannel")], ["webhook"])["pigeon"], ExampleChannel
    )


@pytest.mark.parametrize(
    ("name", "what", "why"),
    [
        ("webhook", "ExampleChannel", 'a channel "webhook" already exists'),
        ("pigeon", "FailingChannel", "does not load: no pigeons"),
        ("pigeon", "Absent", "has no attribute"),
        ("pigeon", "NoChannel", "it has no check_target and no deliver"),
    ],
)
def test_an_invalid_plugin_prevents_the_start(name: str, what: str, why: str) -> None:
    with pytest.raises(Unavailable) as raised:
        load_channels([point(name, what)], ["webhook"])
    assert why in str(raised.value) and name in str(raised.value)
    assert raised.value.finding.remedy
