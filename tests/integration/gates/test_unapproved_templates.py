"""Settings of the guides, against templates that the policy program did not approve.

A restore and a rollback can apply such templates: those of a snapshot of a rejected change, and
those of a partial update.
"""

import re
import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.integration.gates.recipe import PAGE, recipe
from tests.support.people import Person, notices, token_of
from tests.support.program import Json, program, resource, template
from tests.support.receiver import Received, Receiver, receiving

HARDEN = PAGE.with_name("harden.md")
EXAMPLE = Path(__file__).parents[3] / "examples" / "policies" / "owner_tag.toml"
#: Name of the resource that the policy program does not allow to be created.
FORBIDDEN = "forbidden"


def hardened(target: str) -> dict[str, Any]:
    """The rules and subscriptions of the settings of harden.md, for a program on this machine."""
    found = re.search(r"^```toml\n(.*?)^```", HARDEN.read_text(), re.DOTALL | re.MULTILINE)
    assert found
    return _settings(found[1].replace("https://policy.example.org/", target))


def example(target: str) -> dict[str, Any]:
    """The rules and subscriptions of examples/policies/owner_tag.toml."""
    return _settings(EXAMPLE.read_text().replace("http://127.0.0.1:9001/", target))


def _settings(text: str) -> dict[str, Any]:
    settings = tomllib.loads(text)
    return {
        "hooks.rules": settings["hooks"]["rules"],
        "subscriptions": settings["subscriptions"],
        "channels.webhook.operator_allow": ["127.0.0.0/8"],
    }


@pytest.fixture
async def policy() -> AsyncIterator[Receiver]:
    """Rejects a plan that adds the forbidden resource; approves other plans and resources."""
    async with receiving() as receiver:
        receiver.handle = decide
        yield receiver


async def decide(notification: Received) -> web.StreamResponse:
    change = notification.event["data"].get("change") or {"plan": []}
    added = [one["name"] for one in change["plan"] if one["change"] == "added"]
    decision = "reject" if FORBIDDEN in added else "continue"
    return web.json_response({"decision": decision, "reason": "by policy"})


Settings = Callable[[str], dict[str, Any]]


@pytest.fixture(params=[recipe, hardened, example], ids=lambda one: str(one.__name__))
def settings(request: pytest.FixtureRequest) -> Settings:
    chosen: Settings = request.param
    return chosen


@asynccontextmanager
async def author(url: str, settings: dict[str, Any]) -> AsyncIterator[Person]:
    changes = {"auth.mode": "tokens", "engine.poll": "1s"}
    async with program(url, settings | changes) as run:
        yield await token_of(run, "eve", ["author"])


async def test_a_snapshot_of_a_rejected_create_cannot_be_restored(
    database_url: str, policy: Receiver, settings: Settings
) -> None:
    async with author(database_url, settings(policy.url)) as eve:
        await eve.create("s", {"a": resource(), FORBIDDEN: resource()})
        assert await eve.until_ended("s") == "CREATE_FAILED"
        snapshot = await eve.at("POST", "s", "/snapshots", {"name": "rejected"})
        assert await eve.until_ended("s") == "SNAPSHOT_COMPLETE"
        await eve.at("POST", "s", f"/snapshots/{snapshot['id']}/restore")
        assert await eve.until_ended("s") == "RESTORE_FAILED"
        await rejected(eve, "pre-stack-restore")
        assert created(await eve.resources("s")) == set()


async def test_a_rollback_cannot_complete_a_partial_update(
    database_url: str, policy: Receiver, settings: Settings
) -> None:
    async with author(database_url, settings(policy.url)) as eve:
        await eve.create("s", {"a": resource("1")})
        assert await eve.until_ended("s") == "CREATE_COMPLETE"
        version2 = {"a": resource("2"), FORBIDDEN: resource()}
        await eve.update("s", "PUT", template=template(version2), only=["a"])
        assert await eve.until_ended("s") == "UPDATE_COMPLETE"
        version3 = {"a": resource("3"), FORBIDDEN: resource("3")}
        await eve.update("s", "PUT", template=template(version3), disable_rollback=False)
        assert await eve.until_ended("s") == "ROLLBACK_FAILED"
        await rejected(eve, "pre-stack-rollback")
        assert created(await eve.resources("s")) == {"a"}
        assert [
            (one["hook"]["point"], one["change"]["only"])
            for one in notices(policy)
            if "-stack-" in one["hook"]["point"]
        ] == [
            ("pre-stack-create", None),
            ("pre-stack-update", ["a"]),
            ("pre-stack-update", None),
            ("pre-stack-rollback", None),
        ]


async def rejected(person: Person, point: str) -> None:
    reason = (await person.stack("s"))["stack_status_reason"]
    assert f"{point} rejected by subscription policy: by policy" in reason


def created(resources: dict[str, Json]) -> set[str]:
    """Names of the resources that exist."""
    return {name for name, one in resources.items() if one["physical_resource_id"]}
