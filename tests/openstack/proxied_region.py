"""A region of the cloud whose network service can be away, without disturbing other users."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from tests.openstack.cloud import OpenStack, identity_of

Json = Any


class Proxy:
    """Forwards connections to a service. is_away: closes them at once. refused: how many. lines: of
    the requests that were sent, the first of each part that was received."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self.is_away = False
        self.refused = 0
        self.lines: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_away:
            self.refused += 1
            writer.close()
            return
        upstream, downstream = await asyncio.open_connection(*self._target)
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(reader, downstream, self.lines))
            group.create_task(_copy(upstream, writer, []))


async def _copy(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, lines: list[str]
) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65536):
            lines.append(data.partition(b"\r\n")[0].decode(errors="replace"))
            target.write(data)
            await target.drain()
    target.close()


@asynccontextmanager
async def proxied_region(openstack: OpenStack, name: str) -> AsyncIterator[Proxy]:
    """A new region of this name, with the services of the cloud and a proxy before Neutron."""
    endpoints = await asyncio.to_thread(_public_endpoints, openstack)
    url = urlsplit(endpoints["network"].url)
    proxy = Proxy(str(url.hostname), int(url.port or 80))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    proxied = url._replace(netloc=f"127.0.0.1:{port}").geturl()
    created = await asyncio.to_thread(_create_region, openstack, name, endpoints, proxied)
    try:
        yield proxy
    finally:
        await asyncio.to_thread(_delete_region, openstack, name, created)
        server.close()


def _public_endpoints(openstack: OpenStack) -> dict[str, Any]:
    """The public endpoint of each service, by type."""
    api = identity_of(openstack.admin)
    types = {one.id: str(one.type) for one in api.services()}
    return {
        types[one.service_id]: one
        for one in api.endpoints(interface="public")
        if one.region_id == openstack.region
    }


def _create_region(
    openstack: OpenStack, name: str, endpoints: dict[str, Any], network_url: str
) -> list[str]:
    """Returns the IDs of the endpoints."""
    api = identity_of(openstack.admin)
    api.create_region(id=name)
    return [
        str(
            api.create_endpoint(
                service_id=one.service_id,
                interface="public",
                region_id=name,
                url=network_url if kind == "network" else one.url,
            ).id
        )
        for kind, one in endpoints.items()
    ]


def _delete_region(openstack: OpenStack, name: str, endpoint_ids: list[str]) -> None:
    api = identity_of(openstack.admin)
    for one in endpoint_ids:
        api.delete_endpoint(one)
    api.delete_region(name)
