"""OS::Cinder::Volume and VolumeAttachment on a real OpenStack, through a Headgate server."""

from typing import Any

import pytest

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.stacks import (
    admin_run,
    create,
    delete,
    reason,
    resource_of,
    run,
    server,
    update,
    update_until_ended,
    volume,
)
from tests.support.program import Program, template

__all__ = ["admin_run", "run"]  # fixtures
Json = Any


def only_volume(project: Project) -> Any:
    (found,) = project.cloud.block_storage.volumes()
    return found


async def test_a_volume_is_created_updated_and_deleted(run: Program, project: Project) -> None:
    before = {"name": "data", "description": "d", "metadata": {"a": 1}}
    await create(run, {"a": volume(**before)})
    found = only_volume(project)
    assert (found.name, found.size, found.status) == ("data", 1, "available")
    assert found.metadata["a"] == "1"
    attributes = (await resource_of(run, "s"))["attributes"]
    assert (attributes["size"], attributes["metadata_values"]) == ("1", {"a": "1"})
    after = {
        "name": "more",
        "metadata": {"b": "2"},
        "size": 2,
        "volume_type": "__DEFAULT__",
        "read_only": True,
    }
    await update(run, {"a": volume(**after)})
    changed = only_volume(project)
    assert (changed.id, changed.name, changed.size) == (found.id, "more", 2)
    assert (changed.volume_type, changed.description) == ("__DEFAULT__", None)
    assert changed.metadata["b"] == "2" and "a" not in changed.metadata
    assert changed.metadata["readonly"] == "True"
    attributes = (await resource_of(run, "s"))["attributes"]
    assert (
        attributes["metadata_values"] == {"b": "2"} and attributes["volume_type"] == "__DEFAULT__"
    )
    elsewhere = {"a": volume(**{**after, "volume_type": "other"})}
    assert await update_until_ended(run, elsewhere) == "UPDATE_FAILED"
    assert "Volume retype failed: Cinder does not move" in await reason(run, "s")
    assert await update_until_ended(run, {"a": volume(**{**after, "size": 1})}) == "UPDATE_FAILED"
    assert "Shrinking volume is not supported: it has 2 GiB" in await reason(run, "s")
    await delete(run)


async def test_what_a_volume_is_made_from(run: Program, project: Project) -> None:
    resources = {
        "a": volume(image="cirros"),
        "b": {"type": "OS::Cinder::Volume", "properties": {"source_volid": {"get_resource": "a"}}},
    }
    await create(run, resources)
    found = {one.name: one for one in project.cloud.block_storage.volumes()}
    assert {one.status for one in found.values()} == {"available"} and len(found) == 2
    assert (await resource_of(run, "s"))["attributes"]["bootable"] == "true"
    await delete(run)


FAILURES: dict[str, tuple[Json, str]] = {
    "backend": ({"name": "testbed-create-fails"}, 'Went to status error due to "'),
    "size": ({"size": None}, "size is missing"),
    "image": ({"image": "cirro"}, 'Did you mean "cirros"?'),
    "type": ({"volume_type": "no-such"}, "no-such"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_the_reason_of_a_failure(run: Program, name: str) -> None:
    change, expected = FAILURES[name]
    body = {"stack_name": "s", "template": template({"a": volume(**change)})}
    status, response = await run.call("POST", "/stacks", body)
    if status == 400:  # the constraint of the property knows before anything is created
        assert expected in str(response)
        return
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert expected in await reason(run, "s")
    assert "Unknown" not in await reason(run, "s")
    await delete(run)


async def test_a_failed_extension_says_why(run: Program) -> None:
    await create(run, {"a": volume()})
    change = {"a": volume(name="testbed-extend-fails", size=2)}
    await update(run, {"a": volume(name="testbed-extend-fails")})
    assert await update_until_ended(run, change) == "UPDATE_FAILED"
    found = await reason(run, "s")
    assert "Volume resize failed - Went to status error_extending due to" in found
    assert "Unknown" not in found
    await delete(run)


def attachment(server_name: str, volume_name: str, **more: Json) -> Json:
    named = {
        "instance_uuid": {"get_resource": server_name},
        "volume_id": {"get_resource": volume_name},
    }
    return {"type": "OS::Cinder::VolumeAttachment", "properties": {**named, **more}}


def attached(project: Project) -> dict[str, list[str]]:
    """The IDs of servers, by name of the volume."""
    return {
        one.name: [str(at["server_id"]) for at in one.attachments]
        for one in project.cloud.block_storage.volumes()
    }


async def test_an_attachment_moves_to_another_server_and_volume(
    run: Program, project: Project
) -> None:
    fixed = {
        "x": server(name="x"),
        "y": server(name="y"),
        "v": volume(name="v"),
        "w": volume(name="w"),
    }
    await create(run, {**fixed, "a": attachment("x", "v")})
    ids = {one.name: one.id for one in project.cloud.compute.servers()}
    assert attached(project) == {"v": [ids["x"]], "w": []}
    first = (await resource_of(run, "s"))["physical_resource_id"]
    await update(run, {**fixed, "a": attachment("y", "v")})
    assert attached(project) == {"v": [ids["y"]], "w": []}
    assert (await resource_of(run, "s"))["physical_resource_id"] == first
    await update(run, {**fixed, "a": attachment("y", "w")})
    assert attached(project) == {"v": [], "w": [ids["y"]]}
    # An attached volume grows.
    fixed["w"] = volume(name="w", size=2)
    await update(run, {**fixed, "a": attachment("y", "w")})
    await update(run, fixed)
    assert attached(project) == {"v": [], "w": []}
    await delete(run)


async def test_types_of_volumes_and_limits(
    admin_run: Program, openstack: OpenStack, project: Project
) -> None:
    storage: Any = openstack.admin.block_storage
    name = f"type-{project.id[:8]}"

    def resources(limit: int, key_size: int, **specs: Json) -> Json:
        typed = {"name": name, "is_public": False, "projects": [project.id], "metadata": specs}
        volume_type = {"get_resource": "t"}
        encryption = {"volume_type": volume_type, "provider": "luks", "key_size": key_size}
        association = {"qos_specs": {"get_resource": "s"}, "volume_types": [volume_type]}
        return {
            "t": {"type": "OS::Cinder::VolumeType", "properties": typed},
            "e": {"type": "OS::Cinder::EncryptedVolumeType", "properties": encryption},
            "s": {"type": "OS::Cinder::QoSSpecs", "properties": {"specs": specs}},
            "a": {"type": "OS::Cinder::QoSAssociation", "properties": association},
            "q": {
                "type": "OS::Cinder::Quota",
                "properties": {"project": project.id, "volumes": limit},
            },
        }

    await create(admin_run, resources(3, 256, a="1", b="2"))
    found = storage.find_type(name)
    assert (found.extra_specs, found.is_public) == ({"a": "1", "b": "2"}, False)
    raw = storage.get(f"/types/{found.id}").json()["volume_type"]
    assert raw["qos_specs_id"] is not None
    assert storage.get_type_encryption(found.id).key_size == 256
    assert storage.get_quota_set(project.id).volumes == 3
    await update(admin_run, resources(4, 512, a="3"))
    changed = storage.find_type(name)
    assert (changed.id, changed.extra_specs) == (found.id, {"a": "3"})
    assert storage.get_type_encryption(found.id).key_size == 512
    assert storage.get_quota_set(project.id).volumes == 4
    await delete(admin_run)
    assert storage.find_type(name) is None
