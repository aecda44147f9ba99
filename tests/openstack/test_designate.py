"""Zones and record sets, on a real Designate."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.neutron_stacks import delete as delete_stack
from tests.openstack.neutron_stacks import physical_ids
from tests.openstack.observations import drift_of, observing
from tests.openstack.stacks import create, delete, reason, resource_of, run, update
from tests.support.changes import observed
from tests.support.program import Http, Program, ServerProcess, eventually, template

Json = Any
__all__ = ["observing", "run"]  # fixtures

ZONE = {"get_resource": "zone"}


@pytest.fixture(scope="session", autouse=True)
def designate(openstack: OpenStack) -> None:
    """Designate runs; it starts once per run."""
    openstack.start("designate")


@pytest.fixture
def domain(project: Project) -> str:
    """A name that no other test uses: zones are unique in the cloud."""
    return f"{project.name}.example."


def zone(name: str, **properties: Json) -> Json:
    usual = {"name": name, "email": "dns@example.org"}
    return {"type": "OS::Designate::Zone", "properties": {**usual, **properties}}


def record_set(**properties: Json) -> Json:
    usual = {"zone": ZONE, "type": "A", "records": ["10.0.0.1"]}
    return {"type": "OS::Designate::RecordSet", "properties": {**usual, **properties}}


async def zones(project: Project) -> dict[str, Json]:
    """The zones of the project, by name."""
    found = await asyncio.to_thread(lambda: project.cloud.dns.get("/zones").json()["zones"])
    return {one["name"]: one for one in found}


async def record_sets(project: Project, domain: str) -> dict[str, Json]:
    """The record sets of a zone that Designate has not made itself, by name."""
    path = f"/zones/{(await zones(project))[domain]['id']}/recordsets"
    found = await asyncio.to_thread(lambda: project.cloud.dns.get(path).json()["recordsets"])
    return {one["name"]: one for one in found if one["type"] not in ("SOA", "NS")}


async def test_zones_and_records_live_and_change(
    run: Program, project: Project, domain: str
) -> None:
    resources = {
        "zone": zone(domain, ttl=600, description="first"),
        "www": record_set(name=f"www.{domain}", ttl=60),
        "own": record_set(type="TXT", records=['"a text"']),
    }
    await create(run, resources)
    found = (await zones(project))[domain]
    assert (found["status"], found["ttl"], found["description"]) == ("ACTIVE", 600, "first")
    shown = await resource_of(run, "s", "zone")
    assert shown["physical_resource_id"] == found["id"]
    assert shown["attributes"]["serial"].isdecimal()
    records = await record_sets(project, domain)
    assert records.keys() > {f"www.{domain}"} and all(one.endswith(domain) for one in records)
    assert {one["status"] for one in records.values()} == {"ACTIVE"}
    before = await physical_ids(run)
    changed = {
        "zone": zone(domain, description="second", email="other@example.org"),
        "www": record_set(name=f"www.{domain}", records=["10.0.0.2", "10.0.0.3"]),
        "own": record_set(type="TXT", records=['"another"']),
    }
    await update(run, changed)
    assert await physical_ids(run) == before
    found = (await zones(project))[domain]
    # Designate cannot forget the time to live of a zone.
    assert (found["ttl"], found["description"]) == (600, "second")
    www = (await record_sets(project, domain))[f"www.{domain}"]
    assert (sorted(www["records"]), www["ttl"]) == (["10.0.0.2", "10.0.0.3"], None)
    await delete(run)
    assert await zones(project) == {}


async def test_a_killed_create_finds_its_own_object(
    database_url: str, openstack: OpenStack, project: Project, domain: str, tmp_path: Path
) -> None:
    """A process dies after Designate has created an object, before the result is stored."""
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    resources = {
        "zone": zone(domain),
        "described": zone(f"second.{domain}", description="mine"),
        "www": record_set(name=f"www.{domain}"),
        "own": record_set(description="mine"),
    }
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            # The first call of a create with a description records that there is no such object.
            calls = {"described": 2, "own": 2}
            assert await die_after_each(server, http, resources, calls) == "CREATE_COMPLETE"
            known = await physical_ids(http)
            listed = await zones(project)
            assert {one["id"] for one in listed.values()} == {known["zone"], known["described"]}
            records = await record_sets(project, domain)
            assert {one["id"] for one in records.values()} == {known["www"], known["own"]}
            await delete_stack(http)
            assert await zones(project) == {}
    finally:
        server.kill()


@pytest.mark.parametrize("described", [{}, {"description": "mine"}], ids=["marked", "described"])
async def test_a_zone_of_another_client_is_not_taken(
    run: Program, project: Project, domain: str, described: Json
) -> None:
    body = {"name": domain, "email": "dns@example.org", **described}
    made = await asyncio.to_thread(project.cloud.dns.post, "/zones", json=body)
    assert made.status_code == 202
    await run.create("s", {"zone": zone(domain, **described)})
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "zone" in (found := await reason(run, "s", "zone")).lower()
    assert "already" in found or "Duplicate Zone" in found
    await delete(run)
    assert domain in await zones(project)
    await asyncio.to_thread(project.delete_leftovers)


async def test_a_failure_has_the_words_of_designate(
    run: Program, project: Project, domain: str
) -> None:
    resources = {"zone": zone(domain), "www": record_set(name=f"www.{domain}", records=["x"])}
    await run.create("s", resources)
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "records.0: 'x' is not a 'A' Record" in await reason(run, "s", "www")
    await delete(run)


@pytest.mark.parametrize(
    ("resource", "place"),
    [
        (zone("example.org"), "name"),
        (zone("example.org.", email=None), "email"),
        (zone("example.org.", type="SECONDARY"), "primaries"),
        (record_set(zone="unknown.example.", name="a.b."), "zone"),
    ],
    ids=["no-dot", "no-email", "no-primaries", "unknown-zone"],
)
async def test_a_wrong_property_is_refused_before_anything_is_created(
    run: Program, project: Project, resource: Json, place: str
) -> None:
    body = {"stack_name": "s", "template": template({"a": resource})}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 400
    assert f"resources.a.properties.{place}" in str(response["error"]["findings"])


async def test_a_credential_of_the_project_observes_and_repairs(
    run: Program, project: Project, domain: str
) -> None:
    """The server has no reader: the owner's credential finds drift, and repairs act with it."""
    resources = {"zone": zone(domain), "www": record_set(name=f"www.{domain}")}
    policy = {"convergence": {"observe": {"every": "1h"}, "on_drift": "repair"}}
    await create(run, resources, environment=policy)
    assert (await observed(run))["unobservable_resources"] == 2
    with project.application_credential() as created:
        await hand_over(run, created, repairs=False)
        assert (await observed(run))["observable_resources"] == 2
        before = await physical_ids(run)
        path = f"/zones/{(await zones(project))[domain]['id']}"
        www = (await record_sets(project, domain))[f"www.{domain}"]["id"]
        dns = project.cloud.dns
        await asyncio.to_thread(dns.patch, path, json={"email": "other@example.org"})
        await asyncio.to_thread(dns.delete, f"{path}/recordsets/{www}")
        found = (await observed(run))["resources"]
        states = {one["resource_name"]: one["state"] for one in found}
        assert states == {"zone": "changed", "www": "missing"}

        async def refused() -> bool:
            drift = await run.stack_request("GET", "s", "/drift")
            reasons = [str(one["unrepaired"]) for one in drift["resources"]]
            return all("handed over for observations only" in one for one in reasons)

        await eventually(refused)
        assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"

        await hand_over(run, created, repairs=True)
        await observed(run)

        async def repaired() -> bool:
            return bool((await run.stack("s"))["stack_status"] == "UPDATE_COMPLETE")

        await eventually(repaired)
        after = await physical_ids(run)
        assert after["zone"] == before["zone"] and after["www"] != before["www"]
        assert (await zones(project))[domain]["email"] == "dns@example.org"
        assert f"www.{domain}" in await record_sets(project, domain)
        assert await drift_of(run) == {}
    assert (await run.call("DELETE", "/observation-credential"))[0] == 204
    assert (await observed(run))["unobservable_resources"] == 2
    await delete(run)


