"""A bare concurrent client of OpenStack: servers with ports and volumes, with as few requests as
possible. What it needs is the limit for any orchestration."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Self

import aiohttp

from tests.openstack.cloud import Project

Json = Any
#: Requests at the same time.
CONCURRENT = 16
#: Seconds until the objects must be ready, and between two lists.
PATIENCE, PAUSE = 3_600.0, 1.0
SERVICES: Mapping[str, str] = {
    "nova": "compute", "neutron": "network", "cinder": "block-storage",
}  # fmt: skip


class BareClient:
    """urls: of the services, with the API version."""

    def __init__(
        self, urls: Mapping[str, str], session: aiohttp.ClientSession, flavor: str, image: str
    ) -> None:
        self._urls, self._session = urls, session
        self._flavor, self._image = flavor, image
        self._at_once = asyncio.Semaphore(CONCURRENT)
        self._network = ""
        self._ports: list[str] = []
        self._servers: list[str] = []
        self._volumes: list[str] = []

    @classmethod
    def of(cls, project: Project, session: aiohttp.ClientSession) -> Self:
        """Blocks. session: with a token of the project."""
        cloud = project.cloud
        urls = {
            name: str(cloud.session.get_endpoint(service_type=kind, interface="public"))
            for name, kind in SERVICES.items()
        }
        urls["neutron"] = f"{urls['neutron'].rstrip('/').removesuffix('/v2.0')}/v2.0"
        flavor = cloud.compute.find_flavor("m1.nano", ignore_missing=False)
        image = cloud.image.find_image("cirros", ignore_missing=False)
        return cls(urls, session, flavor.id, image.id)

    async def create(self, count: int) -> None:
        """Return when all servers have their volume."""
        network = await self._post("neutron", "/networks", {"network": {"name": "bare"}})
        self._network = network["network"]["id"]
        subnet = {"network_id": self._network, "ip_version": 4, "cidr": "10.61.0.0/16"}
        await self._post("neutron", "/subnets", {"subnet": subnet})
        async with asyncio.TaskGroup() as group:
            servers = [group.create_task(self._create_server()) for _ in range(count)]
            volumes = [group.create_task(self._create_volume()) for _ in range(count)]
        self._servers = [one.result() for one in servers]
        self._volumes = [one.result() for one in volumes]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._until("nova", "servers", "ACTIVE", self._servers))
            group.create_task(self._until("cinder", "volumes", "available", self._volumes))
        await self._each(self._attach, zip(self._servers, self._volumes, strict=True))
        await self._until("cinder", "volumes", "in-use", self._volumes)

    async def delete(self) -> None:
        await self._each(lambda one: self._delete("nova", f"/servers/{one}"), self._servers)
        await self._until("nova", "servers", None, self._servers)
        await self._until("cinder", "volumes", "available", self._volumes)
        await self._each(lambda one: self._delete("cinder", f"/volumes/{one}"), self._volumes)
        await self._each(lambda one: self._delete("neutron", f"/ports/{one}"), self._ports)
        await self._delete("neutron", f"/networks/{self._network}")
        await self._until("cinder", "volumes", None, self._volumes)

    async def _create_server(self) -> str:
        port = await self._post("neutron", "/ports", {"port": {"network_id": self._network}})
        port_id = str(port["port"]["id"])
        self._ports.append(port_id)
        body = {
            "name": "bare", "flavorRef": self._flavor, "imageRef": self._image,
            "networks": [{"port": port_id}],
        }  # fmt: skip
        return str((await self._post("nova", "/servers", {"server": body}))["server"]["id"])

    async def _create_volume(self) -> str:
        created = await self._post("cinder", "/volumes", {"volume": {"size": 1, "name": "bare"}})
        return str(created["volume"]["id"])

    async def _attach(self, pair: tuple[str, str]) -> None:
        server, volume = pair
        body = {"volumeAttachment": {"volumeId": volume}}
        await self._post("nova", f"/servers/{server}/os-volume_attachments", body)

    async def _until(self, service: str, key: str, status: str | None, ids: Iterable[str]) -> None:
        """Until all objects have a status; None: until they are gone."""
        async with asyncio.timeout(PATIENCE):
            while True:
                listed = await self._call(service, "GET", f"/{key}/detail?limit=1000")
                found = {one["id"]: one["status"] for one in listed[key]}
                if all(found.get(one) == status for one in ids):
                    return
                await asyncio.sleep(PAUSE)

    async def _each(self, send: Callable[[Any], Awaitable[None]], objects: Iterable[Any]) -> None:
        async def sent(one: Any) -> None:
            await send(one)

        async with asyncio.TaskGroup() as group:
            for one in objects:
                group.create_task(sent(one))

    async def _post(self, service: str, path: str, body: Json) -> Json:
        return await self._call(service, "POST", path, body)

    async def _delete(self, service: str, path: str) -> None:
        await self._call(service, "DELETE", path)

    async def _call(self, service: str, method: str, path: str, body: Json = None) -> Json:
        async with (
            self._at_once,
            self._session.request(method, f"{self._urls[service]}{path}", json=body) as answer,
        ):
            assert answer.status < 300, f"{method} {path}: {await answer.text()}"
            return await answer.json() if answer.content_type == "application/json" else None
