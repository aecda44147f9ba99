"""Changing a stack safely, undoing and carrying it elsewhere, with the unmodified `openstack`."""

import json
import time
import urllib.request
from pathlib import Path

from tests.e2e.test_openstack_client import Client, documents
from tests.support.program import PATIENCE, ServerProcess, resource, template


def written(client: Client, name: str, **values: str) -> Path:
    of = {one: resource(value) for one, value in values.items()}
    return client.file(name, json.dumps(template(of)))


def until(server: ServerProcess, project: str, name: str, status: str) -> None:
    """The client looks every five seconds while it waits; this does not."""
    deadline, found = time.monotonic() + PATIENCE, ""
    while found != status:
        assert time.monotonic() < deadline, found
        address = f"{server.url}/v1/{project}/stacks/{name}"
        with urllib.request.urlopen(address, timeout=PATIENCE) as said:
            found = json.load(said)["stack"]["stack_status"]
        time.sleep(0.05)


def test_dry_runs(server: ServerProcess, tmp_path: Path) -> None:
    client = Client(server, "dry-runs", tmp_path)
    one, two = written(client, "one", a="1", b="1"), written(client, "two", a="2", c="1")
    said = client.session(
        f"stack create -t {one} --dry-run dry -f json",
        "stack list -f json",
        f"stack create -t {one} --wait --poll 1 dry -f json",
        f"stack update -t {two} --dry-run dry -f json",
        "stack resource list dry -f json",
    )
    planned, before, _, changes, after = documents(said)
    assert {one["resource_name"] for one in planned["resources"]} == {"a", "b"}
    assert before == []
    found = {kind: [one["resource_name"] for one in of] for kind, of in changes.items()}
    assert {kind: of for kind, of in found.items() if of} == {
        "updated": ["a"], "deleted": ["b"], "added": ["c"],
    }  # fmt: skip
    assert {one["resource_name"] for one in after} == {"a", "b"}


def test_an_update_is_cancelled_both_ways(server: ServerProcess, tmp_path: Path) -> None:
    client = Client(server, "cancels", tmp_path)
    one, two = written(client, "one", a="1"), written(client, "two", a="2")
    gate = client.file("gate", "resource_registry: {resources: {a: {hooks: pre-update}}}")
    update = f"stack update -t {two} -e {gate} s -f value -c id"
    create = f"stack create -t {one} --wait --poll 1 s -f value -c id"
    client.session(create, update, "stack cancel s -f value -c ID")
    until(server, "cancels", "s", "ROLLBACK_COMPLETE")
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
    client = Client(server, "rests", tmp_path)
    one = written(client, "one", a="1")
    client.session(f"stack create -t {one} --wait --poll 1 s -f value -c id", "stack check s")
    until(server, "rests", "s", "CHECK_COMPLETE")
    client.session("stack suspend s")
    until(server, "rests", "s", "SUSPEND_COMPLETE")
    client.session("stack resume s")
    until(server, "rests", "s", "RESUME_COMPLETE")
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
    client = Client(server, "snapshots", tmp_path)
    one, two = written(client, "one", a="1"), written(client, "two", a="2", b="2")
    (made,) = documents(
        client.session(
            f"stack create -t {one} --wait --poll 1 s -f value -c id",
            "stack snapshot create --name good s -f json",
        )
    )
    number = made["ID"]
    until(server, "snapshots", "s", "SNAPSHOT_COMPLETE")
    listed, shown = documents(
        client.session(
            "stack snapshot list s -f json",
            f"stack snapshot show s {number} -f json",
            f"stack update -t {two} s -f value -c id",
        )
    )
    assert [(one["name"], one["status"]) for one in listed] == [("good", "COMPLETE")]
    assert shown["snapshot"]["data"]["template"]["resources"].keys() == {"a"}
    until(server, "snapshots", "s", "UPDATE_COMPLETE")
    client.session(f"stack snapshot restore s {number}")
    until(server, "snapshots", "s", "RESTORE_COMPLETE")
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
    client = Client(server, "carried", tmp_path)
    one, exported, parcel = written(client, "one", a="1"), tmp_path / "exp", tmp_path / "parcel"
    (before,) = documents(
        client.session(
            f"stack create -t {one} --wait --poll 1 s -f value -c id",
            "stack resource list s -f json",
            f"stack export s --output-file {exported}",
            f"stack abandon s --output-file {parcel}",
            f"stack adopt --adopt-file {parcel} again -f value -c id",
        )
    )
    until(server, "carried", "again", "ADOPT_COMPLETE")
    (after,) = documents(client.session("stack resource list again -f json"))
    assert json.loads(exported.read_text())["resources"].keys() == {"a"}
    assert after[0]["physical_resource_id"] == before[0]["physical_resource_id"]
    assert after[0]["resource_status"] == "ADOPT_COMPLETE"
    assert "Stack not found: s" in client.run("stack", "show", "s", code=1)
