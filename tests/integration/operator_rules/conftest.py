"""Settings of the guides and examples with a policy program, and an author of stacks."""

import re
import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.operator_rules.guard_every_stack import PAGE, recipe_settings
from tests.support.principals import PrincipalClient, token_client
from tests.support.program import program

HARDEN_PAGE = PAGE.with_name("harden.md")
EXAMPLE = Path(__file__).parents[3] / "examples" / "policies" / "owner_tag.toml"

Settings = Callable[[str], dict[str, Any]]


def hardened_settings(target: str) -> dict[str, Any]:
    """The rules and subscriptions of the settings in harden.md, for a policy program on this
    machine.
    """
    found = re.search(r"^```toml\n(.*?)^```", HARDEN_PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found
    return _settings(found[1].replace("https://policy.example.org/", target))


def example_settings(target: str) -> dict[str, Any]:
    """The rules and subscriptions of examples/policies/owner_tag.toml."""
    return _settings(EXAMPLE.read_text().replace("http://127.0.0.1:9001/", target))


def _settings(text: str) -> dict[str, Any]:
    settings = tomllib.loads(text)
    return {
        "hooks.rules": settings["hooks"]["rules"],
        "subscriptions": settings["subscriptions"],
        "channels.webhook.operator_allow": ["127.0.0.0/8"],
    }


@pytest.fixture(
    params=[recipe_settings, hardened_settings, example_settings], ids=lambda one: str(one.__name__)
)
def settings(request: pytest.FixtureRequest) -> Settings:
    settings: Settings = request.param
    return settings


@asynccontextmanager
async def author(url: str, settings: dict[str, Any]) -> AsyncIterator[PrincipalClient]:
    changes = {"auth.mode": "tokens", "engine.poll": "1s"}
    async with program(url, settings | changes) as run:
        yield await token_client(run, "eve", ["author"])