async def hand_over(run: Program, created: Any, *, repairs: bool) -> None:
    body = {
        "application_credential_id": created.id,
        "application_credential_secret": created.secret,
        "repairs": repairs,
    }
    status, shown = await run.call("PUT", "/observation-credential", body)
    assert (status, shown.get("repairs")) == (200, repairs), shown


async def test_changes_of_other_clients_are_found_and_repaired(
    observing: Program, project: Project, domain: str
) -> None:
    resources = {"zone": zone(domain), "www": record_set(name=f"www.{domain}")}
    await create(observing, resources)
    assert await drift_of(observing) == {}
    before = await physical_ids(observing)
    path = f"/zones/{(await zones(project))[domain]['id']}"
    www = (await record_sets(project, domain))[f"www.{domain}"]["id"]
    dns = project.cloud.dns
    await asyncio.to_thread(dns.patch, path, json={"email": "other@example.org"})
    await asyncio.to_thread(dns.delete, f"{path}/recordsets/{www}")
    assert await drift_of(observing) == {"zone": ("changed", ["email"]), "www": ("missing", [])}
    await update(observing, resources, converge=True)
    after = await physical_ids(observing)
    assert after["zone"] == before["zone"] and after["www"] != before["www"]
    assert (await zones(project))[domain]["email"] == "dns@example.org"
    assert f"www.{domain}" in await record_sets(project, domain)
    assert await drift_of(observing) == {}
    await delete(observing)
