"""Changing a stack safely, undoing and carrying it elsewhere, with the unmodified `openstack`."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.test_openstack_client import Client, documents
from tests.support.past import Past
from tests.support.program import ServerProcess, resource, template


def holding(**values: str) -> Any:
    return template({one: resource(value) for one, value in values.items()})


def written(client: Client, **values: str) -> Path:
    return client.file("t.yaml", json.dumps(holding(**values)))


def test_dry_runs(server: ServerProcess, tmp_path: Path) -> None:
    client, past = Client(server, "dry-runs", tmp_path), Past(server, "dry-runs")
    two = written(client, a="2", c="1")
    past.make("dry", holding(a="1", b="1"))
    said = client.session(
        f"stack create -t {two} --dry-run new -f json",
        "stack list -f json",
        f"stack update -t {two} --dry-run dry -f json",
        "stack resource list dry -f json",
    )
    planned, listed, changes, after = documents(said)
    assert {one["resource_name"] for one in planned["resources"]} == {"a", "c"}
    assert [one["Stack Name"] for one in listed] == ["dry"]
    found = {kind: [one["resource_name"] for one in of] for kind, of in changes.items()}
    assert {kind: of for kind, of in found.items() if of} == {
        "updated": ["a"], "deleted": ["b"], "added": ["c"],
    }  # fmt: skip
    assert {one["resource_name"] for one in after} == {"a", "b"}


def test_an_update_is_cancelled_both_ways(server: ServerProcess, tmp_path: Path) -> None:
    client, past = Client(server, "cancels", tmp_path), Past(server, "cancels")
    two = written(client, a="2")
    past.make("s", holding(a="1"))
    gate = client.file("gate", "resource_registry: {resources: {a: {hooks: pre-update}}}")
    update = f"stack update -t {two} -e {gate} s -f value -c id"
    client.session(update, "stack cancel s -f value -c ID")
    past.until("s", "ROLLBACK_COMPLETE")
    held, failed = documents(
        client.session(
            update,
            "stack show s -f json",
            "stack cancel --no-rollback s -f value -c ID",
            "stack show s -f json",
        )
    )
    assert held["stack_status"] == "UPDATE_IN_PROGRESS"
    assert failed["stack_status"] == "UPDATE_FAILED"
    assert "not in cancelable state" in client.run("stack", "cancel", "s", code=1)


def test_check_suspend_resume_and_marks(server: ServerProcess, tmp_path: Path) -> None:
    client, past = Client(server, "rests", tmp_path), Past(server, "rests")
    past.make("s", holding(a="1"))
    client.session("stack check s")
    past.until("s", "CHECK_COMPLETE")
    client.session("stack suspend s")
    past.until("s", "SUSPEND_COMPLETE")
    client.session("stack resume s")
    past.until("s", "RESUME_COMPLETE")
    marked, reset = documents(
        client.session(
            "stack resource mark unhealthy s a smells",
            "stack resource show s a -f json",
            "stack resource mark unhealthy --reset s a",
            "stack resource show s a -f json",
        )
    )
    assert marked["resource_status"] == "CHECK_FAILED"
    assert marked["resource_status_reason"] == "smells"
    assert reset["resource_status"] == "CHECK_COMPLETE"


def test_snapshots(server: ServerProcess, tmp_path: Path) -> None:
    client, past = Client(server, "snapshots", tmp_path), Past(server, "snapshots")
    two = written(client, a="2", b="2")
    past.make("s", holding(a="1"))
    (made,) = documents(
        client.session(
            "stack snapshot create --name good s -f json",
        )
    )
    number = made["ID"]
    past.until("s", "SNAPSHOT_COMPLETE")
    listed, shown = documents(
        client.session(
            "stack snapshot list s -f json",
            f"stack snapshot show s {number} -f json",
            f"stack update -t {two} s -f value -c id",
        )
    )
    assert [(one["name"], one["status"]) for one in listed] == [("good", "COMPLETE")]
    assert shown["snapshot"]["data"]["template"]["resources"].keys() == {"a"}
    past.until("s", "UPDATE_COMPLETE")
    client.session(f"stack snapshot restore s {number}")
    past.until("s", "RESTORE_COMPLETE")
    after, left = documents(
        client.session(
            "stack resource list s -f json",
            f"stack snapshot delete -y s {number}",
            "stack snapshot list s -f json",
        )
    )
    assert {one["resource_name"] for one in after} == {"a"} and left == []
    assert "not found" in client.run("stack", "snapshot", "restore", "s", number, code=1)


def test_export_abandon_and_adopt(server: ServerProcess, tmp_path: Path) -> None:
    client, past = Client(server, "carried", tmp_path), Past(server, "carried")
    exported, parcel = tmp_path / "exported", tmp_path / "parcel"
    past.make("s", holding(a="1"))
    real = past.physical("s")
    client.session(
        f"stack export s --output-file {exported}",
        f"stack abandon s --output-file {parcel}",
        f"stack adopt --adopt-file {parcel} again -f value -c id",
    )
    past.until("again", "ADOPT_COMPLETE")
    (after,) = documents(client.session("stack resource list again -f json"))
    assert json.loads(exported.read_text())["resources"].keys() == {"a"}
    assert {one["resource_name"]: one["physical_resource_id"] for one in after} == real
    assert after[0]["resource_status"] == "ADOPT_COMPLETE"
    assert "Stack not found: s" in client.run("stack", "show", "s", code=1)
