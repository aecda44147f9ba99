"""OS::Glance::WebImage on a real OpenStack, through a Headgate server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from aiohttp import web

from tests.openstack.cloud import Project
from tests.openstack.stacks import create, delete, reason, resource_of, run, update
from tests.support.program import Program

__all__ = ["run"]  # a fixture
Json = Any


@pytest_asyncio.fixture
async def source() -> AsyncIterator[str]:
    """The URL of a server that has one file, `image`."""

    async def read(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 1024)

    app = web.Application()
    app.router.add_get("/image", read)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def image(location: str, **properties: Json) -> Json:
    usual = {"location": location, "disk_format": "raw", "container_format": "bare"}
    return {"type": "OS::Glance::WebImage", "properties": {**usual, **properties}}


async def test_an_image_is_downloaded_and_changed(
    run: Program, project: Project, source: str
) -> None:
    images: Any = project.cloud.image
    location = f"{source}/image"
    before = {"name": "one", "tags": ["a"], "os_distro": "debian", "extra_properties": {"p": 1}}
    await create(run, {"a": image(location, **before)})
    image_id = (await resource_of(run, "s"))["physical_resource_id"]
    found = images.get_image(image_id)
    assert (found.name, found.status, found.size) == ("one", "active", 1024)
    assert (found.tags, found.os_distro, found.properties["p"]) == (["a"], "debian", "1")
    after = {"name": "one", "tags": ["b"], "extra_properties": {"q": "2"}, "active": False}
    await update(run, {"a": image(location, **after)})
    found = images.get_image(image_id)
    assert (found.status, found.tags) == ("deactivated", ["b"])
    assert found.os_distro is None and found.properties.get("p") is None
    assert found.properties["q"] == "2"
    await update(run, {"a": image(location, name="two")})
    renamed = (await resource_of(run, "s"))["physical_resource_id"]
    assert renamed != image_id and images.get_image(renamed).name == "two"
    await delete(run)


async def test_a_failed_download_says_why(run: Program, source: str) -> None:
    await run.create("s", {"a": image(f"{source}/absent")})
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "Glance could not download the image" in await reason(run, "s")
    await delete(run)
