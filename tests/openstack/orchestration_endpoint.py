"""The Headgate server of a test as the orchestration service in the catalog of the cloud."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from tests.openstack.cloud import OpenStack, identity_of

ORCHESTRATION = "orchestration"


@asynccontextmanager
async def registered_orchestration(openstack: OpenStack, url: str) -> AsyncIterator[None]:
    """The catalog has this URL for the orchestration service, in place of another one."""
    registered = _registered(openstack, url)
    await asyncio.to_thread(registered.__enter__)
    try:
        yield
    finally:
        await asyncio.to_thread(registered.__exit__, None, None, None)


@contextmanager
def _registered(openstack: OpenStack, url: str) -> Iterator[None]:
    api = identity_of(openstack.admin)
    known = next(iter(api.services(type=ORCHESTRATION)), None)
    service = known or api.create_service(type=ORCHESTRATION, name="headgate")
    before = {one.id: one.url for one in api.endpoints(service_id=service.id, interface="public")}
    added = None
    if before:
        for endpoint in before:
            api.update_endpoint(endpoint, url=url)
    else:
        added = api.create_endpoint(
            service_id=service.id, interface="public", region_id=openstack.region, url=url
        )
    try:
        yield
    finally:
        if added is not None:
            api.delete_endpoint(added)
        for endpoint, former in before.items():
            api.update_endpoint(endpoint, url=former)
        if known is None:
            api.delete_service(service)
