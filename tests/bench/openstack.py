"""Stacks of servers with ports and volumes on a real OpenStack: Headgate, OpenStack Heat and a bare
client, one after the other on the same cloud.

The requests are those that the services got, also from each other: those of the bare client are
what the objects cost at least. Times include what the cloud needs.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.bench.machine import process_tree_cpu
from tests.bench.openstack_client import BareClient
from tests.bench.run import Run
from tests.bench.server import Server, Settings, running_server
from tests.openstack.cloud import OpenStack, Project, delete_trusts
from tests.openstack.conftest import RUNNING
from tests.openstack.headgate import keystone_settings, reader_settings
from tests.openstack.testbed.control import temporary_testbed

Json = Any
PART = "openstack"
#: The services whose requests are counted.
SERVICES = ("keystone", "nova", "neutron", "cinder", "glance")
#: Seconds until an action of a stack must have ended, and between two requests for its state.
PATIENCE, PAUSE = 3_600.0, 0.5
#: Resources of each server, with itself; and those that all servers share.
EACH, SHARED = 4, 2
TOKEN = "POST /v3/auth/tokens"
#: Processes of Heat.
HEAT = ("heat-engine", "heat")


def servers(count: int, changed: str = "no") -> Json:
    """A template of so many servers. changed: a value in the metadata of the first one."""
    resources: Json = {
        "net": {"type": "OS::Neutron::Net"},
        "subnet": {
            "type": "OS::Neutron::Subnet",
            "properties": {"network": {"get_resource": "net"}, "cidr": "10.60.0.0/16"},
        },
    }
    for number in range(count):
        resources |= {
            f"port{number}": {
                "type": "OS::Neutron::Port",
                "properties": {
                    "network": {"get_resource": "net"},
                    "fixed_ips": [{"subnet": {"get_resource": "subnet"}}],
                },
            },
            f"server{number}": {
                "type": "OS::Nova::Server",
                "properties": {
                    "flavor": "m1.nano",
                    "image": "cirros",
                    "networks": [{"port": {"get_resource": f"port{number}"}}],
                    "metadata": {"changed": changed if number == 0 else "no"},
                },
            },
            f"volume{number}": {"type": "OS::Cinder::Volume", "properties": {"size": 1}},
            f"attachment{number}": {
                "type": "OS::Cinder::VolumeAttachment",
                "properties": {
                    "instance_uuid": {"get_resource": f"server{number}"},
                    "volume_id": {"get_resource": f"volume{number}"},
                },
            },
        }
    return {"heat_template_version": "2018-08-31", "resources": resources}


@dataclass(frozen=True, slots=True)
class Stacks:
    """A client of an Orchestration API. url: of the project."""

    url: str
    session: aiohttp.ClientSession

    async def create(self, name: str, template: Json) -> str:
        """The stack's path below the project, when it is complete."""
        body = {"stack_name": name, "template": template, "timeout_mins": 60}
        stack_id = (await self._call("POST", "/stacks", body))["stack"]["id"]
        path = f"/stacks/{name}/{stack_id}"
        await self._until_complete(path)
        return path

    async def update(self, path: str, template: Json) -> None:
        await self._call("PUT", path, {"template": template, "timeout_mins": 60})
        await self._until_complete(path)

    async def delete(self, path: str) -> None:
        await self._call("DELETE", path)
        await self._until_complete(path)

    async def _until_complete(self, path: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                shown = (await self._call("GET", f"{path}?resolve_outputs=false"))["stack"]
                status = str(shown["stack_status"])
                if not status.endswith("IN_PROGRESS"):
                    assert status.endswith("COMPLETE"), shown["stack_status_reason"]
                    return
                await asyncio.sleep(PAUSE)

    async def _call(self, method: str, path: str, body: Json = None) -> Json:
        async with self.session.request(method, f"{self.url}{path}", json=body) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json() if answer.content_type == "application/json" else None


class Measurement:
    """What a case costs. cpu: seconds of CPU time of the processes that are measured."""

    def __init__(self, run: Run, cloud: OpenStack) -> None:
        self._run, self._cloud = run, cloud

    @asynccontextmanager
    async def of(
        self, case: str, count: int, cpu: Callable[[], float] | None = None, units: int = 0
    ) -> AsyncIterator[None]:
        """units: of the CPU time; default: the resources of so many servers."""
        before, used = self._counts(), cpu() if cpu else 0.0
        started = time.perf_counter()
        yield
        seconds = time.perf_counter() - started
        sent = self._counts() - before
        values: dict[str, float] = {
            "seconds": seconds,
            "requests": sum(sent[one] for one in SERVICES),
        }
        values |= {one: sent[one] for one in SERVICES} | {"tokens": sent[TOKEN]}
        if cpu:
            values["server_cpu"] = (cpu() - used) / (units or EACH * count + SHARED) * 1e6
        self._run.add(PART, case, count, **values)

    def _counts(self) -> Counter[str]:
        """The requests to each service since the cloud began, and those for tokens."""
        found = {one: self._cloud.requests(one) for one in SERVICES}
        counts = Counter({one: len(lines) for one, lines in found.items()})
        counts[TOKEN] = sum(line == TOKEN for line in found["keystone"])
        return counts


async def openstack(run: Run) -> None:
    """On the test bed that HEADGATE_TEST_OPENSTACK names, or on one of its own."""
    running = os.environ.get(RUNNING)
    with ExitStack() as stack:
        directory = await asyncio.to_thread(
            stack.enter_context, nullcontext(Path(running)) if running else temporary_testbed()
        )
        cloud = await asyncio.to_thread(OpenStack, directory, is_shared=True)
        stack.callback(cloud.close)
        await asyncio.to_thread(cloud.start, "heat")
        project = await asyncio.to_thread(stack.enter_context, cloud.project())
        reader = await asyncio.to_thread(stack.enter_context, cloud.reader(f"bench-{project.name}"))
        settings = sections(
            {
                **keystone_settings(cloud),
                **reader_settings(reader, run.postgres.folder),
                "auth.keystone.trusts": True,
                "resource_types.openstack.enabled": True,
            }
        )
        async with (
            running_server(run.postgres, source=run.source, settings=settings) as server,
            aiohttp.ClientSession(headers={"X-Auth-Token": project.token()}) as session,
        ):
            for count in run.servers:
                await measure(run, cloud, project, server, session, count)
        await asyncio.to_thread(delete_trusts, project.cloud)


def sections(values: Mapping[str, object]) -> Settings:
    """Settings by section, from settings by their full names."""
    found: dict[str, dict[str, object]] = {}
    for name, value in values.items():
        section, _, key = name.rpartition(".")
        found.setdefault(section, {})[key] = value
    return found


async def measure(
    run: Run,
    cloud: OpenStack,
    project: Project,
    server: Server,
    session: aiohttp.ClientSession,
    count: int,
) -> None:
    """The bare client, Headgate and Heat with so many servers."""
    measured = Measurement(run, cloud)
    bare = await asyncio.to_thread(BareClient.of, project, session)
    async with measured.of("create: bare client", count):
        await bare.create(count)
    async with measured.of("delete: bare client", count):
        await bare.delete()
    heat_url = await asyncio.to_thread(
        project.cloud.session.get_endpoint, service_type="orchestration", interface="public"
    )
    pids = [int((cloud.directory / "pids" / name).read_text()) for name in HEAT]
    clients: Mapping[str, tuple[str, Callable[[], float]]] = {
        "Headgate": (f"{server.url}/v1/{project.id}", lambda: server.usage().server),
        "Heat": (str(heat_url), lambda: sum(map(process_tree_cpu, pids))),
    }
    for name, (url, cpu) in clients.items():
        stacks = Stacks(url, session)
        async with measured.of(f"create: {name}", count, cpu):
            path = await stacks.create(f"servers{count}", servers(count))
        async with measured.of(f"update one: {name}", count, cpu, units=1):
            await stacks.update(path, servers(count, changed="yes"))
        async with measured.of(f"delete: {name}", count, cpu):
            await stacks.delete(path)
