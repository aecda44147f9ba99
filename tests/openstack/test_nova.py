"""Key pairs, server groups and flavors on a real OpenStack, through a Headgate server."""

from typing import Any

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
)

from engine.hot.expressions.masking import MASK
from tests.openstack.cloud import OpenStack, Project
from tests.openstack.observations import drift_of, observing
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
from tests.support.changes import observed
from tests.support.program import Program

__all__ = ["admin_run", "observing", "run"]  # fixtures
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


async def test_drift_is_observed_and_repaired(
    observing: Program, openstack: OpenStack, project: Project
) -> None:
    """With the operator's reader. The flavors belong to an administrator, who makes the change."""
    flavor = {"ram": 64, "vcpus": 1, "extra_specs": {"hw:cpu_policy": "shared"}}
    group = {"type": "OS::Nova::ServerGroup", "properties": {"policies": ["affinity"]}}
    resources = {
        "kept": key_pair(name="kept"),
        "lost": key_pair(name="lost"),
        "other": key_pair(name="other", public_key=PUBLIC_KEY),
        "group": group,
        "lost_group": group,
        "public": {"type": "OS::Nova::Flavor", "properties": flavor},
        "private": {"type": "OS::Nova::Flavor", "properties": {**flavor, "is_public": False}},
        "lost_flavor": {"type": "OS::Nova::Flavor", "properties": {**flavor, "is_public": False}},
    }
    user = project.connect(project.add_user(("admin", "member")))
    observing.session.headers["X-Auth-Token"] = str(user.auth_token)
    await create(observing, resources)
    assert await drift_of(observing) == {}
    assert (await observed(observing))["observable_resources"] == len(resources)
    listed = await observing.resources("s")
    ids = {name: one["physical_resource_id"] for name, one in listed.items()}
    compute: Any = user.compute
    compute.delete_keypair("lost")
    compute.delete_keypair("other")
    compute.create_keypair(name="other", public_key=PUBLIC_KEY.replace("AIAAB", "AIAAC"))
    compute.delete_server_group(ids["lost_group"])
    compute.create_flavor_extra_specs(ids["public"], {"hw:mem_page_size": "small"})
    compute.delete_flavor_extra_specs_property(ids["private"], "hw:cpu_policy")
    compute.delete_flavor(ids["lost_flavor"])
    changes = {
        "lost": ("missing", []),
        "other": ("changed", ["public_key"]),
        "lost_group": ("missing", []),
        "public": ("changed", ["extra_specs"]),
        "private": ("changed", ["extra_specs"]),
        "lost_flavor": ("missing", []),
    }
    assert await drift_of(observing) == changes
    compute.delete_keypair("other")
    assert (await drift_of(observing))["other"] == ("missing", [])
    await update(observing, resources, converge=True)
    assert await drift_of(observing) == {}
    found = await observing.resources("s")
    kept = {name for name, one in found.items() if one["physical_resource_id"] == ids[name]}
    assert kept == {"kept", "lost", "other", "group", "public", "private"}
    assert compute.get_keypair("other").public_key == PUBLIC_KEY
    specs = compute.find_flavor(ids["private"], get_extra_specs=True).extra_specs
    assert specs == {"hw:cpu_policy": "shared"}
    await delete(observing)


async def test_a_key_pair_is_observed_by_the_credential_of_its_owner_only(
    run: Program, project: Project
) -> None:
    """The credential of another user of the project does not see it: it is not missing."""
    await create(run, {"k": key_pair(name="mine"), "g": {"type": "OS::Nova::ServerGroup"}})
    with project.application_credential() as own:
        await hand_over(run, own)
        assert (await observed(run))["observable_resources"] == 2
        assert await drift_of(run) == {}
        project.cloud.compute.delete_keypair("mine")
        assert await drift_of(run) == {"k": ("missing", [])}
    user = project.connect(project.add_user(("member",)))
    member = run.session.headers["X-Auth-Token"]
    run.session.headers["X-Auth-Token"] = str(user.auth_token)
    await create(run, {"k": key_pair(name="theirs")}, name="t")
    run.session.headers["X-Auth-Token"] = member
    with project.application_credential() as other:
        await hand_over(run, other)
        (found,) = (await observed(run, "t"))["resources"]
        assert found["state"] == "unknown"
        assert "belongs to the user" in found["reason"]
    run.session.headers["X-Auth-Token"] = str(user.auth_token)
    await delete(run, "t")
    run.session.headers["X-Auth-Token"] = member
    await delete(run)


async def hand_over(run: Program, created: Any) -> None:
    body = {
        "application_credential_id": created.id,
        "application_credential_secret": created.secret,
    }
    status, shown = await run.call("PUT", "/observation-credential", body)
    assert status == 200, shown


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
