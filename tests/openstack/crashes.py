"""Server processes that die between the creation of an object and the commit of its ID."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.openstack.cloud import OpenStack
from tests.openstack.headgate import keystone_settings
from tests.openstack.neutron_stacks import ended
from tests.support.program import Http, ServerProcess

Json = Any


def in_sequence(resources: Mapping[str, Json]) -> dict[str, Json]:
    """The resources, each after the one before it."""
    names = list(resources)
    return {
        name: {**resources[name], "depends_on": names[number - 1 : number]}
        for number, name in enumerate(names)
    }


def settings_file(openstack: OpenStack, more: Mapping[str, str] | None = None) -> str:
    """The settings of a server process in TOML. more: further ones, by section and name."""
    auth = keystone_settings(openstack)
    keystone = {
        name.removeprefix("auth.keystone."): value
        for name, value in auth.items()
        if name.startswith("auth.keystone.")
    }
    lines = "\n".join(f'{name} = "{value}"' for name, value in keystone.items())
    sections: dict[str, list[str]] = {}
    for key, value in (more or {}).items():
        section, _, name = key.rpartition(".")
        sections.setdefault(section, []).append(f'{name} = "{value}"')
    added = "".join(f"[{one}]\n" + "\n".join(pairs) + "\n" for one, pairs in sections.items())
    return (
        f'[auth]\nmode = "keystone"\n[auth.keystone]\n{lines}\n'
        f'[resource_types.openstack]\nenabled = true\n[engine]\nlease = "2s"\npoll = "1s"\n{added}'
    )


async def die_after_each(
    server: ServerProcess,
    http: Http,
    resources: Mapping[str, Json],
    calls: Mapping[str, int] | None = None,
) -> str:
    """Create the stack `s` with a server that dies after the creation of each resource; return the
    status at the end. calls: the call of its operation that creates a resource, if it is not the
    first one."""
    for number, name in enumerate(resources):
        count = (calls or {}).get(name, 1)
        await asyncio.to_thread(server.start, fault=f"worker.judge@{name}:{count}:kill")
        if number == 0:
            await http.create("s", in_sequence(resources))
        assert await is_dead(server), name
    await asyncio.to_thread(server.start)
    return await ended(http)


async def is_dead(server: ServerProcess) -> bool:
    """Whether the process dies while it works on the stack."""
    for _ in range(300):
        if not server.is_running:
            return True
        await asyncio.sleep(0.1)
    return False
