"""Key pairs, server groups and flavors on a real OpenStack, through a Headgate server."""

from typing import Any

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
)

from engine.hot.expressions.masking import MASK
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
)
from tests.support.program import Program

__all__ = ["admin_run", "run"]  # fixtures
Json = Any
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f test"


def key_pair(**properties: Json) -> Json:
    return {"type": "OS::Nova::KeyPair", "properties": {"name": "k", **properties}}


async def test_a_key_pair_is_made_and_its_private_key_is_secret(
    run: Program, project: Project
) -> None:
    outputs = {"private": {"value": {"get_attr": ["k", "private_key"]}}}
    resources = {"k": key_pair(), "s": server(key_name={"get_resource": "k"})}
    made = {"heat_template_version": "2018-08-31", "resources": resources, "outputs": outputs}
    await create(run, {}, template=made)
    (found,) = project.cloud.compute.servers()
    assert found.key_name == "k"
    public = project.cloud.compute.get_keypair("k").public_key
    shown = await resource_of(run, "s", "k")
    assert shown["attributes"]["private_key"] == MASK
    (output,) = (await run.stack("s"))["outputs"]  # outputs of a root stack show secrets
    private = load_ssh_private_key(output["output_value"].encode(), None).public_key()
    assert public.startswith(private.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())
    # The key pair's name is no secret, nor is what the server has from it.
    attributes = (await resource_of(run, "s", "s"))["attributes"]
    assert attributes["show"]["key_name"] == "k"
    await delete(run)


async def test_a_key_pair_of_another_is_not_taken(run: Program, project: Project) -> None:
    project.cloud.compute.create_keypair(name="k", public_key=PUBLIC_KEY)
    await run.create("s", {"a": key_pair(public_key=PUBLIC_KEY)})
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert 'there is a key pair "k" already' in await reason(run, "s")
    await delete(run)
    assert project.cloud.compute.find_keypair("k") is not None
    project.cloud.compute.delete_keypair("k")
    await create(run, {"a": key_pair(public_key=PUBLIC_KEY)})
    await update(run, {"a": key_pair(name="other", public_key=PUBLIC_KEY)})
    assert [one.name for one in project.cloud.compute.keypairs()] == ["other"]
    await delete(run)


async def test_a_server_group_places_servers(run: Program, project: Project) -> None:
    group = {"type": "OS::Nova::ServerGroup", "properties": {"policies": ["affinity"]}}
    hints = {"group": {"get_resource": "g"}}
    resources = {name: server(name=name, scheduler_hints=hints) for name in "ab"}
    await create(run, {"g": group, **resources})
    (found,) = project.cloud.compute.server_groups()
    assert found.policy == "affinity" and len(found.member_ids) == 2
    await delete(run)


async def test_a_flavor(admin_run: Program, openstack: OpenStack) -> None:
    def flavor(**properties: Json) -> Json:
        return {"type": "OS::Nova::Flavor", "properties": {"ram": 64, "vcpus": 1, **properties}}

    compute: Any = openstack.admin.compute
    names = {"name": f"f-{admin_run.project[:8]}", "is_public": False}
    specs: Json = {"extra_specs": {"hw:cpu_policy": "shared"}}
    await create(admin_run, {"f": flavor(**names, **specs)})
    found = compute.find_flavor(names["name"], get_extra_specs=True)
    assert (found.ram, found.is_public) == (64, False)
    assert found.extra_specs == {"hw:cpu_policy": "shared"}
    specs = {"extra_specs": {"hw:mem_page_size": "small"}, "tenants": [admin_run.project]}
    await update(admin_run, {"f": flavor(**names, **specs)})
    changed = compute.find_flavor(names["name"], get_extra_specs=True)
    assert (changed.id, changed.extra_specs) == (found.id, {"hw:mem_page_size": "small"})
    access = list(compute.get_flavor_access(changed.id))
    assert [one["tenant_id"] for one in access] == [admin_run.project]
    await delete(admin_run)
    assert compute.find_flavor(names["name"]) is None


async def test_an_aggregate_and_limits(
    admin_run: Program, openstack: OpenStack, project: Project
) -> None:
    compute: Any = openstack.admin.compute

    def aggregate(**properties: Json) -> Json:
        usual = {"name": f"aggregate-{project.id[:8]}"}
        return {"type": "OS::Nova::HostAggregate", "properties": {**usual, **properties}}

    def quota(**limits: Json) -> Json:
        named = {"project": project.id}
        return {"type": "OS::Nova::Quota", "properties": {**named, **limits}}

    (host, *_) = [one.host for one in compute.services(binary="nova-compute")]
    resources = {
        "g": aggregate(metadata={"a": 1, "b": "2"}, hosts=[host]),
        "q": quota(instances=3, cores=-1, injected_files=2),
    }
    await create(admin_run, resources)
    (found,) = [one for one in compute.aggregates() if one.name.endswith(project.id[:8])]
    assert (found.metadata, found.hosts) == ({"a": "1", "b": "2"}, [host])
    assert compute.get_quota_set(project.id).instances == 3
    name = {"name": f"other-aggregate-{project.id[:8]}"}
    await update(admin_run, {"g": aggregate(metadata={"a": "3"}, **name), "q": quota(instances=5)})
    changed = compute.get_aggregate(found.id)
    assert (changed.name, changed.metadata, changed.hosts) == (name["name"], {"a": "3"}, [])
    assert compute.get_quota_set(project.id).instances == 5
    await update(admin_run, {"g": aggregate(hosts=[host], **name)})
    defaults = compute.get_quota_set_defaults(project.id)
    assert compute.get_quota_set(project.id).instances == defaults.instances
    await delete(admin_run)
    assert compute.find_aggregate(name["name"]) is None
