"""What questions before a change say is lost."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner

from hub.cli.commands import observation_credential
from hub.cli.commands import resource as resource_commands
from hub.cli.commands.resource import replacement_facts
from hub.cli.commands.stack import delete_facts, rollback_facts
from hub.cli.commands.stack_drift import MAX_RESOURCES, converge_facts
from hub.cli.commands.stack_snapshots import restore_facts
from hub.cli.main import app
from tests.unit.hub.cli.stub import running_stub

STACK = {"id": "1", "stack_name": "web", "stack_status": "UPDATE_IN_PROGRESS", "hooks_waiting": 0}


def resource(name: str, physical_id: str = "p", policy: str = "Delete") -> dict[str, Any]:
    return {
        "headgate_resource_name": name, "resource_name": name, "resource_type": f"T::{name[0]}",
        "physical_resource_id": physical_id, "deletion_policy": policy, "required_by": [],
        "links": [{"rel": "self"}],
    }  # fmt: skip


def test_what_was_replaced_after_the_question_is_not_changed() -> None:
    confirmed = resource("db", "old")
    assert resource_commands.replaced_since(confirmed, resource("db", "old")) == ""
    assert resource_commands.replaced_since(confirmed, resource("db", "new")) == (
        "nothing was changed: the physical ID of db was old in the question, and is new now. Run"
        " the command again."
    )
    old, new = {"application_credential_id": "a"}, {"application_credential_id": "b"}
    assert observation_credential.replaced_since(old, old) == ""
    assert observation_credential.replaced_since(old, new).startswith("nothing was changed: ")


def test_a_delete_counts_existing_resources_and_names_those_that_stay() -> None:
    waiting = STACK | {"stack_status": "CREATE_IN_PROGRESS", "hooks_waiting": 2}
    first = "Stack web (1) is CREATE_IN_PROGRESS, waiting for approval (2) and has"
    existing, planned = [resource("a1"), resource("a2"), resource("b")], [resource("c", "")]
    assert delete_facts(waiting, existing + planned) == [
        f"{first} 3 resources:", "  2 T::a", "  1 T::b"
    ]  # fmt: skip
    assert delete_facts(waiting, planned) == [f"{first} no physical resources."]
    kept = [resource("d", policy="Retain"), resource("e", "", "Retain")]
    assert delete_facts(STACK, existing + kept)[-2:] == [
        "Because of `deletion_policy: Retain`, 1 of them stay:", "  1 T::d"
    ]  # fmt: skip


def test_a_cancel_names_the_version_to_which_it_rolls_back() -> None:
    versions = [{"version": number, "current": number == 4, "reached": number in (1, 2)}
                for number in (4, 3, 2, 1)]  # fmt: skip
    lines = rollback_facts(STACK, versions)
    assert lines[0] == "Stack web (1) is UPDATE_IN_PROGRESS."
    assert "rolled back to version 2: resources" in lines[1]
    assert "rolled back to its last completed version: resources" in rollback_facts(STACK, [])[1]


def test_a_restore_names_the_resources_that_the_snapshot_does_not_have() -> None:
    snapshot = {"creation_time": "2026-11-20T20:16:36Z", "data": {"resources": {"a": {}}}}
    first, *others = restore_facts(snapshot, [resource("a"), resource("b"), resource("c", "")])
    assert "become those of 2026-11-20T20:16:36Z. Later changes are lost." in first
    assert others == ["1 resource, not in the snapshot, will be deleted:", "  1 T::b"]
    assert len(restore_facts(snapshot, [resource("a")])) == 1


def test_a_converge_names_what_it_replaces_and_deletes() -> None:
    changes: dict[str, list[dict[str, str]]] = {
        "added": [], "updated": [{"path": "u", "resource_type": "T"}], "deleted": [],
        "replaced": [{"path": f"r{n}", "resource_type": "T"} for n in range(MAX_RESOURCES + 2)],
        "unchanged": [],
    }  # fmt: skip
    lines = converge_facts({"plan": {"resource_changes": changes}})
    assert lines[0] == "Plan, from the last observation: 1 updated, 12 replaced."
    assert lines[1] == "  replaced: r0 (T)" and lines[-1] == "  and 2 more; see --dry-run"
    refused = {"plan": None, "plan_refused": "it was never observed"}
    assert converge_facts(refused) == ["The plan is not known: it was never observed"]


def test_a_mark_says_what_the_next_update_replaces() -> None:
    marked = resource("db", "x7") | {"required_by": ["app", "web"]}
    assert replacement_facts(marked) == [
        "The next update of the stack replaces db (T::d, physical ID: x7). The old resource is"
        " deleted.",
        "Resources that depend on it, and may change too: app, web.",
    ]
    (line,) = replacement_facts(marked | {"required_by": [], "links": [{"rel": "nested"}]})
    assert line.endswith("The old resource is deleted, with everything in its nested stack.")
    (line,) = replacement_facts(resource("db", "", "Retain"))
    assert "physical ID: none). The old resource stays." in line


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        ("stack delete web", True),
        ("stack cancel web", True),
        ("stack cancel web --no-rollback", False),
        ("stack converge web", True),
        ("stack converge web --plan 00", False),
        ("stack snapshot restore web s", True),
        ("resource mark-unhealthy web a", True),
        ("resource mark-unhealthy web a --reset", False),
    ],
)
async def test_without_a_terminal_nothing_is_changed_but_with_yes(words: str, asks: bool) -> None:
    snapshot = {"id": "7", "name": "s", "creation_time": "", "data": {"resources": {}}}
    changes: dict[str, list[Any]] = {
        kind: [] for kind in ("added", "updated", "replaced", "deleted", "unchanged")
    }
    document = {
        "stack": STACK, "hooks": [], "versions": [], "resources": [resource("a")],
        "resource": resource("a") | {"protected": False}, "snapshots": [snapshot],
        "snapshot": snapshot, "resource_changes": changes,
    }  # fmt: skip

    async def respond(_: web.Request) -> web.StreamResponse:
        return web.json_response(document)

    for yes in ([], ["--yes"]) if asks else ([],):
        async with running_stub(respond) as stub:
            run = CliRunner(env={"NO_COLOR": "1"}).invoke
            done = await asyncio.to_thread(run, app, [*words.split(), *yes, "--url", stub.url])
            changes_sent = [one.method for one in stub.seen if one.method != "GET"]
        refused = asks and not yes
        assert (done.exit_code, len(changes_sent)) == (int(refused), int(not refused)), done.output
        assert ("standard input is not a terminal" in done.stderr) == refused
