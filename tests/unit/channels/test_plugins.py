"""Channels from other packages."""

from importlib.metadata import EntryPoint

import pytest

from channels.contract import Delivered, Endpoint, EventMessage, Failed
from channels.plugins import ENTRY_POINTS, loaded
from engine.errors import Unavailable


class Pigeon:
    """A channel of version 1."""

    name = "pigeon"

    async def check_target(self, target: str) -> None:
        """Accepts every target."""

    async def deliver(self, letter: EventMessage, endpoint: Endpoint) -> Delivered | Failed:
        return Delivered(None, endpoint.target)


class Broken:
    def __init__(self) -> None:
        raise OSError("no pigeons")


class Nothing:
    """Has no method of a channel."""


def point(name: str, what: str) -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{what}", ENTRY_POINTS)


def test_a_plugin_is_created_with_the_name_of_its_entry_point() -> None:
    assert isinstance(loaded([point("pigeon", "Pigeon")], ["webhook"])["pigeon"], Pigeon)


@pytest.mark.parametrize(
    ("name", "what", "why"),
    [
        ("webhook", "Pigeon", 'there is a channel "webhook" already'),
        ("pigeon", "Broken", "OSError: no pigeons"),
        ("pigeon", "Absent", "AttributeError"),
        ("pigeon", "Nothing", "it has no check_target and no deliver"),
    ],
)
def test_an_invalid_plugin_prevents_the_start(name: str, what: str, why: str) -> None:
    with pytest.raises(Unavailable) as raised:
        loaded([point(name, what)], ["webhook"])
    assert why in str(raised.value) and name in str(raised.value)
    assert raised.value.finding.remedy
